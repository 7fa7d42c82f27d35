"""The endpoint picker (EPP): Deployment, Service, account and InferencePool. Source: KS-4.3 to KS-4.5."""

import json
from collections.abc import Callable

from msgspec.structs import replace

from app.hooks.kept import kept_selector
from app.kserve import constants, permissions
from app.kserve.llminferenceservice.observed import ReconcileContext
from app.kserve.llminferenceservice.types import SchedulerSpec
from app.kserve.names import Names, component_labels
from app.kserve.spec import pickerconfig
from app.kserve.spec.effective import EffectiveSpec
from app.kserve.spec.presets.parts import GRPC_PORT, PORTS
from app.kserve.spec.tracing import picker_arguments
from app.kserve.workload import plan as workload
from app.kserve.workload.artifacts import Attachment, attach, with_files
from app.kserve.workload.children import deployment
from app.kserve.workload.topology import replicas, with_account
from app.kube.base import Json
from app.kube.child import child, metadata
from app.kube.objects import ObservedDeployment, ObservedTemplate
from app.kube.podspec import container_named, with_container
from app.workload.engines.commandline import words

_TOKENIZER_FILES = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.json", "merges.txt", "config.json"),
    "generation_config.json",
)
_TLS = "secure-serving"
"""The picker's option, a Boolean of Go."""
_FALSE = frozenset({"0", "f", "false"})
_ELECTION = ("--ha-enable-leader-election", "-ha-enable-leader-election")


def plan_scheduler(
    names: Names,
    spec: SchedulerSpec,
    config: pickerconfig.PickerConfig,
    *,
    managed_account: bool,
    traced: bool = False,
    observed: ObservedDeployment | None,
) -> tuple[workload.DeploymentPlan, workload.AccountPlan]:
    """Plan the endpoint picker; ``managed_account``: ServiceAccounts can be made. The default one has no name.

    ``traced``: it sends traces.
    """
    template = spec.template or {}
    named = template.get("serviceAccountName") or ""
    managed = managed_account and named in ("", names.scheduler_account)
    account = names.scheduler_account if managed else "" if named == names.scheduler_account else named
    base = component_labels(names.service, constants.COMPONENT_SCHEDULER)
    labels = {**base, **(spec.labels or {})}
    pod = _pod(template, account, lambda main: _main(main, spec.replicas, config, traced=traced))
    pod = with_account(pod, observed, "" if managed_account else names.scheduler_account)
    running = observed.spec.selector.match_labels if observed is not None else None
    deployment = workload.DeploymentPlan(
        name=names.scheduler,
        labels=base,
        annotations={},
        selector=kept_selector({key: labels[key] for key in base}, running, labels),
        replicas=replicas(spec.replicas, observed),
        pod=workload.PodPlan(labels, spec.annotations or {}, pod),
    )
    role, binding = names.scheduler_role, names.scheduler_role_binding
    return deployment, workload.AccountPlan(account, managed, base, role, binding, permissions.SCHEDULER_RULES)


def _pod(template: Json, account: str, change: Callable[[Json], Json]) -> Json:
    pod = {key: value for key, value in template.items() if key != "serviceAccountName"}
    if account:
        pod["serviceAccountName"] = account
    return with_container(pod, constants.MAIN, change) if "containers" in pod else pod


def _main(container: Json, replicas: int | None, config: pickerconfig.PickerConfig, *, traced: bool) -> Json:
    """Return the picker's container with leader election if there are several pods, and with a configuration.

    The argument for tracing is the last one, as KServe writes it.
    """
    args = pickerconfig.arguments(container.get("args") or [], config.picker)
    if (replicas or 0) > 1 and not any(flag in args for flag in _ELECTION):
        args.append(_ELECTION[0])
    if config.chosen or not any(arg in pickerconfig.CONFIG_FLAGS for arg in args[:-1]):
        args += ["--config-text", config.text]
    args += picker_arguments(container) if traced else []
    return {**container, "args": args}


