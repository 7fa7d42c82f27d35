"""What an answer asks for and the cluster does not have yet: absent children, changes not made, and since when.

Metacontroller creates a child whose name is taken by a foreign object again and again without a word, and no event ever
announces it (MC-8.3); one that the API server refuses, or a change that it refuses, leaves its words in an event of the
parent, which no hook sees. Only time tells: what is still missing after a minute will not come by itself.

Metacontroller's record on a child tells what was asked of it last. It is written with the update, so while it differs
from what is asked for now, the update is not made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from app.hooks.protocol import Inputs, SyncRequest, observed_children
from app.hooks.template import stays, without_template
from app.kube.conditions import seconds_since
from app.kube.objects import ObservedObject, last_applied
from app.workload.cause import Cause, Stage
from app.workload.rollout import ROLLING_OUT


@dataclass(frozen=True, slots=True)
class Outstanding:
    """Children by kind and name, as in ``Service chat``."""

    absent: Sequence[str] = ()
    """Not observed."""
    pending: Sequence[str] = ()
    """Observed, and not as the answer wants them."""

    def __bool__(self) -> bool:
        return bool(self.absent or self.pending)


NOTHING = Outstanding()


def outstanding(answered: Sequence[Any], request: SyncRequest[Any, Any]) -> Outstanding:
    """What separates the observed children from those of the answer to a request, in the answer's order.

    Metadata and ``spec.replicas`` do not count: others write there too. Nor do children without a record, which were
    just taken over, and those that the answer leaves out.
    """
    there = {
        (child.kind, child.metadata.name): child
        for _, group in observed_children(request.children)
        for child in group.values()
    }
    absent, pending = [], []
    for wanted in msgspec.to_builtins(answered):
        identity = wanted["kind"], wanted["metadata"]["name"]
        child = there.get(identity)
        if child is None:
            absent.append(" ".join(identity))
        elif (record := last_applied(child)) is not None and _differ(wanted, record, child, request.inputs):
            pending.append(" ".join(identity))
    return Outstanding(absent, pending) if absent or pending else NOTHING


def _differ(wanted: dict[str, Any], record: dict[str, Any], child: ObservedObject, inputs: Inputs) -> bool:
    if stays(child, wanted, inputs):
        wanted, record = without_template(wanted), without_template(record)
    return _substance(wanted) != _substance(record)


def _substance(child: dict[str, Any]) -> dict[str, Any]:
    """What only its owner asks of a child."""
    rest = {key: value for key, value in child.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    spec = rest.get("spec")
    if isinstance(spec, dict):
        rest["spec"] = {key: value for key, value in spec.items() if key != "replicas"}
    return rest


PATIENCE = 60.0
"""Seconds after which a child that is not there is no longer on its way."""

RESYNC = 65.0
"""When to look again, as no event will come (``resyncAfterSeconds``)."""


def waiting_causes(found: Outstanding, since: str | None, now: datetime) -> list[Cause]:
    """Why the cluster does not have what an answer asks for.

    ``since``: RFC 3339 time of the answer that asked for it first, ``None`` when that is the present one.
    """
    return [*absent_causes(found.absent, since, now), *change_causes(found.pending, since, now)]


def absent_causes(absent: Sequence[str], since: str | None, now: datetime) -> list[Cause]:
    """Why the children named in ``absent`` (``Service chat``) are not there; ``since`` as above."""
    if waited_in_vain(since, now):
        return [Cause(Stage.SPEC, _taken(child), "NameConflict") for child in absent]
    return [Cause(Stage.STARTING, f"{child} is being created", "Creating") for child in absent]


def waited_in_vain(since: str | None, now: datetime) -> bool:
    """Whether what was asked for at that time should be there by now."""
    age = seconds_since(since, now)
    return age is not None and age > PATIENCE


def _taken(child: str) -> str:
    return (
        f"{child} cannot be created: another object has that name (delete or rename it), or the "
        "API server refuses what was asked for (see the events of this object)"
    )


CHANGE_REFUSED = "ChangeRefused"
"""Reason of ``Ready`` when a child stays as it is."""
_ROLLING_OUT = Cause(Stage.STARTING, "the last change is about to be rolled out", ROLLING_OUT)
"""Said while a change that was asked for is on its way."""


def change_causes(pending: Iterable[str], since: str | None, now: datetime) -> list[Cause]:
    """Why these children are not as they should be. ``since`` as above."""
    if waited_in_vain(since, now):
        return [Cause(Stage.SPEC, _change_refused(child), CHANGE_REFUSED) for child in pending]
    return [_ROLLING_OUT for _ in pending]


def _change_refused(child: str) -> str:
    return (
        f"{child} cannot be changed and stays as it was: the API server refuses the change (see the events of this "
        "object)"
    )
