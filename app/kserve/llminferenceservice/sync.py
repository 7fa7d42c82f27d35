"""The sync hook of a service: settings, merge, workloads, router, status. Source: kserve spec 9.4.

A phase that fails keeps what it and later phases own; a service that is stopped has no children at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from app.hooks.kept import keep, wants_none
from app.hooks.protocol import SyncRequest, SyncResponse, one
from app.kserve.choice import pinned
from app.kserve.effective import Effective, Inputs, combine
from app.kserve.layers import CombineError
from app.kserve.llminferenceservice.conditions import (
    COMBINE_BASE_ERROR,
    OPERATOR_CONFIG_INVALID,
)
from app.kserve.llminferenceservice.findings import (
    READY,
    Finding,
)
from app.kserve.llminferenceservice.objects import Children, Related
from app.kserve.llminferenceservice.phases import Outcome
from app.kserve.llminferenceservice.plan import Surroundings
from app.kserve.llminferenceservice.router import route_requests
from app.kserve.llminferenceservice.status import refused, status
from app.kserve.llminferenceservice.types import LLMInferenceServiceSpec, LLMInferenceServiceStatus
from app.kserve.llminferenceservice.validation import check_effective, check_rendered, reserved
from app.kserve.llminferenceservice.workloads import make_workloads, pods_by_workload
from app.kserve.lookup import ConfigFinder, layer
from app.kserve.names import OPERATOR_CONFIG, STOP, Names
from app.kserve.operator import OperatorConfig, OperatorConfigError, operator_config
from app.kube import field
from app.kube.objects import ObjectMeta
from app.kube.resource import Resource
from app.settings import Settings
from app.workload.cause import Stage
from app.workload.ready import pod_causes
from app.workload.waiting import NOTHING, RESYNC, outstanding

Service = Resource[LLMInferenceServiceSpec, LLMInferenceServiceStatus]
Request = SyncRequest[Children, Related]


def sync(service: Service, request: Request, settings: Settings, now: datetime) -> SyncResponse:
    """The desired children and status of a service with a valid spec."""
    pins = _pins(service, settings)
    if is_stopped(service.metadata):
        return _answer(service, Outcome(pins, READY, None, None, stopped=True), [], now)
    try:
        around = surroundings(service, request, settings)
    except OperatorConfigError as error:
        finding = Finding(False, OPERATOR_CONFIG_INVALID, f"{settings.kserve_system_namespace}: {error}", Stage.SPEC)
        return _answer(service, Outcome(pins, None, None, None, finding), kept(request), now)
    try:
        effective = effective_spec(service, request, around, settings)
    except CombineError as error:
        finding = Finding(False, COMBINE_BASE_ERROR, str(error), Stage.SPEC)
        return _answer(service, Outcome(pins, finding, None, None), kept(request), now)
    workloads = make_workloads(effective.spec, around)
    if workloads.failed:
        children = _kept(request, effective.document)
        return _answer(service, Outcome(pins, READY, workloads, None), children, now)
    router = route_requests(effective.spec, around, settings)
    of_pods = [cause for pods in pods_by_workload(around, scheduler=True) for cause in pod_causes(pods)]
    router = replace(router, causes=[*router.causes, *of_pods])
    children = [*workloads.children, *router.children]
    waited = NOTHING if service.metadata.deletion_timestamp else outstanding(children, request.children)
    return _answer(service, Outcome(pins, READY, workloads, router, outstanding=waited), children, now)


def invalid(
    service: Resource[LLMInferenceServiceSpec | None, LLMInferenceServiceStatus],
    errors: Sequence[field.Error],
    now: datetime,
) -> LLMInferenceServiceStatus:
    """The status of a service whose spec breaks a rule; its children are kept, unless it is stopped."""
    multi_node = service.spec is not None and service.spec.worker is not None
    outcome = refused(service.status.annotations, errors, multi_node=multi_node)
    if is_stopped(service.metadata):
        outcome = replace(outcome, workloads=None, stopped=True)
    return status(service.status, service.metadata.generation, outcome, now)


def kept(request: Request) -> list[Any]:
    """The children of a service that cannot be carried out: as they are, but a stop and ``replicas: 0`` work."""
    return _kept(request, bytes(request.parent.spec))


def _kept(request: Request, spec: bytes | dict[str, Any]) -> list[Any]:
    metadata = request.parent.metadata
    if is_stopped(metadata):
        return []
    names, idle = Names(metadata.name), set[str]()
    if wants_none(spec):
        idle |= {names.main, names.multi_node}
    if wants_none(spec, "prefill"):
        idle |= {names.prefill, names.multi_node_prefill}
    return keep(request.children, lambda child: child.metadata.name in idle)


def is_stopped(metadata: ObjectMeta) -> bool:
    """Whether the stop annotation is set (6.7)."""
    return (metadata.annotations or {}).get(STOP, "").lower() == "true"


def _answer(service: Service, outcome: Outcome, children: list[Any], now: datetime) -> SyncResponse:
    judged = status(service.status, service.metadata.generation, outcome, now)
    return SyncResponse(judged, children, RESYNC if outcome.outstanding else None)


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
    errors = [*check_effective(effective.document), *reserved(effective.spec)]
    if effective.templated:
        errors += check_rendered(effective.spec)
    if errors:
        raise CombineError(f"the combined spec is invalid: {field.aggregate(errors)}")
    return effective
