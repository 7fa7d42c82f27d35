"""Give fields other values at once, and recognise each in the values that were made from them."""

from __future__ import annotations

import copy
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from app.desk.origins.changes import ABSENT
from app.kube.field import Segments

T = TypeVar("T")

_AMOUNT = re.compile(r"([0-9]+)(\D*)")
_NUMBER = re.compile(r"([0-9]+)")
_MARK = re.compile(r"x([0-9]{3})")


def alternative(value: object, step: int = 1, mark: str = "x") -> object:
    """Return another value of the same type; absent for one without, such as an empty list."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + step
    if isinstance(value, float):
        return value / 2
    if isinstance(value, str):
        amount = _AMOUNT.fullmatch(value)
        return f"{int(amount[1]) + step}{amount[2]}" if amount else f"{value}{mark}"
    return ABSENT


def recognisable(values: Mapping[T, object]) -> dict[T, object]:
    """Return alternatives that differ: each string with a separate mark, and equal amounts with separate steps."""
    equal: Counter[str] = Counter()
    changed = {}
    for number, (field, value) in reversed([*enumerate(values.items())]):  # a limit stays above the request after it
        equal[str(value)] += 1
        changed[field] = alternative(value, equal[str(value)], f"x{number:03}")
    return dict(reversed(changed.items()))


def copies(before: object, after: object, values: Mapping[T, object]) -> dict[T, Any] | None:
    """Return ``before`` with only the copies of each field changed; ``None`` if anything else differs from ``after``.

    ``after`` was made from the recognisable alternatives of the values.
    """
    fields = [*values]
    exact: dict[tuple[str, str], list[T]] = defaultdict(list)
    for field, changed in recognisable(values).items():
        exact[str(values[field]), str(changed)].append(field)
    result: dict[T, Any] = {}
    for segments, old, new in _differences(before, after):
        sources = exact[str(old), str(new)]
        if not sources and isinstance(old, str) and isinstance(new, str):
            sources = _within(old, new, exact, fields)
        elif len(sources) > 1:
            sources = []
        if not sources:
            return None
        for field in sources:
            result[field] = with_value(result.get(field, before), segments, new)
    return result


def _within(old: str, new: str, exact: Mapping[tuple[str, str], list[T]], fields: Sequence[T]) -> list[T]:
    """Return the fields whose marks or numbers occur within ``new``; none if anything else differs."""
    parts, changed = _NUMBER.split(old), _NUMBER.split(_MARK.sub("", new))
    numbers = [exact.get(pair, []) for pair in zip(parts, changed, strict=False) if pair[0] != pair[1]]
    if len(parts) != len(changed) or any(len(sources) != 1 for sources in numbers):
        return []
    marks = (int(number) for number in _MARK.findall(new))
    return [*(fields[mark] for mark in marks if mark < len(fields)), *itertools.chain(*numbers)]


def _differences(old: object, new: object, segments: Segments = ()) -> Iterator[tuple[Segments, object, object]]:
    """Yield the values that differ, each as far down as the two have the same shape."""
    if isinstance(old, dict) and isinstance(new, dict) and list(old) == list(new):
        for key, value in old.items():
            yield from _differences(value, new[key], (*segments, key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for position, (value, other) in enumerate(zip(old, new, strict=True)):
            yield from _differences(value, other, (*segments, position))
    elif type(old) is not type(new) or old != new:
        yield segments, old, new


def with_value(document: Any, segments: Segments, value: object) -> Any:
    """Return a document in which the field has another value; the parts that stay the same are shared."""
    changed, (first, *others) = copy.copy(document), segments
    if others:
        changed[first] = with_value(document[first], tuple(others), value)
    elif value is ABSENT:
        del changed[first]
    else:
        changed[first] = value
    return changed
