"""Read a command line as its engine reads it: which options it has, with which values, and what ends the engine.

The rules are data of :mod:`app.workload.engines.grammar`: what is the same for all options of an engine, and the
options of each release in ``releases/`` beside it. Everything that asks what a server is started with asks here, so
that one option has one meaning however it is spelled.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from math import inf

import msgspec

from app.kube.base import Json
from app.kube.regex import regex
from app.workload.engines.grammar import GRAMMARS, Grammar, Option, Release


class Slip(StrEnum):
    """A problem with a word of a command line."""

    UNKNOWN = "unknown"
    AMBIGUOUS = "ambiguous"
    """The beginning of several options, which are ``others``."""
    NO_VALUE = "no value"
    """A value for an option that takes none."""
    JOINED = "joined"
    """A value behind ``=``, for an engine that does not read that."""
    MISSING = "missing"
    CHOICE = "choice"
    """None of the values that the option takes, which are ``others``."""
    NUMBER = "number"
    JSON = "json"
    KEY = "key"
    """A key that the option's object does not have; ``others`` are those that it has."""
    KEY_CHOICE = "key choice"
    """A value of a key of the option's object that is not one of ``others``."""
    TWICE = "twice"
    STRAY = "stray"
    """A word that belongs to no option."""
    CUT = "cut"
    """Only the digits at the beginning of the value are read, which are ``others``."""
    REPLACED = "replaced"
    """The value has no effect beside the keys of the same option."""
    UNREAD = "unread"
    """The configuration file is not read."""
    STATE = "state"
    """A variable that switches an option neither on nor off."""


ENDING = frozenset(Slip) - {Slip.CUT, Slip.REPLACED, Slip.UNREAD}
"""With these the engine ends."""


class Problem(msgspec.Struct, frozen=True):
    at: int
    """The position of the word; of a variable, -1 for the first."""
    slip: Slip
    name: str
    """The option as it is written, or its variable, or the word that belongs to none."""
    option: str = ""
    value: str = ""
    others: tuple[str, ...] = ()
    key: str = ""
    """The key of the option's object that has the value."""


class Occurrence(msgspec.Struct, frozen=True):
    """An occurrence of an option on a command line, or of its environment variable."""

    at: int
    """The position of its word; of a variable, -1 for the first."""
    name: str
    """As it is written; the name of a variable."""
    option: str
    """As the catalogue calls it; empty for an unknown one."""
    values: tuple[str, ...] = ()
    width: int = 1
    """The number of its words, with those of its values."""
    is_on: bool = True
    """False for a spelling that switches it off."""
    keys: tuple[str, ...] = ()
    """The path of a single key of its object."""

    @property
    def value(self) -> str:
        return self.values[0] if self.values else ""


class Parsed(msgspec.Struct, frozen=True):
    """A command line as an engine reads it."""

    release: Release
    occurrences: Sequence[Occurrence]
    problems: Sequence[Problem] = ()
    strays: Sequence[int] = ()
    """The positions of the words that belong to no option."""

    @property
    def ends(self) -> bool:
        return any(problem.slip in ENDING for problem in self.problems)

    def all(self, *names: str) -> list[Occurrence]:
        """Return the occurrences of options, each of which may be named by any of its spellings."""
        options = {self.release.spellings.get(name) for name in names}
        return [occurrence for occurrence in self.occurrences if occurrence.option in options]

    def last(self, *names: str) -> Occurrence | None:
        return next(reversed(self.all(*names)), None)

    def gives(self, *names: str) -> bool:
        """Report whether one of the options is written, be it to switch it off."""
        return bool(self.all(*names))

    def has(self, *names: str) -> bool:
        """Report whether the last of the options is given, and not switched off."""
        last = self.last(*names)
        return last is not None and last.is_on

    def value(self, *names: str) -> str:
        """Return the value that counts of options; empty without one."""
        last = self.last(*names)
        return last.value if last is not None else ""


Variables = Sequence[tuple[str, str]]
"""Environment variables with their values."""


def read(
    release: Release, words: Sequence[str], *, positionals: int | None = None, variables: Variables = ()
) -> Parsed:
    """Read the words behind a program, and its environment, as a release of its engine does.

    ``positionals`` is the number of words that it still takes without an option, and ``None`` where that is not known.
    """
    return _Reader(release, GRAMMARS[release.engine], words).read(positionals, variables)


