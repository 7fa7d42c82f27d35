"""The status of a service, from its observed state. Source: LK-5."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from app.hooks.protocol import get
from app.kube import field as fields
from app.kube.base import Json
from app.kube.conditions import Conditions, find, seconds_since
from app.kube.objects import ObservedMeta, ObservedPod
from app.kube.resource import Resource
from app.limits import HEARTBEAT_TIMEOUT_SECONDS
from app.llmkube import names
from app.llmkube.inferenceservice import diagnosis
from app.llmkube.inferenceservice.observed import InferenceRelated, LastingCause, ObservedSlice, PeerService
from app.llmkube.inferenceservice.plan import InferencePlan, gpu_resources, missing_metric, replicas_of
from app.llmkube.inferenceservice.types import (
    GATEWAY_HINT,
    InferenceCondition,
    InferencePhase,
    InferenceReason,
    InferenceService,
    InferenceServiceSpec,
    InferenceServiceStatus,
    SchedulingStatus,
)
from app.llmkube.model.status import with_last_updated
from app.llmkube.runtimes.registry import RUNTIMES, draft_name, runtime
from app.settings import Settings
from app.workload.parts import GPURequest, insufficient_resource
from app.workload.readiness.cause import Cause, Stage
from app.workload.readiness.ready import ready_message, ready_reason
from app.workload.readiness.rollout import Rollout, with_progress
from app.workload.readiness.waiting import deletion_causes, note_children


class Scheduling(msgspec.Struct, frozen=True):
    status: str = ""
    message: str = ""
    waiting_for: str = ""


NOT_WAITING = Scheduling()


def waiting(
    service: InferenceService, cause: Cause, rollout: Rollout, base: InferenceServiceStatus, now: datetime
) -> InferenceServiceStatus:
    """Return the status of a service whose pods cannot be made. ``base`` has the fields that do not depend on them."""
    desired = replicas_of(service.spec)
    stopped = [] if desired else [_stopped(service.spec)]
    shown = desired if base.model_ready else 0
    phase = InferencePhase.FAILED if isinstance(cause, LastingCause) else InferencePhase.PENDING
    status = replace(base, phase=phase, desired_replicas=shown, replicas=rollout.replicas)
    conditions = _progress(service, status, rollout.ready, now, cause.text)
    note_children(conditions, ())
    counted = replace(rollout, desired=desired).counted("Deployment")
    return _complete(service, status, [*stopped, cause], conditions, now, counted=counted)


def on_metal(
    service: InferenceService, heartbeat: Heartbeat, base: InferenceServiceStatus, now: datetime
) -> InferenceServiceStatus:
    """Return the status of a service on metal: its replicas are the agent's addresses, and its own status is kept."""
    ready, desired = heartbeat.ready, replicas_of(service.spec)
    phase = _phase(service.spec, ready, desired)
    scheduling = heartbeat.scheduling if phase is InferencePhase.CREATING else NOT_WAITING
    causes: list[Cause] = []
    if phase is not InferencePhase.READY:
        scheduling = _kept_for_agent(service.status) or scheduling
        causes = [_agent_cause(service.spec, phase, scheduling, ready, desired)]
    status = replace(
        base,
        phase=phase,
        ready_replicas=ready,
        desired_replicas=desired,
        replicas=desired,
        scheduling_status=scheduling.status,
        scheduling_message=scheduling.message,
    )
    conditions = _progress(service, status, ready, now)
    note_children(conditions, ())
    return _complete(service, status, causes, conditions, now)


def _kept_for_agent(status: InferenceServiceStatus) -> Scheduling | None:
    """Return the status that a metal agent wrote; ``None`` if it did not write one (LK-T-02)."""
    if status.scheduling_status in (SchedulingStatus.INSUFFICIENT_MEMORY, SchedulingStatus.MEMORY_CHECK_FAILED):
        return Scheduling(status.scheduling_status, status.scheduling_message)
    return None


def _agent_cause(
    spec: InferenceServiceSpec, phase: InferencePhase, scheduling: Scheduling, ready: int, desired: int
) -> Cause:
    if phase in _AT_REST:
        return _stopped(spec)
    if scheduling.status:
        return Cause(Stage.SCHEDULING, scheduling.message or scheduling.status, scheduling.status)
    return _count(ready, desired, "processes of the metal agent (it runs one for each service)")


