"""Parts that the statuses of several kinds share. Source: LZ-5.1, LZ-5.4, LZ-10."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec

from app.hooks.kept import Kept, is_scaled_to_zero, keep_or_stop
from app.hooks.protocol import NoObjects, SyncRequest, SyncResponse
from app.kube import field
from app.kube.base import Json
from app.kube.conditions import Condition, Conditions, since
from app.kube.resource import Resource
from app.settings import Settings
from app.workload.cause import Cause
from app.workload.rollout import ROLLING_OUT
from app.workload.waiting import CHANGE_REFUSED, absent_causes, change_causes, outstanding

READY = "Ready"
PROGRESSING = "Progressing"
VALID = "Valid"
INVALID_SPEC = "InvalidSpec"
ABORT_PROCESSING = "AbortProcessing"


class Status(msgspec.Struct, rename="camel", omit_defaults=True):
    """Fields of every status of the family."""

    conditions: list[Condition] = msgspec.field(default_factory=list)


StatusT = TypeVar("StatusT", bound=Status)


@dataclass(frozen=True)
class Validity(Generic[StatusT]):
    """The hooks of a kind without children: its status says whether it is valid, and there is nothing else.

    What becomes of an object that is valid in itself, its users tell in their own status.
    """

    usable: str
    """Message of a valid object."""

    def sync(
        self,
        resource: Resource[Any, StatusT],
        _request: SyncRequest[NoObjects, NoObjects],
        _settings: Settings,
        now: datetime,
    ) -> SyncResponse:
        return SyncResponse(status=self.invalid(resource, (), now), children=[])

    def invalid(self, resource: Resource[Any, StatusT], errors: Sequence[field.Error], now: datetime) -> StatusT:
        conditions = Conditions(resource.status.conditions, None, now)
        if errors:
            conditions.set(READY, False, INVALID_SPEC, field.aggregate(errors))
        else:
            conditions.set(READY, True, VALID, self.usable)
        return msgspec.structs.replace(resource.status, conditions=conditions.list())


def invalid(resource: Resource[Any, StatusT], errors: Sequence[field.Error], now: datetime) -> StatusT:
    return _stopped(resource.status, INVALID_SPEC, field.aggregate(errors), now)


def aborted(previous: StatusT, cause: Cause, now: datetime, *, replicas: int) -> StatusT:
    """Something is missing, and what runs is left alone, but for ``replicas: 0``, which always counts."""
    effect = "running pods are left unchanged" if replicas else "replicas is 0, so everything is stopped"
    return _stopped(previous, cause.reason, f"{cause.text}; {effect}", now)


def _stopped(previous: StatusT, reason: str, message: str, now: datetime) -> StatusT:
    """While nothing is touched, neither children nor what is mirrored from them (LZ-5.4)."""
    conditions = Conditions(previous.conditions, None, now)
    conditions.set(PROGRESSING, False, ABORT_PROCESSING, message)
    conditions.set(READY, False, reason, message)
    return msgspec.structs.replace(previous, conditions=conditions.list())


def with_notes(message: str, notes: Sequence[str]) -> str:
    """Notes after the message: what stops nothing and should be known all the same."""
    return "; ".join([*([message] if message else []), *(f"note: {note}" for note in notes)])


def no_replicas() -> int:
    """The replicas of a status that nobody wrote yet. Not a default: the field is there in every status (LZ-T27)."""
    return 0


def kept(request: SyncRequest[Any, Any]) -> list[Kept]:
    """The children while it is not known what they should be: as they are, without replicas where the spec wants none.

    Read from the spec as it came, whatever is wrong with the rest of it.
    """
    return keep_or_stop(request.children, stop=is_scaled_to_zero(request.parent.spec))


_ABSENT = ("Creating", "NameConflict")
"""Reasons of ``Ready`` while a child is waited for."""
_CHANGING = (ROLLING_OUT, CHANGE_REFUSED)
"""Reasons of ``Ready`` while a change is waited for."""


def outstanding_causes(
    desired: Sequence[Json], request: SyncRequest[Any, Any], previous: Sequence[Condition], now: datetime
) -> list[Cause]:
    """Why the observed children are not those of the answer; ``Ready`` tells since when that is waited for."""
    found = outstanding(desired, request)
    if not found:
        return []
    return [
        *absent_causes(found.absent, since(previous, READY, "False", _ABSENT), now),
        *change_causes(found.pending, since(previous, READY, "False", _CHANGING), now),
    ]
