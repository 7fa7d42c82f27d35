"""Duplicate merge keys, and other values that Metacontroller cannot apply (MC-3.2)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.hooks.sendable import Fault, check, clashes, faults, is_sendable, merge_key, sendable
from app.kube.field import Path
from app.kube.reading.stored import without_nulls

SPEC = Path("spec")


@pytest.mark.parametrize(
    ("items", "key"),
    [
        ([{"name": "a", "containerPort": 1}], "containerPort"),
        ([{"name": "a", "port": 1}, {"name": "b", "port": 2}], "port"),
        ([{"name": "a", "port": 1}, {"name": "b"}], "name"),
        ([{"name": "a", "mountPath": "/x"}], "mountPath"),
        ([{"a": 1}, {"b": 1}], None),
        ([{"name": "a"}, "b"], None),
        (["a"], None),
    ],
)
def test_merge_key_is_the_first_that_all_items_have(items: list[Any], key: str | None) -> None:
    """Keys are tried in Metacontroller's order."""
    assert merge_key(items) == key


def test_two_items_with_the_same_key_clash() -> None:
    """Metacontroller does not distinguish numbers from strings with the same digits."""
    assert faults([{"port": 1}, {"port": "1"}]) == [Fault("port", "1")]
    assert not faults([{"port": 1}, {"port": 2}])
    assert not faults([{"port": 1}])


BACKENDS = [{"name": "a", "port": 8000}, {"name": "b", "port": 8000}]


def test_a_clash_is_found_with_its_place() -> None:
    """At any depth below maps and lists that are merged by key."""
    value = {"containers": [{"name": "c", "env": [{"name": "A"}, {"name": "A"}]}]}
    (error,) = clashes(value, SPEC)
    assert str(error.path) == "spec.containers[0].env"


def test_nothing_clashes_in_a_list_that_is_replaced_as_a_whole() -> None:
    """Canary backends with one port are allowed in rules without names, and refused in rules with names."""
    assert not list(clashes({"rules": [{"backendRefs": BACKENDS}]}, SPEC))
    assert len(list(clashes({"rules": [{"name": "r", "backendRefs": BACKENDS}]}, SPEC))) == 1


def test_nulls_in_lists_are_no_mistakes() -> None:
    """They are removed before a value is sent, and other mistakes are found behind them."""
    assert check({"a": [None, {"b": None}]}, SPEC) == []
    (error,) = check({"a": [None, 2**63]}, SPEC)
    assert str(error.path) == "spec.a[0]"


@pytest.mark.parametrize(("name", "is_found"), [("gpuMemoryUtilization", True), ("replicas", False)])
def test_a_whole_number_with_a_fraction_is_for_fields_with_fractions(name: str, is_found: bool) -> None:
    assert is_sendable({name: 1.0}) is is_found


keys = st.sampled_from(["name", "port", "x", "items"])
values = st.recursive(
    st.integers(-(2**64), 2**64) | st.sampled_from(["a", "b"]) | st.booleans() | st.just(1e300) | st.just(0.5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=12,
)


@given(values)
def test_sendable_values_have_no_errors(value: Any) -> None:
    """Syncs only need the verdict; admission needs the errors."""
    value = without_nulls(value)
    assert is_sendable(value) == (not check(value, SPEC))


def test_a_map_that_was_found_sendable_is_not_walked_again() -> None:
    template = {"containers": [{"name": "a"}, {"name": "b"}]}
    result = sendable(template)
    assert result == template
    result["containers"].append({"name": "a"})
    assert sendable(template) is None
    assert faults({"template": template}) == [Fault("name", "a", ["containers", "template"])]
    assert faults({"template": result}) == []


def test_a_number_that_no_field_holds_is_named() -> None:
    (error,) = check({"replicas": 10**50}, SPEC)
    assert str(error) == f'spec.replicas: Invalid value: "{"1" + "0" * 39}": must fit into a 64-bit integer'
