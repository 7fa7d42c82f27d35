"""Warnings about unknown fields, with the fields that were meant: by a typing error, or at another level."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from app.kube import field
from app.kube.base import Json
from app.kube.correction import Members, closest_name
from app.kube.field import Hint, same_word, suggested

_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_MAX_GUESSES = 3
_PREFIX, _STEM, _TYPED = 3, 6, 4
"""Minimum length of a word that another begins with, of the beginning that two share, and of one with a slip."""


class Level(NamedTuple):
    """The fields of an object, and those one level down."""

    fields: Collection[str]
    inner: Callable[[], Iterable[str]]
    """Returns paths such as ``endpoint.port`` and, in the items of a list, ``containers[].image``."""


class Known(NamedTuple):
    """The fields of a type, and of those around it."""

    members: Members
    inner: Callable[[], Iterable[str]]
    above: Callable[[], Iterable[Level]]
    """Returns each object around, the nearest first."""
    habits: Mapping[str, str] = {}
    other_names: Mapping[str, str] = {}


def warnings(keys: Sequence[str], value: Json, path: field.Path, known: Known) -> Iterator[field.Advice]:
    """Warn about the unknown fields of an object.

    A suggestion for which the object has a field already, or for several unknown ones, is in words alone.
    """
    taken = set(value)
    for key in keys:
        hint = f"; {known.habits[key]}" if key in known.habits else _hint(key, value, path, known, lone=len(keys) == 1)
        targets = {name.partition(".")[0] for name in suggested(hint)}
        yield _unknown_field(path.member(key), f"{hint}" if targets & taken else hint)
        taken |= targets


def _unknown_field(path: field.Path, hint: str) -> field.Advice:
    message = field.with_hint(f"unknown field {field.go_quote(str(path))}", hint)
    return field.Advice(message, path, "unknown-field")


def _hint(key: str, value: Json, path: field.Path, known: Known, *, lone: bool) -> str:
    names, item = known.members.fields, value[key]
    if isinstance(item, dict) and item and item.keys() <= set(names):
        return f"; remove this level: {', '.join(item)} must be directly below {path}"
    absent = [name for name in known.members.required if name not in value]
    if guess := same_word(key, names) or known.other_names.get(key) or _only(n for n in absent if _begins(n, key)):
        return _meant(guess)
    objects, items = _places(key, known.inner(), value)
    if guesses := _of_resources(key, names) or objects:
        return _meant(*guesses)
    if guess := _typed(key, names) or _only(name for name in absent if _shares_word(key, name)):
        return _meant(guess)
    above = list(known.above())
    near = _named_in_parts(key, known.inner()) or _of_words(key, names)
    levels = next((distance for distance, level in enumerate(above, 1) if key in level.fields), 0)
    if levels and not near.lower().endswith(key.lower()):
        return f"; it belongs {_levels(levels)} higher: indent it less"
    last = key.rpartition("/")[2]  # ``gpu`` of ``nvidia.com/gpu``
    guesses = [near or last] if near or last in names else items
    if not guesses and lone and isinstance(item, (str, int, float)):
        unnamed = ["name"] if "name" in names and "name" not in value else []
        guesses = absent if len(absent) == 1 else unnamed
    return _meant(*guesses) if guesses else _instead(key, item, path, above)


def _meant(*names: str) -> Hint:
    return Hint(f", did you mean {' or '.join(map(field.go_quote, names))}?", *names)


def _instead(key: str, item: object, path: field.Path, above: Sequence[Level]) -> str:
    """Advise on a field that no field of the object stands for."""
    return _switch(key, item, path) or _of_metadata(item, path, above) or _beside(key, above)


def _levels(number: int) -> str:
    return "one level" if number == 1 else f"{number} levels"


def _switch(key: str, item: object, path: field.Path) -> str:
    """Advise on a switch that an object does not have."""
    if key not in ("enabled", "enable") or not isinstance(item, bool):
        return ""
    return f"; remove it: {path} is enabled by being set" if item else f"; leave {path} out to disable it"


def _of_metadata(item: object, path: field.Path, above: Sequence[Level]) -> str:
    """Advise on an object whose fields belong one level higher, as a pod's labels beside its template."""
    keys = [key for key in item if key != "name"] if isinstance(item, dict) else []
    if not keys or not above or not set(keys) <= set(above[0].fields):
        return ""
    return f"; write {' and '.join(keys)} one level higher, beside {path.segments[-1]}"


