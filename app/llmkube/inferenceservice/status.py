"""The status of a service: what was observed, judged. Source: llmkube spec 5.

Three situations: its Model cannot be used (:func:`waiting`), a metal agent serves it (:func:`on_metal`), or pods of
this cluster do (:func:`in_cluster`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from app.kube import field as fields
from app.kube.conditions import Conditions
from app.kube.resource import Resource
from app.llmkube.inferenceservice.conditions import progress, speculative
from app.llmkube.inferenceservice.metal import Heartbeat
from app.llmkube.inferenceservice.models import Gate
from app.llmkube.inferenceservice.plan import wanted_replicas
from app.llmkube.inferenceservice.scheduling import NOT_WAITING, Scheduling
from app.llmkube.inferenceservice.types import (
    ConditionType,
    InferenceServiceSpec,
    InferenceServiceStatus,
    Phase,
    Reason,
    SchedulingStatus,
)
from app.llmkube.updated import stamp
from app.workload.cause import Cause, Stage
from app.workload.ready import ready_message, ready_reason
from app.workload.rollout import Rollout, rolling_out

Service = Resource[InferenceServiceSpec, InferenceServiceStatus]


@dataclass(frozen=True, slots=True)
class Facts:
    """What every judgement needs besides the service itself."""

    now: datetime
    effective_priority: int
    endpoint: str = ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A phase with the numbers it stands on."""

    phase: Phase
    ready: int = 0
    desired: int = 0
    replicas: int = 0
    scheduling: Scheduling = NOT_WAITING
    queue_position: int = 0
    causes: list[Cause] = field(default_factory=list)
    """Why the service is not ready; empty exactly when it is."""
    replacing: bool = False
    """Whether pods of an earlier template are being replaced."""


def waiting(service: Service, gate: Gate, rollout: Rollout, facts: Facts) -> InferenceServiceStatus:
    """The Model cannot be used: no numbers, no address, and what runs goes on running."""
    stopped = [] if wanted_replicas(service.spec) else [_STOPPED]
    judgement = Judgement(gate.phase, replicas=rollout.replicas, causes=[*stopped, gate.cause])
    conditions = _conditions(service, facts)
    progress(conditions, judgement.phase, rollout.ready, 0, gate.cause.text)
    return _status(service, judgement, conditions, facts)


def on_metal(service: Service, heartbeat: Heartbeat, facts: Facts) -> InferenceServiceStatus:
    """The agent's addresses are the replicas. What the agent wrote itself stays until the service is Ready (T-02)."""
    desired = wanted_replicas(service.spec)
    phase = _phase(heartbeat.ready, desired)
    scheduling = heartbeat.scheduling if phase is Phase.CREATING else NOT_WAITING
    if phase is not Phase.READY:
        scheduling = _kept_for_agent(service.status) or scheduling
    causes = [] if phase is Phase.READY else [_agent_cause(phase, scheduling, heartbeat.ready, desired)]
    judgement = Judgement(phase, heartbeat.ready, desired, desired, scheduling, causes=causes)
    conditions = _conditions(service, facts)
    progress(conditions, phase, heartbeat.ready, desired)
    return _status(service, judgement, conditions, facts)


_WRITTEN_BY_AGENT = (SchedulingStatus.INSUFFICIENT_MEMORY, SchedulingStatus.MEMORY_CHECK_FAILED)


def _kept_for_agent(status: InferenceServiceStatus) -> Scheduling | None:
    """What a metal agent wrote into the status; ``None`` when what stands there is ours (T-02)."""
    if status.scheduling_status not in _WRITTEN_BY_AGENT:
        return None
    return Scheduling(status.scheduling_status, status.scheduling_message)


def _agent_cause(phase: Phase, scheduling: Scheduling, ready: int, desired: int) -> Cause:
    if phase is Phase.STOPPED:
        return _STOPPED
    if scheduling.status:
        return Cause(Stage.SCHEDULING, scheduling.message or scheduling.status, scheduling.status)
    return _count(ready, desired, "processes of the metal agent (it runs one for each service)")


@dataclass(frozen=True, slots=True)
class Observation:
    """What was seen of a service whose pods run in this cluster."""

    rollout: Rollout
    scheduling: Scheduling
    queue_position: int
    causes: Sequence[Cause]
    """What may hold the pods up; nobody asks while all of them are ready and current."""
    outstanding: Sequence[Cause]
    """Children that are not there or not as they should be, or cannot be made yet, which counts in any case."""


