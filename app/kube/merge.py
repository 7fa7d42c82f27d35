"""Kubernetes' strategic merge of plain JSON objects: lists merge by their merge key.

Nothing is changed in place: results share parts with their inputs, so callers never write to them. ``null`` does not
occur. Source: Kubernetes' own strategic merge patch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from app.kube.base import Json

PATCH = "$patch"
"""Directive in an override: ``delete`` removes its object or list item, ``replace`` takes the override's object (or, as
a separate item, its list) without merging, ``merge`` is the default.
"""
DIRECTIVES = ("delete", "merge", "replace")


class MergeRules(msgspec.Struct, frozen=True, eq=False):
    """The rules by which objects of one type merge. Without rules, objects merge, and all other values are replaced."""

    fields: Mapping[str, MergeRules] = msgspec.field(default_factory=dict)
    """Fields with an object that has rules."""
    lists: Mapping[str, tuple[str, MergeRules]] = msgspec.field(default_factory=dict)
    """Lists that merge item by item, with the field that identifies an item."""
    atomic: frozenset[str] = frozenset()
    """Objects that are replaced as a whole."""
    one_of: frozenset[str] = frozenset()
    """Fields of which only one may be set: the override's wins."""
    one_of_all_but: frozenset[str] = frozenset()
    """As ``one_of``, for all fields except these (a volume has a name and one source)."""


OPEN = MergeRules()

_KEYS = frozenset({str, int})
"""Types that a merge key can have."""


def merge(base: Json, override: Json, shape: MergeRules = OPEN, *, directives: bool = True) -> Json:
    """Merge ``override`` over ``base``. ``directives=False`` promises that ``override`` has no ``$patch``."""
    if directives:
        if override.get(PATCH) == "replace":
            return resolved(override, shape)
        if override.get(PATCH) == "delete":
            return {}
    result = _without_alternatives(base, override, shape) if shape.one_of or shape.one_of_all_but else dict(base)
    for key, value in override.items():
        kind = type(value)
        if key == PATCH:
            continue
        if kind is dict and key not in shape.atomic:
            deleted = directives and value.get(PATCH) == "delete"
            rules = shape.fields.get(key, OPEN)
            merged: object = None if deleted else _merge_object(result.get(key), value, rules, directives)
        elif kind is list and key in shape.lists and _are_objects(value):
            merged = _merge_field(result.get(key), value, shape.lists[key], directives)
        else:
            merged = value
        if merged is None or (merged == [] and kind is list):
            result.pop(key, None)
        else:
            result[key] = merged
    return result


def _merge_object(base: object, override: Json, shape: MergeRules, directives: bool) -> Json:
    if type(base) is dict:
        return merge(base, override, shape, directives=directives)
    return resolved(override, shape) if directives else override


def _merge_field(base: object, override: list[Json], keyed: tuple[str, MergeRules], directives: bool) -> list[Json]:
    key, shape = keyed
    items = base if type(base) is list and _are_objects(base) else []
    return merge_lists(items, override, key, shape, directives=directives)


def _without_alternatives(base: Json, override: Json, shape: MergeRules) -> Json:
    if shape.one_of_all_but:
        chosen = override.keys() - shape.one_of_all_but - {PATCH}
        return {k: v for k, v in base.items() if not chosen or k in chosen or k in shape.one_of_all_but}
    chosen = override.keys() & shape.one_of
    return {k: v for k, v in base.items() if not chosen or k in chosen or k not in shape.one_of}


def merge_lists(
    base: Sequence[Json], override: Sequence[Json], key: str, shape: MergeRules = OPEN, *, directives: bool = True
) -> list[Json]:
    """Merge two lists whose items are identified by ``key``.

    Order: the override's items in its order; an item that only the base has comes before the first override item that
    follows it in the base. An override item without the key is taken as it is.
    """
    if directives and any(item.get(PATCH) == "replace" and key not in item for item in override):
        base, override = [], [item for item in override if not (item.get(PATCH) == "replace" and key not in item)]
    if not base and not directives and _distinct(override, key):
        return list(override)
    places = {name: place for place, item in reversed(list(enumerate(base))) if type(name := item.get(key)) in _KEYS}
    merged: dict[object, Json] = {}
    order: list[tuple[int | None, object]] = []
    dropped: set[object] = set()
    for number, item in enumerate(override):
        name = item.get(key) if type(item.get(key)) in _KEYS else None
        if directives and item.get(PATCH) == "delete":
            dropped.add(name)
            continue
        identity = name if name is not None else (number,)
        below = merged.get(identity)
        if below is None:
            place = places.get(name)
            order.append((place, identity))
            below = base[place] if place is not None else None
        merged[identity] = _merge_object(below, item, shape, directives)
    placed = {place for place, _ in order}
    rest = [
        (p, item)
        for p, item in enumerate(base)
        if p not in placed and not (dropped and type(item.get(key)) in _KEYS and item[key] in dropped)
    ]
    return _interleaved(order, merged, rest)


def _interleaved(
    order: list[tuple[int | None, object]], merged: Mapping[object, Json], rest: list[tuple[int, Json]]
) -> list[Json]:
    result: list[Json] = []
    head = 0
    for place, identity in order:
        if place is not None:
            while head < len(rest) and rest[head][0] < place:
                result.append(rest[head][1])
                head += 1
        result.append(merged[identity])
    result.extend(item for _, item in rest[head:])
    return result


def _are_objects(items: Sequence[object]) -> bool:
    """Return whether a list can merge; one of the wrong type is replaced, and reported elsewhere."""
    return all(type(item) is dict for item in items)


def _distinct(items: Sequence[Json], key: str) -> bool:
    names = {item.get(key) if type(item.get(key)) in _KEYS else None for item in items}
    return None not in names and len(names) == len(items)


def resolved(value: Json, shape: MergeRules = OPEN) -> Json:
    """Return an override without a base: its directives applied and removed."""
    return merge({}, {k: v for k, v in value.items() if k != PATCH}, shape)


def find(document: Any, path: Sequence[str | tuple[str, object]]) -> Any:
    """Return the value at ``path``, or ``None``. Segments are field names, or ``(merge key, value)`` for list items."""
    for segment in path:
        if isinstance(segment, str):
            document = document.get(segment) if isinstance(document, dict) else None
        else:
            key, name = segment
            items = document if isinstance(document, list) else []
            document = next((item for item in items if isinstance(item, dict) and item.get(key) == name), None)
        if document is None:
            return None
    return document


def replaced(document: Json, path: Sequence[str], value: object) -> Json:
    first, *rest = path
    return {**document, first: replaced(document.get(first) or {}, rest, value) if rest else value}