class ServiceObservation(msgspec.Struct, frozen=True):
    rollout: Rollout
    scheduling: Scheduling
    queue: Iterable[PeerService] | None
    """Services that may wait for a GPU; ``None`` where the status has no position."""
    causes: Iterable[Cause]
    """Possible causes of unready pods, read only while some are."""
    waiting: Sequence[Cause]
    """Children that are absent or differ."""
    outstanding: Sequence[Cause]
    """Children that are absent, differ or cannot be made yet. They count even while all pods are ready."""
    pods: Sequence[ObservedPod]
    """Pods of the service; empty while all are ready and current."""
    missing_draft: Cause | None
    idle_autoscaler: str = ""
    """Why the autoscaler has no value, without a fault."""


def in_cluster(
    service: InferenceService, observed: ServiceObservation, base: InferenceServiceStatus, now: datetime
) -> InferenceServiceStatus:
    ready, desired = observed.rollout.ready, desired_replicas(service.spec, observed.rollout)
    phase = _phase(service.spec, ready, desired)
    shown = observed.scheduling if phase is InferencePhase.CREATING else NOT_WAITING
    position = 0
    if shown.status == SchedulingStatus.INSUFFICIENT_GPU:
        phase = InferencePhase.WAITING_FOR_GPU
        position = 0 if observed.queue is None else queue_position(service.metadata, observed.queue)
    status = replace(
        base,
        phase=phase,
        ready_replicas=ready,
        desired_replicas=desired,
        replicas=observed.rollout.replicas,
        scheduling_status=shown.status,
        scheduling_message=shown.message,
        waiting_for=shown.waiting_for,
        queue_position=position,
    )
    conditions = _progress(service, status, ready, now)
    note_children(conditions, observed.waiting)
    _runtime_conditions(conditions, service.spec)
    _scaling(conditions, service.spec, observed.idle_autoscaler)
    _speculation(conditions, service.spec, observed.missing_draft)
    diagnosis.write(conditions, observed.pods, ready=phase is InferencePhase.READY)
    replacing = phase not in _AT_REST and not observed.outstanding and observed.rollout.replacing
    causes = _causes(service, phase, observed, desired)
    counted = "" if phase in _AT_REST else replace(observed.rollout, desired=desired).counted("Deployment")
    return _complete(service, status, causes, conditions, now, counted=counted, replacing=replacing)


def _scaling(conditions: Conditions, spec: InferenceServiceSpec, idle: str) -> None:
    missing = missing_metric(spec)
    reason = InferenceReason.METRIC_REQUIRED if missing else InferenceReason.NO_REQUEST_YET
    message = f"spec.autoscaling.metrics: {missing}" if missing else idle
    conditions.set_while(missing or idle, InferenceCondition.SCALING_ACTIVE, False, reason, message)


def is_ready(spec: InferenceServiceSpec, rollout: Rollout) -> bool:
    return rollout.ready > 0 and rollout.ready == desired_replicas(spec, rollout) and rollout.current


def invalid(
    service: Resource[InferenceServiceSpec | None, InferenceServiceStatus],
    errors: Sequence[fields.Error],
    now: datetime,
) -> InferenceServiceStatus:
    """Return the status of an invalid service: nothing is changed, so the observed state of its pods still applies."""
    message = fields.aggregate(errors)
    conditions = Conditions(service.status.conditions, service.metadata.generation, now)
    conditions.remove(
        InferenceCondition.PROGRESSING, InferenceCondition.GPU_AVAILABLE, InferenceCondition.CHILDREN_CREATED
    )
    conditions.set(InferenceCondition.DEGRADED, True, InferenceReason.INVALID_SPEC, message)
    conditions.set(InferenceCondition.READY, False, InferenceReason.INVALID_SPEC, message)
    agents = _kept_for_agent(service.status) or NOT_WAITING
    status = replace(
        service.status,
        phase=InferencePhase.FAILED,
        queue_position=0,
        scheduling_status=agents.status,
        scheduling_message=agents.message,
        waiting_for="",
        conditions=conditions.list(),
    )
    return with_last_updated(status, service.status, now)


def desired_replicas(spec: InferenceServiceSpec, rollout: Rollout) -> int:
    """Return the desired replicas; under autoscaling the autoscaler's, unless the user stopped it (LK-T-17)."""
    replicas = replicas_of(spec)
    return rollout.desired if spec.autoscaling and replicas and rollout.spec_replicas is not None else replicas


