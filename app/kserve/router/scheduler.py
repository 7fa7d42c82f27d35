"""The endpoint picker (EPP): Deployment, Service, account and InferencePool. Source: KS-4.3 to KS-4.5."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from app.hooks.kept import kept_selector
from app.kserve import permissions
from app.kserve.llminferenceservice.types import SchedulerSpec
from app.kserve.names import COMPONENT_SCHEDULER, MAIN, POOL_API, Names, component_labels
from app.kserve.spec.presets.router import GRPC_PORT
from app.kserve.workload.inherited import replicas, selector, with_account
from app.kube.base import Json
from app.kube.desired import (
    Deployment,
    DeploymentSpec,
    LabelSelector,
    ObjectMeta,
    PodTemplateSpec,
    Service,
    ServicePort,
    ServiceSpec,
    TemplateMeta,
)
from app.kube.objects import ObservedDeployment

SERVICE_PORTS = ("grpc", "grpc-health", "metrics", "zmq")
"""Container ports by these names are the Service's."""

_ELECTION = ("--ha-enable-leader-election", "-ha-enable-leader-election")
_CONFIG_FLAGS = frozenset(
    dashes + name for dashes in ("--", "-") for name in ("config-text", "configText", "config-file", "configFile")
)


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
    config: tuple[str, bool],
    *,
    service: str,
    managed_account: bool,
    observed: ObservedDeployment | None,
) -> SchedulerPlan:
    """Decisions about the endpoint picker of a spec that has ``template``.

    ``config`` is :func:`config_text`'s. ``managed_account``: whether ServiceAccounts and Roles are declared, so that
    one can be made.
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


def _pod(template: Json, account: str, wanted: int | None, config: tuple[str, bool]) -> Json:
    pod = {key: value for key, value in template.items() if key != "serviceAccountName"}
    if account:
        pod["serviceAccountName"] = account
    if "containers" in pod:
        pod["containers"] = [
            {**container, "args": _args(container.get("args") or [], wanted, config)}
            if container.get("name") == MAIN
            else container
            for container in pod["containers"]
        ]
    return pod


def _args(given: Sequence[str], wanted: int | None, config: tuple[str, bool]) -> list[str]:
    """The arguments with leader election where there are several, and with a configuration."""
    text, chosen = config
    args = list(given)
    if (wanted or 0) > 1 and not any(flag in args for flag in _ELECTION):
        args.append(_ELECTION[0])
    if chosen or not any(arg in _CONFIG_FLAGS for arg in args[:-1]):
        args += ["--config-text", text]
    return args


# Configuration.


def config_text(inline: Any, *, disaggregated: bool, adapters: bool) -> tuple[str, bool]:
    """An EndpointPickerConfig as text, and whether it is one that the user chose.

    ``inline`` is the effective ``config.inline``, JSON or text; ``adapters``: whether the servers load LoRA adapters.
    """
    if inline is None:
        return _DEFAULTS[disaggregated, adapters], False
    return inline if isinstance(inline, str) else _compact(inline), True


def _compact(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


_SCORERS = (
    {"pluginRef": "queue-scorer", "weight": 2},
    {"pluginRef": "prefix-cache-scorer", "weight": 3},
    {"pluginRef": "max-score-picker"},
)
_ADAPTER_SCORER = "lora-affinity-scorer"


def _default(*, disaggregated: bool, adapters: bool) -> str:
    """The shortest queue counts, and a cached prefix more; a server that has the adapter loaded most of all.

    Where prefill and decode pods are apart, every request (threshold 0) is given one of each.
    """
    scorers = [*([{"pluginRef": _ADAPTER_SCORER, "weight": 4}] if adapters else []), *_SCORERS]
    shared = [*([_ADAPTER_SCORER] if adapters else []), *(scorer["pluginRef"] for scorer in _SCORERS)]
    plugins: list[Json] = [{"type": type_} for type_ in shared]
    if disaggregated:
        before = ("prefill-header-handler", "prefill-filter", "decode-filter")
        threshold = {"type": "pd-profile-handler", "parameters": {"threshold": 0}}
        plugins = [*({"type": type_} for type_ in before), *plugins, threshold]
        profiles = [
            {"name": side, "plugins": [{"pluginRef": f"{side}-filter"}, *scorers]} for side in ("prefill", "decode")
        ]
    else:
        plugins = [{"type": "single-profile-handler"}, *plugins]
        profiles = [{"name": "default", "plugins": scorers}]
    return _compact(
        {
            "apiVersion": "inference.networking.x-k8s.io/v1alpha1",
            "kind": "EndpointPickerConfig",
            "plugins": plugins,
            "schedulingProfiles": profiles,
        }
    )


_DEFAULTS = {
    (disaggregated, adapters): _default(disaggregated=disaggregated, adapters=adapters)
    for disaggregated in (False, True)
    for adapters in (False, True)
}


# Children.


def deployment(plan: SchedulerPlan) -> Deployment:
    return Deployment(
        metadata=_metadata(plan, plan.names.scheduler),
        spec=DeploymentSpec(
            replicas=plan.replicas,
            selector=LabelSelector(match_labels=plan.selector),
            strategy={"type": "Recreate"},
            template=PodTemplateSpec(
                metadata=TemplateMeta(labels=plan.labels, annotations=plan.annotations), spec=plan.pod
            ),
        ),
    )


def service(plan: SchedulerPlan) -> Service:
    """The address in the pool's ``endpointPickerRef``."""
    return Service(
        metadata=_metadata(plan, plan.service),
        spec=ServiceSpec(selector=component_labels(plan.names.service, COMPONENT_SCHEDULER), ports=_ports(plan.pod)),
    )


def _ports(pod: Json) -> list[ServicePort]:
    """The container ports of known names; of two with one name the last counts, of two with one number the first."""
    named = {
        port["name"]: ServicePort(
            name=port["name"],
            port=port["containerPort"],
            target_port=port["name"],
            protocol=port.get("protocol", "TCP"),
        )
        for container in pod.get("containers") or ()
        for port in container.get("ports") or ()
        if port.get("name") in SERVICE_PORTS
    }
    numbered: dict[int, ServicePort] = {}
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


def _metadata(plan: SchedulerPlan, name: str) -> ObjectMeta:
    return ObjectMeta(
        name=name, namespace=plan.namespace, labels=component_labels(plan.names.service, COMPONENT_SCHEDULER)
    )


def _plain(metadata: ObjectMeta) -> Json:
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