_NEGATIVE = regex(r"-\d+|-\d*\.\d+")
_LEVELS = (["0"], ["1"], ["2"], ["3"])
_LEVEL = regex(r"-O=?(.+)")


class _Reader:
    def __init__(self, release: Release, grammar: Grammar, words: Sequence[str]) -> None:
        self.release, self.grammar = release, grammar
        self.words = words
        self.occurrences: list[Occurrence] = []
        self.problems: list[Problem] = []
        self.strays: list[int] = []

    def read(self, positionals: int | None, variables: Variables) -> Parsed:
        at, words, spellings, stray = 0, self.words, self.release.spellings, self.strays.append
        while at < len(words):
            if words[at][:1] != "-" and words[at] not in spellings:  # most of the words of a script
                stray(at)
                at += 1
            else:
                at = self._word(at)
        if positionals is not None:
            self._too_many(positionals)
        self._repetitions()
        if self.release.variables:
            self._environment(variables)
        problems = sorted(self.problems, key=lambda problem: problem.at)
        return Parsed(self.release, self.occurrences, problems, self.strays)

    def _environment(self, variables: Variables) -> None:
        """Read the variables, of which the last of a name counts; words count more, and come behind."""
        last = {name: place for place, (name, _) in enumerate(variables)}
        written = {occurrence.option for occurrence in self.occurrences}
        earlier = [
            Occurrence(-1 - last[name], name, option, width=0, is_on=False)
            for name, option in self.release.negatives.items()
            if name in last and option not in written
        ]
        written.update(occurrence.option for occurrence in earlier)
        for name, place in last.items():
            if name not in self.release.variables:
                continue
            option, value, at = self.release.variables[name], variables[place][1], -1 - place
            is_switch, is_used = self.release.options[option].type == "switch", option not in written
            if is_used:
                is_on = not is_switch or is_open(value) or value in self.grammar.on
                earlier.append(Occurrence(at, name, option, () if is_switch else (value,), 0, is_on))
            if is_used or self.grammar.takes_any:  # llama.cpp reads its variables first
                problem = self._state_problem if is_switch else self._problem
                self.problems += filter(None, (problem(at, name, option, value),))
        self.occurrences = [*earlier, *self.occurrences]

    def _state_problem(self, at: int, name: str, option: str, value: str) -> Problem | None:
        """Return the problem of the variable of a switch, which llama.cpp reads strictly where a spelling is off."""
        is_lax = self.grammar.takes_any and not self.release.options[option].off
        is_known = value in self.grammar.on or value in self.grammar.off
        return None if is_lax or is_known or is_open(value) else Problem(at, Slip.STATE, name, option, value)

    def _word(self, at: int) -> int:
        """Read the word at a position, and return the position behind it and its values."""
        word = self.words[at]
        if word in self.release.spellings:
            return self._option(at, word, (), None)
        if word == "--" and not self.grammar.takes_any:
            self.strays += range(at + 1, len(self.words))
            return len(self.words)
        if not self._is_option(word):
            self.strays.append(at)
            return at + 1
        name, keys, explicit = self._parts(word)
        spelling, equals, value = word.partition("=")
        if equals and not self.grammar.assigns and (option := self.release.spellings.get(spelling)) is not None:
            self.occurrences.append(Occurrence(at, spelling, option, (value,)))
            self.problems.append(Problem(at, Slip.JOINED, spelling, option, value))
            return at + 1
        if name == "-O" and self.grammar.dotted and self.words[at + 1 : at + 2] in _LEVELS:
            name = "--optimization-level"
        spelled, explicit = self._spelled(name, explicit)
        if len(spelled) != 1:
            slip = Slip.AMBIGUOUS if spelled else Slip.UNKNOWN
            self.problems += () if is_open(name) else (Problem(at, slip, name, others=tuple(spelled)),)
            self.occurrences.append(Occurrence(at, name, ""))
            return at + 2 if keys and explicit is None else at + 1
        return self._option(at, spelled[0], keys, explicit)

    def _parts(self, word: str) -> tuple[str, tuple[str, ...], str | None]:
        """Return the name of an option, the path of a key behind it, and a value behind ``=``."""
        name, equals, value = word.partition("=") if self.grammar.assigns else (word, "", "")
        level = _LEVEL.fullmatch(word) if self.grammar.dotted else None
        if level is not None:
            return "--optimization-level", (), level[1]
        keys: list[str] = []
        if self.grammar.dotted and "." in name:
            name, *keys = name.removesuffix("+").split(".")
        if self.grammar.dashes and name.startswith("--"):
            name = name.replace("_", "-")
        return name, tuple(keys), value if equals else None

    def _spelled(self, name: str, explicit: str | None) -> tuple[list[str], str | None]:
        """Return the spellings that a name matches, with the value; several for an ambiguous name."""
        spellings = self.release.spellings
        if name in spellings:
            return [name], explicit
        if not name.startswith("--") and not self.grammar.takes_any:
            rest = name[2:] + ("" if explicit is None else f"={explicit}")
            matches = [name[:2]] if name[:2] in spellings else []
            if self.grammar.prefixes:
                matches += [other for other in self.release.beginning_with(name) if other != name[:2]]
            return matches, rest.removeprefix("=") if matches[:1] == [name[:2]] else explicit
        return (self.release.beginning_with(name) if self.grammar.prefixes and name != "--" else []), explicit

    def _is_option(self, word: str) -> bool:
        if not word.startswith("-"):
            return False
        if self.grammar.takes_any or len(word) == 1 or word in self.release.spellings:
            return len(word) > 1
        name, _, explicit = self._parts(word)
        if self._spelled(name, explicit)[0]:
            return True
        return not _NEGATIVE.fullmatch(word) and " " not in word if self.grammar.prefixes else True

    def _option(self, at: int, name: str, keys: tuple[str, ...], explicit: str | None) -> int:
        option = self.release.spellings[name]
        entry = self.release.options[option]
        if keys:
            return self._key(at, name, entry, keys, explicit)
        if entry.type == "switch":
            if explicit is not None:
                self.problems.append(Problem(at, Slip.NO_VALUE, name, option, explicit))
            self.occurrences.append(Occurrence(at, name, option, is_on=name not in entry.off))
            return at + 1
        values = self._following(at, entry.count) if explicit is None else (explicit,)
        width = 1 + (len(values) if explicit is None else 0)
        self.occurrences.append(Occurrence(at, name, option, values, width))
        if len(values) < _FEWEST.get(entry.count, 1):
            self.problems.append(Problem(at, Slip.MISSING, name, option))
        else:
            self.problems += filter(None, (self._problem(at, name, option, value) for value in values))
        if self.grammar.opens and option == "--config" and explicit is not None:
            self.problems.append(Problem(at, Slip.UNREAD, name, option, explicit))
        return at + width

    def _following(self, at: int, count: str) -> tuple[str, ...]:
        """Return the words behind an option that are its values."""
        most = {"": 1, "?": 1, "2": 2}.get(count, len(self.words))
        behind = self.words[at + 1 : at + 1 + most]
        if most == 1 and behind and not behind[0].startswith("-"):
            return tuple(behind)
        if self.grammar.takes_any:
            return tuple(behind)
        end = next((place for place, word in enumerate(behind) if word == "--" or self._is_option(word)), len(behind))
        return tuple(behind[:end])

    def _key(self, at: int, name: str, entry: Option, keys: tuple[str, ...], explicit: str | None) -> int:
        option, value = self.release.spellings[name], explicit
        behind = at + 1
        if value is None:
            value, behind = (self.words[at + 1], at + 2) if behind < len(self.words) else (None, behind)
        self.occurrences.append(Occurrence(at, name, option, () if value is None else (value,), behind - at, keys=keys))
        if value is None:
            self.problems.append(Problem(at, Slip.MISSING, name, option))
        elif entry.is_number:
            self.problems.append(Problem(at, Slip.NUMBER, name, option, f'{{"{keys[0]}": …}}'))
        elif entry.keys and keys[0] not in entry.keys:
            self.problems.append(Problem(at, Slip.KEY, name, option, keys[0], entry.keys))
        elif len(keys) == 1 and not is_open(value):
            self.problems += _key_choices(at, name, option, entry, {keys[0]: value})
        return behind

    def _problem(self, at: int, name: str, option: str, value: str) -> Problem | None:
        entry = self.release.options[option]
        if entry.type == "text" and not entry.values:
            return None
        if is_open(value) or value in entry.words or (entry.optional and value in ("", "None")):
            return None
        if entry.type in _JSON:
            return self._json_problem(at, name, option, value)
        check = _CHECKS.get((entry.type, self.grammar.numbers)) or _CHECKS.get((entry.type, ""))
        if check is not None and not check(value):
            return Problem(at, Slip.NUMBER, name, option, value)
        if entry.values and not is_among(value, entry):
            return Problem(at, Slip.CHOICE, name, option, value, entry.values)
        if self.grammar.numbers == "leading" and (cut := _cut(entry.type, value)):
            return Problem(at, Slip.CUT, name, option, value, (cut,))
        return None

    def _json_problem(self, at: int, name: str, option: str, value: str) -> Problem | None:
        entry = self.release.options[option]
        is_text = not value or ("=" in value and "," not in value) if entry.type == "pair-or-json" else True
        if entry.type in _TEXT_OR_JSON and is_text and not _BRACES.fullmatch(value):
            return None
        document = json_of(with_sizes(value) if entry.type == "object-sizes" else value)
        keys = document if isinstance(document, dict) else None
        is_null = entry.type == "json" and value.strip() == "null"
        if (document is None and not is_null) or (entry.type.startswith("object") and keys is None):
            return Problem(at, Slip.JSON, name, option, value)
        wrong = [key for key in keys or () if entry.keys and key not in entry.keys]
        if wrong:
            return Problem(at, Slip.KEY, name, option, wrong[0], entry.keys)
        return next(_key_choices(at, name, option, entry, keys or {}), None)

    def _repetitions(self) -> None:
        """Note options that are written twice, and objects that single keys replace."""
        earlier: dict[str, Occurrence] = {}
        for occurrence in filter(lambda occurrence: occurrence.option, self.occurrences):
            before = earlier.setdefault(occurrence.option, occurrence)
            repeats = self.grammar.repeats or self.release.options[occurrence.option].repeats
            if before is not occurrence and not repeats:
                self.problems.append(
                    Problem(occurrence.at, Slip.TWICE, occurrence.name, occurrence.option, occurrence.value)
                )
        last = {occurrence.option: occurrence for occurrence in self.occurrences if occurrence.keys}
        for occurrence in self.occurrences:
            by = last.get(occurrence.option)
            if by is not None and (not occurrence.keys or occurrence.name != by.name):
                others = (".".join((by.name, *by.keys)),)
                self.problems.append(
                    Problem(occurrence.at, Slip.REPLACED, occurrence.name, occurrence.option, occurrence.value, others)
                )

    def _too_many(self, positionals: int) -> None:
        """Note the words that the engine does not take. vLLM takes ``--model`` for one of them."""
        places = [*self.strays]
        if self.grammar.positionals:
            places += [occurrence.at for occurrence in self.occurrences if occurrence.name == "--model"][:1]
        self.problems += (Problem(at, Slip.STRAY, self.words[at]) for at in places[positionals:])


