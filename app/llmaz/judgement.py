"""What the statuses of several kinds have in common."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from app.kube import field
from app.kube.conditions import Condition, Conditions

READY = "Ready"
PROGRESSING = "Progressing"
VALID = "Valid"
INVALID_SPEC = "InvalidSpec"
ABORT_PROCESSING = "AbortProcessing"


def validity(
    previous: Sequence[Condition], errors: Sequence[field.Error], now: datetime, usable: str
) -> list[Condition]:
    """The conditions of a kind without children: its own validity, nothing else.

    ``usable`` says for what the object can be used. Who uses it tells so in its own status (LZ-10).
    """
    conditions = Conditions(previous, None, now)
    if errors:
        conditions.set(READY, False, INVALID_SPEC, field.aggregate(errors))
    else:
        conditions.set(READY, True, VALID, usable)
    return conditions.list()


def stopped(previous: Sequence[Condition], reason: str, message: str, now: datetime) -> list[Condition]:
    """The conditions while nothing is touched, neither children nor what is mirrored from them (LZ-5.4)."""
    conditions = Conditions(previous, None, now)
    conditions.set(PROGRESSING, False, ABORT_PROCESSING, message)
    conditions.set(READY, False, reason, message)
    return conditions.list()


def left_alone(why: str, replicas: int) -> str:
    """What happens to the pods while nothing can be made. A number of 0 always counts."""
    return f"{why}; what runs is left as it is" if replicas else f"{why}; replicas is 0, so nothing is left running"


def with_notes(message: str, notes: Sequence[str]) -> str:
    """Notes after the message: what stops nothing and should be known all the same."""
    return "; ".join([*([message] if message else []), *(f"note: {note}" for note in notes)])


def no_replicas() -> int:
    """The replicas of a status that nobody wrote yet. Not a default: the field is there in every status (LZ-T27)."""
    return 0
