"""The sync hook of a service: settings, merge, workloads, router, status. Source: KS-9.4.

A phase that fails keeps what it and later phases own; a service that is stopped has no children at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from app.hooks.kept import keep, wants_none
from app.hooks.protocol import SyncResponse
from app.kserve.llminferenceservice.observed import Request, Service, surroundings
from app.kserve.llminferenceservice.plan import effective_spec, is_stopped, pins_of
from app.kserve.llminferenceservice.status import refused, status
from app.kserve.llminferenceservice.types import LLMInferenceServiceSpec, LLMInferenceServiceStatus, Reason
from app.kserve.names import Names
from app.kserve.operator import OperatorConfigError
from app.kserve.results import HOLDS, Outcome, fails
from app.kserve.router.sync import route_requests
from app.kserve.spec.merge import CombineError
from app.kserve.spec.parallelism import quarrels
from app.kserve.workload.sync import make_workloads, pods_by_workload
from app.kube import field
from app.kube.resource import Resource
from app.settings import Settings
from app.workload.cause import Cause, Stage
from app.workload.ready import pod_causes
from app.workload.waiting import NOTHING, RESYNC, outstanding


def sync(service: Service, request: Request, settings: Settings, now: datetime) -> SyncResponse:
    """The desired children and status of a service with a valid spec."""
    pins = pins_of(service, settings)
    if is_stopped(service.metadata):
        return _answer(service, Outcome(pins, HOLDS, None, None, stopped=True), [], now)
    try:
        around = surroundings(service, request, settings)
    except OperatorConfigError as error:
        state = fails(Reason.OPERATOR_CONFIG_INVALID, f"{settings.kserve_system_namespace}: {error}", Stage.SPEC)
        return _answer(service, Outcome(pins, None, None, None, state), kept(request), now)
    try:
        effective = effective_spec(service, request, around, settings)
    except CombineError as error:
        state = fails(Reason.COMBINE_BASE_ERROR, str(error), Stage.SPEC)
        return _answer(service, Outcome(pins, state, None, None), kept(request), now)
    workloads = make_workloads(effective.spec, around)
    said = [Cause(Stage.SPEC, one, Reason.CONTRADICTION) for one in quarrels(effective.document)]
    workloads = replace(workloads, causes=[*workloads.causes, *said])
    if workloads.failed:
        children = _kept(request, effective.document)
        return _answer(service, Outcome(pins, HOLDS, workloads, None), children, now)
    router = route_requests(effective.spec, around, settings)
    of_pods = [cause for pods in pods_by_workload(around, scheduler=True) for cause in pod_causes(pods)]
    router = replace(router, causes=[*router.causes, *of_pods])
    children = [*workloads.children, *router.children]
    waited = NOTHING if service.metadata.deletion_timestamp else outstanding(children, request)
    return _answer(service, Outcome(pins, HOLDS, workloads, router, outstanding=waited), children, now)


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


def _answer(service: Service, outcome: Outcome, children: list[Any], now: datetime) -> SyncResponse:
    judged = status(service.status, service.metadata.generation, outcome, now)
    return SyncResponse(judged, children, RESYNC if outcome.outstanding else None)
