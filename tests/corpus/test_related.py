"""Related objects belong to others: any content gets an answer, and the children are kept (HTTP-F09)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from app.desk.cluster.simulate import Cluster
from app.errors import ProtocolError
from app.families import KINDS
from app.hooks.answer import answer_sync
from app.hooks.kind import Kind
from app.kube.base import Json
from tests.corpus.kinds import SETTINGS, VALID, name_of, parent
from tests.hookcalls import NOW

DEPTHS = (65, 240, 300, 600, 900)


def nested(depth: int, *, maps: bool) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value} if maps else [value]
    return value


def encoded(document: Json) -> bytes:
    """Encode a document of any depth, unlike ``orjson``."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        return json.dumps(document).encode()
    finally:
        sys.setrecursionlimit(limit)


def with_deep_parts(request: Json) -> Iterator[bytes]:
    """Yield the request with one deeply nested value in one related object, for each object."""
    for outer, group in request["related"].items():
        for inner, related in group.items():
            for place in ("spec", "status", "metadata"):
                for depth in DEPTHS:
                    for maps in (True, False):
                        deep = {**related, place: {**related.get(place, {}), "deep": nested(depth, maps=maps)}}
                        yield encoded({**request, "related": {**request["related"], outer: {**group, inner: deep}}})


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_tolerates_deep_related_objects(kind: Kind[Any, Any], cluster: Cluster) -> None:
    """There is an answer, or the request is refused as too deep."""
    spec = VALID[name_of(kind)]
    if kind.resource.kind == "LLMInferenceService":
        spec = {**spec, "baseRefs": [{"name": "there"}]}
    request = orjson.loads(cluster.request(kind, parent(kind, spec)))
    for body in with_deep_parts(request):
        try:
            answer = orjson.loads(answer_sync(kind, body, SETTINGS, NOW))
        except ProtocolError:
            continue
        assert isinstance(answer["children"], list)


def test_a_deep_config_is_named_as_the_cause(cluster: Cluster) -> None:
    """The status of the service names the config, and the children are kept."""
    kind = next(kind for kind in KINDS if kind.resource.kind == "LLMInferenceService")
    spec = {**VALID[name_of(kind)], "baseRefs": [{"name": "there"}]}
    request = orjson.loads(cluster.request(kind, parent(kind, spec)))
    configs = request["related"]["LLMInferenceServiceConfig.serving.kserve.io/v1alpha2"]
    configs["ns/there"]["spec"]["template"] = nested(600, maps=True)
    answer = orjson.loads(answer_sync(kind, encoded(request), SETTINGS, NOW))
    ready = next(c for c in answer["status"]["conditions"] if c["type"] == "Ready")
    assert ready["status"] == "False"
    assert "nested too deeply" in ready["message"]
    assert answer["children"] == []


BEYOND = (b"1e400", b"-1e400", b"9" * 5000, b"9" * 20, b'"\\ud800"')
"""Numbers beyond a double or a 64-bit integer, and half of a surrogate pair."""


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each object or list with each of its keys or positions; of a list, the first two items."""
    if isinstance(value, dict):
        for key, item in list(value.items()):
            yield value, key
            yield from places(item)
    elif isinstance(value, list):
        for position, item in enumerate(value[:2]):
            yield value, position
            yield from places(item)


@pytest.mark.parametrize("beyond", BEYOND, ids=["1e400", "-1e400", "5,000 digits", "20 digits", "half a character"])
@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_tolerates_values_beyond_json_in_related_objects(kind: Kind[Any, Any], beyond: bytes, cluster: Cluster) -> None:
    """Anywhere in the parent, its children and related objects: there is an answer, or the request is refused."""
    spec = VALID[name_of(kind)]
    if kind.resource.kind == "LLMInferenceService":
        spec = {**spec, "baseRefs": [{"name": "there"}]}
    request = orjson.loads(cluster.request(kind, parent(kind, spec)))
    seen = 0
    for owner, key in places(request):
        before, owner[key] = owner[key], "@@"
        body = orjson.dumps(request).replace(b'"@@"', beyond)
        owner[key] = before
        seen += 1
        try:
            answer = orjson.loads(answer_sync(kind, body, SETTINGS, NOW))
        except ProtocolError:
            continue
        assert isinstance(answer["children"], list)
    assert seen > 10