_AT_REST = (InferencePhase.STOPPED, InferencePhase.SUSPENDED)


def _phase(spec: InferenceServiceSpec, ready: int, desired: int) -> InferencePhase:
    """Return the phase by the pods (rows 0 to 3 and 7 of LK-5.3)."""
    if spec.suspend:
        return InferencePhase.SUSPENDED
    if ready > 0:
        return InferencePhase.READY if ready == desired else InferencePhase.PROGRESSING
    return InferencePhase.STOPPED if desired == 0 else InferencePhase.CREATING


def _stopped(spec: InferenceServiceSpec) -> Cause:
    if spec.suspend:
        return Cause(Stage.SPEC, "suspend is true", InferenceReason.SUSPENDED)
    return Cause(Stage.SPEC, "replicas is 0", InferenceReason.MANUALLY_SCALED_TO_ZERO)


def _causes(
    service: InferenceService, phase: InferencePhase, observed: ServiceObservation, desired: int
) -> list[Cause]:
    """Return why a service with pods is not ready; empty if it is. Counts are the last resort."""
    if phase in _AT_REST:
        return [_stopped(service.spec)]
    if phase is InferencePhase.READY and observed.rollout.current:
        return list(observed.outstanding)
    causes, name = [*observed.outstanding, *observed.causes], service.metadata.name
    if phase is InferencePhase.READY or observed.rollout.replacing:
        return with_progress(causes, "Deployment", name, observed.rollout)
    return causes or [_count(observed.rollout.ready, desired, "replicas")]


def _count(ready: int, desired: int, what: str) -> Cause:
    return Cause(Stage.STARTING, f"{ready} of {desired} {what} are ready", "ReplicasNotReady")


def _complete(
    service: InferenceService,
    status: InferenceServiceStatus,
    causes: Sequence[Cause],
    conditions: Conditions,
    now: datetime,
    *,
    counted: str = "",
    replacing: bool = False,
) -> InferenceServiceStatus:
    if causes := [*deletion_causes(service.metadata), *causes]:
        reason = ready_reason(causes, replacing=replacing)
        conditions.set(InferenceCondition.READY, False, reason, ready_message(causes, [counted]))
    else:
        message = f"{status.ready_replicas} of {status.desired_replicas} replicas are ready"
        conditions.set(InferenceCondition.READY, True, InferenceReason.INFERENCE_READY, message)
    suspend = service.spec.suspend
    reason = InferenceReason.SUSPENDED if suspend else InferenceReason.NOT_SUSPENDED
    conditions.set(InferenceCondition.SUSPENDED, suspend, reason, f"suspend is {str(suspend).lower()}")
    gateway = service.spec.endpoint.gateway if service.spec.endpoint else None
    enabled, message = gateway is not None and gateway.enabled, f"endpoint.gateway has no effect: {GATEWAY_HINT}"
    reason = InferenceReason.GATEWAY_NOT_INSTALLED
    conditions.set_while(enabled, InferenceCondition.GATEWAY_READY, False, reason, message)
    return with_last_updated(replace(status, conditions=conditions.list()), service.status, now)


# Conditions by phase (LK-5.7), without the stale ones that upstream leaves behind.


_PROGRESSING: dict[str, str] = {
    InferencePhase.CREATING: InferenceReason.CREATING,
    InferencePhase.PROGRESSING: InferenceReason.CREATING,
    InferencePhase.WAITING_FOR_GPU: InferenceReason.WAITING_FOR_GPU,
    InferencePhase.PENDING: InferenceReason.PENDING,
}


