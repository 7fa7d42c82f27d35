"""Comparing two JSON values: each change has a readable path, and equal values have no change."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.desk.origins.changes import ABSENT, compare
from app.kube.field import Path
from app.kube.origin import leaves

SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def changes(old: Any, new: Any) -> list[str]:
    return [str(change) for change in compare(old, new, Path())]


CASES: dict[str, tuple[Any, Any, list[str]]] = {
    "scalar": ({"a": 1}, {"a": 2}, ["a: 1 → 2"]),
    "added": ({}, {"a": [1]}, ["a: (none) → [1]"]),
    "removed": ({"a": {"b": None}}, {"a": {}}, ["a.b: null → (none)"]),
    "type": ({"a": 1}, {"a": "1"}, ['a: 1 → "1"']),
    "number and boolean": ({"a": 1}, {"a": True}, ["a: 1 → true"]),
    "label": ({"labels": {"x.dev/y": "1"}}, {"labels": {}}, ['labels[x.dev/y]: "1" → (none)']),
    "named items": (
        {"env": [{"name": "A", "value": "1"}, {"name": "B"}]},
        {"env": [{"name": "B"}, {"name": "A", "value": "2"}]},
        ['env[A].value: "1" → "2"', 'env: ["A","B"] → ["B","A"]'],
    ),
    "one argument more": (
        ["--a", "1", "--b"],
        ["--a", "1", "--c", "3", "--b"],
        ['[2]: (none) → "--c"', '[3]: (none) → "3"'],
    ),
    "one argument changed": (["--a", "1", "--b"], ["--a", "2", "--b"], ['[1]: "1" → "2"']),
    "items without names": ([{"x": 1}], [{"x": 2}], ["[0].x: 1 → 2"]),
}


@pytest.mark.parametrize(("old", "new", "expected"), CASES.values(), ids=list(CASES))
def test_changes_are_in_the_order_of_the_old_value(old: Any, new: Any, expected: list[str]) -> None:
    """Changes are in the order of the old value, followed by additions."""
    assert changes(old, new) == expected


@given(JSON)
def test_a_value_does_not_differ_from_itself(value: Any) -> None:
    assert changes(value, value) == []


@given(JSON, JSON)
def test_different_values_differ(old: Any, new: Any) -> None:
    """There is a change if and only if the values differ, and each change has an old or a new value."""
    changes = list(compare(old, new, Path()))
    assert bool(changes) == (_typed(old) != _typed(new))
    assert all(change.old is not ABSENT or change.new is not ABSENT for change in changes)


def _typed(value: Any) -> Any:
    """Return the value with its types: in Python 1 equals True. The order of keys is ignored."""
    if isinstance(value, dict):
        return {key: _typed(item) for key, item in value.items()}
    return [_typed(item) for item in value] if isinstance(value, list) else (type(value), value)


@given(JSON)
def test_leaves_are_scalars(value: Any) -> None:
    """Empty lists and maps are leaves too."""
    assert all(not leaf for _, leaf in leaves(value, Path()) if isinstance(leaf, (list, dict)))
