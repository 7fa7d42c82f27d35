"""The sync hook of an LLMInferenceService (KS-9.4).

The phases are settings, merge, workloads, router and status. One that fails keeps its children and those of later ones.
"""

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from app.hooks.kept import is_scaled_to_zero, keep, with_kept_templates
from app.hooks.protocol import Kept, SyncResponse
from app.hooks.template import inputs
from app.kserve.constants import FAMILY
from app.kserve.llminferenceservice.inputs import effective_spec, template_inputs
from app.kserve.llminferenceservice.observed import LLMService, Request, is_stopped, reconcile_context
from app.kserve.llminferenceservice.status import features_state, refused, status
from app.kserve.llminferenceservice.types import LLMInferenceServiceSpec, LLMInferenceServiceStatus, LLMReason
from app.kserve.names import Names
from app.kserve.operator import OperatorConfigError
from app.kserve.results import CONDITION_TRUE, Outcome, fails
from app.kserve.router.sync import route_requests
from app.kserve.spec.find import pins_of
from app.kserve.spec.merge import CombineError, MissingConfigError
from app.kserve.spec.parallelism import parallelism_conflicts
from app.kserve.workload.status import workload_parts
from app.kserve.workload.sync import make_workloads, pods_by_workload
from app.kube import field
from app.kube.base import Json
from app.kube.resource import Resource
from app.settings import Settings
from app.workload.readiness.cause import Cause, Stage
from app.workload.readiness.pods import Remedies
from app.workload.readiness.ready import pod_causes
from app.workload.readiness.rollout import replica_counts
from app.workload.readiness.waiting import NOTHING, RESYNC, deletion_causes, outstanding

_PICKER = Remedies(
    probe="raise {probe}Probe.failureThreshold of container {container} in spec.router.scheduler.template"
)


def sync(service: LLMService, request: Request, settings: Settings, now: datetime) -> SyncResponse:
    """Build the desired children and status of a service with a valid spec."""
    pins = pins_of(service, settings)
    if is_stopped(service.metadata):
        return _answer(service, _stopped(service, request, settings), [], now)
    try:
        context = reconcile_context(service, request, settings)
        effective = effective_spec(context)
    except OperatorConfigError as error:
        state = fails(LLMReason.OPERATOR_CONFIG_INVALID, f"{settings.kserve_system_namespace}: {error}", Stage.SPEC)
        outcome = Outcome(pins, None, None, None, state, counts=counts(request))
        return _answer(service, outcome, kept_children(request), now)
    except CombineError as error:
        missing = isinstance(error, MissingConfigError)
        state = fails(LLMReason.CONFIG_NOT_FOUND if missing else LLMReason.COMBINE_BASE_ERROR, str(error), Stage.SPEC)
        outcome = Outcome(pins, state, None, None, counts=counts(request))
        return _answer(service, outcome, kept_children(request), now)
    workloads = make_workloads(effective.spec, context)
    conflicts = parallelism_conflicts(effective.document)
    workloads.causes += [Cause(Stage.SPEC, conflict, LLMReason.CONTRADICTION) for conflict in conflicts]
    if workloads.failed:
        outcome = Outcome(pins, CONDITION_TRUE, workloads, None, applied=effective.merged.applied)
        return _answer(service, outcome, kept_children(request, effective.document), now)
    router = route_requests(effective.spec, context)
    pickers = pods_by_workload(context, scheduler=True).values()
    router.causes += [cause for pods in pickers for cause in pod_causes(pods, remedies=_PICKER)]
    parent_inputs = inputs(request.parent, FAMILY, template_inputs(context, effective.merged), settings)
    children = with_kept_templates([*workloads.children, *router.children], request, parent_inputs)
    outcome = Outcome(
        pins,
        CONDITION_TRUE,
        workloads,
        router,
        outstanding=NOTHING if service.metadata.deletion_timestamp else outstanding(children, request),
        applied=effective.merged.applied,
        parts=workload_parts(effective.spec, context),
        features=features_state(effective.spec, context),
    )
    return _answer(service, outcome, children, now)


def _stopped(service: LLMService, request: Request, settings: Settings) -> Outcome:
    """Return the outcome of a stopped service, with the error if its specs cannot be combined."""
    stopped = Outcome(pins_of(service, settings), CONDITION_TRUE, None, None, stopped=True)
    try:
        context = reconcile_context(service, request, settings)
        effective = effective_spec(context)
    except OperatorConfigError:
        return replace(stopped, presets=None)
    except CombineError as error:
        return replace(stopped, presets=fails(LLMReason.STOPPED, str(error)))
    return replace(stopped, applied=effective.merged.applied)


def invalid(
    service: Resource[LLMInferenceServiceSpec | None, LLMInferenceServiceStatus],
    errors: Sequence[field.Error],
    now: datetime,
) -> LLMInferenceServiceStatus:
    """Build the status of a service with an invalid spec; its children are kept unless it is stopped."""
    multi_node = service.spec is not None and service.spec.worker is not None
    outcome = refused(service.status.annotations, errors, multi_node=multi_node)
    if is_stopped(service.metadata):
        outcome = replace(outcome, workloads=None, stopped=True)
    return status(service.status, service.metadata.generation, outcome, now)


def kept_children(request: Request, effective: Json | None = None) -> list[Kept]:
    """Keep the children of a service that cannot be reconciled; stopping and ``replicas: 0`` still work."""
    metadata = request.parent.metadata
    if is_stopped(metadata):
        return []
    spec: bytes | Json = bytes(request.parent.spec) if effective is None else effective
    names, idle = Names(metadata.name), set[str]()
    if is_scaled_to_zero(spec):
        idle |= {names.main, names.multi_node}
    if is_scaled_to_zero(spec, "prefill"):
        idle |= {names.prefill, names.multi_node_prefill}
    return keep(request.children, lambda child: child.metadata.name in idle)


def counts(request: Request) -> list[str]:
    """Say how many model servers of a service that keeps its workloads are ready; nothing of one that is stopped."""
    metadata, spec = request.parent.metadata, request.parent.spec
    if is_stopped(metadata) or is_scaled_to_zero(spec):
        return []
    return replica_counts(request, without=Names(metadata.name).scheduler)


def _answer(service: LLMService, outcome: Outcome, children: Sequence[Json], now: datetime) -> SyncResponse:
    for deletion in deletion_causes(service.metadata):
        outcome = replace(outcome, error=fails(deletion.reason, deletion.text))
    new_status = status(service.status, service.metadata.generation, outcome, now)
    return SyncResponse(new_status, children, RESYNC if outcome.outstanding else None)
