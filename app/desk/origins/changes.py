"""The differences between two JSON values, by field path.

Lists of objects are compared by the names of their items (containers, env, volumes, ports), other lists in sequence, so
that one argument more is one change.
"""

import difflib
from collections.abc import Iterator

import msgspec
import orjson

from app.kube.base import Json
from app.kube.field import Path
from app.kube.origin import item_key

ABSENT = object()
"""Stands for a value that is not there; ``None`` is a value."""


class Change(msgspec.Struct, frozen=True):
    """One value that changed; ``old`` is :data:`ABSENT` for one that was added, ``new`` for one that was removed."""

    path: Path
    old: object
    new: object

    def __str__(self) -> str:
        return f"{self.path}: {shown(self.old)} → {shown(self.new)}"

    def sides(self, old: str, new: str) -> Json:
        """Return the two values by these names, without one that is absent."""
        return {side: value for side, value in ((old, self.old), (new, self.new)) if value is not ABSENT}


def shown(value: object) -> str:
    return "(none)" if value is ABSENT else orjson.dumps(value).decode()


def compare(old: object, new: object, path: Path) -> Iterator[Change]:
    """Yield every change from ``old`` to ``new``. A subtree on one side only is one change."""
    if old is new or (isinstance(old, (dict, list)) and old == new and orjson.dumps(old) == orjson.dumps(new)):
        return  # to Python alone, 1 and True are equal
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            yield from compare(old.get(key, ABSENT), new.get(key, ABSENT), path.member(key))
    elif isinstance(old, list) and isinstance(new, list):
        yield from _compare_lists(old, new, path)
    elif type(old) is not type(new) or old != new:
        yield Change(path, old, new)


def _compare_lists(old: list[Json], new: list[Json], path: Path) -> Iterator[Change]:
    key = item_key(old, new)
    if key:
        before, after = ({str(item[key]): item for item in items} for items in (old, new))
        for name in [*before, *(name for name in after if name not in before)]:
            yield from compare(before.get(name, ABSENT), after.get(name, ABSENT), path.key(name))
        if before.keys() == after.keys() and list(before) != list(after):
            yield Change(path, list(before), list(after))
        return
    left, right = ([orjson.dumps(item, option=orjson.OPT_SORT_KEYS) for item in items] for items in (old, new))
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    for tag, start, end, new_start, new_end in matcher.get_opcodes():
        if tag == "equal":
            continue
        for offset in range(max(end - start, new_end - new_start)):
            has_old, has_new = start + offset < end, new_start + offset < new_end
            position = start + offset if has_old else new_start + offset
            item = old[start + offset] if has_old else ABSENT
            yield from compare(item, new[new_start + offset] if has_new else ABSENT, path.index(position))
