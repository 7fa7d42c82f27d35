"""What a status may say of whatever is observed: properties, over the worlds of all families.

A machine plays the controllers, refusals of the API server, losses, other clients and the clock. Between any two of
its steps, each of these holds for each object that serves:

- ``Ready`` is true only while all children are there, and enough pods of what the answer asks for are ready.
- One observation has one answer: the answer to the status that it wrote is the same.
- Without a controller that acts, a few syncs reach what does not change any more.
- What is absent for one sync takes no child and no pod template away, and makes nothing ready.
- What is false has a reason and a message, and the time of a condition moves with its status alone.

``MODELHOOKS_STATUS_EXAMPLES`` and ``MODELHOOKS_STATUS_WORLDS`` are the numbers of runs and of worlds, for each family.
"""

from __future__ import annotations

import os
import re
from datetime import timedelta
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from app.desk.cluster.simulate import Cluster
from app.desk.cluster.store import Key, key_of
from app.hooks.kind import AnyKind
from app.kserve.constants import OPERATOR_CONFIG
from app.kserve.spec.find import preset_names
from app.kube.base import Json
from app.llmaz.names import CONFIG_MAP
from app.settings import Settings
from tests.statuses import happenings, worlds
from tests.statuses.worlds import CLOCK, FAMILIES, SERVING

pytestmark = pytest.mark.no_cover

EXAMPLES = int(os.environ.get("MODELHOOKS_STATUS_EXAMPLES", "700"))
WORKLOADS = ("Deployment", "LeaderWorkerSet")
REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
SETTINGS = {OPERATOR_CONFIG, CONFIG_MAP, *preset_names(Settings())}
"""Names of objects for which there are defaults: deleting one is a change of settings (docs/operations/settings.md)."""
ROUNDS = 3
"""Maximum number of syncs after which nothing changes by itself."""

Conditions = dict[str, Json]


def conditions(status: Json | None) -> Conditions:
    return {c["type"]: c for c in (status or {}).get("conditions") or ()}


def is_ready(status: Json | None) -> bool:
    return conditions(status).get("Ready", {}).get("status") == "True"


def template(child: Json) -> object:
    return child["spec"].get("template") or child["spec"].get("leaderWorkerTemplate")


