"""The stand-in's three-way merge, on the cases of section 3.2 of the Metacontroller specification."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.desk.cluster.apply import as_sent, canonical, encode, last_applied, merge, merge_key, updated, with_record
from app.kube.base import Json
from app.kube.names import LAST_APPLIED


@pytest.mark.parametrize(
    ("observed", "record", "desired", "expected"),
    [
        pytest.param({"a": 1, "x": 2}, {"a": 1}, {}, {"x": 2}, id="a key no longer wanted goes, a foreign one stays"),
        pytest.param({"a": {"b": 1, "x": 2}}, {"a": {"b": 1}}, {}, {}, id="with all that others put below it"),
        pytest.param({"a": 1}, {}, {"a": 2}, {"a": 2}, id="a wished scalar wins"),
        pytest.param({"a": 1}, {}, {"a": None}, {"a": None}, id="null is kept"),
        pytest.param({"a": {"b": 1}}, {"a": {"b": 1}}, {"a": "text"}, {"a": {}}, id="an object stays an object"),
        pytest.param({"a": [1]}, {"a": [1]}, {"a": "text"}, {"a": None}, id="a list becomes null first"),
        pytest.param({"a": [1, 2]}, {"a": [1]}, {"a": [3]}, {"a": [3]}, id="a list of scalars is replaced"),
        pytest.param({"a": [{"q": 1, "z": 2}]}, {}, {"a": [{"q": 1}]}, {"a": [{"q": 1}]}, id="so is one without a key"),
    ],
)
def test_a_merge_keeps_what_others_set_and_drops_what_was_applied_before(
    observed: Any, record: Any, desired: Any, expected: Any
) -> None:
    assert canonical(merge(observed, record, desired)) == canonical(expected)


def test_keyed_lists_keep_foreign_elements_and_their_order_and_append_new_ones() -> None:
    observed = [{"name": "sidecar", "image": "s"}, {"name": "main", "image": "m:1", "pullPolicy": "Always"}]
    record = [{"name": "main", "image": "m:1"}, {"name": "gone"}]
    desired = [{"name": "new"}, {"name": "main", "image": "m:2"}]
    assert merge(observed, record, desired) == [
        {"name": "sidecar", "image": "s"},
        {"name": "main", "image": "m:2", "pullPolicy": "Always"},
        {"name": "new"},
    ]


def test_entries_with_one_port_collapse_into_copies_of_the_last() -> None:
    ports = [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]
    assert merge(ports, ports, ports) == [{"port": 53, "protocol": "TCP"}] * 2


def test_the_merge_key_is_the_first_that_all_elements_of_all_lists_have() -> None:
    assert merge_key([{"name": "a", "port": 1}], [{"name": "b", "port": 2}]) == "port"
    assert merge_key([{"name": "a", "port": 1}], [{"name": "b"}]) == "name"
    assert merge_key([{"name": "a"}, 1]) is None
    assert merge_key([], []) is None


def _observed(record: Json | None = None, **more: Any) -> Json:
    obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "uid": "1", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"},
        **more,
    }
    return with_record(obj, record) if record is not None else obj


def test_fields_of_the_api_server_stay_as_observed() -> None:
    desired = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "uid": "2", "resourceVersion": "1", "generation": 9},
        "status": {"x": 1},
    }
    merged = updated(_observed({}), desired)
    assert merged["metadata"]["uid"] == "1"
    assert merged["metadata"]["resourceVersion"] == "7"
    assert "generation" not in merged["metadata"]
    assert "status" not in merged


def test_ignores_the_formatting_of_a_record() -> None:
    desired = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
    observed = _observed(data={"a": "1"})
    observed["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(desired, indent=1)}
    assert canonical(updated(observed, desired)) == canonical(observed)


def test_an_echoed_record_does_not_nest() -> None:
    observed = _observed({"data": {"a": "1"}}, data={"a": "1"})
    merged = updated(observed, observed)
    assert LAST_APPLIED not in last_applied(merged)["metadata"]["annotations"]


def test_annotations_that_are_not_all_strings_are_lost() -> None:
    desired = {"kind": "ConfigMap", "metadata": {"name": "c", "annotations": {"a": "b", "n": 5}}}
    assert list(with_record(desired, desired)["metadata"]["annotations"]) == [LAST_APPLIED]


def test_an_integral_float_is_sent_as_an_integer_and_compared_as_a_float() -> None:
    assert encode({"a": 8080.0, "b": 0.5}) == b'{"a":8080,"b":0.5}'
    assert canonical({"a": 8080.0}) != canonical({"a": 8080})


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
_OBJECTS = st.dictionaries(st.sampled_from("abcd"), _JSON, max_size=3)


@given(_OBJECTS, _OBJECTS)
def test_a_wish_that_was_fulfilled_is_not_written_again(observed: Json, desired: Json) -> None:
    """The merge converges if the server stores what it gets; a value of another type needs one more round (MC-3.2)."""
    once = merge(observed, {}, desired)
    twice = merge(once, desired, desired)
    assert canonical(merge(twice, desired, desired)) == canonical(twice)


@given(_OBJECTS, _OBJECTS, _OBJECTS)
def test_merge_leaves_its_arguments_alone(observed: Json, record: Json, desired: Json) -> None:
    before = canonical([observed, record, desired])
    merge(observed, record, desired)
    assert canonical([observed, record, desired]) == before


NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53).map(float) | st.integers(0, 9)
VALUES = st.recursive(
    NUMBERS | st.text() | st.sampled_from(["v1.0", "1e9,", "2.0}"]) | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


@given(VALUES)
def test_encoding_is_that_of_go_for_every_value(value: Any) -> None:
    """The result does not depend on whether the JSON text looks as if it had a whole float."""
    assert encode(value) == orjson.dumps(as_sent(value), option=orjson.OPT_SORT_KEYS)
