"""Keeping children: nothing is written, and an autoscaler's number is kept (MC-3.6, MC-8.3)."""

from typing import Any

import msgspec
import orjson
import pytest

from app.hooks.kept import desired_replicas, is_scaled_to_zero, is_true, keep, keep_child
from app.kube.names import LAST_APPLIED
from app.kube.objects import ObservedDeployment
from tests.widgets import Children


def deployment(
    record: dict[str, Any] | None, replicas: int | None = None, name: str = "d", **annotations: str
) -> dict[str, Any]:
    if record is not None:
        annotations[LAST_APPLIED] = orjson.dumps(record).decode()
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "ns", "resourceVersion": "7", "annotations": annotations},
        "spec": {} if replicas is None else {"replicas": replicas},
        "status": {"readyReplicas": 1},
    }


def observed(document: dict[str, Any]) -> ObservedDeployment:
    return msgspec.json.decode(orjson.dumps(document), type=ObservedDeployment)


RECORD: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d", "namespace": "ns"},
    "spec": {"replicas": 2},
}


def test_a_child_is_re_emitted_from_its_record() -> None:
    """If it were sent as observed, its resourceVersion would cause a write at every sync."""
    assert keep_child(observed(deployment(RECORD, 2))) == RECORD


def test_the_observed_replicas_win_over_the_record() -> None:
    """An old number would undo an autoscaler. The record itself does not change."""
    child = observed(deployment(RECORD, 6))
    assert keep_child(child)["spec"]["replicas"] == 6
    assert child.record == RECORD


def test_replicas_are_not_added_to_a_record_without_them() -> None:
    """The field then belongs to the autoscaler alone."""
    record = {**RECORD, "spec": {"a": 1}}
    assert keep_child(observed(deployment(record, 6))) == record


def test_ignores_a_null_in_a_record() -> None:
    """A null would crash Metacontroller."""
    record = {**RECORD, "spec": {"replicas": None, "paused": None}}
    assert keep_child(observed(deployment(record, 2))) == {**RECORD, "spec": {}}


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ('{"a" : null, "b": [null, 1.0], "c": "/dev/null"}', {"b": [None, 1], "c": "/dev/null"}),
        ('{"a": "x:null", "b": 2.50, "c": 3e2, "d": -1e25}', {"a": "x:null", "b": 2.5, "c": 300, "d": -1e25}),
    ],
)
def test_a_record_is_read_as_the_api_server_stores_it(written: str, read: dict[str, Any]) -> None:
    """Maps have no nulls, and whole numbers are integers."""
    text = f'{{"kind": "Deployment", "metadata": {{"name": "d"}}, "spec": {written}}}'
    record = observed(deployment(None, 2, **{LAST_APPLIED: text})).record
    assert record is not None
    assert record["spec"] == read
    assert [type(value) for value in record["spec"].values()] == [type(value) for value in read.values()]


@pytest.mark.parametrize("number", ["1e400", "12345678901234567890123"])
def test_a_record_with_a_number_that_is_too_large_names_the_child_only(number: str) -> None:
    text = f'{{"kind": "Deployment", "metadata": {{"name": "d"}}, "spec": {{"a": {number}}}}}'
    kept = keep_child(observed(deployment(None, 2, **{LAST_APPLIED: text})))
    assert kept.keys() == {"apiVersion", "kind", "metadata"}


@pytest.mark.parametrize("annotations", [{}, {LAST_APPLIED: "{"}, {LAST_APPLIED: "[]"}])
def test_a_child_without_a_record_is_named_only(annotations: dict[str, str]) -> None:
    """It was just taken over from another operator: it is kept by its name, without any field."""
    assert keep_child(observed(deployment(None, 2, **annotations))) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "ns"},
    }


def test_every_child_is_kept_in_a_fixed_order() -> None:
    """The order in the request does not matter."""
    group = {f"ns/{name}": observed(deployment({**RECORD, "metadata": {"name": name}}, name=name)) for name in "ba"}
    assert [c["metadata"]["name"] for c in keep(Children(deployments=group))] == ["a", "b"]


@pytest.mark.parametrize("record", [RECORD, {**RECORD, "spec": {"replicas": 2, "paused": True}}, None], ids=str)
def test_a_stopped_child_has_no_replicas_and_keeps_the_rest(record: dict[str, Any] | None) -> None:
    """Also one that was just taken over, of which nothing else is known."""
    (child,) = keep(Children(deployments={"ns/d": observed(deployment(record, 2))}), lambda _: True)
    assert child == {**RECORD, "spec": {**(record or {}).get("spec", {}), "replicas": 0}}


