"""Generates the tables of ``docs/devices.md`` from ``app/workload/devices.csv`` and what its words mean."""

from __future__ import annotations

import ast
import inspect
import re

from app.kube.schema.docstrings import documented
from app.workload.devices import Counts, devices

HEADER = "| Resource | Maker | Counts | Device plugin |\n|---|---|---|---|\n"
_ROWS = re.compile(re.escape(HEADER) + r"(?:\|.*\n)*")


WORDS = "| Counts | Meaning |\n|---|---|\n"
_MEANINGS = re.compile(re.escape(WORDS) + r"(?:\|.*\n)*")


def page(text: str) -> str:
    """Return a page with its tables of devices brought up to date."""
    rows = (f"| `{d.name}` | {d.maker} | {d.counts} | {d.plugin} |\n" for d in devices())
    (definition,) = ast.parse(inspect.getsource(Counts)).body
    assert isinstance(definition, ast.ClassDef)
    meanings = (f"| {Counts[name]} | {' '.join(meaning.split())} |\n" for name, meaning in documented(definition.body))
    text = _MEANINGS.sub(lambda _: WORDS + "".join(meanings), text)
    return _ROWS.sub(lambda _: HEADER + "".join(rows), text)
