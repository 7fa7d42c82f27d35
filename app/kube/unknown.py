"""Warnings about unknown fields, with the fields that were meant: by a typing error, or at another level."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from app.kube.base import Json
from app.kube.correction import Members
from app.kube.field import Advice, Path, go_quote, name_meant, suggested, with_hint
from app.kube.regex import regex
from app.kube.spelling import closest_name, same_word
from app.limits import MAX_WORD_CHARACTERS

_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
_WORD = regex(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_GUESSES, _LISTED = 3, 6
"""Maximum number of fields that are suggested, and that are listed because none is like the key."""
_PREFIX, _STEM, _TYPED = 3, 6, 4
"""Minimum length of a word that another begins with, of the beginning that two share, and of one with a slip."""


class Level(NamedTuple):
    """The fields of an object, and those one level down."""

    fields: Collection[str]
    inner: Callable[[], Iterable[str]]
    """Returns paths such as ``endpoint.port`` and, in the items of a list, ``containers[].image``."""
    habits: Mapping[str, str] = {}
    """Advice by the unknown field; by ``worker.replicas`` for one of an object whose type has no advice."""


_NOTHING = Level((), tuple)


class TypeFields(NamedTuple):
    """The fields of a type, and of those around it."""

    members: Members
    inner: Callable[[], Iterable[str]]
    above: Callable[[], Iterable[Level]]
    """Returns each object around, the nearest first."""
    habits: Mapping[str, str] = {}
    other_names: Mapping[str, str] = {}


def warnings(keys: Sequence[str], value: Json, path: Path, type_fields: TypeFields) -> Iterator[Advice]:
    """Warn about the unknown fields of an object.

    A suggestion for which the object has a field already, or for several unknown ones, is in words alone.
    """
    used = set(value)
    for key in keys:
        is_word = len(key) <= MAX_WORD_CHARACTERS
        hint = _Unknown(key, value, path, type_fields, is_alone=len(keys) == 1).hint() if is_word else ""
        targets, place = {name.partition(".")[0] for name in suggested(hint)}, path.member(key)
        message = with_hint(f"unknown field {go_quote(str(place))}", f"{hint}" if targets & used else hint)
        yield Advice(message, place, "unknown-field")
        used |= targets


class _Unknown(NamedTuple):
    """An unknown field, with the rules that find what was meant by it: the first that answers counts."""

    key: str
    value: Json
    """The object that has the field."""
    path: Path
    """The object's path."""
    type_fields: TypeFields
    is_alone: bool
    """No other field of the object is unknown."""

    @property
    def item(self) -> object:
        return self.value[self.key]

    @property
    def names(self) -> Sequence[str]:
        return self.type_fields.members.fields

    @property
    def absent(self) -> list[str]:
        return [name for name in self.type_fields.members.required if name not in self.value]

    def hint(self) -> str:
        rules = (
            *(self.habit, self.level_too_many, self.other_spelling, self.object_below, self.typing_error),
            *(self.higher, self.words, self.items_below, self.required),
            *(self.switch, self.metadata, self.object_beside, self.fields),
        )
        return next(filter(None, (rule() for rule in rules)), "")

    def habit(self) -> str:
        above = next(iter(self.type_fields.above()), _NOTHING).habits
        advice = self.type_fields.habits.get(self.key) or above.get(
            ".".join(map(str, (*self.path.segments[-1:], self.key)))
        )
        return f"; {advice}" if advice else ""

    def level_too_many(self) -> str:
        if not isinstance(self.item, dict) or not self.item or not self.item.keys() <= set(self.names):
            return ""
        return f"; remove this level: {', '.join(self.item)} must be directly below {self.path}"

    def other_spelling(self) -> str:
        """Return the same word, another name of the field, or the required field that begins with the key."""
        same = same_word(self.key, self.names) or self.type_fields.other_names.get(self.key)
        return _suggest(same or _only(name for name in self.absent if _begins(name, self.key)))

    def object_below(self) -> str:
        return _suggest(*(_of_resources(self.key, self.names) or self.places[0]))

    def typing_error(self) -> str:
        typed = _typed(self.key, self.names)
        return _suggest(typed or _only(name for name in self.absent if _shares_word(self.key, name)))

    def higher(self) -> str:
        levels = next((n for n, level in enumerate(self.type_fields.above(), 1) if self.key in level.fields), 0)
        if not levels or self.like.lower().endswith(self.key.lower()):
            return ""
        return f"; it belongs {'one level' if levels == 1 else f'{levels} levels'} higher: indent it less"

    def words(self) -> str:
        last = self.key.rpartition("/")[2]  # ``gpu`` of ``nvidia.com/gpu``
        return _suggest(self.like or (last if last in self.names else ""))

    def items_below(self) -> str:
        return _suggest(*self.places[1])

    def required(self) -> str:
        """Return the only required field that is absent, or the name that a reference lacks, for a single value."""
        if not self.is_alone or not isinstance(self.item, (str, int, float)):
            return ""
        is_reference = "name" in self.names and not {"key", "namespace"}.isdisjoint(self.names)
        unnamed = "name" if is_reference and "name" not in self.value and not self.absent else ""
        return _suggest(_only(self.absent) or unnamed)

    def switch(self) -> str:
        """Advise on a switch that an object does not have."""
        if self.key not in ("enabled", "enable") or not isinstance(self.item, bool):
            return ""
        remedy = f"remove it: {self.path} is enabled by being set"
        return f"; {remedy}" if self.item else f"; leave {self.path} out to disable it"

    def metadata(self) -> str:
        """Advise on an object whose fields belong one level higher, as a pod's labels beside its template."""
        keys = [key for key in self.item if key != "name"] if isinstance(self.item, dict) else []
        outer_fields = next(iter(self.type_fields.above()), _NOTHING).fields
        if not keys or not set(keys) <= set(outer_fields):
            return ""
        return f"; write {' and '.join(keys)} one level higher, beside {self.path.segments[-1]}"

    def object_beside(self) -> str:
        """Return the object next to this one, or next to one around it, that has the field."""
        owners = next(filter(None, (self._owners(level.inner()) for level in self.type_fields.above())), [])
        return f"; it is a field of {owners[0]}" if len(owners) == 1 and "[" not in owners[0] else ""

    def fields(self) -> str:
        """Return the many objects that have the field, or the few fields of this one."""
        owners = self._owners(self.type_fields.inner())
        if owners and not any("[" in owner for owner in owners):
            return f"; it is a field of {', '.join(owners)}"
        return f"; the fields are {', '.join(self.names)}" if 0 < len(self.names) <= _LISTED else ""

    @property
    def places(self) -> tuple[list[str], list[str]]:
        return _places(self.key, self.type_fields.inner(), self.value)

    @property
    def like(self) -> str:
        """The only place of which the key has the object's words too (``model.uri`` for ``modelUri``), or a field."""
        in_parts = (place for place in self.type_fields.inner() if "[" not in place and _has_parts(self.key, place))
        return _only(in_parts) or _of_words(self.key, self.names, self.path)

    def _owners(self, places: Iterable[str]) -> list[str]:
        return [owner for owner, _, name in (place.rpartition(".") for place in places) if name == self.key]


