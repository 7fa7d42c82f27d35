"""Recognise, in values that were made from fields, the copies of those fields that have another value."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

import orjson

from app.cli.changes import ABSENT
from app.kube.field import Path
from app.kube.origin import item_key

T = TypeVar("T")

_MARK = re.compile(r"x([0-9]+)x")


def marked(text: str, number: int) -> str:
    """Return a string that is found again within others, and that is valid wherever the first was, in most places."""
    return f"{text}x{number}x"


class _Different(Exception):
    """The values differ in more than copies."""


class Copies(Generic[T]):
    """The fields of a trial, by their numbers and by the old and the new value of each.

    A marked string is found within others. Any other value is found where it is all of a value, and of one field.
    """

    def __init__(self, fields: Mapping[T, tuple[int, object, object]]) -> None:
        self._marked: dict[int, T] = {}
        self._whole: dict[tuple[str, str], list[T]] = defaultdict(list)
        for one, (number, old, new) in fields.items():
            if isinstance(old, str) and new == marked(old, number):
                self._marked[number] = one
            elif new is not ABSENT:
                self._whole[_text(old), _text(new)].append(one)

    def between(self, old: object, new: object, path: Path) -> list[tuple[Path, list[T]]] | None:
        """Return the changed scalars with the fields they copy; ``None`` if the values differ in anything else."""
        try:
            return list(self._pairs(old, new, path))
        except _Different:
            return None

    def restored(self, text: str) -> tuple[str, list[T]]:
        """Return a string without marks, and the fields that they belong to."""
        sources = [self._marked[int(n)] for n in _MARK.findall(text) if int(n) in self._marked]
        return _MARK.sub(lambda m: "" if int(m[1]) in self._marked else m[0], text), sources

    def _pairs(self, old: object, new: object, path: Path) -> Iterator[tuple[Path, list[T]]]:
        if isinstance(old, dict) and isinstance(new, dict):
            names = {self.restored(key)[0]: key for key in new}
            if names.keys() != old.keys() or len(names) != len(new):
                raise _Different
            for key, value in old.items():
                yield from self._pairs(value, new[names[key]], path.member(key))
        elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
            key = item_key(old)
            for position, (item, other) in enumerate(zip(old, new, strict=True)):
                place = path.key(str(item[key])) if key else path.index(position)
                yield from self._pairs(item, other, place)
        elif type(old) is not type(new) or old != new:
            yield path, self._sources(old, new)

    def _sources(self, old: object, new: object) -> list[T]:
        whole = self._whole.get((_text(old), _text(new)), [])
        if len(whole) == 1:
            return whole
        if isinstance(old, str) and isinstance(new, str):
            text, sources = self.restored(new)
            if text == old:
                return sources
        raise _Different


def _text(value: object) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
