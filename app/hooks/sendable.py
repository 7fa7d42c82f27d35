"""Values that Metacontroller cannot apply (MC-3.2): :func:`faults` finds them in specs and in answers.

A list whose items all have one of the keys below is merged by it, so two items with the same value become one. A list
without a common key is replaced as a whole, with everything in it: nothing can clash there. No number may exceed an
int64. In an answer these values are a bug, so those that users embed are checked at admission.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from app.kube.base import Json
from app.kube.field import Error, ErrorType, Path, duplicate, invalid
from app.kube.reading.stored import without_nulls

MERGE_KEYS = ("containerPort", "port", "mountPath", "name", "uid", "ip", "path")
"""The keys by which Metacontroller merges lists of objects, in its order."""


def merge_key(items: Sequence[object]) -> str | None:
    """Return the key that all items have, ``None`` if the list is replaced as a whole."""
    first = items[0]
    if type(first) is not dict:
        return None
    for key in MERGE_KEYS:
        if key in first:
            for item in items:
                if type(item) is not dict:
                    return None
                if key not in item:
                    break
            else:
                return key
    return None


@dataclass(slots=True)
class Fault:
    key: str
    """Merge key of a duplicate; empty for a value that is wrong by itself."""
    value: object
    segments: list[str | int] = field(default_factory=list)
    """Fields and positions that lead to the value or, for a duplicate, to its list; the innermost first."""

    def error(self, root: Path) -> Error:
        path = root
        for segment in reversed(self.segments):
            path = path.index(segment) if isinstance(segment, int) else path.child(segment)
        if not self.key:
            return invalid(path, str(self.value)[:40], "must fit into a 64-bit integer")
        detail = f"two items of this list have the same {self.key}; Metacontroller would keep only one of them"
        return duplicate(path, self.value, detail)


class Sendable(Json):
    """A map without faults: as a field of another, it is not walked again."""


_FAULTLESS = frozenset({str, bool, Sendable})
_INT64 = range(-(2**63), 2**63)
_FLOAT_FIELDS = frozenset({"memoryFraction", "gpuMemoryUtilization"})


def faults(value: object, *, merged: bool = True) -> list[Fault]:
    """Return nulls, floats in integer fields, numbers outside int64, and duplicate merge keys.

    ``merged`` is false for a value in which nothing is merged by key, as within a list that is replaced as a whole.
    """
    return _faults(value, "", merged)


def _faults(value: object, name: str, merged: bool) -> list[Fault]:
    result: list[Fault] = []
    if isinstance(value, dict):
        for key, item in value.items():
            kind = type(item)
            if (
                kind not in _FAULTLESS
                and not (kind is int and item in _INT64)
                and (inner := _faults(item, key, merged))
            ):
                result += _below(key, inner)
    elif isinstance(value, (list, tuple)):
        merge_by = merge_key(value) if merged and value else None
        if merge_by and (clash := _clash(value, merge_by)):
            result.append(clash)
        for position, item in enumerate(value):
            kind = type(item)
            if (
                kind not in _FAULTLESS
                and not (kind is int and item in _INT64)
                and (inner := _faults(item, name, merge_by is not None))
            ):
                result += _below(position, inner)
    elif not _is_storable(value, name):
        result.append(Fault("", value))
    return result


def _below(segment: str | int, inner: list[Fault]) -> list[Fault]:
    for fault in inner:
        fault.segments.append(segment)
    return inner


def _clash(items: Sequence[Any], key: str) -> Fault | None:
    """Return the first value of the merge key that a list has twice."""
    earlier = set()
    for item in items:
        if (text := str(item[key])) in earlier:
            return Fault(key, item[key])
        earlier.add(text)
    return None


def _is_storable(value: object, name: str) -> bool:
    """Report whether the API server can store a number or null."""
    if isinstance(value, float):
        in_range = math.isfinite(value) and is_int64(value)
        return in_range and (name in _FLOAT_FIELDS or not value.is_integer())
    return isinstance(value, int) and is_int64(value)


def is_int64(value: float) -> bool:
    return -(2**63) <= value < 2**63


def is_sendable(value: object) -> bool:
    """Report whether a part of a child may be in an answer."""
    return not faults(value)


def sendable(value: Json) -> Sendable | None:
    """Return the map as one that may be in an answer; ``None`` if it may not."""
    return None if faults(value) else Sendable(value)


def check(value: object, path: Path) -> list[Error]:
    """Return an error for every list with a duplicate merge key, then for every number outside int64.

    Nulls do not count: they are removed before a value is sent.
    """
    if value is None or not faults(value):
        return []
    in_order = faults(without_nulls(value, in_lists=True))
    return [fault.error(path) for fault in sorted(in_order, key=lambda fault: not fault.key)]


def clashes(value: object, path: Path) -> list[Error]:
    """Return an error for every list of which Metacontroller would lose items."""
    return [error for error in check(value, path) if error.type is ErrorType.DUPLICATE]
