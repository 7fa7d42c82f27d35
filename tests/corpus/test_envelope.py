"""HTTP-6.3: reviews that contradict themselves, and reviews of objects that this service does not validate."""

from __future__ import annotations

import concurrent.futures
from typing import Any

import orjson
import pytest

from app.kube.base import Json
from tests.corpus.requests import REVIEW, is_allowed, is_denied, is_refused, review, spec_with, verdict
from tests.corpus.requests import service as inference_service
from tests.service import Service

INVALID = spec_with(image=" bad")


def without(document: Json, *path: str) -> Json:
    """Return the document without the value at that path."""
    head, *rest = path
    if not rest:
        return {key: value for key, value in document.items() if key != head}
    return {**document, head: without(document[head], *rest)}


def with_metadata(metadata: Any, spec: Any = None) -> Json:
    return {**inference_service(spec), "metadata": metadata}


UNANSWERABLE: dict[str, tuple[Any, str]] = {
    "R01 no request": (without(review(), "request"), "field `request`"),
    "R01 null": ({**review(), "request": None}, "`$.request`"),
    "R01 list": ({**review(), "request": []}, "`$.request`"),
    "R02 no uid": (without(review(), "request", "uid"), "field `uid`"),
    "R02 empty uid": (review(uid=""), "request.uid is missing or unusable"),
    "R02 uid a number": (review(uid=7), "`$.request.uid`"),
    "R02 uid of a megabyte": (review(uid="u" * 1_000_000), "request.uid is missing or unusable"),
    "R02 uid with a line end": (review(uid="a\nb"), "request.uid is missing or unusable"),
    "R03 older version": ({**review(), "apiVersion": "admission.k8s.io/v1beta1"}, "only admission.k8s.io/v1"),
    "R04 other kind": ({**review(), "kind": "Foo"}, "only admission.k8s.io/v1"),
    "R06 object a list": (review([]), "`$.request.object`"),
    "R06 object a text": (review("x"), "`$.request.object`"),
}


@pytest.mark.parametrize(("document", "words"), UNANSWERABLE.values(), ids=list(UNANSWERABLE))
def test_reviews_without_a_usable_uid_or_form(service: Service, document: Any, words: str) -> None:
    """Without a uid the service can only return status 400, and say what is wrong."""
    assert words in is_refused(service.post(REVIEW, document))


def test_returns_a_long_uid_verbatim(service: Service) -> None:
    """A uid may have up to 256 characters (HTTP-R02)."""
    uid = "u" * 256
    assert verdict(service.post(REVIEW, review(uid=uid)))["uid"] == uid


CONTRADICTIONS: dict[str, Json] = {
    "R05 no operation": review(operation=""),
    "R05 lower case": review(operation="create"),
    "R05 unknown": review(operation="PATCH"),
    "R06 CREATE of nothing": review(object=None),
    "R11 unknown version": review(kind={"group": "inference.llmkube.dev", "version": "v9", "kind": "InferenceService"}),
    "R19 kinds differ": review(object={**inference_service(), "kind": "Model"}),
    "R19 namespaces differ": review(namespace="other"),
    "R19 names differ": review(name="other"),
}


@pytest.mark.parametrize("document", CONTRADICTIONS.values(), ids=list(CONTRADICTIONS))
def test_reviews_that_contradict_themselves(service: Service, document: Json) -> None:
    """They are denied with code 400 and without a field."""
    response = verdict(service.post(REVIEW, document))
    assert response["allowed"] is False
    assert (response["uid"], response["status"]["code"]) == ("r-1", 400)


DELETING = {"name": "s", "namespace": "ns", "uid": "u", "deletionTimestamp": "2030-01-01T00:00:00Z"}
LET_THROUGH: dict[str, Json] = {
    "R05 CONNECT": review(operation="CONNECT", object=None),
    "R08 DELETE": review(operation="DELETE", object=None, oldObject=inference_service(INVALID)),
    "R09 DELETE of nothing": review(operation="DELETE", object=None, oldObject=None),
    "R10 a pod": review(kind={"group": "", "version": "v1", "kind": "Pod"}),
    "R12 being deleted": review(with_metadata(DELETING, INVALID), inference_service(INVALID)),
    "R13 only metadata": review(
        with_metadata({"name": "s", "namespace": "ns", "labels": {"a": "b"}}, INVALID), inference_service(INVALID)
    ),
    "R14 another field": review(inference_service({**INVALID, "replicas": 2}), inference_service(INVALID)),
    "R16 status": review(inference_service(INVALID), inference_service(), subResource="status"),
    "R18 dry run": review(dryRun=True),
    "R20 generateName": review(with_metadata({"generateName": "s-", "namespace": "ns"}), name=""),
    "R21 userInfo null": review(userInfo=None),
    "R21 userInfo large": review(userInfo={"username": "x", "groups": ["g"] * 10_000, "extra": {"a": [None, 1]}}),
    "R23 a response too": {**review(), "response": {"uid": "other", "allowed": False}},
}