@pytest.mark.parametrize(
    ("wanted", "start", "child", "sent"),
    [
        (3, None, None, 3),
        (3, None, deployment(RECORD, 5), 3),
        (3, 2, None, 2),
        (3, 2, deployment({**RECORD, "spec": {}}, 5), 5),
        (3, 2, deployment(RECORD, 5), 5),
        (0, 2, None, 0),
        (0, 2, deployment(RECORD, 5), 0),
        (3, 2, deployment(RECORD, 0), 2),
        (3, 2, deployment(None, 5), 5),
    ],
)
def test_replicas_beside_an_autoscaler(
    wanted: int, start: int | None, child: dict[str, Any] | None, sent: int | None
) -> None:
    """One case per row of the table in MC-3.6."""
    assert desired_replicas(wanted, start, None if child is None else observed(child)) == sent


EDITED: dict[str, dict[str, Any]] = {
    "another name": {**RECORD, "metadata": {"name": "other", "namespace": "ns"}},
    "another namespace": {**RECORD, "metadata": {"name": "d", "namespace": "other"}},
    "another version": {**RECORD, "apiVersion": "apps/v2"},
    "a null": {**RECORD, "spec": {"replicas": 2, "paused": None}},
}


@pytest.mark.parametrize("record", EDITED.values(), ids=list(EDITED))
def test_an_edited_record_still_names_its_child(record: dict[str, Any]) -> None:
    """Anyone can edit the annotation; an answer never has another object's name, or a null."""
    assert keep_child(observed(deployment(record, 2))) == RECORD


def test_a_record_without_a_namespace_gets_none() -> None:
    """It was applied without one, so a namespace would be a change."""
    record = {**RECORD, "metadata": {"name": "d"}}
    assert keep_child(observed(deployment(record, 2))) == record


NAMED = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "ns"}}


@pytest.mark.parametrize(
    "metadata",
    [
        {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "1"}]},
        {"finalizers": ["example.com/never"]},
        {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0},
        {"uid": "u", "resourceVersion": "7", "generateName": "d", "managedFields": [{}], "generation": 3},
        {"labels": {"controller-uid": "other", "metacontroller.k8s.io/x": "y"}},
        {"annotations": {LAST_APPLIED: "{}", "metacontroller.k8s.io/decorator": "true"}},
    ],
)
def test_what_no_answer_has_does_not_come_from_a_record(metadata: dict[str, Any]) -> None:
    """Owners, finalizers and Metacontroller's keys would be written with Metacontroller's rights."""
    record = {**RECORD, "metadata": {**RECORD["metadata"], **metadata}, "status": {"readyReplicas": 9}}
    kept = keep_child(observed(deployment(record, 2)))
    assert {key for key, value in kept["metadata"].items() if value} == {"name", "namespace"}
    assert {**kept, "metadata": RECORD["metadata"]} == RECORD


def test_labels_and_annotations_of_a_record_stay() -> None:
    """They are ours, and would be removed if they were left out."""
    metadata = {**RECORD["metadata"], "labels": {"app": "d"}, "annotations": {"example.com/a": "b"}}
    record = {**RECORD, "metadata": {**metadata, "labels": {"app": "d", "controller-uid": "u"}}}
    assert keep_child(observed(deployment(record, 2)))["metadata"] == metadata


@pytest.mark.parametrize(
    "record",
    [
        [None],
        "text",
        5,
        {**RECORD, "kind": "Job"},
        {**RECORD, "metadata": [None]},
        {**RECORD, "metadata": {**RECORD["metadata"], "labels": {"a": 1}}},
        {**RECORD, "metadata": {**RECORD["metadata"], "annotations": ["a"]}},
        {**RECORD, "spec": [1]},
        {**RECORD, "spec": {"paused": [None]}},
        {**RECORD, "spec": {"replicas": 1e300}},
        {**RECORD, "spec": {"ports": [{"port": 1}, {"port": 1}]}},
    ],
)
def test_ignores_a_foreign_record(record: Any) -> None:
    """The child is sent by its name, without anything from the record."""
    assert keep_child(observed(deployment(record, 2))) == NAMED


@pytest.mark.parametrize("text", ['{"kind":' * 5000, '{"kind":"Deployment","spec":{"a":1e400}}', "[" * 300 + "]" * 300])
def test_ignores_an_unreadable_record(text: str) -> None:
    """It may be nested deeply, or have any numbers."""
    assert keep_child(observed(deployment(None, 2, **{LAST_APPLIED: text}))) == NAMED


@pytest.mark.parametrize(
    ("spec", "is_stopped"),
    [
        (b'{"replicas": 0}', True),
        (b'{"replicas": 0.0, "wrong": []}', True),
        (b'{"replicas": 1}', False),
        (b'{"replicas": false}', False),
        (b'{"replicas": "0"}', False),
        (b'{"replicas": null}', False),
        (b"{}", False),
        (b"[0]", False),
        (b'{"suspend": true}', False),
    ],
)
def test_only_a_number_of_nothing_scales_to_zero(spec: bytes, is_stopped: bool) -> None:
    assert is_scaled_to_zero(spec) is is_stopped
    assert is_scaled_to_zero(b'{"prefill": %b}' % spec, "prefill") is is_stopped
    assert is_true(spec, "suspend") is (b"suspend" in spec)
