"""The sync hook of a service: settings, merge, workloads, router, status. Source: kserve spec 9.4.

A phase that fails keeps what it and later phases own; a service that is stopped has no children at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

from app.hooks.keep import keep
from app.hooks.protocol import SyncRequest, SyncResponse, every, observed_children, one
from app.kserve.choice import pinned
from app.kserve.effective import Effective, Inputs, combine
from app.kserve.layers import CombineError
from app.kserve.llminferenceservice.accounts import accounts
from app.kserve.llminferenceservice.conditions import (
    COMBINE_BASE_ERROR,
    KIND_NOT_INSTALLED,
    MAIN_WORKLOAD_READY,
    OPERATOR_CONFIG_INVALID,
    PREFILL_WORKER_WORKLOAD_READY,
    PREFILL_WORKLOAD_READY,
    WORKER_WORKLOAD_READY,
)
from app.kserve.llminferenceservice.deployment import deployment
from app.kserve.llminferenceservice.findings import (
    READY,
    Finding,
    deployment_finding,
    leader_worker_set_finding,
)
from app.kserve.llminferenceservice.leaderworkerset import leader_worker_set
from app.kserve.llminferenceservice.objects import Children, Related
from app.kserve.llminferenceservice.phases import Outcome, WorkloadResult
from app.kserve.llminferenceservice.plan import Surroundings, WorkloadError, WorkloadPlan, workload_plan
from app.kserve.llminferenceservice.router import route_requests
from app.kserve.llminferenceservice.service import workload_service
from app.kserve.llminferenceservice.status import refused, status
from app.kserve.llminferenceservice.types import LLMInferenceServiceSpec, LLMInferenceServiceStatus
from app.kserve.llminferenceservice.validation import check_effective
from app.kserve.lookup import ConfigFinder, layer
from app.kserve.names import COMPONENT, COMPONENT_SCHEDULER, OPERATOR_CONFIG, STOP, Names
from app.kserve.operator import OperatorConfig, OperatorConfigError, operator_config
from app.kube import field
from app.kube.objects import ObservedDeployment, ObservedPod
from app.kube.resource import Resource
from app.settings import Settings
from app.workload.absent import RESYNC
from app.workload.cause import Cause, Stage
from app.workload.ready import deployment_causes, pod_causes

Service = Resource[LLMInferenceServiceSpec, LLMInferenceServiceStatus]
Request = SyncRequest[Children, Related]


def sync(service: Service, request: Request, settings: Settings, now: datetime) -> SyncResponse:
    """The desired children and status of a service with a valid spec."""
    pins = _pins(service, settings)
    if is_stopped(service):
        return _answer(service, Outcome(pins, READY, None, None, stopped=True), [], now)
    try:
        around = surroundings(service, request, settings)
    except OperatorConfigError as error:
        finding = Finding(False, OPERATOR_CONFIG_INVALID, f"{settings.kserve_system_namespace}: {error}", Stage.SPEC)
        return _answer(service, Outcome(pins, None, None, None, finding), keep(request.children), now)
    try:
        effective = effective_spec(service, request, around, settings)
    except CombineError as error:
        finding = Finding(False, COMBINE_BASE_ERROR, str(error), Stage.SPEC)
        return _answer(service, Outcome(pins, finding, None, None), keep(request.children), now)
    workloads = _workloads(effective, around)
    if workloads.failed:
        return _answer(service, Outcome(pins, READY, workloads, None), keep(request.children), now)
    router = route_requests(effective.spec, around, settings)
    router = replace(router, causes=[*router.causes, *pod_causes(_pods(around, scheduler=True))])
    children = [*workloads.children, *router.children]
    absent = absent_children(children, request.children)
    return _answer(service, Outcome(pins, READY, workloads, router, absent=absent), children, now)


def invalid(
    service: Resource[LLMInferenceServiceSpec | None, LLMInferenceServiceStatus],  # type: ignore[type-var]
    errors: Sequence[field.Error],
    now: datetime,
) -> LLMInferenceServiceStatus:
    """The status of a service whose spec breaks a rule; its children are kept."""
    multi_node = service.spec is not None and service.spec.worker is not None
    outcome = refused(service.status.annotations, errors, multi_node=multi_node)
    return status(service.status, service.metadata.generation, outcome, now)


def is_stopped(service: Service) -> bool:
    """Whether the stop annotation is set (6.7)."""
    return (service.metadata.annotations or {}).get(STOP, "").lower() == "true"


def _answer(service: Service, outcome: Outcome, children: list[Any], now: datetime) -> SyncResponse:
    judged = status(service.status, service.metadata.generation, outcome, now)
    return SyncResponse(judged, children, RESYNC if outcome.absent else None)


def absent_children(children: Iterable[Any], observed: Children) -> list[str]:
    """Children that are asked for and not observed, as in ``Service chat``."""
    there = {(child.kind, child.metadata.name) for _, group in observed_children(observed) for child in group.values()}
    asked = [_identity(child) for child in children]
    return [f"{kind} {name}" for kind, name in asked if (kind, name) not in there]


def _identity(child: Any) -> tuple[str, str]:
    if isinstance(child, dict):
        return child["kind"], child["metadata"]["name"]
    return type(child).__name__, child.metadata.name


# Settings and merge.


def _pins(service: Service, settings: Settings) -> dict[str, str]:
    if not settings.kserve_versioned_config:
        return {}
    return pinned(service.status.annotations, settings.kserve_config_prefix)


def _operator(related: Related, settings: Settings) -> OperatorConfig:
    system = settings.kserve_system_namespace
    config_map = one(related.config_maps, OPERATOR_CONFIG, system)
    return operator_config(None if config_map is None else config_map.data or {}, system)


def surroundings(service: Service, request: Request, settings: Settings) -> Surroundings:
    """What a service's decisions depend on besides its spec. Raises :class:`OperatorConfigError`."""
    related = request.related or Related()
    operator = _operator(related, settings)
    return Surroundings(service.metadata, Names(service.metadata.name), request.children, related, operator)


