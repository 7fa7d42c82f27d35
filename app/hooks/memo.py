"""Remembering what pure functions found for the same bytes, within a bound.

A parent is synced for each tick of its children while its spec stays the same, and an answer mostly repeats the last
one. Nothing depends on what is remembered but time: a lookup is by the complete input, never by a hash or a version.
An object's identity stands for its content only while the entry holds the object.
"""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

import orjson
from msgspec import Raw

from app.kube import field
from app.kube.base import KubeModel
from app.kube.decode import SPEC, decode_spec
from app.kube.jsonvalue import TOO_DEEP, depth_exceeds, excess

ModelT = TypeVar("ModelT", bound=KubeModel)
ValueT = TypeVar("ValueT")

BUDGET = 4 * 1024 * 1024
"""Bytes of keys that one memo keeps."""
PLAN_BYTES = 8 * 1024
"""What a kind's plan counts against that: about what the objects take that it was made from."""


class Memo(Generic[ValueT]):
    """A map that forgets its oldest entries. ``size`` is what an entry counts against the budget, in bytes.

    Requests are answered by the event loop and by a thread: one of them writes at a time, and a look-up is one step.
    """

    __slots__ = ("_budget", "_entries", "_held", "_writing")

    def __init__(self, budget: int = BUDGET) -> None:
        self._budget = budget
        self._entries: dict[Hashable, tuple[ValueT, int]] = {}
        self._held = 0
        self._writing = Lock()

    def get(self, key: Hashable) -> ValueT | None:
        """What is known for the key; asking does not keep an entry from being forgotten."""
        found = self._entries.get(key)
        return None if found is None else found[0]

    def put(self, key: Hashable, value: ValueT, size: int) -> None:
        """Remember; an entry larger than the whole budget is not."""
        with self._writing:
            if size > self._budget or key in self._entries:
                return
            self._entries[key] = (value, size)
            self._held += size
            while self._held > self._budget:
                self._held -= self._entries.pop(next(iter(self._entries)))[1]


_specs: Memo[KubeModel] = Memo()


def decode_related(raw: bytes | Raw, type_: type[ModelT]) -> tuple[ModelT | None, list[field.Error]]:
    """As :func:`app.kube.decode.decode_spec`, for related resources: the same bytes give the same object.

    A related object may be anybody's, and of any depth: what cannot be read is an error of its spec, never ours.
    """
    key = type_, bytes(raw)
    known = _specs.get(key)
    if isinstance(known, type_):
        return known, []
    if depth_exceeds(key[1]):
        return None, [field.invalid(SPEC, "…", TOO_DEEP)]
    if errors := excess(key[1], SPEC):
        return None, errors
    try:
        orjson.loads(key[1])  # the typed reading takes 1e400 for a number
        spec, errors = decode_spec(raw, type_)
    except orjson.JSONDecodeError as error:  # half a surrogate, 1e400: not skipped over any more
        return None, [field.invalid(SPEC, "…", f"not valid JSON: {error.msg}")]
    if spec is not None and not errors:
        _specs.put(key, spec, len(key[1]))
    return spec, errors