def with_tokenizer(
    spec: EffectiveSpec, scheduler: SchedulerSpec, context: ReconcileContext, observed: ObservedDeployment | None
) -> tuple[Json, pickerconfig.Picker]:
    """Return the endpoint picker, and its pod with files for its tokenizer, or without one that no plugin uses.

    A running pod that downloads the files for nothing, as the ones of KServe v0.20 do, goes on.
    """
    pod, version = scheduler.template or {}, pickerconfig.picker_version(scheduler.annotations)
    config = scheduler.config.inline if scheduler.config is not None else None
    has_tokenizer = bool(container_named(pod, constants.TOKENIZER))
    picker = pickerconfig.Picker(version, has_tokenizer, _metrics(pod, version, config))
    if not picker.has_tokenizer:
        return pod, picker
    running = observed.spec.template if observed is not None else ObservedTemplate()
    # From 0.9 on, no other plugin uses the tokenizer.
    if picker.is_at_least(0, 9) and not pickerconfig.may_have_plugin(config, pickerconfig.PRECISE):
        others = [container for container in pod["containers"] if container.get("name") != constants.TOKENIZER]
        pod, picker = {**pod, "containers": others}, replace(picker, has_tokenizer=False)
        claims = [volume for volume in running.spec.volumes or () if volume.name == constants.CLAIM_VOLUME]
        if not claims and not running.container(constants.STORAGE_INITIALIZER).name:
            return pod, picker
    source = workload.model_artifact(spec, context)
    if source.provider is None:
        return pod, picker
    access = workload.download_access(spec, context, str(pod.get("serviceAccountName") or ""), (source,))
    patterns = json.dumps(_TOKENIZER_FILES)
    access = access.with_variables({"STORAGE_ALLOW_PATTERNS": patterns}, "the tokenizer of the endpoint picker")
    extra = Attachment(access, running, context.ca_bundle, constants.TOKENIZER, f"{constants.MODEL_PATH}/base")
    if source.provider.is_image:
        return with_files(pod, source, _TOKENIZER_FILES, context.operator, extra), picker
    return attach(pod, (source,), context.operator, extra), picker


def _metrics(pod: Json, version: pickerconfig.Version | None, config: object) -> tuple[tuple[str, str], ...]:
    """Return the metrics that the picker's arguments name, where its version wants them in a text that is at hand."""
    args = container_named(pod, constants.MAIN).get("args") or []
    in_file = config is None and any(argument in pickerconfig.FILE_FLAGS for argument in args)
    if in_file or not pickerconfig.Picker(version).is_at_least(0, 7):
        return ()
    return tuple(pickerconfig.metrics(args).items())


def scheduler_deployment(plan: workload.DeploymentPlan, namespace: str) -> Json:
    desired = deployment(plan, namespace)
    return {**desired, "spec": {**desired["spec"], "strategy": {"type": "Recreate"}}}


def scheduler_service(plan: workload.DeploymentPlan, name: str, namespace: str) -> Json:
    spec = {"selector": plan.labels, "ports": _ports(plan.pod.spec)}
    return child("v1", "Service", metadata(name, namespace, plan.labels), spec=spec)


def picker_serves_tls(pod: Json | None) -> bool:
    """Report whether the picker serves TLS with a self-signed certificate, which is its default."""
    written = [str(word).removeprefix("-").removeprefix("-") for word in words(container_named(pod, constants.MAIN))]
    values = [value for name, _, value in (word.partition("=") for word in written) if name == _TLS]
    return not values or values[-1].lower() not in _FALSE


def destination_rule(plan: workload.DeploymentPlan, service: str, namespace: str, domain: str) -> Json:
    """Build the DestinationRule that tells Istio that the picker serves TLS with a self-signed certificate."""
    tls = {"mode": "SIMPLE", "insecureSkipVerify": True}
    spec = {"host": f"{service}.{namespace}.svc.{domain}", "trafficPolicy": {"tls": tls}}
    return constants.DESTINATION_RULES.build(metadata(service, namespace, plan.labels), spec=spec)


def _ports(pod: Json) -> list[Json]:
    """The container ports of known names; of two with one name the last counts, of two with one number the first."""
    ports = [port for container in pod.get("containers") or () for port in container.get("ports") or ()]
    named = {port["name"]: port for port in ports if port.get("name") in PORTS}
    numbered: dict[int, Json] = {}
    for name, port in sorted(named.items()):
        number, protocol = port["containerPort"], port.get("protocol", "TCP")
        numbered.setdefault(number, {"name": name, "port": number, "targetPort": name, "protocol": protocol})
    return list(numbered.values())


def inference_pool(names: Names, namespace: str, spec: Json) -> Json:
    """The pool as effective ``router.scheduler.pool.spec`` has it, which is in the form of InferencePool v1."""
    picker = spec.get("endpointPickerRef")
    if isinstance(picker, dict) and picker.get("kind", "Service") == "Service" and "port" not in picker:
        spec = {**spec, "endpointPickerRef": {**picker, "port": {"number": GRPC_PORT}}}
    labels = component_labels(names.service, constants.COMPONENT_SCHEDULER)
    return constants.POOLS.build(metadata(names.pool, namespace, labels), spec=spec)
