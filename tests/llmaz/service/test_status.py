"""The status of a Service and its workload (LZ-5.3, 9)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from app.kube.base import Json
from tests.llmaz.world import LONG_AGO, NOW, SERVICE, child, condition, model, observed, service, state, sync

PROGRESSING = {
    "type": "Progressing",
    "status": "True",
    "reason": "ServiceInProgress",
    "message": "m",
    "lastTransitionTime": LONG_AGO,
}
AVAILABLE = {**PROGRESSING, "type": "Available", "reason": "ServiceReady"}


def running(wanted: int = 2, /, generation: int = 1, **status: Any) -> list[Json]:
    """Return the children of a service whose Deployment has this status."""
    children = sync(SERVICE, service(replicas=wanted), model())["children"]
    deployment, balancer = (observed(c) for c in children)
    deployment["metadata"]["generation"] = generation
    deployment["status"] = status
    return [deployment, balancer]


def counts(number: int, **more: int) -> dict[str, int]:
    """Return a Deployment's status in which all numbers are equal, except for ``more``."""
    return {
        "observedGeneration": 1,
        "replicas": number,
        "updatedReplicas": number,
        "readyReplicas": number,
        "availableReplicas": number,
        **more,
    }


CASES: dict[str, tuple[list[Json], bool]] = {
    "all pods are there, new and ready": (running(**counts(2)), True),
    "one is not ready": (running(**counts(2, readyReplicas=1, availableReplicas=1)), False),
    "one is old": (running(**counts(2, updatedReplicas=1)), False),
    "one too many": (running(**counts(2, replicas=3)), False),
    "the controller has not seen the change": (running(generation=2, **counts(2)), False),
    "nothing was reported": (running(), False),
    "stopped": (running(0, **counts(0)), True),
    "stopped, and not seen yet": (running(0), False),
}


@pytest.mark.parametrize(("children", "available"), CASES.values(), ids=CASES.keys())
def test_availability_follows_the_numbers(children: list[Json], available: bool) -> None:
    """Availability follows the numbers, because a Deployment's Available stays True during a rollout."""
    replicas = children[0]["spec"]["replicas"]
    answer = sync(SERVICE, service(replicas=replicas), model(), children=children)
    assert bool(condition(answer, "Available")) == available
    assert bool(condition(answer, "Progressing")) != available
    assert state(answer, "Ready")[0] == str(available)
    assert answer["status"]["selector"] == "llmaz.io/inference-service=chat"


def test_no_longer_available() -> None:
    """Both conditions are written; lastTransitionTime changes only with the status."""
    before = {"conditions": [PROGRESSING, AVAILABLE], "replicas": 2}
    answer = sync(
        SERVICE,
        service(replicas=2, status=before),
        model(),
        children=running(**counts(2, readyReplicas=1, availableReplicas=1)),
    )
    assert state(answer, "Progressing") == ("True", "ServiceInProgress")
    assert state(answer, "Available") == ("False", "ServiceNotReady")
    assert condition(answer, "Progressing")["lastTransitionTime"] == LONG_AGO
    assert condition(answer, "Available")["lastTransitionTime"] == "2030-01-01T00:00:00Z"


def test_what_was_true_and_is_true_keeps_its_time() -> None:
    """Also where Ready is lost, which is judged twice: llmaz leaves Progressing true when a service is available."""
    ready = {**PROGRESSING, "type": "Ready", "reason": "ServiceReady"}
    before = {"conditions": [PROGRESSING, AVAILABLE, ready], "replicas": 2}
    deployment, _ = running(generation=2, **counts(2))
    answer = sync(SERVICE, service(replicas=2, status=before), model(), children=[deployment])
    assert (state(answer, "Ready")[0], state(answer, "Progressing")[0]) == ("False", "True")
    assert condition(answer, "Progressing")["lastTransitionTime"] == LONG_AGO


def test_nothing_progresses_once_it_is_available() -> None:
    """Progressing becomes False, while upstream leaves it True."""
    before = {"conditions": [PROGRESSING], "replicas": 2}
    answer = sync(SERVICE, service(replicas=2, status=before), model(), children=running(**counts(2)))
    assert state(answer, "Progressing") == ("False", "ServiceReady")
    assert state(answer, "Available") == ("True", "ServiceReady")


