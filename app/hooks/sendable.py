"""Values that Metacontroller cannot apply (MC-3.2), found in users' specs before they are sent.

A list whose items all have one of the keys below is merged by it, so two items with the same value become one. A list
without a common key is replaced as a whole, with everything in it: nothing can clash there. And no number may exceed an
int64. :mod:`app.hooks.response` refuses the same values as a bug, so embedded values must be checked before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from app.kube import field
from app.kube.stored import without_nulls

MERGE_KEYS = ("containerPort", "port", "mountPath", "name", "uid", "ip", "path")
"""The keys by which Metacontroller merges lists of objects, in its order."""


def merge_key(items: Sequence[Any]) -> str | None:
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


def merge_key_clash(items: Sequence[Any]) -> tuple[str, Any] | None:
    """Return the merge key of the list and a duplicate value, or ``None``."""
    if len(items) < 2:
        return None
    key = merge_key(items)
    if key is None:
        return None
    values = set()
    for item in items:
        value = item[key]
        text = value if type(value) is str else str(value)
        if text in values:
            return key, item[key]
        values.add(text)
    return None


def clashes(value: Any, path: field.Path) -> Iterator[field.Error]:
    """Return an error for every list in ``value`` of which Metacontroller would lose items.

    Nulls do not count: they are removed before the list is sent.
    """
    if type(value) is dict:
        for key, inner in value.items():
            if type(inner) is dict or type(inner) is list:
                yield from clashes(inner, path.child(key))
    elif type(value) is list and (items := [item for item in value if item is not None]) and type(items[0]) is dict:
        clash = merge_key_clash(items)
        if clash is not None:
            detail = f"two items of this list have the same {clash[0]}; Metacontroller would keep only one of them"
            yield field.duplicate(path, clash[1], detail)
        if merge_key(items) is not None:
            for position, inner in enumerate(value):
                yield from clashes(inner, path.index(position))


def is_int64(value: float) -> bool:
    """Report whether a number, whole or not, is in the range of an int64."""
    return -(2**63) <= value < 2**63


def check(value: Any, path: field.Path) -> Iterator[field.Error]:
    """Return an error for every list with a duplicate merge key and for every number outside int64."""
    yield from clashes(without_nulls(value, in_lists=True), path)
    yield from _large(value, path)


def _large(value: Any, path: field.Path) -> Iterator[field.Error]:
    kind = type(value)
    if kind is dict:
        for key, item in value.items():
            if type(item) is not str:
                yield from _large(item, path.child(key))
    elif kind is list:
        for position, item in enumerate(value):
            if type(item) is not str:
                yield from _large(item, path.index(position))
    elif (kind is int or kind is float) and not (math.isfinite(value) and is_int64(value)):
        yield field.invalid(path, str(value)[:40], "must fit into a 64-bit integer")


def passes(value: Any, *, merged: bool = True) -> bool:
    """Report whether :func:`check` has no errors: the same walk without paths, for values without nulls.

    ``merged`` is false within a list that is replaced as a whole.
    """
    if type(value) is dict:
        for item in value.values():
            kind = type(item)
            if kind is str or kind is bool:
                continue
            if kind is int or kind is float:
                if not is_int64(item):
                    return False
            elif not passes(item, merged=merged):
                return False
        return True
    if type(value) is list:
        if merged and value:
            if merge_key_clash(value) is not None:
                return False
            merged = merge_key(value) is not None
        return all(type(item) is str or passes(item, merged=merged) for item in value)
    return not isinstance(value, (int, float)) or is_int64(value)
