"""Generates the table in ``docs/operations/settings.md`` from the fields of ``Settings`` and their docstrings."""

from __future__ import annotations

import ast
import inspect
import re

from app.kube.schema.docstrings import documented
from app.settings import NO_INPUT, Settings, variable_name

_SECTIONS = {
    "Files of earlier sources": "#files-of-earlier-sources",
    "Upgrades": "../operations.md#upgrades",
    "Watching": "watching.md",
}
"""Links to the sections that docstrings name, such as *Upgrades*."""
_TABLE = re.compile(r"^\| Variable \|.*?\n(?!\|)", re.DOTALL | re.MULTILINE)


def page(text: str) -> str:
    """Return a page with its table of settings brought up to date."""
    rows = ["| Variable | Default | Restarts pods | What it does |", "|---|---|---|---|"]
    (definition,) = ast.parse(inspect.getsource(Settings)).body
    assert isinstance(definition, ast.ClassDef)
    for name, description in documented(definition.body):
        setting = Settings.model_fields[name]
        restarts = "no" if NO_INPUT in setting.metadata else "yes"
        rows.append(f"| `{variable_name(name)}` | {_default(setting.default)} | {restarts} | {_linked(description)} |")
    return _TABLE.sub(lambda _: "\n".join(rows) + "\n", text, count=1)


def _linked(description: str) -> str:
    """Return a description in one line, with its sections as links."""
    return re.sub(
        r"\*([A-Z][\w ]+)\*", lambda name: f"[{name[1]}]({_SECTIONS[name[1]]})", " ".join(description.split())
    )


def _default(value: object) -> str:
    if value is None:
        return "not set"
    if value in ("", ()):
        return "empty"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"
