"""Pods that were asked for and that their Deployment does not have: an update that the API server refuses.

Metacontroller repeats it for ever, and its words stand in an event of the parent, which no hook sees. Its record on the
child tells: it is written with the update, so while it differs from what is asked for, the update is not made.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import orjson

from app.hooks.memo import Memo
from app.hooks.response import Prepared
from app.kube.labels import LAST_APPLIED
from app.kube.objects import ObservedObject, annotations_of, last_applied
from app.workload.absent import waited_in_vain
from app.workload.cause import Cause, Stage

CHANGE_REFUSED = "ChangeRefused"
"""Reason of ``Ready`` when a child stays as it is."""
_TEMPLATE = '"template":{'


def is_pending(observed: ObservedObject, children: list[Any]) -> bool:
    """Whether the record on the child has another pod template than it has among the children that are answered."""
    annotations = bytes(observed.metadata.annotations)
    key: tuple[int | bytes, bytes]
    if isinstance(children, Prepared):
        answered, key, size = children.encoded, (id(children), annotations), len(annotations)
    else:
        answered = msgspec.json.encode(children, order="sorted")
        key, size = (answered, annotations), len(answered) + len(annotations)
    if _applied.get(key) is not None:
        return False
    if _differs(observed, answered):
        return True
    _applied.put(key, children, size)
    return False


_applied: Memo[list[Any]] = Memo()
"""Answers, and annotations that agree with them. Those that are made only once go by their id: held, it is theirs."""


def _differs(observed: ObservedObject, answered: bytes) -> bool:
    """The same question of children as sorted JSON.

    The template comes last in a workload's spec, and the spec last in an object, so the end of the record is looked for
    as it is; only where it is not found, both are read. Without a record there is nothing to compare.
    """
    text = annotations_of(observed).get(LAST_APPLIED, "")
    start = text.find(_TEMPLATE)
    if start >= 0 and text[start:].encode(errors="surrogatepass") in answered:
        return False
    record = last_applied(observed)
    return record is not None and bool(_template(record) != _template(_same(orjson.loads(answered), observed)))


def _same(children: list[dict[str, Any]], observed: ObservedObject) -> dict[str, Any] | None:
    wanted = observed.kind, observed.metadata.name
    return next((child for child in children if (child["kind"], child["metadata"]["name"]) == wanted), None)


def _template(child: dict[str, Any] | None) -> Any:
    spec = (child or {}).get("spec")
    return spec.get("template") if isinstance(spec, dict) else None


def change_cause(child: str, since: str | None, now: datetime) -> Cause:
    """Why a child (``Deployment chat``) is not as it should be. ``since``: as for :func:`absent_causes`."""
    return refused(child) if waited_in_vain(since, now) else Cause(Stage.STARTING, _SOON, "RollingOut")


_SOON = "the last change is about to be rolled out"


def refused(child: str) -> Cause:
    """Said of a child that has been pending for too long."""
    text = (
        f"{child} cannot be changed as asked for and is as it was: the API server refuses the change (the events of "
        "this object have its words)"
    )
    return Cause(Stage.SPEC, text, CHANGE_REFUSED)
