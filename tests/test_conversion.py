"""The conversion protocol: all objects or none, with the review's uid, and limits on size and time."""

from __future__ import annotations

import tracemalloc
from typing import Any

import orjson
import pytest

from app import conversion
from app.errors import ProtocolError
from app.families import CONVERT
from app.kube.base import Json
from app.settings import Settings

V1ALPHA1, V1ALPHA2 = "serving.kserve.io/v1alpha1", "serving.kserve.io/v1alpha2"


def made(number: int, version: str = V1ALPHA1) -> Json:
    containers = [{"name": "main", "image": "i", "env": [{"name": f"E{n}", "value": "x" * 40} for n in range(20)]}]
    return {
        "apiVersion": version,
        "kind": "LLMInferenceService",
        "metadata": {"name": f"s{number}", "namespace": "ns", "uid": str(number)},
        "spec": {"model": {"uri": "hf://a/b"}, "template": {"containers": containers}, "router": {"route": {}}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


def review(objects: list[Any] | None, desired: str = V1ALPHA2, **over: Any) -> Json:
    request = {"uid": "u-1", "desiredAPIVersion": desired, "objects": objects, **over}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}


def ask(document: Json) -> Json:
    answer = orjson.loads(conversion.answer(CONVERT, orjson.dumps(document)))
    assert (answer["apiVersion"], answer["kind"]) == ("apiextensions.k8s.io/v1", "ConversionReview")
    response: Json = answer["response"]
    assert response["uid"] == "u-1"
    return response


def test_objects_come_back_in_their_order_and_the_version_asked_for() -> None:
    """Lists may have mixed versions; an object in the requested version is returned unchanged, byte for byte."""
    objects = [made(1), made(2, V1ALPHA2), made(3)]
    response = ask(review(objects))
    assert response["result"] == {"status": "Success"}
    assert [o["metadata"] for o in response["convertedObjects"]] == [o["metadata"] for o in objects]
    assert {o["apiVersion"] for o in response["convertedObjects"]} == {V1ALPHA2}
    assert response["convertedObjects"][1] == objects[1]


def test_absent_fields_stay_absent() -> None:
    """No spec, no status, and no empty annotations after the last one is removed are added."""
    item = {"apiVersion": V1ALPHA1, "kind": "LLMInferenceService", "metadata": {"name": "a"}}
    obsolete = {**item, "metadata": {"name": "a", "annotations": {"modelhooks.dev/converted-from": "[]"}}}
    assert ask(review([item, obsolete]))["convertedObjects"] == [{**item, "apiVersion": V1ALPHA2}] * 2


def test_accepts_an_empty_review() -> None:
    assert ask(review([])) == {"uid": "u-1", "convertedObjects": [], "result": {"status": "Success"}}


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (made(7) | {"spec": {"router": 1}}, "objects[1] (LLMInferenceService ns/s7): spec.router must be an object"),
        (made(7) | {"kind": "Pod"}, "objects[1] (Pod ns/s7): cannot convert Pod of serving.kserve.io/v1alpha1"),
        ({}, "objects: Object missing required field `apiVersion` - at `$[1]`"),
        ("x", "objects: Expected `object`, got `str` - at `$[1]`"),
        (None, "objects: Expected `object`, got `null` - at `$[1]`"),
        (made(7) | {"metadata": 1}, "objects[1] (LLMInferenceService): Expected `object`, got `int`"),
    ],
)
def test_one_object_that_cannot_be_converted_fails_all(bad: Any, reason: str) -> None:
    """The API server would take a partial answer for a complete one."""
    response = ask(review([made(1), bad]))
    assert response.keys() == {"uid", "result"}
    assert response["result"]["status"] == "Failed"
    assert response["result"]["message"].startswith(reason)


