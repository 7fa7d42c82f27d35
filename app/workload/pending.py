"""Children that were asked for and are not as asked: an update that the API server refuses.

Metacontroller repeats it for ever, and its words stand in an event of the parent, which no hook sees.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from app.workload.absent import waited_in_vain
from app.workload.cause import Cause, Stage
from app.workload.rollout import ROLLING_OUT

CHANGE_REFUSED = "ChangeRefused"
"""Reason of ``Ready`` when a child stays as it is."""
_ROLLING_OUT = Cause(Stage.STARTING, "the last change is about to be rolled out", ROLLING_OUT)
"""Said while a change that was asked for is on its way."""


def change_causes(pending: Iterable[str], since: str | None, now: datetime) -> list[Cause]:
    """Why these children are not as they should be. ``since``: as for :func:`app.workload.absent.absent_causes`."""
    if waited_in_vain(since, now):
        return [Cause(Stage.SPEC, _refused(child), CHANGE_REFUSED) for child in pending]
    return [_ROLLING_OUT for _ in pending]


def _refused(child: str) -> str:
    return (
        f"{child} cannot be changed as asked for and is as it was: the API server refuses the change (the events of "
        "this object have its words)"
    )
