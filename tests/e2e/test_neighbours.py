"""Each program that waits for resources agrees with `Ready`: for every kind, and for every recorded state."""

from __future__ import annotations

from collections import Counter

import pytest

from app.families import RESOURCES
from app.hooks.readystatus import LASTING, ready_of
from app.kube.base import Json
from tests.contract.recordings import RECORDINGS, replayed
from tests.contract.test_goldens import settings
from tests.contract.world import World
from tests.e2e import binaries, neighbour_releases, neighbours
from tools.child_types import ROOTS

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(binaries.missing() is not None, reason="needs Go")]

SAID = {
    "created": ("InProgress", "Progressing"),
    "waits": ("InProgress", "Progressing"),
    "ready": ("Current", "Healthy"),
    "changed": ("InProgress", "Progressing"),
    "broken": ("Failed", "Degraded"),
    "stopped": ("Current", "Suspended"),
    "deleted": ("Terminating", "Progressing"),
}
"""What kstatus and Argo CD's script say."""


def test_every_kind_in_every_state() -> None:
    cases = list(neighbours.in_every_state())
    said = neighbours.verdicts(item for _, _, item in cases)
    answers = {
        (kind, state): (answer["kstatus"], answer["health"])
        for (kind, state, _), answer in zip(cases, said, strict=True)
    }
    assert answers == {(kind, state): SAID[state] for kind, state, _ in cases}
    assert {answer.get("error") for answer in said} == {None}
    assert {kind for kind, _ in answers} == {resource.kind for resource in RESOURCES}
    assert {state for _, state in answers} == SAID.keys()


def test_the_page_has_the_answers() -> None:
    assert neighbours.TABLE.is_current(neighbours.table(), neighbours.seen()), "python -m tests.world.argocd"


def test_the_releases_of_every_kind_of_other_projects_are_tried() -> None:
    children = {child for resource in RESOURCES for child in resource.children if child.component}
    foreign = {
        child.plural
        for child in children
        if not {f"api/{child.api_version}", f"apis/{child.api_version}"} & ROOTS.keys()
    }
    assert foreign == neighbour_releases.RELEASES.keys()


@pytest.mark.parametrize("recording", RECORDINGS)
def test_every_recorded_state(recording: str) -> None:
    """What starts is waited for, what a person has to mend has failed, and what was stopped is as it should be."""
    objects = recorded(recording)
    seen: Counter[str] = Counter()
    for item, said in zip(objects, neighbours.verdicts(objects), strict=True):
        state = state_of(item)
        assert (said["kstatus"], said["health"], said.get("error")) == (*SAID[state], None), item
        seen[state] += 1
    assert min(seen["waits"], seen["ready"]) >= 5


def recorded(recording: str) -> list[Json]:
    """Return the resources of a recording with the status that they get."""
    return [parent for case in replayed(recording) if "objects" in case for parent in _parents(case)]


def _parents(case: Json) -> list[Json]:
    world = World(case, settings(case))
    world.run()
    return [item for _, item in world._parents() if "status" in item]


def state_of(item: Json) -> str:
    """Return the state of an object by its own words, not by the conditions that were made for these programs."""
    conditions = item["status"].get("conditions") or []
    ready = ready_of(conditions)
    reasons = {c["reason"] for c in conditions if c["type"] in ("PodsReady", "ChildrenCreated") and "reason" in c}
    if "deletionTimestamp" in item["metadata"]:
        return "deleted"
    if item["metadata"]["generation"] != item["status"].get("observedGeneration") or not ready:
        return "created"
    if ready["status"] == "True":
        return "stopped" if item["spec"].get("replicas") == 0 else "ready"
    if ready.get("reason") in ("Stopped", "Suspended", "ManuallyScaledToZero"):
        return "stopped"
    return "broken" if LASTING & {*reasons, ready.get("reason")} else "waits"
