"""Generates the table of related objects in ``docs/operations/watching.md`` from the kinds' declarations."""

from __future__ import annotations

import re
from collections.abc import Iterable

from app.kube.resource import CustomResource

_TABLE = re.compile(r"^\| Kind \| Related objects \|.*?\n(?!\|)", re.DOTALL | re.MULTILINE)


def page(text: str, resources: Iterable[CustomResource]) -> str:
    """Return a page with its table of related objects brought up to date."""
    rows = ["| Kind | Related objects | Selected | Needed for |", "|---|---|---|---|"]
    rows += [
        f"| {resource.kind} | {related.plural} | {related.selection} | {related.use} |"
        for resource in resources
        for related in resource.related
    ]
    return _TABLE.sub(lambda _: "\n".join(rows) + "\n", text, count=1)
