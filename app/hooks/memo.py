"""Remembering what a pure function found for the same input, within a bound: :func:`remembered` is the one way in.

A parent is synced for each tick of its children while its spec stays the same, and hundreds of workloads name a few
models and configs. Nothing but time depends on what is remembered: a key is the complete input by value, never a hash,
a version or an object's identity, and what is remembered is never changed. See docs/decisions/0006.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, cast

from app.limits import MAX_MEMO_ENTRY_BYTES, MEMO_BYTES

ValueT = TypeVar("ValueT")

OVERHEAD = 512
"""Bytes for an entry's place in the map, its tuples and what the allocator rounds up."""


class Memo:
    """A map that forgets its oldest entries once all together exceed ``budget`` bytes. Threads may share it."""

    __slots__ = ("_budget", "_entries", "_held", "_lock")

    def __init__(self, budget: int = MEMO_BYTES) -> None:
        self._budget = budget
        self._entries: dict[Hashable, tuple[Any, int]] = {}
        self._held = 0
        self._lock = threading.Lock()

    @property
    def held(self) -> int:
        """Bytes that the entries count."""
        return self._held

    def get(self, key: Hashable) -> Any:
        """What is known for the key, else ``None``; asking does not keep an entry from being forgotten."""
        found = self._entries.get(key)
        return None if found is None else found[0]

    def put(self, key: Hashable, value: Any, size: int) -> None:
        """Remember a value; a key keeps its first one, and what is too large is not kept."""
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
"""The process' only one: one budget for all that is remembered."""


def remembered(key: tuple[Hashable, ...], make: Callable[[], ValueT], keep: Callable[[ValueT], bool]) -> ValueT:
    """``make()``, or what it returned for an equal key; ``keep`` says whether a result is worth remembering.

    ``key`` begins with what tells the callers apart, and holds every input of ``make`` by value.
    """
    known = MEMO.get(key)
    if known is not None:
        return cast("ValueT", known)
    made = make()
    if keep(made):
        MEMO.put(key, made, footprint(key) + footprint(made) + OVERHEAD)
    return made


_SCALARS = frozenset({type(None), bool, int, float})


def footprint(value: Any) -> int:
    """Bytes of memory that a value takes with everything in it. What stands in it twice counts twice."""
    total, stack = 0, [value]
    while stack:
        item = stack.pop()
        kind = type(item)
        if kind in _SCALARS or isinstance(item, type):
            total += 32
            continue
        total += sys.getsizeof(item) + 16
        if kind is dict:
            stack.extend(item.keys())
            stack.extend(item.values())
        elif kind in (list, tuple, set, frozenset):
            stack.extend(item)
        elif hasattr(item, "__dict__"):
            stack.append(item.__dict__)
            stack.extend(getattr(item, "model_fields_set", ()))
        elif is_dataclass(item):
            stack.extend(getattr(item, field.name) for field in fields(item))
    return total
