"""Reads the docstrings of assignments, which Python does not keep."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import pairwise


def documented(statements: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Yield the name of each documented assignment with its docstring, without indentation."""
    for statement, text in pairwise(statements):
        target = _target(statement)
        if target and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            yield target, str(text.value.value)


def _target(statement: ast.stmt) -> str:
    match statement:
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return ""
