"""Pod templates that another operator wrote stay until the user changes something."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from app.cli import apply
from app.hooks.kind import answer_sync
from app.hooks.template import KEPT
from app.kube.names import LAST_APPLIED
from app.settings import Settings
from tests.widgets import NOW, WIDGET, widget

Json = dict[str, Any]


def answered(parent: Json, *children: Json) -> Json:
    """The Deployment of one sync's answer."""
    observed = {f"ns/{child['metadata']['name']}": child for child in children}
    body = {"parent": parent, "children": {"Deployment.apps/v1": observed}, "related": {}, "finalizing": False}
    answer: Json = orjson.loads(answer_sync(WIDGET, orjson.dumps(body), Settings(), NOW))
    (deployment,) = [child for child in answer["children"] if child["kind"] == "Deployment"]
    return dict(deployment)


def foreign(change: Callable[[Json], None] = lambda _: None, *, record: str | None = None) -> Json:
    """The Deployment as another operator made it: mostly without a record, its template differs from ours."""
    deployment = copy.deepcopy(answered(widget()))
    deployment["metadata"] |= {"uid": "d", "annotations": {} if record is None else {LAST_APPLIED: record}}
    deployment["spec"]["template"]["metadata"].setdefault("annotations", {})["other.io/hash"] = "1"
    deployment["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
    change(deployment["spec"]["template"])
    return deployment


def template(deployment: Json) -> Json:
    return dict(deployment["spec"]["template"])


def after(parent: Json, before: Json) -> Json:
    """The Deployment once Metacontroller has applied the answer."""
    return apply.updated(before, answered(parent, before))


def test_a_template_without_a_record_stays() -> None:
    taken = foreign()
    first = after(widget(), taken)
    assert template(first) == template(taken)
    second = after(widget(), first)
    assert second == first


def test_what_is_equal_needs_no_keeping() -> None:
    """Fields besides ours, such as the API server's defaults, are nobody's to take away."""

    def equal(pods: Json) -> None:
        pods["spec"] = {**template(answered(widget()))["spec"], "dnsPolicy": "ClusterFirst"}

    taken = foreign(equal)
    answer = answered(widget(), taken)
    assert "annotations" not in answer["metadata"]
    assert template(apply.updated(taken, answer)) == template(taken)


def test_a_change_by_the_user_ends_it() -> None:
    """With nothing of the other operator's left behind."""
    changed = widget(annotations={"image": "mine"})
    first = after(widget(), foreign())
    second = after(changed, first)
    assert template(second) == template(answered(changed))
    assert KEPT not in second["metadata"]["annotations"]
    assert after(changed, second) == second


def test_removing_the_annotation_ends_it() -> None:
    first = after(widget(), foreign())
    del first["metadata"]["annotations"][KEPT]
    assert template(after(widget(), first)) == template(answered(widget()))


@pytest.mark.parametrize(
    "status",
    [
        {"observedGeneration": 1},
        {"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]},
    ],
)
def test_a_change_that_the_other_operator_did_not_see_is_made(status: Json) -> None:
    parent = widget()
    parent["metadata"]["generation"] = 2
    assert template(answered({**parent, "status": status}, foreign()))["spec"]["containers"][0]["image"] != "other"
    status = orjson.loads(orjson.dumps(status).replace(b":1", b":2"))
    assert template(answered({**parent, "status": status}, foreign()))["spec"]["containers"][0]["image"] == "other"


@pytest.mark.parametrize("status", [{}, {"observedGeneration": None, "conditions": None}, {"conditions": "x"}])
def test_a_status_that_does_not_say_keeps(status: Json) -> None:
    assert KEPT in answered({**widget(), "status": status}, foreign())["metadata"]["annotations"]


def test_a_template_of_ours_is_set_right() -> None:
    """What is on record is ours: somebody's edit of it is undone."""
    ours = after(widget(), answered(widget()))
    ours["spec"]["template"]["spec"]["containers"][0]["image"] = "edited"
    assert template(answered(widget(), ours)) == template(answered(widget()))


@pytest.mark.parametrize("record", ["x", "[]", '{"kind":"Deployment","spec":[]}'])
def test_a_record_that_cannot_be_read_is_no_other_operators(record: str) -> None:
    assert template(answered(widget(), foreign(record=record))) == template(answered(widget()))


def test_a_child_that_was_only_named_so_far_is_still_the_other_operators() -> None:
    record = '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"w"}}'
    assert KEPT in answered(widget(), foreign(record=record))["metadata"]["annotations"]


def test_nulls_of_the_api_server_are_not_sent() -> None:
    def with_null(pods: Json) -> None:
        pods["metadata"]["creationTimestamp"] = None

    assert "creationTimestamp" not in template(answered(widget(), foreign(with_null)))["metadata"]


def test_a_template_that_the_merge_would_change_is_left_out() -> None:
    """Two variables of one name would become one. A change then claims one of them first, so that it can go."""

    def twice(pods: Json) -> None:
        first, second = {"name": "A", "value": "1"}, {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}
        pods["spec"]["containers"][0]["env"] = [first, second]

    taken = foreign(twice)
    assert "template" not in answered(widget(), taken)["spec"]
    first = after(widget(), taken)
    assert template(first) == template(taken)
    assert after(widget(), first) == first
    changed = widget(annotations={"image": "mine"})
    last = after(changed, after(changed, first))
    assert template(last)["spec"]["containers"][0]["image"] == "mine"
    assert template(last) == template(answered(changed))
