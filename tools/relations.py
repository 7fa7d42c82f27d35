"""Generates the table of related objects in ``docs/operations/watching.md`` from the kinds' declarations."""

from __future__ import annotations

import re
from collections.abc import Iterable

from app.kube.resource import CustomResource, Selection

_TABLE = re.compile(r"^\| Kind \| Related objects \|.*?\n(?!\|)", re.DOTALL | re.MULTILINE)
COST = {Selection.NAMES: 0.6, Selection.LABELS: 4.4, Selection.NAMESPACE: 0.6, Selection.CLUSTER: 0.6}
"""Measured CPU of Metacontroller per event, in microseconds. It makes a label selector for old and new object."""


def page(text: str, resources: Iterable[CustomResource]) -> str:
    """Return a page with its table of related objects brought up to date."""
    rows = ["| Kind | Related objects | Selected | CPU of an event | Needed for |", "|---|---|---|---|---|"]
    for resource in resources:
        for related in resource.related:
            cost = f"{COST[related.selection]:g} µs"
            rows.append(f"| {resource.kind} | {related.plural} | {related.selection} | {cost} | {related.use} |")
    return _TABLE.sub(lambda _: "\n".join(rows) + "\n", text, count=1)
