"""How the layers of one GPU are written (LK-3.4)."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"[+-]?[0-9]+")


def layers(entry: str) -> tuple[int, int] | None:
    """First and last layer of a ``start-end`` entry, ``None`` when it is not of that form."""
    start, dash, end = entry.partition("-")
    numbers = start.strip(), end.strip()
    if not dash or not all(_NUMBER.fullmatch(number) for number in numbers):
        return None
    first, last = (int(number) for number in numbers)
    return (first, last) if 0 <= first <= last else None
