"""Copies of fields are recognised in values that were made from other values of the fields."""

from __future__ import annotations

import pytest

from app.desk.origins.changes import ABSENT
from app.desk.origins.copies import alternative, copies, recognisable, with_value
from app.kube.base import Json

FIELDS: dict[str, object] = {
    "image": "server:1",
    "name": "chat",
    "limit": "8Gi",
    "request": "8Gi",
    "port": 8080,
    "on": True,
}


def pod(fields: dict[str, object]) -> Json:
    return {
        "image": fields["image"],
        "args": ["--port", str(fields["port"]), f"--model=/models/{fields['name']}"],
        "resources": [{"limit": fields["limit"]}, {"request": fields["request"]}],
        "protocol": "TCP",
    }


def test_each_value_is_found_by_the_field_that_it_copies() -> None:
    """Strings are found within others, and numbers as strings; a field without copies has none."""
    before = pod(FIELDS)
    copied_by_field = copies(before, pod(recognisable(FIELDS)), FIELDS)
    assert copied_by_field is not None
    assert copied_by_field.keys() == FIELDS.keys() - {"on"}
    assert {
        name: [key for key in before if copied[key] != before[key]] for name, copied in copied_by_field.items()
    } == {
        "image": ["image"],
        "port": ["args"],
        "name": ["args"],
        "limit": ["resources"],
        "request": ["resources"],
    }
    assert copied_by_field["request"]["resources"] == [{"limit": "8Gi"}, {"request": "9Gi"}]


def test_a_value_of_two_fields_is_a_copy_of_both() -> None:
    fields: dict[str, object] = {"image": "server", "version": "v1"}
    trial = recognisable(fields)
    copied = copies(["server:v1"], [f"{trial['image']}:{trial['version']}"], fields)
    assert copied is not None
    assert copied.keys() == fields.keys()


def test_numbers_are_found_within_strings() -> None:
    fields: dict[str, object] = {"rank": 32, "adapters": 2, "name": "chat"}
    trial = recognisable(fields)
    copied = copies(
        ["serve --max-lora-rank=32 chat-2 --seed=7"],
        [f"serve --max-lora-rank={trial['rank']} {trial['name']}-{trial['adapters']} --seed=7"],
        fields,
    )
    assert copied is not None
    assert copied.keys() == fields.keys()


def test_a_limit_stays_above_an_equal_request() -> None:
    assert recognisable({"limit": "4", "request": "4"}) == {"limit": "6", "request": "5"}


@pytest.mark.parametrize(
    "after",
    [
        {"a": "chat-other"},
        {"a": "chat", "b": "chatx000"},
        {"a": ["chatx000"]},
        {"a": "chatx007"},
        {"a": "chat2"},
        {"a": None},
        {},
    ],
)
def test_anything_else_that_differs_is_no_copy(after: Json) -> None:
    """Another value, a field more or less, another type, and the mark of no field."""
    assert copies({"a": "chat"}, after, {"name": "chat"}) is None


def test_a_number_within_a_string_that_no_field_has_is_no_copy() -> None:
    assert copies(["--rank=32 --total=64"], ["--rank=33 --total=66"], {"rank": 32}) is None


def test_what_two_fields_may_have_changed_is_no_copy() -> None:
    fields: dict[str, object] = {"first": True, "second": True}
    assert copies([True], [False], fields) is None


@pytest.mark.parametrize(
    ("value", "other"),
    [(True, False), (3, 4), (0.5, 0.25), ("8Gi", "9Gi"), ("a", "ax"), ("", "x"), (None, ABSENT), ([], ABSENT)],
)
def test_an_alternative_has_the_same_type(value: object, other: object) -> None:
    assert alternative(value) == other


def test_a_changed_document_shares_the_rest() -> None:
    document: Json = {"a": {"b": [1, 2]}, "c": {}}
    changed = with_value(document, ("a", "b", 0), ABSENT)
    assert changed == {"a": {"b": [2]}, "c": {}}
    assert changed["c"] is document["c"]
    assert document["a"]["b"] == [1, 2]
