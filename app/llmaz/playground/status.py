"""Status of a Playground, from its observed Service. Source: LZ-5.2, whose rows are named below."""

from datetime import datetime

from app.kube.conditions import Conditions, find, is_true
from app.llmaz.playground.observed import ObservedInferenceService
from app.llmaz.playground.types import PlaygroundReason
from app.llmaz.status import LlmazCondition, ScaledStatus, with_notes
from app.workload.cause import Cause, Stage
from app.workload.ready import ready_message, ready_reason

_WAITING = "waiting for the inference Service to become ready"
_AVAILABLE = "the inference Service is available"


def build_status(
    previous: ScaledStatus,
    service: ObservedInferenceService | None,
    outstanding: list[Cause],
    scaling: Cause | None,
    notes: list[str],
    now: datetime,
) -> ScaledStatus:
    """Build the status (rows 4 to 7).

    ``outstanding``: children that are missing or not as requested. ``scaling``: why the autoscaler cannot scale, which
    counts once the Service is ready.
    """
    conditions = Conditions(previous.conditions, None, now)
    _upstream(
        conditions, available=service is not None and is_true(service.status.conditions, LlmazCondition.AVAILABLE)
    )
    _ready(conditions, service, outstanding, scaling, notes)
    return ScaledStatus(
        conditions=conditions.list(),
        replicas=service.status.replicas if service else 0,
        selector=service.status.selector if service else "",
    )


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


def _ready(
    conditions: Conditions,
    service: ObservedInferenceService | None,
    outstanding: list[Cause],
    scaling: Cause | None,
    notes: list[str],
) -> None:
    """Copy the Service's ``Ready``, unless the Service is about to change, or children are missing or do not work."""
    reported = find(service.status.conditions if service else None, LlmazCondition.READY)
    causes = outstanding or _not_reported(service)
    if scaling is not None and reported is not None and reported.status == "True":
        causes = [*causes, scaling]
    if causes:
        conditions.set(LlmazCondition.READY, False, ready_reason(causes), with_notes(ready_message(causes), notes))
        return
    if reported is None:  # the Go operator wrote the status
        ready = conditions.is_true(LlmazCondition.AVAILABLE)
        reason = PlaygroundReason.PLAYGROUND_READY if ready else PlaygroundReason.PLAYGROUND_NOT_READY
        conditions.set(LlmazCondition.READY, ready, reason, with_notes("" if ready else _WAITING, notes))
        return
    if reported.status == "True":
        conditions.set(
            LlmazCondition.READY, True, PlaygroundReason.PLAYGROUND_READY, with_notes(reported.message, notes)
        )
        return
    why, message = reported.reason or PlaygroundReason.PLAYGROUND_NOT_READY, reported.message or _WAITING
    conditions.set(LlmazCondition.READY, False, why, with_notes(message, notes))


def _not_reported(service: ObservedInferenceService | None) -> list[Cause]:
    """Return a cause if the Service's status is of an older generation."""
    if service is None:
        return []
    observed, generation = service.status.observed_generation, service.metadata.generation
    if observed is None or generation is None or observed >= generation:
        return []
    text = f"Service {service.metadata.name} has not reported its status since it was changed"
    return [Cause(Stage.STARTING, text, PlaygroundReason.SERVICE_NOT_REPORTED)]
