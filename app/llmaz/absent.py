"""Children of the family's kinds that are not there, from what the status said before (design, decision 4)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from app.kube.conditions import Condition, find
from app.workload.absent import absent_causes
from app.workload.cause import Cause

_ABSENT = ("Creating", "NameConflict")
"""Reasons of ``Ready`` while a child is waited for."""


def missing_children(absent: Sequence[str], previous: Sequence[Condition], now: datetime) -> list[Cause]:
    """Why these children (``Deployment chat``) are not there; ``Ready`` tells since when they are waited for."""
    if not absent:
        return []
    ready = find(previous, "Ready")
    waited = ready is not None and ready.status == "False" and ready.reason in _ABSENT
    return absent_causes(absent, ready.last_transition_time if ready is not None and waited else None, now)
