"""A bounded cache for results of pure functions; :func:`remembered` is its only entry point.

A parent is synced for each change of its children while its spec stays the same, and hundreds of workloads name a few
models and configs. Only time depends on the cache: a key is the complete input, by value or by its SHA-256, never a
version or an object's identity, and a cached value is never changed. See decisions/0006.
"""

import hashlib
import sys
import threading
from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from typing import TypeVar, cast

import msgspec

from app.limits import MAX_MEMO_ENTRY_BYTES, MEMO_BYTES

ValueT = TypeVar("ValueT")

OVERHEAD = 512
"""Bytes added for an entry's place in the map, its tuples and the allocator's rounding."""
_SCALARS = frozenset({type(None), bool, int, float})
_STRINGS = frozenset({str, bytes})


_LONG = 64
"""Bytes of a key's part above which its digest is shorter, with its object's own size."""


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()


class Memo:
    """A map that evicts its oldest entries above ``budget`` bytes. Thread-safe."""

    __slots__ = ("_budget", "_entries", "_held", "_lock")

    def __init__(self, budget: int = MEMO_BYTES) -> None:
        self._budget = budget
        self._entries: dict[Hashable, tuple[object, int]] = {}
        self._held = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> object:
        """Return the value of the key, else ``None``. Does not delay the eviction of the entry."""
        entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def put(self, key: Hashable, value: object, size: int) -> None:
        """Add a value, unless the key has one or it is too large."""
        if size > min(MAX_MEMO_ENTRY_BYTES, self._budget):
            return
        with self._lock:
            if key in self._entries:
                return
            self._entries[key] = (value, size)
            self._held += size
            while self._held > self._budget:
                self._held -= self._entries.pop(next(iter(self._entries)))[1]


MEMO = Memo()
"""The only cache of the process, with one budget."""


def remembered(key: tuple[Hashable, ...], make: Callable[[], ValueT], keep: Callable[[ValueT], bool]) -> ValueT:
    """Return ``make()``, or its cached result for an equal key; ``keep`` decides whether a result is cached.

    ``key`` begins with the caller's own part, and has every input of ``make``. Of long bytes their SHA-256 is stored,
    so that an entry takes little beside its value.
    """
    key = tuple(_digest(part) if type(part) is bytes and len(part) > _LONG else part for part in key)
    cached = MEMO.get(key)
    if cached is not None:
        return cast("ValueT", cached)
    value = make()
    if keep(value):
        MEMO.put(key, value, footprint(key) + footprint(value) + OVERHEAD)
    return value


def footprint(value: object) -> int:
    """Return the memory of a value with everything in it, in bytes. An object that occurs twice counts twice."""
    total, stack = 0, [value]
    while stack:
        item = stack.pop()
        kind = type(item)
        if kind in _SCALARS or isinstance(item, type):
            total += 32
            continue
        total += sys.getsizeof(item) + 16
        if kind in _STRINGS:
            continue
        if isinstance(item, dict):
            stack.extend(item.keys())
            stack.extend(item.values())
        elif isinstance(item, (list, tuple, set, frozenset)):
            stack.extend(item)
        elif isinstance(item, msgspec.Struct):
            stack.extend(getattr(item, name) for name in item.__struct_fields__)
        elif hasattr(item, "__dict__"):
            stack.append(item.__dict__)
            stack.extend(getattr(item, "model_fields_set", ()))
        elif is_dataclass(item):
            stack.extend(getattr(item, field.name) for field in fields(item))
    return total