def _progress(
    service: InferenceService, status: InferenceServiceStatus, ready: int, now: datetime, cause: str = ""
) -> Conditions:
    """Write the conditions of the phase, and remove stale ones. ``cause``: why it is Failed or Pending."""
    conditions = Conditions(service.status.conditions, service.metadata.generation, now)
    counted = f"{status.ready_replicas} of {status.desired_replicas} replicas are ready"
    _availability(conditions, service.spec, status.phase, ready, counted)
    lacks_gpu, failed = status.phase == InferencePhase.WAITING_FOR_GPU, status.phase == InferencePhase.FAILED
    if lacks_gpu:
        place = f"; place {status.queue_position} in the queue" if status.queue_position else ""
        cause = f"waiting for a node{place}"
    reason, message = _PROGRESSING.get(status.phase, ""), f"no node has enough free GPUs: {status.waiting_for}"
    conditions.set_while(reason, InferenceCondition.PROGRESSING, True, reason, cause or counted)
    conditions.set_while(lacks_gpu, InferenceCondition.GPU_AVAILABLE, False, InferenceReason.INSUFFICIENT_GPU, message)
    conditions.set_while(failed, InferenceCondition.DEGRADED, True, InferenceReason.FAILED, cause)
    return conditions


def _availability(conditions: Conditions, spec: InferenceServiceSpec, phase: str, ready: int, counted: str) -> None:
    """Write ``Available``: true with the phase Ready; afterwards it follows the pods, also while the Model is away."""
    type_ = InferenceCondition.AVAILABLE
    if phase == InferencePhase.FAILED:
        conditions.remove(type_)
    elif phase in _AT_REST:
        stopped = _stopped(spec)
        conditions.set(type_, False, stopped.reason, stopped.text)
    elif phase == InferencePhase.READY:
        conditions.set(type_, True, InferenceReason.INFERENCE_READY, counted)
    elif ready == 0:
        conditions.update(type_, False, InferenceReason.NO_READY_REPLICAS, "no replica is ready")
    elif not conditions.is_true(type_):
        conditions.update(type_, True, InferenceReason.INFERENCE_READY, f"{ready} replicas are ready")


def _runtime_conditions(conditions: Conditions, spec: InferenceServiceSpec) -> None:
    """Write the condition on the runtime's options; it becomes true only if it was false before."""
    server = runtime(spec.runtime)
    conditions.remove(*(other.condition for other in RUNTIMES.values() if other is not server))
    problem = server.judge(spec)
    if problem is not None:
        conditions.set(server.condition, False, *problem)
    else:
        conditions.update(server.condition, True, InferenceReason.CONFIG_VALID, server.valid)


def _speculation(conditions: Conditions, spec: InferenceServiceSpec, missing: Cause | None) -> None:
    """Write ``SpeculativeInvalid`` (LK-B-08), which only exists once a draft model was missing."""
    type_ = InferenceCondition.SPECULATIVE_INVALID
    if missing:
        conditions.set(type_, True, InferenceReason.SPECULATIVE_INVALID, missing.text)
    elif not draft_name(spec):
        conditions.remove(type_)
    else:
        conditions.update(type_, False, InferenceReason.CONFIG_VALID, "the draft model can be used")


# Why pods find no node, and the queue of the services that wait for a GPU (LK-5.4, LK-5.9).


def scan(pods: Iterable[ObservedPod], gpus: GPURequest, settings: Settings) -> Scheduling:
    """Return why the first pod, by name, is not scheduled."""
    for pod in sorted(pods, key=lambda pod: pod.metadata.name):
        scheduled = find(pod.status.conditions, "PodScheduled") if pod.status.phase == "Pending" else None
        if scheduled is None or scheduled.status != "False":
            continue
        resource = insufficient_resource(scheduled.message, (*gpu_resources(settings), gpus.resource))
        if resource:
            waiting = str(GPURequest(gpus.count, resource))
            return Scheduling(SchedulingStatus.INSUFFICIENT_GPU, scheduled.message, waiting)
        if "Insufficient" in scheduled.message:
            return Scheduling(SchedulingStatus.INSUFFICIENT_RESOURCES, scheduled.message)
        return Scheduling(scheduled.reason, scheduled.message)
    return NOT_WAITING


def queue_position(own: ObservedMeta, peers: Iterable[PeerService]) -> int:
    """Return the service's position among those that wait for a GPU, itself included: the oldest first."""
    waiting = {_place(n.metadata) for n in peers if n.status.phase == InferencePhase.WAITING_FOR_GPU}
    return sorted({*waiting, _place(own)}).index(_place(own)) + 1


def _place(metadata: ObservedMeta) -> tuple[str, str, str]:
    return metadata.creation_timestamp or "", metadata.namespace, metadata.name


# What can keep pods from being ready, beyond what they say themselves (LK-6.5).


