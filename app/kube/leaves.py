"""The scalars of a JSON value by paths for people: list items by name where they have names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from app.kube.field import Path

KEYS = ("name", "containerPort", "port", "mountPath", "key", "type")
"""By which field the items of a list are told apart: the first that all items have, each once."""


def leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """The scalars (and empty lists and maps) of a value with their paths."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, member(path, key))
    elif isinstance(value, list) and value:
        key = item_key(value)
        for position, item in enumerate(value):
            yield from leaves(item, path.key(str(item[key])) if key else path.index(position))
    else:
        yield path, value


def member(path: Path, key: str) -> Path:
    """A field by its name; a key that would look like several fields (a label's) in brackets."""
    return path.key(key) if "." in key or "/" in key else path.child(key)


def item_key(*lists: list[Any]) -> str:
    """The field that names the items of all the lists, or nothing."""
    items = [item for listed in lists for item in listed]
    if not all(isinstance(item, dict) for item in items):
        return ""
    for key in KEYS:
        if all(isinstance(item.get(key), (str, int)) for item in items) and all(
            len({str(item[key]) for item in listed}) == len(listed) for listed in lists
        ):
            return key
    return ""