def test_an_object_that_is_too_deep_fails() -> None:
    """Its depth exceeds admission's limit and the encoder's."""
    text = orjson.dumps(review([made(1)])).replace(b'"route":{}', b'"route":' + b'{"a":' * 300 + b"1" + b"}" * 300)
    response = orjson.loads(conversion.answer(CONVERT, text))["response"]
    assert response["result"] == {
        "status": "Failed",
        "message": "objects[0] (LLMInferenceService ns/s1): spec: nested too deeply, at most 64 levels",
    }


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"\xff",
        orjson.dumps(review([]) | {"kind": "AdmissionReview"}),
        orjson.dumps(review([]) | {"apiVersion": "apiextensions.k8s.io/v1beta1"}),
        orjson.dumps(review([], uid="")),
        orjson.dumps(review([], uid=7)),
        b"[" * 100_000,
    ],
)
def test_rejects_invalid_reviews(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        conversion.answer(CONVERT, body)


def test_only_annotations_and_spec_are_decoded() -> None:
    """Everything else is returned byte for byte: numbers that Python would round, and the order of fields."""
    rest = b'"status":{"b":1e-400,"a":123456789012345678901234567890}'
    ownership = b'"managedFields":[{"fieldsV1":{"f:b":{},"f:a":1.10}}]'
    body = orjson.dumps(review([made(1)]))
    body = body.replace(b'"namespace":"ns"', b'"namespace":"ns",' + ownership)
    body = body.replace(b'"status":{"conditions":[{"type":"Ready","status":"True"}]}', rest)
    answer = conversion.answer(CONVERT, body)
    assert orjson.loads(body)["request"]["objects"][0]["metadata"]["managedFields"]
    assert rest in answer
    assert ownership in answer


def spec_of(size: int) -> Json:
    """Return a spec with a list of that many empty objects, each of which counts as two values."""
    return {"baseRefs": [{}] * size}


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        (
            [made(1) | {"spec": spec_of(30_000)}],
            "objects[0] (LLMInferenceService ns/s1): spec: must have at most 25000 values",
        ),
        (
            [made(n) | {"spec": spec_of(12_000)} for n in range(21)],
            "objects[20] (LLMInferenceService ns/s20): more than 500000 values up to this object",
        ),
        (
            [made(n) | {"metadata": {"annotations": {"a": "," * 260_000}}} for n in range(2)],
            "objects[1] (LLMInferenceService): more than 500000 values up to this object",
        ),
        ([made(0)] * 10_001, "objects: must have at most 10000 items"),
        ([{}] * 1_000_000, "objects: Object missing required field"),
        ([0] * 2_000_000, "objects: Expected `object`, got `int`"),
        (
            [made(1) | {"metadata": {"annotations": {f"a{n}": "" for n in range(150_000)}}}],
            "objects[0] (LLMInferenceService): metadata.annotations: must have at most 1048576 bytes",
        ),
        (7, "objects: Expected `array`, got `int`"),
        (None, "objects: Expected `array`, got `null`"),
    ],
)
def test_bounds_the_work(objects: Any, reason: str) -> None:
    response = ask(review(objects))
    assert response["result"]["status"] == "Failed"
    assert response["result"]["message"].startswith(reason)


@pytest.mark.no_cover
@pytest.mark.parametrize("version", [V1ALPHA1, V1ALPHA2])
def test_memory_of_a_list_is_that_of_one_object(version: str) -> None:
    """Many large objects take their JSON and one decoded object at a time."""

    def peak(objects: int) -> int:
        document = made(1, version) | {"spec": {"router": {"route": {"http": {"spec": {"rules": [{}] * 12_000}}}}}}
        body = orjson.dumps(review([document] * objects, V1ALPHA1 if version == V1ALPHA2 else V1ALPHA2))
        tracemalloc.start()
        try:
            assert b'"Success"' in conversion.answer(CONVERT, body)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(12) < 2 * peak(1)


def test_five_thousand_objects_fit_into_one_review() -> None:
    """kubectl requests a tenth of that at once; the bench measures the time."""
    body = orjson.dumps(review([made(n) for n in range(5000)]))
    assert len(body) < Settings().max_sync_bytes
    response = orjson.loads(conversion.answer(CONVERT, body))["response"]
    assert [o["metadata"]["name"] for o in response["convertedObjects"]] == [f"s{n}" for n in range(5000)]