@pytest.mark.parametrize("document", LET_THROUGH.values(), ids=list(LET_THROUGH))
def test_what_passes(service: Service, document: Json) -> None:
    """Deletions, other kinds and subresources, and mistakes that the stored object already has are allowed."""
    assert verdict(service.post(REVIEW, document))["uid"] == "r-1"
    is_allowed(service.post(REVIEW, document))


@pytest.mark.parametrize("case", ["R13 only metadata", "R14 another field"])
def test_warns_of_existing_mistakes(service: Service, case: str) -> None:
    """The update is allowed with a warning about the mistake (HTTP-R13)."""
    assert any("spec.image" in text for text in is_allowed(service.post(REVIEW, LET_THROUGH[case])))


def test_validates_an_update_without_old_object_as_create(service: Service) -> None:
    """The whole object is checked, as on create (HTTP-R07)."""
    assert is_allowed(service.post(REVIEW, review(operation="UPDATE"))) == []
    is_denied(service.post(REVIEW, review(inference_service(INVALID), operation="UPDATE")), "spec.image", "Invalid")


@pytest.mark.parametrize("replicas", [-1, 10**9])
def test_rejects_a_scale_out_of_range(service: Service, replicas: int) -> None:
    """Reviews of the scale subresource are answered; the number is refused as a change of the object (HTTP-R17)."""
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "s", "namespace": "ns"}}
    document = review(
        {**scale, "spec": {"replicas": replicas}},
        operation="UPDATE",
        subResource="scale",
        kind={"group": "autoscaling", "version": "v1", "kind": "Scale"},
    )
    assert verdict(service.post(REVIEW, document))["uid"] == "r-1"
    changed = review(inference_service(spec_with(replicas=replicas)), inference_service())
    is_denied(service.post(REVIEW, changed), "spec.replicas", "Invalid")


METADATA: dict[str, tuple[Any, str]] = {
    "null": (None, "metadata"),
    "list": ([], "metadata"),
    "labels a list": ({"name": "s", "labels": []}, "metadata.labels"),
    "label a number": ({"name": "s", "labels": {"a": 1}}, "metadata.labels[a]"),
    "annotation a number": ({"name": "s", "annotations": {"a": 1}}, "metadata.annotations[a]"),
    "name a number": ({"name": 5}, "metadata.name"),
}


@pytest.mark.parametrize(("metadata", "path"), METADATA.values(), ids=list(METADATA))
def test_rejects_metadata_of_the_wrong_type(service: Service, metadata: Any, path: str) -> None:
    """HTTP-R22: metadata of the wrong type is denied at its field."""
    is_denied(service.post(REVIEW, review(with_metadata(metadata), name="", namespace="")), path, "TypeInvalid")


def test_rejects_missing_metadata(service: Service) -> None:
    """HTTP-R22: missing metadata is denied like null."""
    document = without(inference_service(), "metadata")
    is_denied(service.post(REVIEW, review(document, name="", namespace="")), "metadata", "TypeInvalid", "Required")


def test_answers_the_same_review_identically(service: Service) -> None:
    """One review is sent a thousand times, by 16 threads (HTTP-R24)."""
    body = orjson.dumps(review(inference_service({"runtime": "bad", "replicas": 99, "x": 1, "y": 2})))
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = {answer.body for answer in pool.map(lambda _: service.post(REVIEW, body), range(1000))}
    assert len(answers) == 1


def test_answers_each_review_with_its_uid(service: Service) -> None:
    """Parallel reviews are answered with their own uid and about their own object (HTTP-R24)."""
    names = [f"Bad-{number}" for number in range(64)]
    bodies = [review(with_metadata({"name": name, "namespace": "ns"}), uid=name) for name in names]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda body: verdict(service.post(REVIEW, body)), bodies))
    for name, answer in zip(names, answers, strict=True):
        assert answer["uid"] == name
        assert f'"{name}"' in answer["status"]["message"]


def test_counts_many_errors(service: Service) -> None:
    """Twenty errors are listed, the others are counted (HTTP-R25)."""
    answer = service.post(REVIEW, review(inference_service(spec_with(env=[{"name": 1}] * 250))))
    response = verdict(answer)
    listed = response["status"]["details"]["causes"]
    assert (len(listed), listed[-1]["message"]) == (21, "and 230 more errors")
    assert response["status"]["message"].endswith("and 230 more errors")
    assert len(answer.body) <= 64 * 1024