def effective_spec(service: Service, request: Request, around: Surroundings, settings: Settings) -> Effective:
    """The service's spec with everything it is combined from. Raises :class:`CombineError`."""
    related, operator, prefix = around.related, around.operator, settings.kserve_config_prefix
    finder = ConfigFinder(
        related.configs, related.config_maps, service.metadata.namespace, operator.system_namespace, prefix
    )
    own = layer("spec", bytes(request.parent.spec))
    pins = _pins(service, settings)
    effective = combine(Inputs(service.metadata, own, pins, prefix, operator, finder.config, finder.scheduler_config))
    errors = check_effective(effective.document)
    if errors:
        raise CombineError(f"the combined spec is invalid: {field.aggregate(errors)}")
    return effective


# Workloads.


def _workloads(effective: Effective, around: Surroundings) -> WorkloadResult:
    try:
        plan = workload_plan(effective.spec, around)
    except WorkloadError as error:
        finding = Finding(False, error.reason, str(error), Stage.MODEL)
        return WorkloadResult([], {error.condition: finding}, failed=True)
    return WorkloadResult(
        _workload_children(plan, around), _workload_findings(plan, around), _workload_causes(plan, around)
    )


def _workload_children(plan: WorkloadPlan, around: Surroundings) -> list[Any]:
    namespace = around.metadata.namespace
    installed = around.children.leader_worker_sets is not None
    return [
        *(deployment(one_, namespace) for one_ in plan.deployments),
        *(leader_worker_set(group, namespace) for group in plan.groups if installed),
        workload_service(around.names, namespace),
        *(child for account in plan.accounts for child in accounts(account, namespace)),
    ]


def _workload_findings(plan: WorkloadPlan, around: Surroundings) -> dict[str, Finding]:
    """One finding for each workload of the topology; the others' conditions do not apply."""
    names, found = around.names, {}
    for one_ in plan.deployments:
        condition = MAIN_WORKLOAD_READY if one_.name == names.main else PREFILL_WORKLOAD_READY
        found[condition] = deployment_finding(around.deployment(one_.name))
    for group in plan.groups:
        condition = WORKER_WORKLOAD_READY if group.name == names.multi_node else PREFILL_WORKER_WORKLOAD_READY
        groups = around.children.leader_worker_sets
        observed = one(groups, group.name, around.metadata.namespace)
        found[condition] = _NO_GROUPS if groups is None else leader_worker_set_finding(observed)
    return found


def _workload_causes(plan: WorkloadPlan, around: Surroundings) -> list[Cause]:
    """What Deployments and pods of the model servers say of themselves."""
    observed = [around.deployment(one_.name) for one_ in plan.deployments]
    causes = [
        cause
        for child in observed
        if child is not None
        for cause in deployment_causes(cast("ObservedDeployment", child))
    ]
    return [*causes, *pod_causes(_pods(around, scheduler=False))]


def _pods(around: Surroundings, *, scheduler: bool) -> list[ObservedPod]:
    """Pods of the endpoint picker, or all others."""
    return [
        pod
        for pod in every(around.related.pods)
        if ((pod.metadata.labels or {}).get(COMPONENT) == COMPONENT_SCHEDULER) is scheduler
    ]


_NO_GROUPS = Finding(
    False,
    KIND_NOT_INSTALLED,
    "worker needs LeaderWorkerSets: install leaderworkerset.x-k8s.io and the kustomize component leaderworkerset",
    Stage.SPEC,
)
