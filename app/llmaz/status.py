"""Parts that the statuses of several kinds share. Source: LZ-5.1, LZ-5.4, LZ-10."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from app.hooks.kept import is_scaled_to_zero, keep_or_stop
from app.hooks.protocol import AnyRequest, Kept, NoObjects, SyncRequest, SyncResponse
from app.kube import field
from app.kube.base import Int32, Json
from app.kube.conditions import Condition, Conditions, since
from app.kube.resource import Resource
from app.settings import Settings
from app.workload.cause import Cause
from app.workload.rollout import ROLLING_OUT
from app.workload.waiting import CHANGE_REFUSED, absent_causes, change_causes, outstanding


class LlmazCondition(StrEnum):
    """The condition types of the family's kinds; definitions have ``Ready`` alone."""

    AVAILABLE = "Available"
    """All replicas are ready with the present template."""
    PROGRESSING = "Progressing"
    """Children are being created or changed. Upstream never removes it; only an abort does."""
    READY = "Ready"
    """The one condition all families have; while not True its message lists why."""


VALID = "Valid"
INVALID_SPEC = "InvalidSpec"
ABORT_PROCESSING = "AbortProcessing"


class Status(msgspec.Struct, rename="camel", omit_defaults=True):
    """Fields of every status of the family."""

    conditions: Annotated[list[Condition], Meta(description="Conditions of the object, by type.")] = msgspec.field(
        default_factory=list
    )


class ScaledStatus(Status):
    """Fields of the statuses of workloads. A default of 0 would be omitted, and ``replicas`` must not be (LZ-T27)."""

    replicas: Annotated[Int32, Meta(description="Number of existing replicas, ready or not.")] = msgspec.field(
        default_factory=lambda: 0
    )
    selector: Annotated[str, Meta(description="Label selector of the pods that take requests, for an autoscaler.")] = ""


@dataclass(frozen=True)
class Validity:
    """Hooks of a kind without children, whose status only has its validity."""

    usable: str
    """Message of a valid object."""

    def sync(
        self,
        resource: Resource[Any, Status],
        _request: SyncRequest[NoObjects, NoObjects],
        _settings: Settings,
        now: datetime,
    ) -> SyncResponse:
        return SyncResponse(status=self.invalid(resource, (), now), children=[])

    def invalid(self, resource: Resource[Any, Status], errors: Sequence[field.Error], now: datetime) -> Status:
        conditions = Conditions(resource.status.conditions, None, now)
        if errors:
            conditions.set(LlmazCondition.READY, False, INVALID_SPEC, field.aggregate(errors))
        else:
            conditions.set(LlmazCondition.READY, True, VALID, self.usable)
        return msgspec.structs.replace(resource.status, conditions=conditions.list())


def invalid(resource: Resource[Any, ScaledStatus], errors: Sequence[field.Error], now: datetime) -> ScaledStatus:
    return _stopped(resource.status, INVALID_SPEC, field.aggregate(errors), now)


def aborted(previous: ScaledStatus, cause: Cause, now: datetime, *, replicas: int) -> ScaledStatus:
    """Build the status of an object whose children stay unchanged, except that ``replicas: 0`` stops them."""
    effect = "running pods are left unchanged" if replicas else "replicas is 0, so everything is stopped"
    return _stopped(previous, cause.reason, f"{cause.text}; {effect}", now)


def _stopped(previous: ScaledStatus, reason: str, message: str, now: datetime) -> ScaledStatus:
    """Build the status while children, and the fields copied from them, stay unchanged (LZ-5.4)."""
    conditions = Conditions(previous.conditions, None, now)
    conditions.set(LlmazCondition.PROGRESSING, False, ABORT_PROCESSING, message)
    conditions.set(LlmazCondition.READY, False, reason, message)
    return msgspec.structs.replace(previous, conditions=conditions.list())


def with_notes(message: str, notes: Sequence[str]) -> str:
    return "; ".join([*([message] if message else []), *(f"note: {note}" for note in notes)])


def kept_children(request: AnyRequest) -> list[Kept]:
    """Return the children as observed, scaled to zero if the spec has ``replicas: 0``; the spec may be invalid."""
    return keep_or_stop(request.children, stop=is_scaled_to_zero(request.parent.spec))


_ABSENT = ("Creating", "NameConflict")
"""Reasons of ``Ready`` while a child is missing."""
_CHANGING = (ROLLING_OUT, CHANGE_REFUSED)
"""Reasons of ``Ready`` while a child has yet to change."""


def outstanding_causes(
    desired: Sequence[Json], request: AnyRequest, previous: Sequence[Condition], now: datetime
) -> list[Cause]:
    """Return why the observed children differ from the desired ones; ``Ready`` has the time since when they do."""
    missing = outstanding(desired, request)
    if not missing:
        return []
    return [
        *absent_causes(missing.absent, since(previous, LlmazCondition.READY, "False", _ABSENT), now),
        *change_causes(missing.pending, since(previous, LlmazCondition.READY, "False", _CHANGING), now),
    ]
