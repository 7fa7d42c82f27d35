"""Children that are not there or not as they should be, from what the status said before (design, decision 4)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from app.kube.conditions import Condition, find
from app.workload.absent import absent_causes
from app.workload.cause import Cause
from app.workload.pending import CHANGE_REFUSED, change_cause

_ABSENT = ("Creating", "NameConflict")
"""Reasons of ``Ready`` while a child is waited for."""


def missing_children(absent: Sequence[str], previous: Sequence[Condition], now: datetime) -> list[Cause]:
    """Why these children (``Deployment chat``) are not there; ``Ready`` tells since when they are waited for."""
    if not absent:
        return []
    ready = find(previous, "Ready")
    waited = ready is not None and ready.status == "False" and ready.reason in _ABSENT
    return absent_causes(absent, ready.last_transition_time if ready is not None and waited else None, now)


_CHANGING = ("RollingOut", CHANGE_REFUSED)
"""Reasons of ``Ready`` while a change is waited for."""


def pending_change(child: str, previous: Sequence[Condition], now: datetime) -> Cause:
    """Why this child is not as it should be; ``Ready`` tells since when that is waited for."""
    ready = find(previous, "Ready")
    waited = ready is not None and ready.status == "False" and ready.reason in _CHANGING
    return change_cause(child, ready.last_transition_time if ready is not None and waited else None, now)
