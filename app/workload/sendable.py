"""What users embed and Metacontroller cannot apply (design, decision 3): a user's mistake, found before it is sent.

:mod:`app.hooks.response` refuses the same things as a fault of ours, so nothing embedded may reach it unchecked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from app.hooks.mergekeys import clashes
from app.kube import field
from app.kube.jsonvalue import without_nulls

_LARGEST = 2**63


def check(value: Any, path: field.Path) -> Iterator[field.Error]:
    """Lists of objects in which two have the same key, and numbers that no integer of Kubernetes can hold."""
    yield from clashes(without_nulls(value), path)
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
    elif (kind is int or kind is float) and not (math.isfinite(value) and -_LARGEST <= value < _LARGEST):
        yield field.invalid(path, str(value)[:40], "must fit into a 64-bit integer")
