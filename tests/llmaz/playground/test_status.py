"""The status of a Playground: the seven rows of LZ-5.2, and Ready."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from app.kube.base import Json
from tests.llmaz.world import (
    LONG_AGO,
    NAMESPACE,
    NOW,
    PLAYGROUND,
    UID,
    child,
    condition,
    model,
    observed,
    playground,
    runtime,
    state,
    sync,
)

PENDING = ("Progressing", "True", "Pending")
IN_PROGRESS = ("Progressing", "True", "PlaygroundInProgress")
DONE = ("Progressing", "False", "PlaygroundReady")
ABORTED = ("Progressing", "False", "AbortProcessing")
AVAILABLE = ("Available", "True", "PlaygroundReady")
UNAVAILABLE = ("Available", "False", "PlaygroundNotReady")


def status(*conditions: tuple[str, str, str], **more: Any) -> Json:
    items = [
        {"type": t, "status": s, "reason": r, "message": "m", "lastTransitionTime": LONG_AGO} for t, s, r in conditions
    ]
    return {"conditions": items, "replicas": 1, "selector": "old=1", **more}


def of_service(available: bool, *more: tuple[str, str, str], **fields: Any) -> Json:
    """Return the status of a Service."""
    return status(("Available", str(available), "X"), *more, **{"replicas": 2, "selector": "a=b", **fields})


def seen(service_status: Json, **spec: Any) -> Json:
    """Return the Playground's Service as observed."""
    created = child(sync(PLAYGROUND, playground(**spec), model(), runtime()), "Service")
    return observed(created, status=service_status)


ROWS: dict[str, tuple[Json | None, bool, list[tuple[str, str, str]]]] = {
    "4 the first time": (None, False, [PENDING]),
    "4 and 5 in one pass": (None, True, [AVAILABLE]),
    "4 after an abort": (status(ABORTED), False, [PENDING]),
    "5 available": (status(PENDING), True, [DONE, AVAILABLE]),
    "6 never available yet": (status(PENDING), False, [PENDING]),
    "7 no longer available": (status(PENDING, AVAILABLE), False, [IN_PROGRESS, UNAVAILABLE]),
    "5 available again": (status(IN_PROGRESS, UNAVAILABLE), True, [DONE, AVAILABLE]),
    "5 only Available is there": (status(AVAILABLE), True, [AVAILABLE]),
}


@pytest.mark.parametrize(("before", "available", "want"), ROWS.values(), ids=ROWS.keys())
def test_rows(before: Json | None, available: bool, want: list[tuple[str, str, str]]) -> None:
    """The status has upstream's two conditions, and copies replicas and selector from the Service."""
    answer = sync(PLAYGROUND, playground(status=before), model(), runtime(), children=[seen(of_service(available))])
    got = [(c["type"], c["status"], c["reason"]) for c in answer["status"]["conditions"] if c["type"] != "Ready"]
    assert got == want
    assert (answer["status"]["replicas"], answer["status"]["selector"]) == (2, "a=b")


def test_transition_times_move_only_with_status() -> None:
    """Upstream's conditions have no observedGeneration."""
    answer = sync(
        PLAYGROUND,
        playground(status=status(PENDING, AVAILABLE)),
        model(),
        runtime(),
        children=[seen(of_service(False))],
    )
    assert condition(answer, "Progressing")["lastTransitionTime"] == LONG_AGO
    assert condition(answer, "Available")["lastTransitionTime"] == "2030-01-01T00:00:00Z"
    assert all("observedGeneration" not in c for c in answer["status"]["conditions"])


@pytest.mark.parametrize("gone", ["model", "engine"])
def test_rows_2_and_3_keep_everything(gone: str) -> None:
    """The child stays as last applied, and the status keeps replicas and selector."""
    before = status(PENDING, AVAILABLE)
    service = seen(of_service(True))
    related = [runtime()] if gone == "model" else [model()]
    answer = sync(PLAYGROUND, playground(status=before), *related, children=[service])
    assert child(answer, "Service")["spec"] == service["spec"]
    assert state(answer, "Available") == ("True", "PlaygroundReady")
    assert state(answer, "Progressing") == ("False", "AbortProcessing")
    assert (answer["status"]["replicas"], answer["status"]["selector"]) == (1, "old=1")


def foreign(**metadata: Any) -> Json:
    return {
        "apiVersion": "inference.llmaz.io/v1alpha1",
        "kind": "Service",
        "metadata": {"name": "chat", "namespace": NAMESPACE, **metadata},
        "spec": {},
    }


def test_reports_a_foreign_service() -> None:
    """No child is created while a Service of that name has no owner or another owner."""
    for metadata in ({}, {"ownerReferences": [{"kind": "X", "name": "x", "uid": "other", "controller": True}]}):
        answer = sync(PLAYGROUND, playground(), model(), runtime(), foreign(**metadata))
        assert answer["children"] == []
        assert state(answer, "Progressing") == ("False", "AbortProcessing")
        assert state(answer, "Ready") == ("False", "ServiceConflict")


def test_a_service_that_a_restore_left_is_handed_over_and_not_deleted() -> None:
    """It has no owner, and the label of the Playground that was there before."""
    answer = sync(PLAYGROUND, playground(), model(), runtime(), foreign(labels={"controller-uid": "before"}))
    assert answer["children"] == []
    message = next(c["message"] for c in answer["status"]["conditions"] if c["type"] == "Ready")
    labelled = f"kubectl label --overwrite --namespace {NAMESPACE} service.inference.llmaz.io/chat controller-uid={UID}"
    assert labelled in message
    assert "delete it" not in message