class StatusMachine(RuleBasedStateMachine):
    """One cluster, to which something happens, and whose parents are asked for their status."""

    family = ""

    def __init__(self) -> None:
        super().__init__()
        self.cluster: Cluster | None = None

    @initialize(place=st.integers(0, 10_000))
    def start(self, place: int) -> None:
        numbers = worlds.chosen(self.family)
        self.cluster = worlds.at_rest(self.family, numbers[place % len(numbers)])

    # Steps.

    @precondition(lambda self: self.cluster is not None)
    @rule(seed=st.integers(0, 2**32 - 1), count=st.integers(1, 4))
    def something_happens(self, seed: int, count: int) -> None:
        """Change up to four objects that controllers, or other clients, write."""
        draw = Random(seed)
        children = [d for _, p in self.parents() for d in self.there.children(p) if d["kind"] not in SERVING]
        pods = [d for d in self.there.objects.values() if d["kind"] in ("Pod", "Gateway", "PersistentVolumeClaim")]
        for document in draw.sample(children, min(count, len(children))):
            self.there.put(draw.choice(self._fitting(document))(document, draw))
        for document in draw.sample(pods, min(count, len(pods))):
            self.there.put(happenings.with_status(document, draw))

    @precondition(lambda self: self.cluster is not None)
    @rule(seed=st.integers(0, 2**32 - 1))
    def a_workload_reports(self, seed: int) -> None:
        """Change the status of one workload, and nothing else that could keep ``Ready`` from being true."""
        draw = Random(seed)
        workloads = [d for _, p in self.parents() for d in self.there.children(p) if d["kind"] in WORKLOADS]
        if workloads:
            self.there.put(happenings.with_status(draw.choice(workloads), draw))

    @precondition(lambda self: self.cluster is not None)
    @rule(seed=st.integers(0, 2**32 - 1))
    def somebody_writes_a_parent(self, seed: int) -> None:
        draw = Random(seed)
        _, parent = draw.choice(self.parents())
        self.there.put(draw.choice(happenings.TO_PARENTS)(parent, draw))

    @precondition(lambda self: self.cluster is not None)
    @rule(seed=st.integers(0, 2**32 - 1))
    def something_is_lost(self, seed: int) -> None:
        draw = Random(seed)
        lost = draw.choice(sorted(self.there.objects, key=str))
        if lost not in {key_of(parent) for _, parent in self.there.parents()}:
            self.there.objects.pop(lost)

    @precondition(lambda self: self.cluster is not None)
    @rule(seconds=st.sampled_from((1, 30, 61, 600, 7200)))
    def time_passes(self, seconds: int) -> None:
        CLOCK.now += timedelta(seconds=seconds)

    @precondition(lambda self: self.cluster is not None)
    @rule()
    def controllers_act(self) -> None:
        self.there.play(self.there.objects.values())

    @precondition(lambda self: self.cluster is not None)
    @rule(refused=st.booleans())
    def metacontroller_syncs(self, refused: bool) -> None:
        """Write the status of each parent, and its children unless the API server refuses them."""
        for kind, parent in self.parents():
            if not refused:
                self.there.sync(kind, parent)
                continue
            status = self.ask(kind, parent)["status"]
            parent["status"] = {**status, "observedGeneration": parent["metadata"]["generation"]}

    # What holds after each step.

    @precondition(lambda self: self.cluster is not None)
    @rule(seed=st.integers(0, 2**32 - 1))
    def properties_hold(self, seed: int) -> None:
        draw = Random(seed)
        kind, parent = draw.choice(self.parents())
        request: Json = orjson.loads(self.there.request(kind, parent))
        answer = self.answer(kind, request)
        check_form(parent, answer)
        check_ready(request, answer)
        self._check_again(kind, request, answer)
        self._check_loss(kind, request, answer, draw)
        self._check_later(kind, request, answer)

    @precondition(lambda self: self.cluster is not None)
    @rule(seed=st.integers(0, 2**32 - 1))
    def it_comes_to_rest(self, seed: int) -> None:
        """Without a controller that acts."""
        kind, parent = Random(seed).choice(self.parents())
        there = self.there.copy()
        syncs = next((n for n in range(ROUNDS + 1) if not there.sync(kind, there.objects[key_of(parent)])), None)
        assert syncs is not None, f"{key_of(parent)} changes after {ROUNDS} syncs"

    def _check_again(self, kind: AnyKind, request: Json, answer: Json) -> None:
        again = self.answer(kind, _written(request, answer))
        assert again == answer

    def _check_loss(self, kind: AnyKind, request: Json, answer: Json, draw: Random) -> None:
        """Of one related object, for one sync."""
        places = [(group, name) for group, items in request["related"].items() for name in items]
        if not places:
            return
        group, name = draw.choice(places)
        less = {key: value for key, value in request["related"][group].items() if key != name}
        after = self.answer(kind, {**request, "related": {**request["related"], group: less}})
        observed, wanted, left = _observed(request), _children(answer), _children(after)
        assert not observed.keys() & wanted.keys() - left.keys(), f"lost without {group} {name}"
        for key in observed.keys() & wanted.keys():
            if key[0] in WORKLOADS and name.rpartition("/")[2] not in SETTINGS:
                may_stay = (template(wanted[key]), template(observed[key]), None)  # as asked for, or as it runs
                assert template(left[key]) in may_stay, f"another template without {group} {name}"
        assert is_ready(answer["status"]) or not is_ready(after["status"]), f"ready without {group} {name}"

    def _check_later(self, kind: AnyKind, request: Json, answer: Json) -> None:
        """Time alone makes nothing ready, and moves no time of a condition but with its status."""
        before = CLOCK.now
        CLOCK.now += timedelta(minutes=10)
        try:
            later = self.answer(kind, _written(request, answer))
        finally:
            CLOCK.now = before
        assert is_ready(answer["status"]) or not is_ready(later["status"])
        first, second = conditions(answer["status"]), conditions(later["status"])
        for type_ in first.keys() & second.keys():
            if first[type_]["status"] == second[type_]["status"]:
                assert first[type_]["lastTransitionTime"] == second[type_]["lastTransitionTime"]

    # Shorthands.

    @property
    def there(self) -> Cluster:
        assert self.cluster is not None
        return self.cluster

    def parents(self) -> list[tuple[AnyKind, Json]]:
        return [(kind, parent) for kind, parent in self.there.parents() if parent["kind"] in SERVING]

    def ask(self, kind: AnyKind, parent: Json) -> Json:
        return self.answer(kind, orjson.loads(self.there.request(kind, parent)))

    def answer(self, kind: AnyKind, request: Json) -> Json:
        answer: Json = orjson.loads(self.there.send(f"{kind.resource.hook_path}/sync", orjson.dumps(request)))
        return answer

    def _fitting(self, document: Json) -> tuple[happenings.Happening, ...]:
        if document["kind"] in WORKLOADS:
            return happenings.TO_CHILDREN
        return (happenings.with_status, happenings.with_status, happenings.deleted)