def _beside(key: str, above: Iterable[Level]) -> str:
    """Return the object next to this one, or next to one around it, that has the field."""
    for level in above:
        owners = [owner for owner, _, name in (place.rpartition(".") for place in level.inner()) if name == key]
        if owners:
            return f"; it is a field of {owners[0]}" if len(owners) == 1 and "[" not in owners[0] else ""
    return ""


def _typed(key: str, names: Collection[str]) -> str:
    """Return the name within a typing error of the key, or of the same number of words that are alike."""
    words = _words(key)
    plain = {name.lower(): name for name in names}
    return plain.get(closest_name(key, plain), "") or _only(
        name for name in names if len(_words(name)) == len(words) > 1 and _covers(_words(name), words)
    )


def _shares_word(one: str, other: str) -> bool:
    return any(_alike(word, second) for word in _words(one) for second in _words(other))


def _of_resources(key: str, names: Collection[str]) -> list[str]:
    """Return ``limits.cpu`` for a resource that stands directly below ``resources``."""
    return [f"limits.{key}"] if "limits" in names and (key in _RESOURCES or "/" in key) else []


def _places(key: str, places: Iterable[str], value: Json) -> tuple[list[str], list[str]]:
    """Return the places of that name one level down, in objects and in the items of lists.

    Of many, only those in an object that is set.
    """
    matches = [place for place in places if place.rpartition(".")[2] == key]
    if len(matches) > _MAX_GUESSES:
        matches = [place for place in matches if place.partition(".")[0].removesuffix("[]") in value]
    items = [place for place in matches if "[]" in place and "containers[]" not in place]
    objects = [place for place in matches if place not in items]
    return (objects, items) if len(matches) <= _MAX_GUESSES else ([], [])


def _named_in_parts(key: str, places: Iterable[str]) -> str:
    """Return the only place of which the key has the object's words too: ``model.uri`` for ``modelUri``."""
    return _only(place for place in places if "[" not in place and _has_parts(key, place))


def _has_parts(key: str, place: str) -> bool:
    """Return whether the key has all words of the place's field, and otherwise words of what it is in."""
    owner, _, name = place.rpartition(".")
    words, inner = _words(key), _words(name)
    rest = [word for word in words if not any(_alike(word, other) for other in inner)]
    return 0 < len(rest) < len(words) and _covers(words, inner) and _covers(_words(owner), rest)


def _of_words(key: str, names: Iterable[str]) -> str:
    """Return the only name with the key's words in their order and the fewest others, or else the one within the key.

    ``maxReplicas`` for ``max``, ``tensor`` for ``tensorParallelSize``, ``uri`` for ``modelUri``.
    """
    words = _words(key)
    longer = [name for name in names if _covers(_words(name), words)]
    fewest = min((len(_words(name)) for name in longer), default=0)
    found = [name for name in longer if len(_words(name)) == fewest]
    return _only(found or (name for name in names if _begins(key, name) or _ends(key, name)))


def _begins(name: str, start: str) -> bool:
    return bool(words := _words(start)) and _words(name)[: len(words)] == words


def _ends(name: str, end: str) -> bool:
    return bool(words := _words(end)) and _words(name)[-len(words) :] == words


def _only(names: Iterable[str]) -> str:
    found = list(names)
    return found[0] if len(found) == 1 else ""


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def _covers(words: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether each of the others, of which there is at least one, is like a later word than the one before."""
    rest = iter(words)
    return bool(others) and all(any(_alike(word, other) for word in rest) for other in others)


def _alike(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    if one == other or (len(short) >= _PREFIX and (long.startswith(short) or _abbreviates(short, long))):
        return True
    stem = len(short) >= _STEM and (long[:_STEM] == short[:_STEM] or long.endswith(short))
    return stem or (len(short) >= _TYPED and closest_name(short, [long]) != "")


def _abbreviates(short: str, word: str) -> bool:
    """Return whether the short word has letters of the other in their order, and no vowels: ``ctx`` for context."""
    rest = iter(word[1:])
    return short[0] == word[0] and not set(short[1:]) & set("aeiou") and all(char in rest for char in short[1:])
