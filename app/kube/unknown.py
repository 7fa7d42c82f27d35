"""Warnings about unknown fields, with the fields that were meant: by a typing error, or at another level."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from app.kube import field
from app.kube.base import Json
from app.kube.correction import Members
from app.kube.field import Hint, nearest, suggested

_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


class Known(NamedTuple):
    """The fields of a type, and of those around it."""

    members: Members
    below: Callable[[str], list[str]]
    """Returns the fields of a name one level down."""
    above: Callable[[], Iterable[Collection[str]]]
    """Returns the fields of each object around, the nearest first."""
    habits: Mapping[str, str] = {}


def warnings(keys: Iterable[str], value: Json, path: field.Path, known: Known) -> Iterator[field.Advice]:
    """Warn about the unknown fields of an object.

    A suggestion for which the object has a field already, or for several unknown ones, is in words alone.
    """
    taken = set(value)
    for key in keys:
        hint = f"; {known.habits[key]}" if key in known.habits else _hint(key, value, path, known)
        targets = {name.partition(".")[0] for name in suggested(hint)}
        yield _unknown_field(path.member(key), f"{hint}" if targets & taken else hint)
        taken |= targets


def _unknown_field(path: field.Path, hint: str) -> field.Advice:
    message = field.with_hint(f"unknown field {field.go_quote(str(path))}", hint)
    return field.Advice(message, path, "unknown-field")


def _hint(key: str, value: Json, path: field.Path, known: Known) -> str:
    names, item = known.members.fields, value[key]
    if isinstance(item, dict) and item and item.keys() <= set(names):
        return f"; remove this level: {', '.join(item)} must be directly below {path}"
    near = nearest(key, names)
    exact = near.lower() == key.replace("_", "").lower()
    absent = _absent(key, known.members.required, value)
    deeper = [] if exact or absent else _of_resources(key, names) or known.below(key)
    near = absent or near
    levels = 0 if exact or absent or deeper else _levels_up(key, known.above())
    last = key.rpartition("/")[2]  # ``gpu`` of ``nvidia.com/gpu``
    guesses = deeper or [near or (last if last in names else "") or ("" if levels else _of_words(key, names))]
    if levels and (near or not guesses[0]):
        return f"; it belongs {'one level' if levels == 1 else f'{levels} levels'} higher: indent it less"
    return Hint(f", did you mean {' or '.join(map(field.go_quote, guesses))}?", *guesses) if guesses[0] else ""


def _absent(key: str, required: Iterable[str], value: Json) -> str:
    """Return the required field that is absent and begins with the key: ``modelRef`` for ``model``."""
    return next((name for name in required if name not in value and name.startswith(key) and len(key) > 3), "")


def _of_resources(key: str, names: Collection[str]) -> list[str]:
    """Return ``limits.cpu`` for a resource that stands directly below ``resources``."""
    return [f"limits.{key}"] if "limits" in names and (key in _RESOURCES or "/" in key) else []


def _levels_up(key: str, above: Iterable[Collection[str]]) -> int:
    return next((distance for distance, names in enumerate(above, 1) if key in names), 0)


def _of_words(key: str, names: Iterable[str]) -> str:
    """Return the only name that has the key's first or last words, or of which the key has them all.

    ``maxReplicas`` for ``max``, ``tensor`` for ``tensorParallelSize``, ``uri`` for ``modelUri``.
    """
    matches = [name for name in names if _begins_or_ends(_words(key), _words(name))]
    return matches[0] if len(matches) == 1 else ""


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def _begins_or_ends(one: list[str], other: list[str]) -> bool:
    short, long = sorted((one, other), key=len)
    return bool(short) and short in (long[: len(short)], long[-len(short) :])