def _written(request: Json, answer: Json) -> Json:
    """Return the request after Metacontroller has written the status."""
    parent = request["parent"]
    status = {**answer["status"], "observedGeneration": parent["metadata"]["generation"]}
    return {**request, "parent": {**parent, "status": status}}


def _observed(request: Json) -> dict[Key, Json]:
    items = (child for group in request["children"].values() for child in group.values())
    return {(child["kind"], child["metadata"]["name"]): child for child in items}


def _children(answer: Json) -> dict[Key, Json]:
    return {(child["kind"], child["metadata"]["name"]): child for child in answer["children"]}


def check_form(parent: Json, answer: Json) -> None:
    """Each condition is one that the API server takes, with words for whatever is false, and times that only move."""
    previous = conditions(parent.get("status"))
    for type_, told in conditions(answer["status"]).items():
        assert told["status"] in ("True", "False", "Unknown")
        assert told["status"] != "False" or (told.get("reason") and told.get("message")), told
        assert not told.get("reason") or REASON.fullmatch(told["reason"]), told
        before = previous.get(type_)
        moved = before is not None and before.get("lastTransitionTime") not in (None, "", told["lastTransitionTime"])
        assert not moved or (before or {})["status"] != told["status"], (before, told)


def check_ready(request: Json, answer: Json) -> None:
    """A picker of KServe needs one available pod only (KS-6.4)."""
    if not is_ready(answer["status"]):
        return
    parent, observed = request["parent"], _observed(request)
    assert not parent["metadata"].get("deletionTimestamp")
    for key, wanted in _children(answer).items():
        there = observed.get(key)
        assert there is not None, f"{key} is not there"
        if key[0] == "PersistentVolumeClaim":
            continue
        assert not there["metadata"].get("deletionTimestamp"), f"{key} is being deleted"
        if key[0] in WORKLOADS and not key[1].endswith("-scheduler"):
            check_workload(key, wanted, there)


def check_workload(key: Key, wanted: Json, there: Json) -> None:
    status, present = there.get("status") or {}, there["spec"].get("replicas", 1)
    enough = wanted["spec"].get("replicas", present)
    ready, updated, every = (status.get(name, 0) for name in ("readyReplicas", "updatedReplicas", "replicas"))
    if not updated and key[0] == "LeaderWorkerSet":
        assert conditions(status)["Available"]["status"] == "True"  # older versions count no updated groups
        return
    assert ready >= enough, f"{key}: {ready} of {enough} are ready"
    assert updated >= enough, f"{key}: {updated} of {enough} are updated"
    assert every <= updated, f"{key}: earlier pods are there"
    if key[0] == "Deployment":
        assert status.get("availableReplicas", 0) >= enough, f"{key}: {status} for {enough}"


@pytest.mark.parametrize("family", FAMILIES)
def test_statuses_are_true(family: str) -> None:
    machine: Any = type(f"{family.title()}Machine", (StatusMachine,), {"family": family})
    many = settings(
        max_examples=EXAMPLES,
        stateful_step_count=8,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=many)
