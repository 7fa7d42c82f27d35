"""Which known word was meant: for the one wording of ``did you mean`` (:func:`app.kube.field.name_meant`).

:func:`nearest` is for words of a short, closed list, such as the values of an enum, where one of them must be meant.
:func:`closest_name` is for names of which there may be others, such as options of a release: only a typing error.
"""

import difflib
import re
from collections.abc import Iterable
from functools import lru_cache

from app.limits import MAX_WORD_CHARACTERS

_LONG_NAME = 8
"""Minimum length of names in which two slips are a typing error."""


def nearest(word: str, known: tuple[str, ...]) -> str:
    """Return the nearest word of ``known``, or empty: by case and signs, then by distance."""
    return _nearest(word, known) if 0 < len(word) <= MAX_WORD_CHARACTERS else ""


@lru_cache(maxsize=1024)
def _nearest(word: str, known: tuple[str, ...]) -> str:
    if same := same_word(word, known):
        return same
    plain = {_plain(value): value for value in reversed(known)}
    near = difflib.get_close_matches(_plain(word), list(plain), n=1, cutoff=0.6)
    return plain[near[0]] if near else ""


def same_word(word: str, known: Iterable[str]) -> str:
    """Return the word of ``known`` that differs in case and signs alone, or of which this has the initials."""
    words = list(known)
    plain, initials = _plain(word), [value for value in words if _initials(value) == word]
    return next((value for value in words if _plain(value) == plain), initials[0] if len(initials) == 1 else "")


def _initials(name: str) -> str:
    """Return ``pvc`` for ``persistentVolumeClaim``; empty for fewer than three words."""
    words = re.findall(r"[A-Z]?[a-z]+", name)
    return "".join(word[0].lower() for word in words) if len(words) > 2 else ""


def _plain(word: str) -> str:
    """Keep letters and digits in lower case: ``model_ref`` and ``modelRef`` are the same word."""
    return re.sub(r"[^a-z0-9]", "", word.lower()) or word


def closest_name(name: str, names: Iterable[str]) -> str:
    """Return the name within a typing error of ``name``, or empty. Other digits are another name."""
    plain, slips = name.lower().replace("_", "-"), 2 if len(name) >= _LONG_NAME else 1
    digits, pieces = _digits(plain), _pieces(plain, 2 * slips + 1)
    near = (other for other in names if abs(len(other) - len(plain)) <= slips)
    alike = [other for other in near if any(piece in other for piece in pieces) and _digits(other) == digits]
    distance, nearest = min(((_distance(plain, other, slips), other) for other in alike), default=(slips + 1, ""))
    return nearest if distance <= slips else ""


def _pieces(text: str, count: int) -> list[str]:
    """Divide a string. Each slip changes one piece or two, so that a string with fewer slips has one of them whole."""
    size = max(1, len(text) // count)
    return [text[at : at + size] for at in range(0, len(text), size)] or [""]


def _digits(text: str) -> str:
    return "".join(char for char in text if char.isdigit())


def _distance(one: str, other: str, limit: int) -> int:
    """Count the letters left out, added, replaced, or swapped with their neighbour, up to one more than ``limit``."""
    beyond = limit + 1
    before: dict[int, int] = {}
    last = {j: j for j in range(min(beyond, len(other) + 1))}
    for i, char in enumerate(one, 1):
        row: dict[int, int] = {0: i} if i <= limit else {}
        for j in range(max(1, i - limit), min(len(other), i + limit) + 1):
            changed = last.get(j - 1, beyond) + (char != other[j - 1])
            row[j] = min(last.get(j, beyond) + 1, row.get(j - 1, beyond) + 1, changed)
            if i > 1 and j > 1 and one[i - 2 : i] == other[j - 1] + other[j - 2]:
                row[j] = min(row[j], before.get(j - 2, beyond) + 1)
        if min([*row.values(), *last.values()], default=beyond) > limit:
            return beyond
        before, last = last, row
    return min(last.get(len(other), beyond), beyond)
