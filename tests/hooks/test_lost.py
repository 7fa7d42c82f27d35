"""Fields that were sent for a child and that the API server does not keep."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from app.desk.cluster import apply
from app.hooks.readystatus import KEEPS_NO_NOTE
from app.kube.base import Json
from app.limits import MAX_COMPARED_BYTES
from tests.hooks.test_template import answered, ready, synced
from tests.widgets import widget


def stored(sent: Callable[[Json], None], kept: Callable[[Json], None] = lambda _: None) -> Json:
    """Return the Deployment as it is in the cluster, where ``kept`` changed what was sent."""
    child = copy.deepcopy(answered(widget()))
    sent(child["spec"])
    live = copy.deepcopy(child)
    kept(live["spec"])
    live["metadata"] |= {"uid": "d", "generation": 1}
    return apply.with_record(live, child)


def pod(spec: Json) -> Json:
    spec_of_pod: Json = spec["template"]["spec"]
    return spec_of_pod


def said(child: Json) -> str:
    return ready(synced(widget(), child))


def test_names_a_field_with_the_release_that_has_it() -> None:
    child = stored(lambda spec: pod(spec).update(hostUsers=False), lambda spec: pod(spec).pop("hostUsers"))
    text = "spec.template.spec.hostUsers of Deployment w (Kubernetes 1.33 has it)"
    assert said(child) == f"{KEEPS_NO_NOTE} {text}"


def test_names_the_field_whose_map_goes_with_it() -> None:
    container = {"name": "main", "lifecycle": {"stopSignal": "SIGUSR1"}}
    child = stored(
        lambda spec: pod(spec).update(containers=[container]),
        lambda spec: pod(spec).update(containers=[{"name": "main"}]),
    )
    path = "spec.template.spec.containers[main].lifecycle.stopSignal"
    assert said(child) == f"{KEEPS_NO_NOTE} {path} of Deployment w (Kubernetes has it behind a feature gate)"


def test_is_no_change_and_leaves_ready_as_it_is() -> None:
    kept, lost = stored(lambda _: None), stored(lambda spec: pod(spec).update(x={"y": 1}), lambda s: pod(s).pop("x"))
    before, after = (synced(widget(), child) for child in (kept, lost))
    for answer in (before, after):
        answer["status"]["conditions"][0].pop("message", None)
    assert before == after


def test_the_note_goes_when_the_field_is_kept() -> None:
    lost = stored(lambda spec: pod(spec).update(x={"y": 1}), lambda spec: pod(spec).pop("x"))
    first = synced(widget(), lost)
    assert ready(first).count(KEEPS_NO_NOTE) == 1
    again = synced({**widget(), "status": first["status"]}, lost)
    assert again["status"] == first["status"]
    kept = stored(lambda spec: pod(spec).update(x={"y": 1}))
    assert ready(synced({**widget(), "status": first["status"]}, kept)) == ""


LISTS: dict[str, tuple[Any, Any, str]] = {
    "items by their key": (
        [{"name": "a", "x": 1}, {"name": "b", "x": 1}],
        [{"name": "c"}, {"name": "b"}, {"name": "a", "x": 1}],
        "spec.list[b].x",
    ),
    "an item by its key": ([{"name": "a", "x": 1}, {"name": "b"}], [{"name": "a", "x": 1}], "spec.list[b]"),
    "items by their position": ([{"x": 1, "y": 2}, {"x": 1}], [{"x": 1}, {"x": 1}], "spec.list[0].y"),
    "the key itself": ([{"name": "a", "x": 1}], [{"x": 1}], "spec.list[0].name"),
    "one of several that lack it": ([{"x": 1, "y": 1}, {"x": 2, "y": 1}], [{"x": 1}, {"x": 2}], "spec.list[0].y"),
    "an item without a counterpart": ([{"x": 1}, {"x": 1, "y": 1}], [{"x": 1}, {"z": 1}, {"z": 2}], "spec.list[1]"),
    "lists in lists": ([{"x": [{"y": {"z": 1}}]}], [{"x": [{"y": {"a": 1}}]}], "spec.list[0].x[0].y.z"),
}


@pytest.mark.parametrize("case", LISTS)
def test_finds_what_is_lost_in_a_list(case: str) -> None:
    sent, kept, path = LISTS[case]
    child = stored(lambda spec: spec.update(list=sent), lambda spec: spec.update(list=kept))
    assert said(child) == f"{KEEPS_NO_NOTE} {path} of Deployment w"


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ({"x": [], "y": {}, "z": "", "n": 0, "f": False}, {}),
        ({"memory": "1024Mi", "cpu": 1}, {"memory": "1Gi", "cpu": "1"}),
        ({"port": "http"}, {"port": "http", "protocol": "TCP"}),
        ({"list": [{"name": "a"}, {"name": "b"}]}, {"list": [{"name": "b"}, {"name": "side"}, {"name": "a"}]}),
        (
            {"list": [{"key": "a"}]},
            {"list": [{"key": "new", "x": 1}, {"key": "a", "x": 2}]},
        ),
        ({"list": ["a", "b"]}, {"list": ["b", "a"]}),
        ({"maxSurge": "25%"}, {"maxSurge": 1}),
        ({"list": [{"a": 1}]}, {"list": "text"}),
    ],
)
def test_what_is_written_otherwise_is_not_lost(sent: Json, kept: Json) -> None:
    child = stored(lambda spec: spec.update(x={**sent, "s": 1}), lambda spec: spec.update(x={**kept, "s": 1}))
    assert said(child) == ""


@pytest.mark.parametrize(("count", "more"), [(4, ""), (5, ""), (6, ", and 1 more"), (7, ", and 2 more")])
def test_of_many_fields_five_are_named(count: int, more: str) -> None:
    def sent(spec: Json) -> None:
        spec.update({f"field{number}": 1 for number in range(count)})

    def kept(spec: Json) -> None:
        for number in range(count):
            del spec[f"field{number}"]

    assert said(stored(sent, kept)).endswith(f"spec.field{min(count, 5) - 1} of Deployment w{more}")


def test_nothing_is_looked_for_in_what_is_far_larger_than_what_was_sent() -> None:
    """Somebody else put it there; to read it costs more CPU time than a sync may take."""
    lost = stored(lambda spec: pod(spec).update(x={"y": 1}), lambda s: pod(s).pop("x"))
    assert "x of Deployment w" in said(lost)
    pod(lost["spec"])["z"] = "z" * MAX_COMPARED_BYTES
    assert "x of Deployment w" not in said(lost)


def test_a_child_that_is_being_deleted_or_was_never_applied_loses_nothing() -> None:
    lost = stored(lambda spec: spec.update(x=1), lambda spec: spec.pop("x"))
    going = copy.deepcopy(lost)
    going["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    assert KEEPS_NO_NOTE not in said(going)
    lost["metadata"]["annotations"] = {}
    assert KEEPS_NO_NOTE not in said(lost)


def test_items_of_one_key_are_told_apart_by_their_place() -> None:
    """Several matches of a route may have one path, of which one has more than that."""
    several = [{"name": "a", "value": "1"}, {"name": "a"}]
    child = stored(lambda spec: pod(spec).update(x=several))
    assert KEEPS_NO_NOTE not in said(child)
