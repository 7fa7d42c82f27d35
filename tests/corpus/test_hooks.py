"""HTTP-6.6: valid and invalid requests of Metacontroller. No case loses a child."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest

from app.errors import ResponseError
from app.hooks import response
from app.hooks.answer import answer_sync
from app.hooks.protocol import SyncResponse
from app.kube.base import Json
from app.settings import Settings
from tests.corpus.requests import (
    API_VERSION,
    CUSTOMIZE,
    DEPLOYMENT_RECORD,
    SYNC,
    SYNC_MODEL,
    is_refused,
    model,
    observed,
    ready,
    spec_with,
    sync,
)
from tests.corpus.requests import service as inference_service
from tests.hookcalls import NOW, unnoted
from tests.service import Service

INVALID = inference_service(spec_with(image=" bad"))
OUTER = "Deployment.apps/v1"


def without(document: Json, key: str) -> Json:
    return {k: v for k, v in document.items() if k != key}


def child_with(**over: Any) -> Json:
    return {OUTER: {"ns/s": {**observed(), **over}}}


REFUSED: dict[str, tuple[Any, str]] = {
    "M01 no parent": (without(sync(), "parent"), "field `parent`"),
    "M01 null": ({**sync(), "parent": None}, "field `parent`"),
    "M01 list": ({**sync(), "parent": []}, "`$.parent`"),
    "M01 other kind": ({**sync(), "parent": {**inference_service(), "kind": "Model"}}, "this hook serves"),
    "M01 other version": (
        {**sync(), "parent": {**inference_service(), "apiVersion": "inference.llmkube.dev/v1"}},
        "this hook serves",
    ),
    "M02 no children": (without(sync(), "children"), "field `children`"),
    "M02 null": ({**sync(), "children": None}, "field `children`"),
    "M02 list": ({**sync(), "children": []}, "`$.children`"),
    "M02 group a list": ({**sync(), "children": {OUTER: []}}, "`$.children.Deployment.apps/v1`"),
    "M04 null": ({**sync(), "children": {OUTER: {"ns/s": None}}}, "got `null`"),
    "M04 without metadata": (
        {**sync(), "children": {OUTER: {"ns/s": without(observed(), "metadata")}}},
        "its key names",
    ),
    "M04 wrong kind": ({**sync(), "children": child_with(kind="Service")}, "another kind or API version"),
    "M05 v1 keys": ({**sync(), "children": {OUTER: {"s": observed()}}}, "hook version mismatch"),
    "M06 finalizing": ({**sync(), "finalizing": True}, "finalizing must be false"),
    "M06 finalizing a text": ({**sync(), "finalizing": "true"}, "`$.finalizing`"),
    "M18 no uid": (
        {**sync(), "parent": inference_service(metadata={"name": "s", "namespace": "ns"})},
        "name and a uid",
    ),
    "M18 empty uid": (
        {**sync(), "parent": inference_service(metadata={"name": "s", "namespace": "ns", "uid": ""})},
        "name and a uid",
    ),
    "no name": (
        {**sync(), "parent": inference_service(metadata={"namespace": "ns", "uid": "u"})},
        "name and a uid",
    ),
}


@pytest.mark.parametrize(("document", "words"), REFUSED.values(), ids=list(REFUSED))
def test_requests_that_are_not_v2(service: Service, document: Any, words: str) -> None:
    """The status is 400 with one line, which says what is wrong, and Metacontroller changes nothing."""
    assert words in is_refused(service.post(SYNC, document))


SAME: dict[str, Json] = {
    "M03 unknown group": {**sync(), "children": {**sync()["children"], "Foo.example.dev/v1": {"ns/x": {"a": 1}}}},
    "M09 no controller": without(sync(), "controller"),
    "M09 controller null": {**sync(), "controller": None},
    "M09 controller large": {**sync(), "controller": {"spec": {"x": ["y" * 100] * 1000}, "unknown": None}},
    "F24 unknown fields": {**sync(), "future": {"a": [1]}},
}


@pytest.mark.parametrize("document", SAME.values(), ids=list(SAME))
def test_what_makes_no_difference(service: Service, document: Json) -> None:
    """The children are those of the plain request."""
    assert service.post(SYNC, document).json["children"] == service.post(SYNC, sync()).json["children"]


@pytest.mark.parametrize("related", ["missing", None, {}])
def test_keeps_children_without_related_objects(service: Service, related: Any) -> None:
    """Without related objects the Model is unknown, so the children are kept (HTTP-M08)."""
    document = without(sync(), "related") if related == "missing" else {**sync(), "related": related}
    answer = service.post(SYNC, document)
    assert answer.status == 200
    assert answer.json["children"] == [DEPLOYMENT_RECORD]


def test_keeps_children_of_a_parent_being_deleted(service: Service) -> None:
    """Garbage collection deletes them (HTTP-M07)."""
    metadata = {**inference_service()["metadata"], "deletionTimestamp": "2030-01-01T00:00:00Z"}
    answer = service.post(SYNC, sync(inference_service(metadata=metadata)))
    assert answer.status == 200
    assert "Deployment" in [child["kind"] for child in answer.json["children"]]


def test_keeps_children_of_an_invalid_parent(service: Service) -> None:
    """HTTP-M10: all eight children are sent as last applied."""
    records = []
    for number in range(8):
        record = copy.deepcopy(DEPLOYMENT_RECORD)
        record["metadata"]["name"] = f"s-{number}"
        records.append(record)
    group = {f"ns/{record['metadata']['name']}": observed(record) for record in records}
    answer = service.post(SYNC, sync(INVALID, children={OUTER: group}))
    assert answer.json["children"] == records
    assert ready(answer)["reason"] == "InvalidSpec"


def test_creates_no_children_for_an_invalid_parent(service: Service) -> None:
    """HTTP-M11: there is only a condition."""
    answer = service.post(SYNC, sync(INVALID, children={OUTER: {}}))
    assert (answer.json["children"], ready(answer)["status"]) == ([], "False")


def test_ignores_a_stale_cache(service: Service) -> None:
    """The desired children do not depend on the observed ones (HTTP-M12)."""
    fresh = service.post(SYNC, sync()).json["children"]
    assert service.post(SYNC, sync(children={OUTER: {}, "Service.v1": {}})).json["children"] == fresh


def test_keeps_the_name_of_a_child_being_deleted(service: Service) -> None:
    """The child is still desired under the same name (HTTP-M13)."""
    child = observed()
    child["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    names = [
        c["metadata"]["name"] for c in service.post(SYNC, sync(children={OUTER: {"ns/s": child}})).json["children"]
    ]
    assert names == ["s", "s"]


def test_keeps_the_autoscalers_replicas(service: Service) -> None:
    """The answer has the autoscaler's number of replicas or none, never the spec's (HTTP-M14)."""
    child = observed()
    child["spec"]["replicas"] = 7
    document = inference_service(spec_with(autoscaling={"maxReplicas": 9}))
    request = sync(document, children={OUTER: {"ns/s": child}, "HorizontalPodAutoscaler.autoscaling/v2": {}})
    deployment = next(c for c in service.post(SYNC, request).json["children"] if c["kind"] == "Deployment")
    assert deployment["spec"].get("replicas", 7) == 7


@pytest.mark.parametrize(
    "status", [None, [], "x", {"conditions": "x"}, {"conditions": [5]}, {"phase": 5, "replicas": "x"}]
)
def test_replaces_an_unreadable_status(service: Service, status: Any) -> None:
    """An invalid status has no effect on the children (HTTP-M15)."""
    answer = service.post(SYNC, sync(inference_service(status=status)))
    assert len(answer.json["children"]) == 2
    assert ready(answer)["type"] == "Ready"


def test_syncs_with_a_thousand_related_objects(service: Service) -> None:
    """The related objects take eight megabytes, and only one is used (HTTP-M16)."""
    padding = {"metadata": {"managedFields": [{"x": "y" * 8000}]}}
    models = {
        f"ns/m{n}": {"apiVersion": API_VERSION, "kind": "Model", "spec": {"source": "a/b"}, **padding}
        for n in range(1000)
    }
    for n, document in enumerate(models.values()):
        document["metadata"] = {**padding["metadata"], "name": f"m{n}", "namespace": "ns", "uid": str(n)}
    request = sync()
    request["related"][f"Model.{API_VERSION}"] |= models
    assert len(orjson.dumps(request)) > 8_000_000
    with_many, alone = service.post(SYNC, request).json, service.post(SYNC, sync()).json
    assert unnoted(with_many["children"]) == unnoted(alone["children"])


def test_answers_the_same_state_identically(service: Service) -> None:
    """Once the status has settled, the order of the children does not change the answer (HTTP-M19)."""
    groups = {
        f"ns/x{n}": observed({**DEPLOYMENT_RECORD, "metadata": {"name": f"x{n}", "namespace": "ns"}}) for n in range(5)
    }
    parent = inference_service(INVALID["spec"])
    parent["status"] = service.post(SYNC, sync(parent, children={OUTER: groups})).json["status"]
    forward, backward = (
        sync(parent, children={OUTER: groups}),
        sync(parent, children={OUTER: dict(reversed(groups.items()))}),
    )
    answers = {service.post(SYNC, document).body for _ in range(50) for document in (forward, backward)}
    assert len(answers) == 1


def test_customize_depends_only_on_the_spec(service: Service) -> None:
    """Metacontroller caches the answer until the generation changes (HTTP-M23)."""
    plain = inference_service()
    labelled = inference_service(
        metadata={**plain["metadata"], "labels": {"a": "b"}, "annotations": {"c": "d"}}, status={"phase": "Ready"}
    )
    controller = {"spec": {"childResources": [{"apiVersion": "apps/v1", "resource": "deployments"}]}}
    bodies = {
        service.post(CUSTOMIZE, {"controller": controller, "parent": parent}).body for parent in (plain, labelled)
    }
    assert len(bodies) == 1


@pytest.mark.parametrize("spec", [None, [], "x", {}, {"modelRef": 5}, {"modelRef": "m", "resources": {"memory": "x"}}])
def test_customize_is_never_a_reason_to_wait(service: Service, spec: Any) -> None:
    """The customize hook answers any spec, because deletion calls it too."""
    answer = service.post(CUSTOMIZE, {"controller": None, "parent": {**inference_service(), "spec": spec}})
    assert answer.status == 200
    assert isinstance(answer.json["relatedResources"], list)


def test_keeps_children_of_a_newer_release(service: Service) -> None:
    """Fields of a record that this release does not write are kept (HTTP-F11)."""
    record = {**DEPLOYMENT_RECORD, "spec": {**DEPLOYMENT_RECORD["spec"], "future": {"a": 1}}}
    answer = service.post(SYNC, sync(INVALID, children={OUTER: {"ns/s": observed(record)}}))
    assert answer.json["children"] == [record]


@pytest.mark.parametrize(
    "annotations",
    [
        None,
        {},
        {"metacontroller.k8s.io/last-applied-configuration": "no json"},
        {"metacontroller.k8s.io/last-applied-configuration": "[]"},
    ],
)
def test_a_child_without_a_record_is_only_named(service: Service, annotations: Any) -> None:
    """The child is sent with its name only, so nothing in it changes."""
    child = observed()
    child["metadata"]["annotations"] = annotations
    answer = service.post(SYNC, sync(INVALID, children={OUTER: {"ns/s": child}}))
    assert answer.json["children"] == [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "s", "namespace": "ns"}}
    ]


# Children that must never be sent.

UNSENDABLE: dict[str, list[Any]] = {
    "M22 null": [{**DEPLOYMENT_RECORD, "spec": {"a": None}}],
    "M22 null child": [None],
    "M22 NaN": [{**DEPLOYMENT_RECORD, "spec": {"a": float("nan")}}],
    "M22 twice the same": [DEPLOYMENT_RECORD, DEPLOYMENT_RECORD],
    "M22 over 4 MiB": [{**DEPLOYMENT_RECORD, "spec": {"a": "x" * 5_000_000}}],
    "other namespace": [{**DEPLOYMENT_RECORD, "metadata": {"name": "s", "namespace": "other"}}],
}


@pytest.mark.parametrize("children", UNSENDABLE.values(), ids=list(UNSENDABLE))
def test_does_not_send_an_invalid_answer(children: list[Any]) -> None:
    """An invalid answer is an internal error, after which Metacontroller changes nothing (HTTP-M22)."""
    with pytest.raises(ResponseError):
        response.encode(SyncResponse({}, children), "ns")


def test_the_clock_affects_only_timestamps() -> None:
    """The children are the same ten years earlier or later (HTTP-F13)."""
    from app.desk.cluster.kinds import find

    kind = find(API_VERSION, "InferenceService")
    assert kind is not None
    body = orjson.dumps(sync())
    moments = (NOW, NOW.replace(year=2020), NOW.replace(year=2040))
    answers = [orjson.loads(answer_sync(kind, body, Settings(), now)) for now in moments]
    assert answers[0]["children"] == answers[1]["children"] == answers[2]["children"]


def child_names(service: Service, path: str, parent: Json, groups: list[str]) -> set[tuple[str, str]]:
    """Return kind and name of every child that a parent without children gets."""
    answer = service.post(path, sync(parent, children={group: {} for group in groups}, related={}))
    assert answer.status == 200, answer
    return {(child["kind"], child["metadata"]["name"]) for child in answer.json["children"]}


COLLIDING = [("a.b", "a-b"), ("a" * 62 + "b", "a" * 63), ("a" * 63, "a" * 62), ("m-cache", "m")]


@pytest.mark.parametrize("names", COLLIDING, ids=lambda names: names[1][:8])
def test_parents_never_share_a_child_name(service: Service, names: tuple[str, str]) -> None:
    """Similar names, and names that must be shortened, do not collide (HTTP-M17)."""
    names_of_children = []
    for name in names:
        parent = model(metadata={"name": name, "namespace": "ns", "uid": name, "generation": 1})
        names_of_children.append(child_names(service, SYNC_MODEL, parent, ["Job.batch/v1", "PersistentVolumeClaim.v1"]))
    assert all(names_of_children)
    assert names_of_children[0].isdisjoint(names_of_children[1])


def test_sends_no_entity_tags(service: Service) -> None:
    """Metacontroller's cache of entity tags mixes up the answers to two parents (HTTP-M24)."""
    body = orjson.dumps(sync())
    plain = service.ask("POST", SYNC, body)
    assert "etag" not in plain.headers
    again = service.ask("POST", SYNC, body, {"Content-Type": "application/json", "If-None-Match": "*"})
    assert (again.status, again.json["children"]) == (200, plain.json["children"])
