"""Field paths and errors in Kubernetes' own grammar (apimachinery ``util/validation/field``).

A rule yields :class:`Error` values; :func:`aggregate` renders what the API server prints. Source: HTTP-1.7.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from enum import StrEnum
from typing import Self, TypeVar

import orjson

from app.kube.regex import regex
from app.kube.spelling import nearest
from app.limits import MAX_SHOWN_ERRORS, MAX_VALUE_CHARACTERS

ItemT = TypeVar("ItemT")
_CREDENTIALS = regex(r"(?<=//)[^/]*@")
_TEMPLATE = regex(r"\{\{|\$\{\w+\}|\$[A-Za-z_]|^<[^<>]*>$")
"""Templates of Go and of shells, and a placeholder such as ``<name>``."""
UNRENDERED = "this is an unrendered template"
_UNPRINTABLE = regex(r'["\\]|[^ -~]')
_ESCAPES = dict(zip('"\\\a\b\f\n\r\t\v', '"\\abfnrtv', strict=True))

Owner = tuple[str, str, str]
"""Kind, namespace and name of an object."""

Segments = tuple[str | int, ...]
"""Keys of maps and positions in lists that lead to a value."""


class Path:
    """The place of a value in an object: ``spec.env[3].name``, ``metadata.annotations[example.com/x]``."""

    __slots__ = ("_parent", "_segment", "_style", "_text")

    def __init__(self, segment: str | int = "", parent: Path | None = None, style: str = ".") -> None:
        self._segment = segment
        self._parent = parent
        self._style = style
        self._text: str | None = None
        """The string form, kept because the paths of many values begin with it."""

    def child(self, *names: str) -> Path:
        """Return the path of a named field, one level down for each name."""
        path = self
        for name in names:
            path = Path(name, path)
        return path

    def index(self, position: int) -> Path:
        return Path(position, self, "[")

    def each(self, items: Iterable[ItemT]) -> Iterator[tuple[Path, ItemT]]:
        return ((self.index(position), item) for position, item in enumerate(items))

    def key(self, key: str) -> Path:
        """Return the path of a map entry, whose key the user chose."""
        return Path(key, self, "{")

    def member(self, key: str) -> Path:
        """Return the path of a field; a key that would read as several fields (a label's) in brackets."""
        return self.key(key) if "." in key or "/" in key else self.child(key)

    def is_within(self, other: Path) -> bool:
        """Report whether this is the path of ``other``, or of a part of it."""
        outer = other.segments
        return self.segments[: len(outer)] == outer

    @property
    def segments(self) -> Segments:
        last: Segments = () if self._segment == "" else (self._segment,)
        return last if self._parent is None else (*self._parent.segments, *last)

    def __str__(self) -> str:
        if self._text is None:
            self._text = self._written()
        return self._text

    def _written(self) -> str:
        before = "" if self._parent is None else str(self._parent)
        segment = _cut(self._segment) if isinstance(self._segment, str) else self._segment
        if self._style == ".":
            return f"{before}.{segment}" if before and segment != "" else f"{before}{segment}"
        return f"{before}[{segment}]"

    def __repr__(self) -> str:
        return f"Path({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Path) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


SPEC = Path("spec")
METADATA = Path("metadata")


class ErrorType(StrEnum):
    """The ``reason`` of a cause in a ``Status``."""

    REQUIRED = "FieldValueRequired"
    INVALID = "FieldValueInvalid"
    TYPE_INVALID = "FieldValueTypeInvalid"
    NOT_SUPPORTED = "FieldValueNotSupported"
    DUPLICATE = "FieldValueDuplicate"
    FORBIDDEN = "FieldValueForbidden"
    TOO_LONG = "FieldValueTooLong"
    TOO_MANY = "FieldValueTooMany"


@dataclass(frozen=True, slots=True)
class Error:
    """One error: its place, its type, and the message after the path."""

    type: ErrorType
    path: Path
    body: str
    place: Path | None = None
    """The field with the mistake, for an error that is reported at the object as a whole."""
    against: Path | None = None
    """The place of the other value in a conflict."""
    suggested: tuple[str, ...] = dataclass_field(default=(), compare=False)
    """Values that the message suggests, as they can be written in place of this one."""

    def __str__(self) -> str:
        path = str(self.path)
        return f"{path}: {self.body}" if path else self.body


class Hint(str):
    """A message for an error, or the end of one, with the values that it suggests. Formatting keeps the words alone."""

    __slots__ = ("suggested",)

    def __new__(cls, words: str = "", *suggested: str) -> Self:
        hint = super().__new__(cls, words)
        hint.suggested = suggested
        return hint

    suggested: tuple[str, ...]


def suggested(message: str) -> tuple[str, ...]:
    return message.suggested if isinstance(message, Hint) else ()


def with_hint(words: str, hint: str) -> Hint:
    return Hint(f"{words}{hint}", *suggested(hint))


def did_you_mean(*values: str) -> Hint:
    return Hint(f"; did you mean {' or '.join(values)}?", *values)


def name_meant(*names: str, separator: str = ";") -> Hint:
    """Return ``; did you mean "modelRef"?``, or nothing without a name."""
    return Hint(f"{separator} did you mean {' or '.join(map(go_quote, names))}?", *names) if any(names) else Hint()


class Advice(Hint):
    """A warning as admission prints it, with its place; ``id`` names the page of the documentation that explains it."""

    __slots__ = ("id", "owner", "path")

    def __new__(cls, text: str, path: Path, id_: str = "advice", owner: Owner | None = None) -> Self:
        advice = super().__new__(cls, text, *suggested(text))
        advice.path, advice.id, advice.owner = path, id_, owner
        return advice

    path: Path
    id: str
    owner: Owner | None
    """The object that has the path, where it is not the judged one alone."""

    @property
    def message(self) -> Hint:
        """Return the message without the path."""
        return Hint(self.removeprefix(f"{self.path}: "), *self.suggested)


def advice(path: Path, message: str, id_: str = "advice") -> Advice:
    return Advice(with_hint(f"{path}: ", message), path, id_)


def no_effect(path: Path, instead: str) -> Advice:
    """Return the warning about a field that is accepted and ignored; ``instead`` is what happens, or what to do."""
    return advice(path, f"accepted, no effect; {instead}", "no-effect")


def required(path: Path, detail: str = "") -> Error:
    return _error(ErrorType.REQUIRED, path, "Required value", detail)


def is_template(value: object) -> bool:
    return isinstance(value, str) and _TEMPLATE.search(value) is not None


def invalid(path: Path, value: object, detail: str) -> Error:
    if is_template(value):  # said last: KServe renders some fields, so that the reason may be another
        detail = with_hint(detail, f"; {UNRENDERED}")
    return _error(ErrorType.INVALID, path, f"Invalid value: {render(value)}", detail)


def type_invalid(path: Path, value: object, detail: str) -> Error:
    """Return the error for a wrong JSON type; :func:`app.kube.correction.wrong_type` has the words."""
    return _error(ErrorType.TYPE_INVALID, path, f"Invalid value: {render(value)}", detail)


def not_supported(
    path: Path, value: object, supported: Iterable[str], detail: str = "", suggestion: str | None = None
) -> Error:
    """Return the error for a value outside an enumeration, with the supported values in order.

    The nearest one is suggested; ``suggestion`` replaces it, or is empty for names that users chose.
    """
    values = tuple(supported)
    head = f"Unsupported value: {render(value)}: supported values: {', '.join(map(go_quote, values))}"
    if is_template(value):
        detail, suggestion = UNRENDERED, ""
    elif suggestion is None:
        suggestion = nearest(value, values) if isinstance(value, str) else ""
    body = f"{head}: {detail}" if detail else head
    hint = name_meant(suggestion)
    return Error(ErrorType.NOT_SUPPORTED, path, f"{body}{hint}", suggested=hint.suggested)


def duplicate(path: Path, value: object, detail: str = "") -> Error:
    return _error(ErrorType.DUPLICATE, path, f"Duplicate value: {render(value)}", detail)


def forbidden(path: Path, detail: str) -> Error:
    return _error(ErrorType.FORBIDDEN, path, "Forbidden", detail)


def too_long(path: Path, limit: int, detail: str = "") -> Error:
    """Return the error for a string over its limit; the value is not repeated."""
    unit = "byte" if limit == 1 else "bytes"
    return _error(ErrorType.TOO_LONG, path, f"Too long: may not be more than {limit} {unit}", detail)


def too_many(path: Path, actual: int, limit: int) -> Error:
    unit = "item" if limit == 1 else "items"
    return Error(ErrorType.TOO_MANY, path, f"Too many: {actual}: must have at most {limit} {unit}")


def immutable(path: Path, value: object) -> Error:
    return invalid(path, value, "field is immutable")


def _error(type_: ErrorType, path: Path, head: str, detail: str) -> Error:
    return Error(type_, path, f"{head}: {detail}" if detail else head, suggested=suggested(detail))


def go_quote(text: str) -> str:
    """Quote as Go's ``%q``: printable Unicode stays, quotes, controls and invisible characters are escaped."""
    return '"' + _UNPRINTABLE.sub(_escape, text) + '"'


def one_line(text: str) -> str:
    """Escape line ends and other unprintable characters as :func:`go_quote` does."""
    return (
        text if text.isprintable() else "".join(char if char.isprintable() else go_quote(char)[1:-1] for char in text)
    )


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    if char in _ESCAPES:
        return f"\\{_ESCAPES[char]}"
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def render(value: object) -> str:
    """Format a value as Kubernetes >= 1.34: ``%q`` for strings, ``%v`` for scalars, else compact JSON."""
    if isinstance(value, str):
        return go_quote(_cut(value))
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _go_float(value)
    return _cut(as_json(value))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_VALUE_CHARACTERS else text[:MAX_VALUE_CHARACTERS] + "…"


def as_json(value: object) -> str:
    try:
        return orjson.dumps(value, default=str).decode()
    except TypeError:  # an integer beyond 64 bits, half a surrogate
        return json.dumps(value, default=str, ensure_ascii=False, separators=(",", ":"))


def _go_float(value: float) -> str:
    """Format as Go's ``%v`` of a float64: exponent form below 1e-4 and from 1e21 on (shortest digits otherwise)."""
    if value != 0 and not 1e-4 <= abs(value) < 1e21:
        mantissa, _, exponent = f"{value!r}".partition("e")
        return f"{mantissa}e{exponent}" if exponent else f"{value:e}"
    if value.is_integer():
        return str(int(value)) if abs(value) < 1e6 else _exponent_form(value)
    return repr(value)


def _exponent_form(value: float) -> str:
    digits = str(int(value)).lstrip("-").rstrip("0")
    exponent = len(str(int(abs(value)))) - 1
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{'-' if value < 0 else ''}{mantissa}e+{exponent:02d}"


def aggregate(errors: Iterable[Error]) -> str:
    """Join the errors in one line without duplicates; beyond :data:`MAX_SHOWN_ERRORS` they are only counted."""
    texts = list(dict.fromkeys(str(error) for error in errors))
    shown = texts[:MAX_SHOWN_ERRORS]
    line = texts[0] if len(texts) == 1 else f"[{', '.join(shown)}]"
    return line if len(texts) == len(shown) else f"{line} {and_more(len(texts) - len(shown))}"


def and_more(count: int) -> str:
    return f"and {count} more errors"


def without_user(address: str) -> str:
    """Return an address without its user and password, for messages (HTTP-X32)."""
    return _CREDENTIALS.sub("…@", address)