def in_cluster(service: Service, seen: Observation, facts: Facts) -> InferenceServiceStatus:
    """The Deployment's pods are the replicas."""
    ready, desired = seen.rollout.ready, desired_replicas(service.spec, seen.rollout)
    phase = _phase(ready, desired)
    if phase is Phase.CREATING and seen.scheduling.status == SchedulingStatus.INSUFFICIENT_GPU:
        phase = Phase.WAITING_FOR_GPU
    shown = seen.scheduling if phase in (Phase.CREATING, Phase.WAITING_FOR_GPU) else NOT_WAITING
    place = seen.queue_position if phase is Phase.WAITING_FOR_GPU else 0
    causes = _causes(service.metadata.name, phase, seen, desired)
    replacing = phase is not Phase.STOPPED and not seen.outstanding and seen.rollout.replacing
    judgement = Judgement(phase, ready, desired, seen.rollout.replicas, shown, place, causes, replacing)
    conditions = _conditions(service, facts)
    progress(conditions, phase, ready, desired, waiting_for=shown.waiting_for, position=place)
    speculative(conditions, service.spec)
    return _status(service, judgement, conditions, facts)


def is_ready(spec: InferenceServiceSpec, rollout: Rollout) -> bool:
    """Whether all the pods that are wanted are ready with the present template, and some are."""
    return rollout.ready > 0 and rollout.ready == desired_replicas(spec, rollout) and rollout.current


def invalid(
    service: Resource[InferenceServiceSpec | None, InferenceServiceStatus],
    errors: Sequence[fields.Error],
    now: datetime,
) -> InferenceServiceStatus:
    """A service that breaks a rule: nothing is touched, so what was observed last of its pods still stands."""
    message = fields.aggregate(errors)
    conditions = Conditions(service.status.conditions, service.metadata.generation, now)
    conditions.remove(ConditionType.PROGRESSING, ConditionType.GPU_AVAILABLE)
    conditions.set(ConditionType.DEGRADED, True, Reason.INVALID_SPEC, message)
    conditions.set(ConditionType.READY, False, Reason.INVALID_SPEC, message)
    agents = _kept_for_agent(service.status) or NOT_WAITING
    status = msgspec.structs.replace(
        service.status,
        phase=Phase.FAILED,
        queue_position=0,
        scheduling_status=agents.status,
        scheduling_message=agents.message,
        waiting_for="",
        conditions=conditions.list(),
    )
    return stamp(status, service.status, now)


def desired_replicas(spec: InferenceServiceSpec, rollout: Rollout) -> int:
    """What the user wants; under autoscaling what the autoscaler made of it, unless the user stopped it (T-17)."""
    wanted = wanted_replicas(spec)
    return rollout.desired if spec.autoscaling and wanted and rollout.desired is not None else wanted


def _phase(ready: int, desired: int) -> Phase:
    """Rows 1 to 3 and 7 of spec 5.3."""
    if ready > 0:
        return Phase.READY if ready == desired else Phase.PROGRESSING
    return Phase.STOPPED if desired == 0 else Phase.CREATING


_STOPPED = Cause(Stage.SPEC, "replicas is 0", Reason.MANUALLY_SCALED_TO_ZERO)


def _causes(name: str, phase: Phase, seen: Observation, desired: int) -> list[Cause]:
    """Why a service with pods is not ready; empty when it is. Bare numbers are said when nothing better is known."""
    if phase is Phase.STOPPED:
        return [_STOPPED]
    causes = [*seen.outstanding, *seen.causes]
    if phase is not Phase.READY:
        return causes or [_count(seen.rollout.ready, desired, "pods")]
    if not seen.rollout.current:
        return causes or [rolling_out("Deployment", name, seen.rollout)]
    return list(seen.outstanding)


def _count(ready: int, desired: int, what: str) -> Cause:
    return Cause(Stage.STARTING, f"{ready} of {desired} {what} are ready", "ReplicasNotReady")


def _conditions(service: Service, facts: Facts) -> Conditions:
    return Conditions(service.status.conditions, service.metadata.generation, facts.now)


def _status(service: Service, judgement: Judgement, conditions: Conditions, facts: Facts) -> InferenceServiceStatus:
    if judgement.causes:
        reason = ready_reason(judgement.causes, replacing=judgement.replacing)
        message = ready_message(judgement.causes)
        conditions.set(ConditionType.READY, False, reason, message)
    else:
        message = f"{judgement.ready} of {judgement.desired} replicas are ready"
        conditions.set(ConditionType.READY, True, Reason.INFERENCE_READY, message)
    status = InferenceServiceStatus(
        phase=judgement.phase,
        ready_replicas=judgement.ready,
        desired_replicas=judgement.desired,
        replicas=judgement.replicas,
        endpoint=facts.endpoint,
        model_ready=bool(facts.endpoint),
        scheduling_status=judgement.scheduling.status,
        scheduling_message=judgement.scheduling.message,
        waiting_for=judgement.scheduling.waiting_for,
        queue_position=judgement.queue_position,
        effective_priority=facts.effective_priority,
        conditions=conditions.list(),
    )
    return stamp(status, service.status, facts.now)
