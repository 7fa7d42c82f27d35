"""Rules between the fields of a type, each written once: as CEL, and beside it the same in Python.

The CRD has the CEL, and the API server refuses violations. :func:`violations` runs the Python where no API server
checks: on rendered templates, and on files of the command line. A type has its rules in ``constraints``; a
list has them beside its type, ``Annotated[list[Item], Rules(...)]``.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
from pydantic import BaseModel, GetJsonSchemaHandler
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema

from app.kube import field

Schema = dict[str, Any]
"""A JSON Schema."""


class Rule(msgspec.Struct, frozen=True):
    """A rule for a value that is present, as a CEL expression and in Python, and its message."""

    cel: str
    message: str
    holds: Callable[[Any], bool]
    error: Callable[[Any, field.Path], field.Error] | None = None
    """Builds a more precise error than the message at the value's own path."""


def cel(*rules: tuple[str, str]) -> Schema:
    return {"x-kubernetes-validations": [{"rule": rule, "message": message} for rule, message in rules]}


class Rules:
    def __init__(self, *rules: Rule) -> None:
        self.rules = rules

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> Schema:
        return {**handler(schema), **as_schema(self.rules)}


def as_schema(rules: Sequence[Rule]) -> Schema:
    return cel(*((rule.cel, rule.message) for rule in rules))


def violations(value: BaseModel, path: field.Path) -> Iterator[field.Error]:
    """Yield each violation of rules at and below ``value``, and duplicates in lists with keys."""
    yield from broken(getattr(value, "constraints", ()), value, path)
    for name, info in type(value).model_fields.items():
        item, item_path = getattr(value, name), path.child(info.alias or name)
        if isinstance(item, BaseModel):
            yield from violations(item, item_path)
        elif isinstance(item, list):
            yield from _of_list(item, info, item_path)


def _of_list(items: list[object], info: FieldInfo, path: field.Path) -> Iterator[field.Error]:
    for marker in info.metadata:
        if isinstance(marker, Rules):
            yield from broken(marker.rules, items, path)
    extra = info.json_schema_extra
    keys: Any = extra.get("x-kubernetes-list-map-keys", ()) if isinstance(extra, dict) else ()
    earlier = []
    for item_path, item in path.each(items):
        key = {name: getattr(item, name) for name in keys}
        if key in earlier:
            yield field.duplicate(item_path, key)
        if key:
            earlier.append(key)
        if isinstance(item, BaseModel):
            yield from violations(item, item_path)


def broken(rules: Sequence[Rule], value: object, path: field.Path) -> Iterator[field.Error]:
    for rule in rules:
        if not rule.holds(value):
            yield (rule.error or partial(_error, rule.message))(value, path)


def _error(message: str, value: object, path: field.Path) -> field.Error:
    return field.invalid(path, _written(value), message)


def _written(value: object) -> object:
    if isinstance(value, list):
        return [_written(item) for item in value]
    return value.model_dump(by_alias=True, exclude_unset=True) if isinstance(value, BaseModel) else value
