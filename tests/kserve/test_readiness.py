"""Readiness of workloads, routes and pools (KS-4.7, KS-6.2 and KS-6.4)."""

from __future__ import annotations

import json
from typing import TypeVar

import msgspec
import pytest

from app.kserve.llminferenceservice.observed import ObservedPool, ObservedRoute
from app.kserve.results import CONDITION_TRUE, ConditionState, fails
from app.kserve.router.status import is_pool_ready, is_route_ready, scheduler_state
from app.kserve.workload.status import deployment_state, leader_worker_set_state
from app.kube.base import Json
from app.kube.objects import ObservedDeployment, ObservedLeaderWorkerSet
from app.kube.reading.stored import Decoder

GENERATION = 2
"""Generation of every object below."""

ObservedT = TypeVar("ObservedT", bound=msgspec.Struct)


def seen(type_: type[ObservedT], status: Json, spec: Json | None = None) -> ObservedT:
    metadata = {"name": "x", "namespace": "default", "generation": GENERATION}
    document = {"apiVersion": "v1", "kind": "X", "metadata": metadata, "spec": spec or {}, "status": status}
    decoder: Decoder[ObservedT] = Decoder(type_)
    return decoder.decode(json.dumps(document).encode())


def condition(type_: str, status: str, reason: str = "R", **more: int | str) -> Json:
    return {"type": type_, "status": status, "reason": reason, "message": "m", **more}


def deployment(*conditions: Json, **status: int) -> ObservedDeployment:
    return seen(ObservedDeployment, {"observedGeneration": GENERATION, "conditions": list(conditions), **status})


# Workloads.

ONE = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1)
UNREPORTED = fails(
    "Progressing", "Deployment x has no status yet; if this lasts, the controller of Deployments is not running"
)


@pytest.mark.parametrize(
    ("observed", "state"),
    [
        (None, fails("Progressing", "the Deployment does not exist yet")),
        (deployment(), UNREPORTED),
        (deployment(condition("Progressing", "True")), UNREPORTED),
        (deployment(condition("Progressing", "False", "ProgressDeadlineExceeded")), UNREPORTED),
        (deployment(condition("Available", "True"), **ONE), CONDITION_TRUE),
        (deployment(condition("Available", "False", "MinimumReplicasUnavailable")),
         fails("MinimumReplicasUnavailable", "m")),
        (deployment(condition("Available", "Unknown", "X")), fails("X", "m")),
        (deployment(condition("Available", "False", "", message="")),
         fails("NotReady", "its condition Available is not true")),
        (deployment(condition("Progressing", "False", "X"), condition("Available", "True"), **ONE), CONDITION_TRUE),
    ],
)  # fmt: skip
def test_a_deployment_is_ready_if_it_is_available(observed: ObservedDeployment | None, state: ConditionState) -> None:
    """Only ``Available`` counts; without it, the Deployment is progressing."""
    assert deployment_state(observed) == state


