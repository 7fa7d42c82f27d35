"""Rules between the fields of a type, each written once: as CEL, and beside it the same in Python.

The CRD takes the CEL, and the API server refuses what breaks it. :func:`violations` asks the Python where no API server
has: of what templates were rendered to, and of files on the command line. A type has its rules in ``constraints``; a
list has them beside its type, ``Annotated[list[Item], Rules((...))]``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, GetJsonSchemaHandler
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema

from app.kube import field


@dataclass(frozen=True, slots=True)
class Rule:
    """What must hold of a value, which is there: as a CEL expression and in Python, and the words where it does not."""

    cel: str
    message: str
    holds: Callable[[Any], bool]
    error: Callable[[Any, field.Path], field.Error] | None = None
    """Builds a more precise error than the message at the value's own path."""


def cel(*rules: tuple[str, str]) -> dict[str, Any]:
    """CEL expressions with their messages as a schema has them."""
    return {"x-kubernetes-validations": [{"rule": rule, "message": message} for rule, message in rules]}


@dataclass(frozen=True, slots=True)
class Rules:
    """Marks a list that has rules of its own."""

    rules: tuple[Rule, ...]

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), **as_schema(self.rules)}


def as_schema(rules: Sequence[Rule]) -> dict[str, Any]:
    return cel(*((rule.cel, rule.message) for rule in rules))


def violations(value: BaseModel, path: field.Path) -> Iterator[field.Error]:
    """Everything at and below ``value`` that its types' rules refuse, and names that stand twice in a list by name."""
    yield from broken(getattr(value, "constraints", ()), value, path, "object")
    for name, info in type(value).model_fields.items():
        held = getattr(value, name)
        here = path.child(info.alias or name)
        if isinstance(held, BaseModel):
            yield from violations(held, here)
        elif isinstance(held, list):
            yield from _of_list(held, info, here)


def _of_list(items: list[Any], info: FieldInfo, path: field.Path) -> Iterator[field.Error]:
    for marker in info.metadata:
        if isinstance(marker, Rules):
            yield from broken(marker.rules, items, path, "array")
    extra = info.json_schema_extra
    keys: Any = extra.get("x-kubernetes-list-map-keys", ()) if isinstance(extra, dict) else ()
    seen = []
    for position, item in enumerate(items):
        here, key = path.index(position), {name: getattr(item, name) for name in keys}
        if key in seen:
            yield field.duplicate(here, key)
        if key:
            seen.append(key)
        if isinstance(item, BaseModel):
            yield from violations(item, here)


def broken(rules: Sequence[Rule], value: Any, path: field.Path, kind: str = "object") -> Iterator[field.Error]:
    """Objects and lists are not repeated in messages: the API server does not either."""
    for rule in rules:
        if not rule.holds(value):
            yield rule.error(value, path) if rule.error is not None else field.invalid(path, kind, rule.message)
