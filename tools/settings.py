"""The table of settings in ``docs/operations.md``, made from the fields of ``Settings`` and their docstrings."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator

from app.settings import Settings, variable_name

_TABLE = re.compile(r"^\| Variable \|.*?\n(?!\|)", re.DOTALL | re.MULTILINE)


def page(text: str) -> str:
    """Return a page with its table of settings brought up to date."""
    rows = ["| Variable | Default | What it does |", "|---|---|---|"]
    for name, description in _descriptions():
        rows.append(f"| `{variable_name(name)}` | {_default(Settings.model_fields[name].default)} | {description} |")
    return _TABLE.sub(lambda _: "\n".join(rows) + "\n", text, count=1)


def _descriptions() -> Iterator[tuple[str, str]]:
    """Yield each setting with its docstring, which Python does not keep."""
    (definition,) = ast.parse(inspect.getsource(Settings)).body
    assert isinstance(definition, ast.ClassDef)
    for field, text in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            assert isinstance(text, ast.Expr)
            yield field.target.id, " ".join(ast.literal_eval(text.value).split())


def _default(value: object) -> str:
    if value is None:
        return "not set"
    if value in ("", ()):
        return "empty"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"
