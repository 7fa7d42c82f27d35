"""What users embed and Metacontroller cannot apply (MC-3.2): a user's mistake, found before it is sent.

:mod:`app.hooks.response` refuses the same things as a fault of ours, so nothing embedded may reach it unchecked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from app.hooks.mergekeys import clashes, merge_key, merge_key_clash
from app.kube import field

_LARGEST = 2**63


def check(value: Any, path: field.Path) -> Iterator[field.Error]:
    """Lists of objects in which two have the same key, and numbers that no integer of Kubernetes can hold."""
    yield from clashes(without_any_null(value), path)
    yield from _large(value, path)


def without_any_null(value: Any) -> Any:
    """The value without nulls, in lists too, and with whole numbers as integers; nothing is shared with ``value``."""
    kind = type(value)
    if kind is dict:
        return {key: without_any_null(item) for key, item in value.items() if item is not None}
    if kind is list:
        return [without_any_null(item) for item in value if item is not None]
    return int(value) if kind is float and value.is_integer() and abs(value) < _LARGEST else value


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
    elif (kind is int or kind is float) and not (math.isfinite(value) and -_LARGEST <= value < _LARGEST):
        yield field.invalid(path, str(value)[:40], "must fit into a 64-bit integer")


def is_sendable(value: Any, *, merged: bool = True) -> bool:
    """Whether :func:`check` has nothing to say: the same walk without paths, for values without nulls.

    ``merged`` is false within a list that is replaced as a whole.
    """
    if type(value) is dict:
        for item in value.values():
            kind = type(item)
            if kind is str or kind is bool:
                continue
            if kind is int or kind is float:
                if not -_LARGEST <= item < _LARGEST:
                    return False
            elif not is_sendable(item, merged=merged):
                return False
        return True
    if type(value) is list:
        if merged and value:
            if merge_key_clash(value) is not None:
                return False
            merged = merge_key(value) is not None
        return all(type(item) is str or is_sendable(item, merged=merged) for item in value)
    return not isinstance(value, (int, float)) or -_LARGEST <= value < _LARGEST
