"""Children that were asked for and are not there.

Metacontroller creates a child whose name is taken by a foreign object again and again without a word, and no event ever
announces it (MC-8.3); one that the API server refuses leaves its words in an event of the parent, which no
hook sees. Only time tells: what is still absent after a minute will not come by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from app.kube.time import seconds_since
from app.workload.cause import Cause, Stage

PATIENCE = 60.0
"""Seconds after which a child that is not there is no longer on its way."""

RESYNC = 65.0
"""When to look again, as no event will come (``resyncAfterSeconds``)."""


def absent_causes(absent: Sequence[str], since: str | None, now: datetime) -> list[Cause]:
    """Why the children named in ``absent`` (``Service chat``) are not there.

    ``since``: RFC 3339 time of the answer that asked for them first, ``None`` when that is the present one.
    """
    if waited_in_vain(since, now):
        return [Cause(Stage.SPEC, _taken(child), "NameConflict") for child in absent]
    return [Cause(Stage.STARTING, f"{child} is being created", "Creating") for child in absent]


def waited_in_vain(since: str | None, now: datetime) -> bool:
    """Whether what was asked for at that time should be there by now."""
    age = seconds_since(since, now)
    return age is not None and age > PATIENCE


def _taken(child: str) -> str:
    return (
        f"{child} cannot be created: an object of that name that is not ours is there (delete or rename it), or the "
        "API server refuses what was asked for (the events of this object have its words)"
    )