def test_an_own_service_that_lost_its_label() -> None:
    """The Service is requested again; after a minute Ready reports that it is not created."""
    owner = {"kind": "Playground", "name": "chat", "uid": UID, "controller": True}
    lost = foreign(ownerReferences=[owner])
    first = sync(PLAYGROUND, playground(), model(), runtime(), lost)
    assert child(first, "Service")
    assert state(first, "Ready") == ("False", "Creating")
    assert first["resyncAfterSeconds"] > 60
    later = NOW + timedelta(seconds=61)
    second = sync(PLAYGROUND, playground(status=first["status"]), model(), runtime(), lost, now=later)
    assert state(second, "Ready") == ("False", "CreateRefused")


@pytest.mark.parametrize(
    ("age", "reason", "message"),
    [
        (5, "Creating", "Service chat is being created"),
        (61, "ServiceNotReported", "Service chat has not reported its status since it was created"),
    ],
)
def test_a_service_without_a_status(age: int, reason: str, message: str) -> None:
    """Until a minute has passed, nothing changes in what was written when the Service was not there."""
    before = sync(PLAYGROUND, playground(), model(), runtime())["status"]
    service = seen({})
    service["metadata"]["creationTimestamp"] = f"{NOW - timedelta(seconds=age):%Y-%m-%dT%H:%M:%SZ}"
    answer = sync(PLAYGROUND, playground(status=before), model(), runtime(), children=[service])
    assert (condition(answer, "Ready")["reason"], condition(answer, "Ready")["message"]) == (reason, message)
    assert (condition(answer, "Ready") in before["conditions"]) is (reason == "Creating")


def test_ready_is_the_services_with_its_causes() -> None:
    """Reason and message of the Service's Ready are copied to the Playground."""
    told = of_service(False, ("Ready", "False", "ImagePullBackOff"))
    told["conditions"][-1]["message"] = "pod chat-1: cannot pull its image"
    answer = sync(PLAYGROUND, playground(), model(), runtime(), children=[seen(told)])
    assert state(answer, "Ready") == ("False", "ImagePullBackOff")
    assert condition(answer, "Ready")["message"] == "pod chat-1: cannot pull its image"


@pytest.mark.parametrize("reason", ["NameConflict", "ChangeRefused"])
def test_names_the_service_whose_events_have_the_reason(reason: str) -> None:
    """The Service's message refers to the events of "this object", of which the Playground has none."""
    service = seen(of_service(False, ("Ready", "False", reason)))
    answer = sync(PLAYGROUND, playground(), model(), runtime(), children=[service])
    ready = condition(answer, "Ready")
    assert (ready["reason"], ready["message"]) == (reason, "inference Service chat: m")


def test_ready_when_the_service_is() -> None:
    """Ready is True, with a reason specific to Playgrounds."""
    told = of_service(True, ("Ready", "True", "ServiceReady"))
    answer = sync(PLAYGROUND, playground(), model(), runtime(), children=[seen(told)])
    assert state(answer, "Ready") == ("True", "PlaygroundReady")


@pytest.mark.parametrize("service_ready", ["True", "False"])
def test_an_autoscaler_that_cannot_scale(service_ready: str) -> None:
    """Once the Service is ready, Ready reports the autoscaler's failure and what to install."""
    elastic = {
        "elasticConfig": {"minReplicas": 1, "maxReplicas": 3, "scaleTrigger": {"hpa": {"metrics": []}}},
    }
    told = of_service(service_ready == "True", ("Ready", service_ready, "ServiceNotReady"))
    autoscaler = child(sync(PLAYGROUND, playground(**elastic), model(), runtime()), "HorizontalPodAutoscaler")
    failing = status(("AbleToScale", "True", "R"), ("ScalingActive", "False", "FailedGetResourceMetric"))
    children = [seen(told, **elastic), observed(autoscaler, status=failing)]
    answer = sync(PLAYGROUND, playground(**elastic), model(), runtime(), children=children)
    failed = service_ready == "True"
    assert state(answer, "Ready") == ("False", "FailedGetResourceMetric" if failed else "ServiceNotReady")
    assert ("need metrics-server" in condition(answer, "Ready")["message"]) is failed


def test_ready_waits_for_a_changed_service() -> None:
    """Ready ignores a status of an older generation of the Service."""
    told = of_service(True, ("Ready", "True", "ServiceReady"), observedGeneration=0)
    answer = sync(PLAYGROUND, playground(), model(), runtime(), children=[seen(told)])
    assert state(answer, "Ready") == ("False", "ServiceNotReported")
    assert state(answer, "Available") == ("True", "PlaygroundReady")


def test_a_broken_rule_keeps_children() -> None:
    """A spec that admission would refuse does not change the children."""
    service = seen(of_service(True))
    answer = sync(PLAYGROUND, playground(status=status(PENDING), replicas=-1), model(), runtime(), children=[service])
    assert child(answer, "Service")["spec"] == service["spec"]
    assert state(answer, "Ready") == ("False", "InvalidSpec")
    assert state(answer, "Progressing") == ("False", "AbortProcessing")
    assert "spec.replicas" in condition(answer, "Ready")["message"]


def test_replicas_are_always_there() -> None:
    """The scale subresource and upstream's schema require the field, even if it is 0 (LZ-T27)."""
    assert sync(PLAYGROUND, playground(), model(), runtime())["status"]["replicas"] == 0
