"""Children that were asked for and are not as asked: an update that the API server refuses.

Metacontroller repeats it for ever, and its words stand in an event of the parent, which no hook sees. Its record on the
child tells: it is written with the update, so while it differs from what is asked for, the update is not made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec
import orjson

from app.hooks.memo import Memo
from app.hooks.protocol import observed_children
from app.hooks.response import Prepared
from app.kube.objects import ObservedObject, last_applied
from app.workload.absent import waited_in_vain
from app.workload.cause import Cause, Stage

CHANGE_REFUSED = "ChangeRefused"
"""Reason of ``Ready`` when a child stays as it is."""
ROLLING_OUT = Cause(Stage.STARTING, "the last change is about to be rolled out", "RollingOut")
"""Said while a change that was asked for is on its way."""


def pending_children(answered: Sequence[Any], children: msgspec.Struct) -> list[str]:
    """Observed children (``Deployment chat``) that the answer asks to change, by what Metacontroller asked for last.

    ``answered`` are the children of the answer. Metadata and ``spec.replicas`` do not count: others write there too.
    Children without a record, just taken over, and those that the answer leaves out are not pending.
    """
    observed = [child for _, group in observed_children(children) for child in group.values()]
    encoded = answered.encoded if isinstance(answered, Prepared) else msgspec.json.encode(answered, order="sorted")
    records = [(child.kind, child.metadata.name, bytes(child.metadata.annotations)) for child in observed]
    key = encoded, *records
    if _applied.get(key) is not None:
        return []
    found = _pending(orjson.loads(encoded), observed)
    if not found:
        _applied.put(key, value=True, size=len(encoded) + sum(len(text) for _, _, text in records))
    return found


_applied: Memo[bool] = Memo()
"""Answers, with the records that agree with them."""


def _pending(answered: list[dict[str, Any]], observed: Iterable[ObservedObject]) -> list[str]:
    asked = {(child["kind"], child["metadata"]["name"]): child for child in answered}
    found = []
    for child in observed:
        wanted, record = asked.get((child.kind, child.metadata.name)), last_applied(child)
        if wanted is not None and record is not None and _substance(wanted) != _substance(record):
            found.append(f"{child.kind} {child.metadata.name}")
    return sorted(found)


def _substance(child: dict[str, Any]) -> dict[str, Any]:
    """What only its owner asks of a child."""
    rest = {key: value for key, value in child.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    spec = rest.get("spec")
    if isinstance(spec, dict):
        rest["spec"] = {key: value for key, value in spec.items() if key != "replicas"}
    return rest


def change_causes(pending: Iterable[str], since: str | None, now: datetime) -> list[Cause]:
    """Why these children are not as they should be. ``since``: as for :func:`app.workload.absent.absent_causes`."""
    if waited_in_vain(since, now):
        return [Cause(Stage.SPEC, _refused(child), CHANGE_REFUSED) for child in pending]
    return [ROLLING_OUT for _ in pending]


def _refused(child: str) -> str:
    return (
        f"{child} cannot be changed as asked for and is as it was: the API server refuses the change (the events of "
        "this object have its words)"
    )
