"""Reads the docstrings of assignments, which Python does not keep."""

import ast
import inspect
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise


def documented(statements: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Yield the name of each documented assignment with its docstring, without indentation."""
    for pair in pairwise(statements):
        match pair:
            case (
                ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=text)),
            ):
                yield name, str(text)


def described_fields(model: type) -> dict[str, str]:
    """Return the docstrings of a class's own fields, each as one line."""
    definition = _classes(model.__module__).get(model.__name__)  # a class that a function makes has none
    return {name: " ".join(text.split()) for name, text in documented(definition.body if definition else ())}


@cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
