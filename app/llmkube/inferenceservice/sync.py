"""The sync hook of InferenceService. Source: LK-3.1, LK-5 and LK-D.2."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import chain

from msgspec.structs import replace

from app.hooks.kept import is_scaled_to_zero, is_true, keep_or_stop, with_kept_templates
from app.hooks.protocol import Kept, SyncRequest, SyncResponse, get, sorted_values
from app.hooks.template import inputs
from app.kube.base import Json
from app.kube.conditions import was_ready
from app.kube.objects import ObservedDeployment, ObservedPod
from app.llmkube import names
from app.llmkube.inferenceservice import children as build
from app.llmkube.inferenceservice import observed, status
from app.llmkube.inferenceservice.checks import mistakes, refusals
from app.llmkube.inferenceservice.observed import Draft, InferenceChildren, InferenceRelated, LastingCause
from app.llmkube.inferenceservice.plan import InferencePlan, endpoint, plan, priority_class, replicas_of
from app.llmkube.inferenceservice.status import ServiceObservation
from app.llmkube.inferenceservice.types import InferenceService, InferenceServiceStatus
from app.llmkube.model.types import Model
from app.llmkube.runtimes.runtime import mode
from app.settings import Settings
from app.workload.autoscaler import WORKS, scaling_state
from app.workload.readiness.cause import Cause
from app.workload.readiness.pods import Remedies
from app.workload.readiness.ready import deployment_causes, pod_causes
from app.workload.readiness.rollout import NOTHING, replica_counts, rollout
from app.workload.readiness.waiting import RESYNC, outstanding, sent_replicas, waiting_causes

Request = SyncRequest[InferenceChildren, InferenceRelated]

_REMEDIES = Remedies(probe="set spec.probeOverrides.{probe}, the whole probe, with a higher failureThreshold")


def sync(resource: InferenceService, request: Request, settings: Settings, now: datetime) -> SyncResponse:
    metadata, spec, related = resource.metadata, resource.spec, request.related
    model = observed.usable(get(related.models, spec.model_ref, metadata.namespace), f"Model {spec.model_ref}")
    priority = get(related.priority_classes, priority_class(spec))  # the level's own value if it is absent (LK-B-16)
    base = InferenceServiceStatus(
        selector=names.selector_text(metadata.name),
        mode=mode(spec),
        acceleration=resource.status.acceleration,
        gateway=resource.status.gateway,
        effective_priority=names.PRIORITY_VALUES[spec.priority] if priority is None else priority.value,
    )
    if isinstance(model, Cause):
        return _waiting(resource, model, request, base, now)
    deployed = get(request.children.deployments, metadata.name, metadata.namespace)
    draft = observed.draft_of(resource, related, deployed)
    if draft.required is not None:
        return _waiting(resource, draft.required, request, base, now)
    base = replace(base, endpoint=endpoint(metadata, spec, settings), model_ready=True)
    if model.spec.on_metal:
        slices = None if related.slices is None else sorted_values(related.slices)
        heartbeat = status.read_heartbeat(slices, now)
        metal_status = status.on_metal(resource, heartbeat, replace(base, selector=""), now)
        return SyncResponse(status=metal_status, children=[], resync_after_seconds=heartbeat.resync)
    return _in_cluster(resource, model, request, settings, base, now, draft=draft)


def _waiting(
    resource: InferenceService, cause: Cause, request: Request, base: InferenceServiceStatus, now: datetime
) -> SyncResponse:
    deployed = get(request.children.deployments, resource.metadata.name, resource.metadata.namespace)
    waiting_status = status.waiting(resource, cause, rollout(deployed), base, now)
    return SyncResponse(status=waiting_status, children=_kept_children(resource, request))


def _in_cluster(
    resource: InferenceService,
    model: Model,
    request: Request,
    settings: Settings,
    base: InferenceServiceStatus,
    now: datetime,
    *,
    draft: Draft,
) -> SyncResponse:
    metadata, spec = resource.metadata, resource.spec
    children, related = request.children, request.related
    claim = settings.llmkube_model_cache_claim
    shared = claim if get(related.claims, claim, metadata.namespace) is not None else ""
    autoscaler = get(children.autoscalers, metadata.name, metadata.namespace)
    service_plan = plan(resource, model, draft.model, settings, shared, autoscaled=autoscaler is not None)
    if refusal := next(refusals(service_plan, model.spec, related, settings), None):
        lasting = LastingCause(refusal.stage, refusal.text, refusal.reason)
        return _waiting(resource, lasting, request, replace(base, endpoint=""), now)
    deployed = get(children.deployments, metadata.name, metadata.namespace)
    desired = _kept_children(resource, request) if draft.wait else _children(service_plan, deployed, request, settings)
    ready = was_ready(resource.status.conditions, metadata.generation)
    wanted = sent_replicas(next((child for child in desired if child["kind"] == "Deployment"), None))
    progress = rollout(deployed, wanted, was_ready=ready) if build.selectable(service_plan, deployed) else NOTHING
    waiting = [draft.wait] if draft.wait else _outstanding(resource, desired, request, now)
    is_ready = status.is_ready(spec, progress)
    scaling = scaling_state(autoscaler, now) if is_ready else WORKS
    pods = [] if is_ready else observed.pods_of(metadata.name, related)  # which may be hundreds
    observation = ServiceObservation(
        rollout=progress,
        scheduling=status.scan(pods, service_plan.gpus, settings),
        queue=None if related.services is None else related.services.values(),
        causes=chain(
            [draft.missing] if draft.missing and not draft.wait else [],
            _causes(service_plan, model, deployed, pods, related, settings),
        ),
        waiting=() if draft.wait else waiting,
        outstanding=[*waiting, *([scaling.cause] if scaling.cause else [])],
        pods=pods,
        missing_draft=draft.missing,
        idle_autoscaler=scaling.idle,
    )
    return SyncResponse(
        status=status.in_cluster(resource, observation, base, now),
        children=desired,
        resync_after_seconds=RESYNC if scaling.recent or (waiting and not draft.wait) else None,
    )


def _causes(
    service_plan: InferencePlan,
    model: Model,
    deployed: ObservedDeployment | None,
    pods: Sequence[ObservedPod],
    related: InferenceRelated,
    settings: Settings,
) -> Iterator[Cause]:
    yield from mistakes(service_plan, model)
    yield from status.missing_classes(service_plan, related)
    yield from status.multi_attach(service_plan, pods, related, settings)
    yield from deployment_causes(deployed) if deployed else ()
    yield from pod_causes(pods, terminating=True, remedies=_REMEDIES)


def invalid_children(request: Request) -> list[Kept]:
    """Return the children of an invalid service: kept, and scaled to 0 if the spec stops it."""
    return keep_or_stop(request.children, stop=_is_stopped(request))


def counts(request: Request) -> list[str]:
    """Say how many replicas of an invalid service are ready; nothing of one that its spec stops."""
    return [] if _is_stopped(request) else replica_counts(request)


def _is_stopped(request: Request) -> bool:
    spec = request.parent.spec
    return is_scaled_to_zero(spec) or is_true(spec, "suspend")


def _kept_children(resource: InferenceService, request: Request) -> list[Kept]:
    return keep_or_stop(request.children, stop=replicas_of(resource.spec) == 0)


def _children(
    service_plan: InferencePlan, deployed: ObservedDeployment | None, request: Request, settings: Settings
) -> list[Json]:
    children = request.children
    candidates = [
        build.deployment(service_plan, deployed, get(children.autoscalers, service_plan.name, service_plan.namespace)),
        build.service(service_plan),
        build.horizontal_pod_autoscaler(service_plan),
        build.pod_monitor(service_plan) if children.pod_monitors is not None else None,
    ]
    parent_inputs = inputs(request.parent, names.FAMILY, observed.template_inputs(request.related), settings)
    return with_kept_templates((child for child in candidates if child is not None), request, parent_inputs)


def _outstanding(resource: InferenceService, desired: Sequence[Json], request: Request, now: datetime) -> list[Cause]:
    if resource.metadata.deletion_timestamp:
        return []
    return waiting_causes(outstanding(desired, request), resource.status.conditions, now)