_FEWEST = {"?": 0, "*": 0, "2": 2}
_TEXT_OR_JSON = ("text-or-json", "pair-or-json")
_JSON = ("json", "object", "object-sizes", *_TEXT_OR_JSON)
_BRACES = regex(r"\s*\{.*\}\s*", re.DOTALL)
_QUOTED = regex(r'("(?:[^"\\]|\\.)*")')
_SIZES = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SI = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_UNITS: Mapping[str, Mapping[str, int]] = {"size": _SIZES, "size-or-auto": _SIZES, "size-si": _SI}
"""The units of each type of a size."""
_SIZE = regex(rf"\b(\d+)(?:\.\d+)?[{''.join(_SIZES)}]\b")


def _key_choices(at: int, name: str, option: str, entry: Option, keys: Json) -> Iterator[Problem]:
    """Yield the keys of an option's object with a value that they do not take. ``null`` is another rule's."""
    for key, value in keys.items():
        if key in entry.choices and value is not None and value not in entry.choices[key]:
            yield Problem(at, Slip.KEY_CHOICE, name, option, str(value), entry.choices[key], key)


def is_open(value: str) -> bool:
    """Report whether something else may still replace a value: a kubelet, a template or a shell."""
    return value[:1] in ("$", "'", '"') or "$(" in value or "{{" in value


