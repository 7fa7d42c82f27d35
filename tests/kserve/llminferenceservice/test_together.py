"""Services of one set that are in each other's way at their Gateway."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from app.hooks.protocol import Parent
from app.kserve.llminferenceservice.observed import LLMService
from app.kserve.llminferenceservice.together import warnings
from app.kube.base import Json
from tests.kserve.objects import kind_of, service


def read(document: Json) -> LLMService:
    resource, errors = kind_of(document).decode(msgspec.json.decode(json.dumps(document), type=Parent))
    assert resource is not None
    assert not errors
    return resource


def warned(*documents: Json) -> dict[str, list[str]]:
    paths: dict[str, list[str]] = {}
    for warned_service, advice in warnings([read(document) for document in documents]):
        paths.setdefault(warned_service.metadata.name, []).append(str(advice.path))
    return paths


def routed(name: str, model: str | None = "m", route: Json | None = None, **router: Any) -> Json:
    named = {} if model is None else {"name": model}
    return service(name, model={"uri": "hf://a/b", **named}, router={"route": route or {}, **router})


NAME, WEIGHT = "spec.model.name", "spec.router.route.weight"
OTHER = {"refs": [{"name": "other", "namespace": "kserve"}]}


@pytest.mark.parametrize(
    ("first", "second", "rivals"),
    [
        (routed("a"), routed("b"), True),
        (routed("a"), routed("b", "n"), False),
        (routed("a"), routed("b", "a"), False),
        (routed("a", None), routed("b", "a"), True),
        (routed("a"), routed("b", gateway=OTHER), False),
        (routed("a", gateway=OTHER), routed("b", gateway=OTHER), True),
        (routed("a", route={"group": "g", "weight": 1}), routed("b", route={"group": "g", "weight": 1}), False),
        (routed("a", route={"group": "g", "weight": 1}), routed("b", route={"group": "h", "weight": 1}), True),
        (routed("a"), routed("b", route={"http": {"refs": [{"name": "mine"}]}}), False),
        (routed("a", route={"http": {"spec": {"hostnames": ["a.example"]}}}), routed("b"), True),
        (
            routed("a", route={"http": {"spec": {"hostnames": ["a.example"]}}}),
            routed("b", route={"http": {"spec": {"hostnames": ["b.example"]}}}),
            False,
        ),
    ],
)
def test_services_with_one_model_name(first: Json, second: Json, *, rivals: bool) -> None:
    """The older route gets the requests of both, unless they share them in a group."""
    assert warned(first, second) == ({"a": [NAME], "b": [NAME]} if rivals else {})


def test_a_stopped_service_and_another_namespace_are_no_rivals() -> None:
    stopped, far = routed("b"), routed("c")
    stopped["metadata"]["annotations"] = {"serving.kserve.io/stop": "true"}
    far["metadata"]["namespace"] = "elsewhere"
    assert warned(routed("a"), stopped, far) == {}


def test_a_group_without_weight() -> None:
    """A stopped member's weight does not help the others."""
    nothing = routed("a", route={"group": "g", "weight": 0})
    stopped = routed("b", route={"group": "g", "weight": 5})
    assert warned(nothing, stopped) == {}
    stopped["metadata"]["annotations"] = {"serving.kserve.io/stop": "true"}
    assert warned(nothing, stopped) == {"a": [WEIGHT]}
