"""Kubernetes resource quantities, in the canonical form in which the API server stores them (MC-3.2)."""

import re
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache

from app.kube.field import Error, Hint, Path, did_you_mean, invalid, with_hint
from app.kube.regex import regex

_QUANTITY = regex(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(|[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,3})")
_BINARY = {f"{prefix}i": Decimal(1024) ** power for power, prefix in enumerate("KMGTPE", 1)}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_INTEGER = regex(r"[+-]?[0-9]{1,19}")
_NANO = Decimal("1e-9")
_LARGEST = Decimal(2**63 - 1)
_WRITTEN = regex(r"\W*([0-9]+(?:[.,][0-9]+)?)\s*([A-Za-z]*)\W*")
_BYTES = regex(r"([kmgtpe])(i?)b?(?:[iy].*)?", re.IGNORECASE)
_UNITLESS = frozenset({"", "b", "byte", "bytes", "c", "core", "cores", "cpu", "cpus", "vcpu", "vcpus", "gpu", "gpus"})
LEAST_MEMORY = 2**20
"""Bytes; a smaller amount of memory has lost its unit."""
_LEAST_MEBIBYTES = 1024
"""Least number that means mebibytes rather than gibibytes, as in ``24576``."""


class QuantityError(ValueError):
    pass


def integer(text: str) -> int | None:
    """Return a whole number of 64 bits; ``None`` for any other string. Python refuses to read thousands of digits."""
    value = int(text) if _INTEGER.fullmatch(text) else None
    return value if value is not None and -(2**63) <= value < 2**63 else None


@lru_cache(maxsize=4096)
def parse(text: str) -> Decimal:
    """Return the value in base units: rounded up to nano-units, at most 2^63-1. Raises :class:`QuantityError`."""
    match = _QUANTITY.fullmatch(text) if len(text) <= 64 else None
    if match is None:
        raise QuantityError(problem(text))
    number, suffix = Decimal(match[1]), match[2]
    if suffix in _BINARY:
        value = number * _BINARY[suffix]
    else:
        exponent = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
        value = number.scaleb(exponent)
    if value > _LARGEST:
        return _LARGEST
    return value.quantize(_NANO, rounding=ROUND_CEILING) if value % _NANO else value


def problem(text: str, example: str = "500m or 16Gi") -> Hint:
    """Return the message for a string that is not a quantity."""
    return with_hint(f"must be a quantity, for example {example}", suggestion(text))


def suggestion(text: str) -> Hint:
    """Return ``; did you mean 4G or 4Gi?`` for ``4 GB`` and the like; empty without a suggestion."""
    written = _WRITTEN.fullmatch(text) if len(text) <= 64 else None
    if written is None:
        return Hint()
    number, unit = written[1].replace(",", "."), written[2]
    if unit == "m":  # thousandths, apart from their number
        return did_you_mean(f"{number}m")
    scaled = _BYTES.fullmatch(unit)
    if scaled is None:
        return did_you_mean(number) if unit.lower() in _UNITLESS else Hint()
    prefix = scaled[1].upper()
    decimal, binary = f"{number}{'k' if prefix == 'K' else prefix}", f"{number}{prefix}i"
    return did_you_mean(binary) if scaled[2] else did_you_mean(decimal, binary)


def missing_unit(number: str) -> str:
    """Return the unit that an amount of memory without one probably has; empty if it can be bytes."""
    value = parse(number) if is_quantity(number) else Decimal(0)
    if not 0 < value < LEAST_MEMORY:
        return ""
    return "Gi" if value < _LEAST_MEBIBYTES else "Mi"


def is_quantity(text: str) -> bool:
    try:
        parse(text)
    except QuantityError:
        return False
    return True


@lru_cache(maxsize=4096)
def canonical(text: str) -> str:
    """Return the quantity as the API server stores it. Raises :class:`QuantityError`."""
    match = _QUANTITY.fullmatch(text)
    value = parse(text)
    suffix = match[2] if match else ""
    if value == 0:
        return "0"
    if suffix in _BINARY and (abs(value) >= 1024) and value == value.to_integral_value():
        return _binary(int(value))
    if suffix[:1] in ("e", "E") and suffix not in _DECIMAL:
        return _scaled(value, "e")
    return _scaled(value, "si")


def _binary(value: int) -> str:
    power = 0
    while value % 1024 == 0 and power < 6:
        value //= 1024
        power += 1
    return f"{value}{['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'][power]}"


def _scaled(value: Decimal, form: str) -> str:
    """Write the mantissa without a fraction and the largest exponent that is a multiple of three."""
    digits, exponent = int(value.scaleb(9).to_integral_value(rounding=ROUND_CEILING)), -9
    while digits % 1000 == 0 and exponent < 18:
        digits //= 1000
        exponent += 3
    if form == "e":
        return f"{digits}e{exponent}" if exponent else str(digits)
    suffix = next(name for name, power in _DECIMAL.items() if power == exponent)
    return f"{digits}{suffix}"


def canonical_value(value: object) -> object:
    """Return a quantity in canonical form; anything else, and invalid quantities, unchanged."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return value
    try:
        return canonical(value if isinstance(value, str) else format(Decimal(repr(value)), "f"))
    except QuantityError:
        return value


def quantity_errors(text: str, path: Path, *, positive: bool = False, example: str = "16Gi") -> list[Error]:
    try:
        value = parse(text)
    except QuantityError:
        return [invalid(path, text, problem(text, example))]
    if value < 0 or (positive and value == 0):
        bound = "above 0" if positive else "0 or more"
        return [invalid(path, text, f"must be {bound}, for example {example}")]
    return []