NUMBERS: Json = {"replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}


@pytest.mark.parametrize(
    ("numbers", "ok"),
    [
        ({}, True),
        ({"replicas": 3, "updatedReplicas": 1}, False),
        ({"updatedReplicas": 0}, False),
        ({"availableReplicas": 1}, False),
    ],
)
def test_available_pods_have_to_be_new(numbers: Json, ok: bool) -> None:
    """A Deployment stays available while an update fails, so updated replicas are compared as well."""
    status = {"observedGeneration": GENERATION, "conditions": [condition("Available", "True")], **NUMBERS, **numbers}
    state = deployment_state(seen(ObservedDeployment, status, {"replicas": 2}))
    assert (state.ok, state.reason) == (ok, "" if ok else "RollingOut")
    groups = {**status, "availableReplicas": None, "readyReplicas": numbers.get("availableReplicas", 2)}
    believed = not groups["updatedReplicas"]  # older versions do not report it; Available is false during a rollout
    state = leader_worker_set_state(seen(ObservedLeaderWorkerSet, groups, {"replicas": 2}))
    assert state.ok == (ok or believed)


def test_a_group_that_no_controller_has_seen() -> None:
    state = leader_worker_set_state(seen(ObservedLeaderWorkerSet, {}, {"replicas": 2}))
    assert state.reason == "Progressing"
    assert state.message.endswith("has no status; if this lasts, its controller is not running")


def test_an_endpoint_picker_of_an_earlier_template_does_not_count() -> None:
    """Standbys are never ready, but the available pod must have the current template."""
    available = condition("Available", "True")
    assert scheduler_state(deployment(available, replicas=3, updatedReplicas=3, availableReplicas=1)).ok
    state = scheduler_state(deployment(available, replicas=2, updatedReplicas=1, availableReplicas=1))
    assert (state.ok, state.reason) == (False, "RollingOut")


def test_a_status_about_an_earlier_generation_does_not_count() -> None:
    """Right after a change, ``Available`` is still about the old pods."""
    stale = deployment(condition("Available", "True"), observedGeneration=GENERATION - 1)
    state = deployment_state(stale)
    assert (state.ok, state.reason) == (False, "Progressing")


@pytest.mark.parametrize(
    ("observed", "ok", "reason"),
    [
        (None, False, "Progressing"),
        (deployment(), False, "Progressing"),
        (deployment(availableReplicas=1), True, ""),
        (deployment(condition("Available", "False", "X"), availableReplicas=1), True, ""),
        (deployment(condition("Progressing", "False", "ProgressDeadlineExceeded")), False, "ProgressDeadlineExceeded"),
        (deployment(condition("Progressing", "False", "Other")), False, "Progressing"),
        (deployment(condition("Available", "False", "X")), False, "X"),
        (deployment(condition("Available", "True")), False, "RollingOut"),
    ],
)
def test_a_picker_is_ready_with_one_available_pod(observed: ObservedDeployment | None, ok: bool, reason: str) -> None:
    """One available pod is enough: standbys that lost the election are never ready."""
    state = scheduler_state(observed)
    assert (state.ok, state.reason) == (ok, reason)


@pytest.mark.parametrize(
    ("conditions", "ok", "reason"),
    [
        ([], False, "Progressing"),
        ([condition("Progressing", "True")], False, "Progressing"),
        ([condition("Available", "True")], False, "RollingOut"),
        ([condition("Available", "False", "X")], False, "X"),
        ([condition("Available", "False", "AllGroupsReady"), condition("Progressing", "True", "Y")], False, "Y"),
    ],
)
def test_leader_worker_set(conditions: list[Json], ok: bool, reason: str) -> None:
    """Only ``Available`` counts. A false one has the reason of when it was true, so that of another is reported."""
    state = leader_worker_set_state(seen(ObservedLeaderWorkerSet, {"conditions": conditions}))
    assert (state.ok, state.reason) == (ok, reason)


# Routes.

GATEWAY: Json = {"name": "g", "namespace": "infra"}
FULL: Json = {"group": "gateway.networking.k8s.io", "kind": "Gateway", **GATEWAY}


def parent(reference: Json, accepted: str | None = "True", resolved: str | None = "True", of: int = GENERATION) -> Json:
    words = {"Accepted": accepted, "ResolvedRefs": resolved}
    conditions = [condition(type_, word, observedGeneration=of) for type_, word in words.items() if word is not None]
    return {"parentRef": reference, "conditions": conditions}


POLICY: Json = {"parentRef": FULL, "conditions": [condition("PolicyAttached", "False")]}

ROUTES: dict[str, tuple[list[Json], list[Json], bool]] = {
    "accepted": ([GATEWAY], [parent(FULL)], True),
    "nobody looked": ([GATEWAY], [], False),
    "no parents": ([], [], False),
    "not accepted": ([GATEWAY], [parent(FULL, accepted="False")], False),
    "not resolved": ([GATEWAY], [parent(FULL, resolved="False")], False),
    "resolution not said": ([GATEWAY], [parent(FULL, resolved=None)], False),
    "about an earlier generation": ([GATEWAY], [parent(FULL, of=GENERATION - 1)], False),
    "generation not said": ([GATEWAY], [parent(FULL, of=0)], True),
    "a policy controller beside the gateway": ([GATEWAY], [POLICY, parent(FULL)], True),
    "a policy controller alone": ([GATEWAY], [POLICY], False),
    "one of two": ([GATEWAY, {"name": "h"}], [parent(FULL)], False),
    "both": ([GATEWAY, {"name": "h"}], [parent(FULL), parent({"name": "h", "namespace": "default"})], True),
    "another listener": ([{**GATEWAY, "sectionName": "https"}], [parent(FULL)], False),
    "another port": ([{**GATEWAY, "port": 80}], [parent(FULL)], False),
    "a leftover that refuses": ([GATEWAY], [parent(FULL), parent({"name": "old"}, accepted="False")], False),
}


@pytest.mark.parametrize("case", ROUTES)
def test_a_route_is_ready_if_each_parent_has_accepted_it(case: str) -> None:
    """Every parent in the spec has accepted the current generation of the route and resolved its references."""
    references, parents, ready = ROUTES[case]
    assert is_route_ready(seen(ObservedRoute, {"parents": parents}, {"parentRefs": references})) is ready


@pytest.mark.parametrize(
    ("parents", "ready"),
    [
        ([], False),
        ([parent(FULL)], True),
        ([parent(FULL, resolved=None)], True),
        ([parent(FULL, resolved="False")], False),
        ([parent(FULL, accepted="False")], False),
        ([parent(FULL), parent({"name": "h"}, accepted="Unknown")], False),
        ([parent(FULL, of=GENERATION - 1)], False),
    ],
)
def test_a_pool_is_ready_if_each_gateway_has_accepted_it(parents: list[Json], ready: bool) -> None:
    """Every Gateway in the status has accepted the pool."""
    assert is_pool_ready(seen(ObservedPool, {"parents": parents})) is ready