def missing_classes(plan: InferencePlan, related: InferenceRelated) -> Iterator[Cause]:
    priority, runtime_class = plan.pod["priorityClassName"], plan.pod.get("runtimeClassName")
    if related.priority_classes is not None and priority not in related.priority_classes:
        yield Cause(Stage.QUOTA, f"PriorityClass {priority} does not exist", "PriorityClassNotFound")
    if runtime_class and related.runtime_classes is not None and runtime_class not in related.runtime_classes:
        yield Cause(Stage.QUOTA, f"RuntimeClass {runtime_class} does not exist", "RuntimeClassNotFound")


def multi_attach(
    plan: InferencePlan, pods: Sequence[ObservedPod], related: InferenceRelated, settings: Settings
) -> Iterator[Cause]:
    """Yield a cache that only one node can attach, while pods on several need it, which no pod reports (LK-T-14)."""
    hosts = {pod.status.host_ip for pod in pods if pod.status.host_ip}
    volume: Json = next((v for v in plan.pod.get("volumes", ()) if v["name"] == names.CACHE_VOLUME), {})
    claim = volume.get("persistentVolumeClaim", {}).get("claimName", "")
    if len(hosts) < 2 or not claim or _shareable(claim, plan.namespace, related, settings):
        return
    if any(_is_being_made(pod) for pod in pods):
        why = f"PersistentVolumeClaim {claim} can be attached to one (Multi-Attach)"
        yield Cause(Stage.CLAIM, f"pods are on {len(hosts)} nodes, but {why}", "MultiAttach")


def _shareable(claim: str, namespace: str, related: InferenceRelated, settings: Settings) -> bool:
    """Return whether several nodes can mount the claim: by its access modes, else by the setting for new claims."""
    observed = get(related.claims, claim, namespace)
    modes = (observed.spec.access_modes or []) if observed else [settings.llmkube_model_cache_access_mode]
    return "ReadWriteMany" in modes


def _is_being_made(pod: ObservedPod) -> bool:
    statuses = (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ()))
    return bool(statuses) and all(s.state.waiting is not None and s.last_state.terminated is None for s in statuses)


# A service that an agent on a Mac runs: how many answer, from the EndpointSlices the agent writes (LK-5.5, LK-C).

HEARTBEAT_RESYNC = 90.0
"""Seconds until the next sync: no event tells that a heartbeat becomes old."""


class Heartbeat(msgspec.Struct, frozen=True):
    ready: int
    scheduling: Scheduling
    resync: float | None


def read_heartbeat(slices: Sequence[ObservedSlice] | None, now: datetime) -> Heartbeat:
    """Read the latest heartbeat. Slices without any, as older agents write them, are trusted."""
    if slices is None:
        return Heartbeat(0, _NOT_WATCHED, None)
    texts = [text for slice_ in slices if (text := (slice_.metadata.annotations or {}).get(names.METAL_HEARTBEAT))]
    ages = {text: age for text in texts if (age := seconds_since(text, now)) is not None}
    if texts and not ages:
        message = f"the metal agent's heartbeat {texts[0]!r} is not an RFC 3339 time"
        return Heartbeat(0, Scheduling(SchedulingStatus.AGENT_HEARTBEAT_STALE, message), None)
    if ages:
        freshest = min(ages, key=lambda text: ages[text])
        if ages[freshest] > HEARTBEAT_TIMEOUT_SECONDS:
            message = f"the last heartbeat of the metal agent was at {freshest}; its host may be off"
            return Heartbeat(0, Scheduling(SchedulingStatus.AGENT_HEARTBEAT_STALE, message), HEARTBEAT_RESYNC)
    endpoints = [endpoint for slice_ in slices for endpoint in slice_.endpoints or ()]
    answering = sum(len(item.addresses or ()) for item in endpoints if item.conditions.ready is not False)
    return Heartbeat(answering, _WAITING, HEARTBEAT_RESYNC if ages else None)


_NOT_WATCHED = Scheduling(
    SchedulingStatus.WAITING_FOR_METAL_AGENT,
    "EndpointSlices, where a metal agent writes its address, are not watched: set "
    "MODELHOOKS_LLMKUBE_WATCH_ENDPOINT_SLICES=true",
)
_WAITING = Scheduling(
    SchedulingStatus.WAITING_FOR_METAL_AGENT, "waiting for a metal agent to fetch the model and register its address"
)