def is_among(value: str, entry: Option) -> bool:
    """Report whether an option takes a value, of those that are listed."""
    if entry.type == "integer":
        return _plain_integer(value) in entry.values
    return value in entry.values or (entry.folds and _folded(value) in map(_folded, entry.values))


def _plain_integer(value: str) -> str:
    return str(int(value)) if len(value) < _LONGEST and _INTEGER.fullmatch(value) else value


def _folded(value: str) -> str:
    return value.lower().replace("-", "_")


def json_of(text: str) -> object:
    """Return a value of JSON, as Python reads it; ``None`` for another text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def with_sizes(text: str) -> str:
    """Return JSON with numbers for sizes such as ``8G``, outside of its strings."""
    parts = _QUOTED.split(text)
    return "".join(part if place % 2 else _SIZE.sub(r"\1", part) for place, part in enumerate(parts))


_LONGEST = 4000
"""Digits above which Python reads no number."""
_INTEGER = regex(r"\s*[+-]?\d+(?:_\d+)*\s*")
_DIGITS = r"\d+(?:_\d+)*"
_FLOAT = regex(
    rf"\s*[+-]?(?:(?:{_DIGITS}\.?(?:{_DIGITS})?|\.{_DIGITS})(?:e[+-]?\d+)?|inf|infinity|nan)\s*", re.IGNORECASE
)
_LEADING_INTEGER = regex(r"\s*[+-]?\d+")
_LEADING_FLOAT = regex(r"\s*[+-]?(?:0x[0-9a-f]+|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf|nan)", re.IGNORECASE)
_RUST_FLOAT = regex(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|nan)", re.IGNORECASE)


def _size(kind: str) -> re.Pattern[str]:
    """Return the pattern of a type of a size, which has a fraction before a unit of ten only."""
    tens = "|".join(unit for unit, factor in _UNITS[kind].items() if not factor % 10)
    return re.compile(rf"\s*(?:\d+(?:\.\d+)?(?:{tens})|\d+(?:{'|'.join(_UNITS[kind])})|[+-]?{_DIGITS})\s*")


_VLLM_SIZE = _size("size")
_CHECKS: Mapping[tuple[str, str], Callable[[str], object]] = {
    ("integer", "python"): _INTEGER.fullmatch,
    ("number", "python"): _FLOAT.fullmatch,
    ("size", ""): _VLLM_SIZE.fullmatch,
    ("size-or-auto", ""): lambda value: value.strip().lower() == "auto" or _VLLM_SIZE.fullmatch(value),
    ("size-si", ""): _size("size-si").fullmatch,
    ("boolean", ""): lambda value: value.lower() in ("true", "false"),
    ("integer", "digits"): re.compile(r"\+?[0-9]+").fullmatch,
    ("number", "digits"): _RUST_FLOAT.fullmatch,
    ("integer", "leading"): _LEADING_INTEGER.match,
    ("number", "leading"): _LEADING_FLOAT.match,
}
"""Checks of a value by its type, with the grammar's numbers where grammars differ."""


