"""Status of a Playground, from its observed Service. Source: LZ-5.2, whose rows are named below."""

from datetime import datetime

from app.kube.conditions import Condition, Conditions, find, is_true
from app.llmaz.playground.observed import ObservedInferenceService, ObservedServiceStatus
from app.llmaz.playground.types import PlaygroundReason
from app.llmaz.status import LlmazCondition, ScaledStatus, with_notes
from app.workload.readiness.cause import Cause, Stage
from app.workload.readiness.ready import ready_message, ready_reason
from app.workload.readiness.rollout import ready_count
from app.workload.readiness.waiting import (
    CHANGE_REFUSED,
    CHILD_TERMINATING,
    CREATE_REFUSED,
    NAME_CONFLICT,
    TERMINATING,
    absent_causes,
    note_children,
    timed_out,
)

_OF_SERVICE = (NAME_CONFLICT, CREATE_REFUSED, CHANGE_REFUSED, CHILD_TERMINATING, TERMINATING)
"""Reasons of messages about the Service itself, or its events."""
_WAITING = "waiting for the inference Service to become ready"
_AVAILABLE = "the inference Service is available"


def build_status(
    previous: ScaledStatus,
    service: ObservedInferenceService | None,
    outstanding: list[Cause],
    scaling: Cause | None,
    notes: list[str],
    now: datetime,
    *,
    wanted: int | None,
) -> ScaledStatus:
    """Build the status (rows 4 to 7).

    ``wanted``: the number of replicas that the answer asks for; ``None`` where others write it.
    ``outstanding``: children that are missing or not as requested. ``scaling``: why the autoscaler cannot scale, which
    counts once the Service is ready.
    """
    conditions = Conditions(previous.conditions, None, now)
    note_children(conditions, outstanding)
    reported = service.status if service is not None else ObservedServiceStatus()
    _upstream(conditions, available=is_true(reported.conditions, LlmazCondition.AVAILABLE))
    causes = outstanding or _not_reported(service, now)
    if scaling is not None and is_true(reported.conditions, LlmazCondition.READY):
        causes = [*causes, scaling]
    if causes:
        ready, reason, message = False, ready_reason(causes), ready_message(causes, counts(service, wanted))
    else:
        ready, reason, message = _reported(conditions, service)
    conditions.set(LlmazCondition.READY, ready, reason, with_notes(message, notes))
    return ScaledStatus(conditions=conditions.list(), replicas=reported.replicas, selector=reported.selector)


def counts(service: ObservedInferenceService | None, wanted: int | None = None) -> list[str]:
    """Say how many replicas of the Service are ready, of the ``wanted`` ones or else of those of its spec."""
    if service is None or service.status.ready_replicas is None:
        return []
    present = 1 if service.spec.replicas is None else service.spec.replicas
    count = ready_count(service.status.ready_replicas, present if wanted is None else wanted)
    return [count] if count else []


def _upstream(conditions: Conditions, *, available: bool) -> None:
    """Set upstream's two conditions; unlike upstream's, Progressing becomes false when the Service is available."""
    progressing, before = conditions.get(LlmazCondition.PROGRESSING), conditions.get(LlmazCondition.AVAILABLE)
    if available:
        conditions.set(LlmazCondition.AVAILABLE, True, PlaygroundReason.PLAYGROUND_READY, _AVAILABLE)
        conditions.update(LlmazCondition.PROGRESSING, False, PlaygroundReason.PLAYGROUND_READY, _AVAILABLE)
        return
    if (progressing is None and before is None) or (progressing is not None and progressing.status == "False"):
        conditions.set(LlmazCondition.PROGRESSING, True, PlaygroundReason.PENDING, _WAITING)
    if before is not None:
        conditions.set(LlmazCondition.PROGRESSING, True, PlaygroundReason.PLAYGROUND_IN_PROGRESS, _WAITING)
        message = "the inference Service is no longer available"
        conditions.set(LlmazCondition.AVAILABLE, False, PlaygroundReason.PLAYGROUND_NOT_READY, message)


def _reported(conditions: Conditions, service: ObservedInferenceService | None) -> tuple[bool, str, str]:
    """Return status, reason and message of the Service's ``Ready``, which the Go operator does not write.

    A message about the Service itself, or its events, names the Service.
    """
    available = conditions.is_true(LlmazCondition.AVAILABLE)
    ready = find(service.status.conditions, LlmazCondition.READY) if service is not None else None
    reported = ready or Condition(status=str(available))
    if reported.status == "True":
        return True, PlaygroundReason.PLAYGROUND_READY, reported.message
    message = reported.message or _WAITING
    if service is not None and reported.reason in _OF_SERVICE:
        message = f"inference Service {service.metadata.name}: {message}"
    return False, reported.reason or PlaygroundReason.PLAYGROUND_NOT_READY, message


def _not_reported(service: ObservedInferenceService | None, now: datetime) -> list[Cause]:
    """Return a cause if the Service has no status yet, or one of an older generation."""
    if service is None:
        return []
    metadata, status = service.metadata, service.status
    observed, generation = status.observed_generation, metadata.generation
    if not status.conditions and not timed_out(metadata.creation_timestamp, now):
        return absent_causes([f"Service {metadata.name}"], None, now)
    if status.conditions and (observed is None or generation is None or observed >= generation):
        return []
    since = "changed" if status.conditions else "created"
    text = f"Service {metadata.name} has not reported its status since it was {since}"
    return [Cause(Stage.STARTING, text, PlaygroundReason.SERVICE_NOT_REPORTED)]
