"""Tests of the comparison of traces: which differences are accepted. No cluster is needed."""

from __future__ import annotations

import pytest

from app.kube.base import Json
from tests.e2e.traces.compare import RESTART, Memory, ReplayedStep, differences

REFUSED: Json = {"verb": "update", "resource": "services", "name": "ns/w", "code": 422}
OTHER: Json = {**REFUSED, "resource": "deployments"}
ACCEPTED: Json = {**REFUSED, "code": 200, "object": {}}


def step(*writes: Json) -> Json:
    return {"name": "a step", "do": [], "requests": [], "writes": list(writes), "events": [], "objects": []}


def seen(*writes: Json) -> ReplayedStep:
    return ReplayedStep([], list(writes), {}, {}, {}, died=False)


@pytest.mark.parametrize(
    ("former", "here", "count"),
    [
        ([REFUSED], [REFUSED, ACCEPTED], 0),
        ([OTHER], [REFUSED, ACCEPTED], 1),
        ([], [REFUSED, ACCEPTED], 1),
        ([REFUSED], [REFUSED], 1),
    ],
)
def test_a_refused_write_may_be_tried_again_in_the_next_step(former: list[Json], here: list[Json], count: int) -> None:
    """The number of retries depends on the back-off; any other refused write must have been recorded."""
    memory = Memory()
    memory.remember(step(*former), seen(*former))
    assert len(differences(step(ACCEPTED), seen(*here), memory)) == count


def test_a_recorded_refusal_has_to_come() -> None:
    memory = Memory()
    memory.remember(step(REFUSED), seen(REFUSED))
    assert len(differences(step(REFUSED), seen(), memory)) == 1


def call(at: float, phase: str | None, **more: Json) -> Json:
    parent = {"metadata": {"name": "w"}} | ({"status": {"phase": phase}} if phase else {})
    return {"hook": "sync", "at": at, "answered": 200, "request": {"parent": parent, "children": {}, **more}}


@pytest.mark.parametrize(
    ("here", "count"),
    [
        (call(-0.1, "Ready"), 0),
        (call(-0.1, "Ready", related={"Secret.v1": {}}), 1),
        (call(0.1, "Ready"), 1),
    ],
)
def test_a_call_of_the_previous_step_may_be_late(here: Json, count: int) -> None:
    """It came before this step began, and only the parent's status is newer in it."""
    memory = Memory()
    created = {**step(), "requests": [call(0, None)]}
    memory.remember(created, ReplayedStep(created["requests"], [], {}, {}, {}, died=False))
    assert len(differences(step(), ReplayedStep([here], [], {}, {}, {}, died=False), memory)) == count


@pytest.mark.parametrize("then", [[], [call(0.2, "Changed")]])
def test_the_last_call_of_the_previous_step_may_come_in_this_one(then: list[Json]) -> None:
    """That step was accepted without it, because its first call is the same but older."""
    memory = Memory()
    recorded = {**step(), "requests": [call(0, None), call(0, "Ready")]}
    memory.remember(recorded, ReplayedStep([call(0, None)], [], {}, {}, {}, died=False))
    here = ReplayedStep([call(0.1, "Ready"), *then], [], {}, {}, {}, died=False)
    assert differences({**step(), "requests": then}, here, memory) == []


def test_the_start_of_a_program_has_no_time() -> None:
    late = ReplayedStep([call(9, "Ready")], [], {}, {}, {}, died=False)
    for name, count in ((RESTART, 0), ("a timer", 1)):
        recorded = {**step(), "name": name, "requests": [call(0.5, "Ready")]}
        assert len(differences(recorded, late, Memory())) == count


@pytest.mark.parametrize(("deletes", "count"), [(True, 0), (False, 2)])
def test_a_deleted_parent_may_be_synced_once_more(deletes: bool, count: int) -> None:
    """Its children are collected before Metacontroller knows of its deletion, and it creates one again."""
    parent = {"kind": "Widget", "metadata": {"name": "w", "namespace": "ns", "uid": "old"}}
    child = {"metadata": {"ownerReferences": [{"uid": "old"}]}}
    late = {"hook": "sync", "at": 0.1, "answered": 200, "request": {"parent": parent, "children": {}}}
    created = {"verb": "create", "resource": "configmaps", "name": "ns/w-a", "code": 201, "object": child}
    memory = Memory(state={"Widget/ns/w": parent})
    recorded = {**step(), "do": [{"verb": "delete", "ref": "Widget/ns/w"}] if deletes else [], "gone": ["Widget/ns/w"]}
    assert len(differences(recorded, ReplayedStep([late], [created], {}, {}, {}, died=False), memory)) == count