def _suggest(*names: str) -> str:
    return name_meant(*names, separator=",")


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
    """Return ``limits.cpu`` for a resource directly below ``resources``; GPUs also by their common name."""
    resource = "nvidia.com/gpu" if key in ("gpu", "gpus") else key
    return [f"limits.{resource}"] if "limits" in names and (resource in _RESOURCES or "/" in resource) else []


def _places(key: str, places: Iterable[str], value: Json) -> tuple[list[str], list[str]]:
    """Return the places of that name one level down, in objects and in the items of lists.

    Of many, only those in an object that is set.
    """
    matches = [place for place in places if place.rpartition(".")[2] == key]
    if len(matches) > _GUESSES:
        matches = [place for place in matches if place.partition(".")[0].removesuffix("[]") in value]
    items = [place for place in matches if "[]" in place and "containers[]" not in place]
    objects = [place for place in matches if place not in items]
    return (objects, items) if len(matches) <= _GUESSES else ([], [])


def _has_parts(key: str, place: str) -> bool:
    """Return whether the key has all words of the place's field, and otherwise words of what it is in."""
    owner, _, name = place.rpartition(".")
    words, inner = _words(key), _words(name)
    if not _covers(words, inner):
        return False
    rest = [word for word in words if not any(_alike(word, other) for other in inner)]
    return 0 < len(rest) < len(words) and _covers(_words(owner), rest)


def _of_words(key: str, names: Collection[str], path: Path) -> str:
    """Return the only name with the key's words in their order and the fewest others, or else the one within the key.

    ``maxReplicas`` for ``max``, ``tensor`` for ``tensorParallelSize``, ``uri`` for ``modelUri``.
    """
    words = _words(key)
    longer = [name for name in names if _covers(_words(name), words)]
    fewest = min((len(_words(name)) for name in longer), default=0)
    matches = [name for name in longer if len(_words(name)) == fewest]
    owner = _words(str(path.segments[-1]))  # ``maxLoraRank`` of ``lora``
    specific = [word for word in words if word not in owner]
    return _only(
        matches or (name for name in names if _begins(key, name) or _ends(key, name) or _words(name) == specific)
    )


def _begins(name: str, start: str) -> bool:
    return bool(words := _words(start)) and _words(name)[: len(words)] == words


def _ends(name: str, end: str) -> bool:
    return bool(words := _words(end)) and _words(name)[-len(words) :] == words


def _only(names: Iterable[str]) -> str:
    matches = list(names)
    return matches[0] if len(matches) == 1 else ""


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
    return stem or (len(short) >= _TYPED and one[0] == other[0] and closest_name(short, [long]) != "")


def _abbreviates(short: str, word: str) -> bool:
    """Return whether the short word has letters of the other in their order, and no vowels: ``ctx`` for context."""
    rest = iter(word[1:])
    return short[0] == word[0] and not set(short[1:]) & set("aeiou") and all(char in rest for char in short[1:])