def test_the_status_follows_the_groups() -> None:
    """The status follows a LeaderWorkerSet's Available condition and its numbers of groups."""
    item = service(workload={"size": 2})
    children = [observed(c) for c in sync(SERVICE, item, model())["children"]]
    assert state(sync(SERVICE, item, model(), children=children), "Ready") == ("False", "WaitingForController")
    for available in ("True", "False"):
        children[0]["status"] = {
            **dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas"), 1),
            "hpaPodSelector": "a=b",
            "conditions": [{"type": "Available", "status": available, "reason": "X"}],
        }
        answer = sync(SERVICE, item, model(), children=children)
        assert state(answer, "Ready")[0] == available
        assert (answer["status"]["replicas"], answer["status"]["selector"]) == (1, "a=b")


def test_ready_says_why_not() -> None:
    """Ready reports the cause that a pod shows, here that it cannot be scheduled."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "chat-1", "namespace": "team"},
        "status": {
            "phase": "Pending",
            "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "Insufficient gpu"}
            ],
        },
    }
    answer = sync(
        SERVICE, service(replicas=2), model(), pod, children=running(**counts(2, readyReplicas=1, availableReplicas=1))
    )
    assert state(answer, "Ready") == ("False", "Unschedulable")
    assert "Insufficient gpu" in condition(answer, "Ready")["message"]


def test_children_that_do_not_come() -> None:
    """Ready names missing children at once, and that they are refused after a minute; the hook asks for a resync."""
    first = sync(SERVICE, service(), model())
    assert state(first, "Ready") == ("False", "Creating")
    assert "Deployment chat" in condition(first, "Ready")["message"]
    assert "Service chat-lb" in condition(first, "Ready")["message"]
    assert first["resyncAfterSeconds"] > 60
    second = sync(SERVICE, service(status=first["status"]), model(), now=NOW + timedelta(seconds=61))
    assert state(second, "Ready") == ("False", "CreateRefused")
    settled = sync(SERVICE, service(replicas=2), model(), children=running(**counts(2)))
    assert "resyncAfterSeconds" not in settled


def test_a_broken_rule_keeps_children() -> None:
    """A spec that admission would refuse does not change the children."""
    children = running(**counts(2))
    answer = sync(SERVICE, service(replicas=-1), model(), children=children)
    assert child(answer, "Deployment")["spec"] == children[0]["spec"]
    assert state(answer, "Ready") == ("False", "InvalidSpec")
    assert state(answer, "Progressing") == ("False", "AbortProcessing")


def broken(revision: str, label: str, created: str) -> Json:
    """Return a pod of this revision whose image cannot be pulled."""
    state = {"waiting": {"reason": "ImagePullBackOff", "message": "no such tag"}}
    metadata = {"name": f"chat-{revision}", "namespace": "team", "labels": {label: revision}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "creationTimestamp": created},
        "status": {"phase": "Pending", "containerStatuses": [{"name": "model-runner", "state": state}]},
    }


UPDATES: dict[str, tuple[Json, Json, str]] = {
    "a Deployment": ({}, {}, "pod-template-hash"),
    "a LeaderWorkerSet": (
        {"workload": {"size": 2}},
        {"conditions": [{"type": "Available", "status": "True", "reason": "X"}]},
        "leaderworkerset.sigs.k8s.io/template-revision-hash",
    ),
}


@pytest.mark.parametrize(("given", "status", "label"), UPDATES.values(), ids=UPDATES)
def test_a_broken_update_is_not_ready(given: Json, status: Json, label: str) -> None:
    """While old replicas serve, Ready reports why the new ones cannot start."""
    item = service(replicas=2, **given)
    workload, *rest = (observed(c) for c in sync(SERVICE, item, model())["children"])
    workload["status"] = {**counts(2, replicas=2, updatedReplicas=1, readyReplicas=1, availableReplicas=1), **status}
    pods = [broken("old", label, "2029-12-01T00:00:00Z"), broken("new", label, "2029-12-31T00:00:00Z")]
    answer = sync(SERVICE, item, model(), *pods, children=[workload, *rest])
    assert state(answer, "Ready") == ("False", "RollingOut")
    assert condition(answer, "Ready")["message"].startswith(
        "pod chat-new: container model-runner cannot pull its image"
    )
    assert "chat-old" not in condition(answer, "Ready")["message"]
    what = "groups" if given else "replicas"
    assert condition(answer, "Ready")["message"].endswith(
        "chat is rolling out: 1 of 2 replicas are updated, 1 of 2 are ready, 1 of an earlier revision still there; "
        f"1 of 2 {what} are ready"
    )
