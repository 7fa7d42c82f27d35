"""Checks of what users embed against Kubernetes' own types: probes, env, tolerations, whole pod specs.

The CRD leaves such values open, so that fields newer than this service are kept. Here a wrong JSON type or a missing
required field is an error, and an unknown field is a warning with the nearest name. :mod:`app.workload.podrules` has
the rules beyond types.
"""

from collections.abc import Collection
from functools import cache
from typing import NamedTuple

from app.kube import field, quantity
from app.kube.correction import Members, wrong_type
from app.kube.embedded_types import TYPES
from app.kube.field import nearest
from app.limits import MAX_ERRORS, MAX_WARNINGS


class _Field(NamedTuple):
    type: str
    container: str


class _Type(NamedTuple):
    fields: dict[str, _Field]
    required: tuple[str, ...]


@cache
def _type(name: str) -> _Type:
    declared = TYPES[name].items()
    fields = {key: _Field(part.type, part.container) for key, part in declared}
    return _Type(fields, tuple(key for key, part in declared if part.required))


class TypeCheck:
    """The errors and warnings of one or more values. Paths of scalars are built only for errors."""

    __slots__ = ("errors", "warnings")

    def __init__(self) -> None:
        self.errors: list[field.Error] = []
        self.warnings: list[field.Advice] = []

    @property
    def full(self) -> bool:
        return len(self.errors) >= MAX_ERRORS

    def check(self, value: object, type_name: str, path: field.Path, optional: Collection[str] = ()) -> None:
        """Add the errors and warnings of a value; ``optional`` are required fields that may be absent here."""
        type_ = _type(type_name)
        if not isinstance(value, dict):
            self._wrong_type(value, "object", path, type_)
            return
        for key, item in value.items():
            declared = type_.fields.get(key)
            if declared is None:
                self._unknown(key, item, type_, path)
            elif item is not None and not (declared == _STRING and type(item) is str):
                self._field(item, declared, key, path)
        if type_.fields.get("image") == _STRING:
            self.warnings += image_warnings(value.get("image"), path.child("image"))
        for key in type_.required:
            if value.get(key) is None and key not in optional and not self.full:
                self.errors.append(field.required(path.child(key)))

    def _field(self, item: object, declared: _Field, key: str, path: field.Path) -> None:
        if not declared.container and declared.type in _SCALARS:
            self._scalar(item, declared.type, path, key)
            return
        field_path = path.child(key)
        if declared.container == "[]":
            self._list(item, declared.type, field_path)
        elif declared.container == "{}":
            self._map(item, declared.type, field_path)
        elif declared.type == "any":
            if type(item) is not dict:
                self._wrong_type(item, "object", field_path)
        else:
            self.check(item, declared.type, field_path)

    def _list(self, items: object, type_name: str, path: field.Path) -> None:
        if not isinstance(items, list):
            self._wrong_type(items, "array", path, None if type_name in _PLAIN else _type(type_name))
        elif type_name in _SCALARS:
            for position, item in enumerate(items):
                self._scalar(item, type_name, path, position)
        else:
            for position, item in enumerate(items):
                self.check(item, type_name, path.index(position))

    def _map(self, items: object, type_name: str, path: field.Path) -> None:
        """Maps of Kubernetes' own types have scalar values only."""
        if not isinstance(items, dict):
            self._wrong_type(items, "object", path)
            return
        for key, item in items.items():
            if item is not None:
                self._scalar(item, type_name, path.key(key), None)

    def _scalar(self, value: object, kind: str, path: field.Path, at: str | int | None) -> None:
        """``at`` is the field or position below ``path``, ``None`` for ``path`` itself."""
        fault = _SCALARS[kind](value)
        if not fault or self.full:
            return
        value_path = path if at is None else path.index(at) if isinstance(at, int) else path.child(at)
        if fault in _JSON_TYPES:
            self._wrong_type(value, fault, value_path)
        else:
            self.errors.append(field.invalid(value_path, value, fault))

    def _wrong_type(self, value: object, wanted: str, path: field.Path, type_: _Type | None = None) -> None:
        if not self.full:
            members = Members() if type_ is None else Members(tuple(type_.fields), type_.required)
            self.errors.append(wrong_type(path, value, wanted, members))

    def _unknown(self, key: str, value: object, type_: _Type, path: field.Path) -> None:
        if len(self.warnings) >= MAX_WARNINGS:
            return
        near = nearest(key, tuple(type_.fields))
        hint = f', did you mean "{near}"?' if near else ""
        if isinstance(value, dict) and value and value.keys() <= type_.fields.keys():
            hint = f"; remove this level: {', '.join(value)} must be directly below {path}"
        self.warnings.append(unknown_field(path.member(key), hint))


def unknown_field(path: field.Path, hint: str = "") -> field.Advice:
    """Return the warning about a field that its type does not have; ``hint`` suggests another."""
    return field.Advice(f"unknown field {field.go_quote(str(path))}{hint}", path, "unknown-field")


def image_warnings(name: object, path: field.Path) -> list[field.Advice]:
    """Warn of an image that the API server accepts and no registry can have."""
    if not isinstance(name, str) or name != name.strip() or "{{" in name or not any(char.isspace() for char in name):
        return []
    return [field.advice(path, f"{field.go_quote(name)} is not an image name: it contains a space")]


def members(type_name: str) -> Members:
    type_ = _type(type_name)
    return Members(tuple(type_.fields), type_.required)


def fields(type_name: str) -> dict[str, tuple[str, str]]:
    """Return the type of each field of one of Kubernetes' types, and ``[]`` or ``{}`` for a list or a map of it."""
    return {key: (declared.type, declared.container) for key, declared in _type(type_name).fields.items()}


_STRING = _Field("string", "")
_JSON_TYPES = frozenset({"string", "boolean", "integer", "number"})


def _integer(value: object, bits: int) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return "integer"
    limit = 1 << (bits - 1)
    if value >= limit:
        return f"must be at most {limit - 1}"
    return f"must be at least {-limit}" if value < -limit else ""


def _quantity(value: object) -> str:
    if not isinstance(value, str):
        return "" if type(value) in (int, float) else "string"
    try:
        quantity.parse(value)
    except quantity.QuantityError as error:
        return str(error)
    return ""


def _int_or_string(value: object) -> str:
    return "" if type(value) is str else _integer(value, 32)


_SCALARS = {
    "string": lambda value: "" if type(value) is str else "string",
    "boolean": lambda value: "" if type(value) is bool else "boolean",
    "int32": lambda value: _integer(value, 32),
    "int64": lambda value: _integer(value, 64),
    "quantity": _quantity,
    "int-or-string": _int_or_string,
}
"""Checks that return the required JSON type, another problem, or an empty string."""
_PLAIN = frozenset({*_SCALARS, "any"})
