"""Children that cannot be as they should be: kept while nothing better is known, and what is said of the others."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from app.hooks.kept import keep_or_stop, wants_none
from app.hooks.protocol import SyncRequest
from app.kube.conditions import Condition, since
from app.workload.cause import Cause
from app.workload.rollout import ROLLING_OUT
from app.workload.waiting import CHANGE_REFUSED, absent_causes, change_causes, outstanding

_ABSENT = ("Creating", "NameConflict")
"""Reasons of ``Ready`` while a child is waited for."""
_CHANGING = (ROLLING_OUT, CHANGE_REFUSED)
"""Reasons of ``Ready`` while a change is waited for."""


def kept(request: SyncRequest[Any, Any]) -> list[Any]:
    """The children while it is not known what they should be: as they are, without replicas where the spec wants none.

    Read from the spec as it came, whatever is wrong with the rest of it.
    """
    return keep_or_stop(request.children, stop=wants_none(request.parent.spec))


def outstanding_causes(
    answered: Sequence[Any], children: msgspec.Struct, previous: Sequence[Condition], now: datetime
) -> list[Cause]:
    """Why the observed children are not those of the answer; ``Ready`` tells since when that is waited for."""
    found = outstanding(answered, children)
    if not found:
        return []
    return [
        *absent_causes(found.absent, since(previous, "Ready", "False", _ABSENT), now),
        *change_causes(found.pending, since(previous, "Ready", "False", _CHANGING), now),
    ]
