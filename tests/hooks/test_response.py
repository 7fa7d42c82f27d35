"""Answers that crash Metacontroller or make it loop are not sent (MC-0, MC-1.2, MC-3.2)."""

import re
from typing import Any

import orjson
import pytest

from app.errors import ResponseError
from app.hooks.protocol import Applied, SyncResponse
from app.hooks.response import TooLarge, encode, unstorable
from app.hooks.sendable import faults
from app.kube.conditions import MESSAGE_MAX
from app.kube.names import ANNOTATIONS_MAX
from app.limits import MAX_ANSWER_BYTES


def child(**over: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "ns"}, **over}


def test_an_answer_always_has_status_and_children() -> None:
    """An answer without children would delete every child."""
    assert orjson.loads(encode(SyncResponse({}, []), "ns").body) == {"status": {}, "children": []}


@pytest.mark.parametrize(
    ("status", "children", "message"),
    [
        ({"a": [None]}, [], "status: a is the NoneType None"),
        ({}, [child(spec={"a": [None]})], "Service a: a is the NoneType None"),
        ({}, [child(), child()], "Service a: no name, or twice the same"),
    ],
)
def test_the_error_names_what_cannot_be_sent(status: Any, children: list[Any], message: str) -> None:
    with pytest.raises(ResponseError, match=re.escape(message)):
        encode(SyncResponse(status, children), "ns")


@pytest.mark.parametrize(
    "children",
    [
        [None],
        [{"apiVersion": "v1", "metadata": {"name": "a"}}],
        [{"kind": "Service", "metadata": {"name": "a"}}],
        [child(), child()],
        [child(), child(metadata={"name": "a"})],
        [child(metadata={"name": "a", "namespace": "other"})],
        [child(metadata={"name": "a", "labels": {"a": 1}})],
        [child(metadata={"name": "a", "annotations": {"a": True}})],
        [child(metadata={"name": ""})],
        [child(spec={"a": None})],
        [child(spec={"a": [None]})],
        [child(spec={"a": 1.0})],
        [child(spec={"a": float("nan")})],
        [child(spec={"ports": [{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]})],
    ],
)
def test_children_that_break_metacontroller_are_refused(children: list[Any]) -> None:
    """A null, a duplicate, another namespace, values of the wrong type, duplicate merge keys."""
    with pytest.raises(ResponseError):
        encode(SyncResponse({}, children), "ns")


def test_the_metadata_of_an_applied_child_is_checked() -> None:
    """It is not compared with the record."""
    with pytest.raises(ResponseError):
        encode(SyncResponse({}, [Applied(child(metadata={"name": "a", "labels": {"a": 1}}))]), "ns")
    with pytest.raises(ResponseError):
        encode(SyncResponse({}, [Applied(child(metadata={"name": "a", "generation": None}))]), "ns")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31m\x00\x9b", r"a\x1b[31m\x00\x9b"),
        ("a\u202eb\u2066\u200f", r"a\u202eb\u2066\u200f"),
        ("a\u2028b\ufeff\U000e0041", r"a\u2028b\ufeff\U000e0041"),
        ("a\r\nb\tc é", "a\\r\nb\tc é"),
        ("x" * 100_000, "x" * (MESSAGE_MAX - 1) + "…"),
        ("\x00" * 20_000, r"\x00" * (MESSAGE_MAX // 4 - 1) + r"\x0…"),
        ("x" * MESSAGE_MAX + "\x00", "x" * (MESSAGE_MAX - 1) + "…"),
    ],
    ids=["terminal", "direction", "invisible", "line ends", "long", "long when escaped", "escaped behind the end"],
)
def test_strings_of_a_status_are_printable(text: str, shown: str) -> None:
    """A status has names and messages of other objects, and `kubectl` prints them unescaped."""
    status = {"conditions": [{"message": text}], "url": text}
    assert orjson.loads(encode(SyncResponse(status, []), "ns").body)["status"] == {
        "conditions": [{"message": shown}],
        "url": shown,
    }


def test_a_null_in_status_is_refused() -> None:
    """The API server would prune it, and every comparison would find a difference."""
    with pytest.raises(ResponseError):
        encode(SyncResponse({"a": None}, []), "ns")


def test_the_same_answer_has_the_same_bytes() -> None:
    """The order of keys in maps does not matter."""
    body = encode(SyncResponse({"a": 1, "b": 2}, [child()]), "ns").body
    assert body == encode(SyncResponse({"b": 2, "a": 1}, [child()]), "ns").body


@pytest.mark.parametrize(
    ("items", "clash"),
    [
        ([{"name": "a"}, {"name": "b"}], None),
        ([{"name": "a"}, {"name": "a"}], ("name", "a")),
        ([{"containerPort": 1, "name": "a"}, {"containerPort": 1, "name": "b"}], ("containerPort", 1)),
        ([{"port": 1}, {"name": "a"}], None),
        ([{"port": 80}, {"port": "80"}], ("port", "80")),
    ],
)
def test_the_merge_key_is_guessed_as_metacontroller_does(items: list[Any], clash: object) -> None:
    """It is the first key that all items have; values are compared as strings."""
    assert [(fault.key, fault.value) for fault in faults(items)] == ([] if clash is None else [clash])


def test_a_child_that_could_not_be_stored_is_named() -> None:
    """Metacontroller keeps a copy of it in an annotation, and all annotations together have a limit."""
    large = child(spec={"text": "x" * ANNOTATIONS_MAX})
    (error,) = unstorable(SyncResponse({}, [child(), large]))
    assert "Service a would have" in str(error)
    assert unstorable(SyncResponse({}, [child()])) == []


def test_an_answer_that_is_too_large_is_refused() -> None:
    """The limit applies to any answer."""
    with pytest.raises(TooLarge):
        encode(SyncResponse({}, [child(spec={"text": "x" * MAX_ANSWER_BYTES})]), "ns")
