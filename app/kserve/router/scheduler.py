"""The endpoint picker (EPP): Deployment, Service, account and InferencePool. Source: KS-4.3 to KS-4.5."""

from dataclasses import dataclass

from app.hooks.kept import kept_selector
from app.kserve import permissions
from app.kserve.constants import COMPONENT_SCHEDULER, MAIN, POOL_API
from app.kserve.llminferenceservice.types import SchedulerSpec
from app.kserve.names import Names, component_labels
from app.kserve.spec.pickerconfig import CONFIG_FLAGS, PickerConfig, arguments
from app.kserve.spec.presets.router import GRPC_PORT
from app.kserve.workload.inherited import replicas, selector, with_account
from app.kube import desired
from app.kube.base import Json
from app.kube.objects import ObservedDeployment

SERVICE_PORTS = ("grpc", "grpc-health", "metrics", "zmq")
"""Container ports by these names are the Service's."""

_ELECTION = ("--ha-enable-leader-election", "-ha-enable-leader-election")


@dataclass(frozen=True, slots=True)
class SchedulerPlan:
    """Everything that is decided about the endpoint picker."""

    names: Names
    namespace: str
    service: str
    """Name of the Service."""
    replicas: int | None
    pod: Json
    labels: dict[str, str]
    """Of the pods."""
    annotations: dict[str, str] | None
    selector: dict[str, str]
    account: str
    """Name of the pods' ServiceAccount; empty for the namespace's default one."""
    account_managed: bool


def plan_scheduler(
    names: Names,
    namespace: str,
    spec: SchedulerSpec,
    config: PickerConfig,
    *,
    service: str,
    managed_account: bool,
    observed: ObservedDeployment | None,
) -> SchedulerPlan:
    """Decide about the endpoint picker of a spec that has ``template``.

    ``managed_account``: whether ServiceAccounts and Roles are declared, so that one can be made.
    """
    template = spec.template or {}
    named = template.get("serviceAccountName") or ""
    managed = managed_account and named in ("", names.scheduler_account)
    account = names.scheduler_account if managed else "" if named == names.scheduler_account else named
    base = component_labels(names.service, COMPONENT_SCHEDULER)
    labels = {**base, **(spec.labels or {})}
    pod = _pod(template, account, spec.replicas, config)
    return SchedulerPlan(
        names=names,
        namespace=namespace,
        service=service,
        replicas=replicas(spec.replicas, observed),
        pod=with_account(pod, observed, "" if managed_account else names.scheduler_account),
        labels=labels,
        annotations=dict(spec.annotations) if spec.annotations else None,
        selector=kept_selector(
            selector(base, labels), observed.spec.selector.match_labels if observed is not None else None, labels
        ),
        account=account,
        account_managed=managed,
    )


def _pod(template: Json, account: str, replicas: int | None, config: PickerConfig) -> Json:
    pod = {key: value for key, value in template.items() if key != "serviceAccountName"}
    if account:
        pod["serviceAccountName"] = account
    if "containers" in pod:
        pod["containers"] = [
            _main(container, replicas, config) if container.get("name") == MAIN else container
            for container in pod["containers"]
        ]
    return pod


def _main(container: Json, replicas: int | None, config: PickerConfig) -> Json:
    """Return the picker's container with leader election if there are several pods, and with a configuration."""
    args = arguments(container.get("args") or [], config.picker)
    if (replicas or 0) > 1 and not any(flag in args for flag in _ELECTION):
        args.append(_ELECTION[0])
    if config.chosen or not any(arg in CONFIG_FLAGS for arg in args[:-1]):
        args += ["--config-text", config.text]
    return {**container, "args": args}


# Children.


def deployment(plan: SchedulerPlan) -> desired.Deployment:
    return desired.Deployment(
        metadata=_metadata(plan, plan.names.scheduler),
        spec=desired.DeploymentSpec(
            replicas=plan.replicas,
            selector=desired.LabelSelector(match_labels=plan.selector),
            strategy={"type": "Recreate"},
            template=desired.PodTemplateSpec(
                metadata=desired.TemplateMeta(labels=plan.labels, annotations=plan.annotations), spec=plan.pod
            ),
        ),
    )


def service(plan: SchedulerPlan) -> desired.Service:
    """The address in the pool's ``endpointPickerRef``."""
    return desired.Service(
        metadata=_metadata(plan, plan.service),
        spec=desired.ServiceSpec(
            selector=component_labels(plan.names.service, COMPONENT_SCHEDULER), ports=_ports(plan.pod)
        ),
    )


def _ports(pod: Json) -> list[desired.ServicePort]:
    """The container ports of known names; of two with one name the last counts, of two with one number the first."""
    named = {
        port["name"]: desired.ServicePort(
            name=port["name"],
            port=port["containerPort"],
            target_port=port["name"],
            protocol=port.get("protocol", "TCP"),
        )
        for container in pod.get("containers") or ()
        for port in container.get("ports") or ()
        if port.get("name") in SERVICE_PORTS
    }
    numbered: dict[int, desired.ServicePort] = {}
    for name in sorted(named):
        numbered.setdefault(named[name].port, named[name])
    return list(numbered.values())


def rbac(plan: SchedulerPlan) -> list[Json]:
    """The account (unless the user's own is used), and a Role with a binding for it."""
    names = plan.names
    account = permissions.service_account(_plain(_metadata(plan, names.scheduler_account)))
    role = permissions.role(_plain(_metadata(plan, names.scheduler_role)), permissions.SCHEDULER_RULES)
    binding = permissions.binding(
        _plain(_metadata(plan, names.scheduler_role_binding)), names.scheduler_role, plan.account
    )
    return [*([account] if plan.account_managed else []), role, binding]


def _metadata(plan: SchedulerPlan, name: str) -> desired.ObjectMeta:
    return desired.ObjectMeta(
        name=name, namespace=plan.namespace, labels=component_labels(plan.names.service, COMPONENT_SCHEDULER)
    )


def _plain(metadata: desired.ObjectMeta) -> Json:
    return {"name": metadata.name, "namespace": metadata.namespace, "labels": metadata.labels}


def inference_pool(names: Names, namespace: str, spec: Json) -> Json:
    """The pool as effective ``router.scheduler.pool.spec`` has it, which is in the form of InferencePool v1."""
    picker = spec.get("endpointPickerRef")
    if isinstance(picker, dict) and picker.get("kind", "Service") == "Service" and "port" not in picker:
        spec = {**spec, "endpointPickerRef": {**picker, "port": {"number": GRPC_PORT}}}
    return {
        "apiVersion": POOL_API,
        "kind": "InferencePool",
        "metadata": {
            "name": names.pool,
            "namespace": namespace,
            "labels": component_labels(names.service, COMPONENT_SCHEDULER),
        },
        "spec": spec,
    }
