"""Plain scalars as kubectl reads them: sigs.k8s.io/yaml makes JSON of YAML, by its own list of forms.

It is neither YAML 1.1, as PyYAML has it, nor YAML 1.2: ``y`` is true, ``0o14`` is 12, ``1e3`` is 1000, and ``12:30`` is
text.
"""

import math
import re
import struct
from collections.abc import Callable

from app.kube.regex import regex

Scalar = str | int | float | bool | None

TAG = "tag:yaml.org,2002:"
_WORDS: dict[str, tuple[str, Scalar]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), ("null", None)),
    **{
        spelling: ("bool", value)
        for value, words in ((True, ("y", "yes", "true", "on")), (False, ("n", "no", "false", "off")))
        for word in words
        for spelling in (word, word.capitalize(), word.upper())
    },
    **{
        f"{sign}.{spelling}": ("float", float(f"{sign}{word}"))
        for word, signs in (("inf", ("", "+", "-")), ("nan", ("",)))
        for sign in signs
        for spelling in (word, "NaN" if word == "nan" else "Inf", word.upper())
    },
    "<<": ("merge", "<<"),
}
_FIRST = frozenset("0123456789+-.")
_FRACTION = regex(r"\.[0-9]+(?:[eE][-+]?[0-9]+)?")
_DECIMAL = regex(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INTEGERS: tuple[tuple[re.Pattern[str], Callable[[str], int]], ...] = (
    (re.compile(r"[-+]?(?:0|[1-9][0-9]*)"), int),
    (re.compile(r"[-+]?0[xX][0-9a-fA-F]+"), lambda text: int(text, 16)),
    (re.compile(r"[-+]?0[oO]?[0-7]+"), lambda text: int(text.lower().replace("o", ""), 8)),
    (re.compile(r"[-+]?0[bB][01]+"), lambda text: int(text, 2)),
    (re.compile(r"0b[-+][01]+"), lambda text: int(text.removeprefix("0b"), base=2)),
)
_LEAST, _MOST = -(2**63), 2**64
_EXACT = 2.0**63
"""Floats below it that are whole are written without a point, and so are integers to the API server."""


def resolve(text: str) -> tuple[str, Scalar]:
    """Return the short tag of a plain scalar, and its value.

    The tag is ``str``, ``int``, ``float``, ``bool``, ``null`` or ``merge``. A whole number that was
    written as a float is an ``int``: that is what the API server gets.
    """
    word = _WORDS.get(text)
    if word is not None:
        return word
    if text[0] not in _FIRST:
        return "str", text
    plain = text.replace("_", "")
    if text[0] == ".":
        number = _float(text) if _FRACTION.fullmatch(text) else None
    else:
        number = _integer(plain)
        if number is None and _DECIMAL.fullmatch(plain):
            number = _float(plain)
    if number is None:
        return "str", text
    return ("int" if isinstance(number, int) else "float"), number


def _integer(text: str) -> int | None:
    for pattern, read in _INTEGERS:
        if pattern.fullmatch(text):
            value = read(text)
            is_signed = text[0] in "-+"
            return value if _LEAST <= value < (-_LEAST if is_signed else _MOST) else None
    return None


def _float(text: str) -> int | float | None:
    """Return a finite number; one that is too large stays text."""
    value = float(text)
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


def key(text: str) -> str | None:
    """Return the field name that a plain key becomes; None for one that kubectl refuses (null, or beyond 63 bits)."""
    tag, value = resolve(text)
    if isinstance(value, bool):
        return "true" if value else "false"
    if tag == "null" or (isinstance(value, int) and not _LEAST <= value < -_LEAST):
        return None
    if isinstance(value, str):
        return value
    written_as_float = tag == "float" or _integer(text.replace("_", "")) is None
    return _shortest(float(value or 0)) if written_as_float else str(value)


def _shortest(value: float) -> str:
    """Return the shortest text that is this number in 32 bits, as Go's ``%g``."""
    narrow = _narrow(value)
    if not math.isfinite(narrow):
        return ".nan" if math.isnan(narrow) else ".inf" if narrow > 0 else "-.inf"
    scientific = next(text for digits in range(10) if _narrow(float(text := f"{narrow:.{digits}e}")) == narrow)
    mantissa, _, exponent = scientific.partition("e")
    power = int(exponent)
    if -4 <= power < _EXPONENT_FROM:
        return f"{narrow:.{max(len(mantissa.lstrip('-').replace('.', '')) - 1 - power, 0)}f}"
    return scientific


_EXPONENT_FROM = 6
"""From this power of ten on Go writes an exponent."""


def _narrow(value: float) -> float:
    try:
        narrow: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    return narrow
