"""What an answer asks for and the cluster does not have: children that are absent, and changes that are not made.

Metacontroller's record on a child tells what was asked of it last. It is written with the update, so while it differs
from what is asked for now, the update is not made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from app.hooks.protocol import observed_children
from app.hooks.template import stands_for, without_template
from app.kube.objects import ObservedObject, last_applied


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


def outstanding(answered: Sequence[Any], children: msgspec.Struct) -> Outstanding:
    """What separates the observed children from those of the answer, in the answer's order.

    Metadata and ``spec.replicas`` do not count: others write there too. Nor do children without a record, which were
    just taken over, and those that the answer leaves out.
    """
    there = {
        (child.kind, child.metadata.name): child for _, group in observed_children(children) for child in group.values()
    }
    absent, pending = [], []
    for wanted in msgspec.to_builtins(answered):
        identity = wanted["kind"], wanted["metadata"]["name"]
        child = there.get(identity)
        if child is None:
            absent.append(" ".join(identity))
        elif (record := last_applied(child)) is not None and _differ(wanted, record, child):
            pending.append(" ".join(identity))
    return Outstanding(absent, pending) if absent or pending else NOTHING


def _differ(wanted: dict[str, Any], record: dict[str, Any], child: ObservedObject) -> bool:
    if stands_for(child, wanted):
        wanted, record = without_template(wanted), without_template(record)
    return _substance(wanted) != _substance(record)


def _substance(child: dict[str, Any]) -> dict[str, Any]:
    """What only its owner asks of a child."""
    rest = {key: value for key, value in child.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    spec = rest.get("spec")
    if isinstance(spec, dict):
        rest["spec"] = {key: value for key, value in spec.items() if key != "replicas"}
    return rest