def _cut(kind: str, value: str) -> str:
    """Return what is read of a number of which not everything is; else empty."""
    leading = {"integer": _LEADING_INTEGER, "number": _LEADING_FLOAT}.get(kind)
    match = leading.match(value) if leading is not None else None
    return match[0].strip() if match is not None and match[0] != value.rstrip() else ""


_AMOUNT = regex(r"(\d+(?:\.\d+)?)([A-Za-z]+)")


def fraction_of(occurrence: Occurrence) -> float | None:
    """Return the number of an option; ``None`` for no number that is more than 0."""
    number = float(occurrence.value) if len(occurrence.value) < _LONGEST and _FLOAT.fullmatch(occurrence.value) else 0.0
    return number if 0 < number < inf else None


def number_of(parsed: Parsed, *names: str) -> int | None:
    """Return the whole number that the engine reads of options; ``None`` without one, and for the engine's choice."""
    last = parsed.last(*names)
    if last is None or not last.values or len(last.value) >= _LONGEST:
        return None
    kind, value = parsed.release.options[last.option].type, last.value.strip()
    amount = _AMOUNT.fullmatch(value)
    units = _UNITS.get(kind, {})
    if amount is not None and amount[2] in units:
        return int(float(amount[1]) * units[amount[2]])
    if GRAMMARS[parsed.release.engine].numbers == "leading":
        value = _cut("integer", value) or value
    return int(value) if _INTEGER.fullmatch(value) else None
