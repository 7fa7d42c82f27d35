"""Generates the table in ``docs/operations/limits.md`` from the constants of ``app.limits`` and their docstrings."""

from __future__ import annotations

import ast
import inspect
import re

from app import limits
from app.kube.schema.docstrings import documented

_TABLE = re.compile(r"^\| Limit \| Value \| Beyond it \|.*?\n(?!\|)", re.DOTALL | re.MULTILINE)


def page(text: str) -> str:
    """Return a page with its table of limits brought up to date."""
    rows = ["| Limit | Value | Beyond it |", "|---|---|---|"]
    for name, description in documented(ast.parse(inspect.getsource(limits)).body):
        meaning, consequence = " ".join(description.split()).split(" → ")
        rows.append(f"| {meaning.rstrip('.')} | {shown(name, getattr(limits, name))} | {consequence} |")
    return _TABLE.sub(lambda _: "\n".join(rows) + "\n", text, count=1)


def shown(name: str, value: float) -> str:
    """Return a limit with the unit in which its name ends."""
    if name.endswith("_SECONDS"):
        return f"{value:g} s"
    if not name.endswith("_BYTES"):
        return f"{value:,}"
    unit, size = ("MiB", limits.MIB) if value >= limits.MIB else ("KiB", limits.KIB)
    return f"{value / size:g} {unit}"
