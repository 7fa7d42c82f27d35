"""Pod templates of another operator or an earlier release are kept until the user changes something."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from app.desk.cluster import apply
from app.hooks.answer import answer_sync
from app.hooks.keptfields import without_rights
from app.hooks.kind import Kind
from app.hooks.readystatus import noted
from app.hooks.template import INPUTS, KEPT, LATEST, ROLLOUT, TAKEN_OVER, WAITS, waiting_note
from app.kube.base import Json
from app.kube.conditions import MESSAGE_MAX
from app.kube.names import LAST_APPLIED
from app.settings import Settings
from tests.hookcalls import NOW
from tests.widgets import WIDGET, WidgetSpec, WidgetStatus, sync, widget

Widgets = Kind[WidgetSpec, WidgetStatus]
SETTINGS = Settings()


def synced(parent: Json, *children: Json, kind: Widgets = WIDGET, settings: Settings = SETTINGS) -> Json:
    """Return the answer of one sync."""
    observed = {f"ns/{child['metadata']['name']}": child for child in children}
    body = {"parent": parent, "children": {"Deployment.apps/v1": observed}, "related": {}, "finalizing": False}
    answer: Json = orjson.loads(answer_sync(kind, orjson.dumps(body), settings, NOW))
    return answer


def answered(parent: Json, *children: Json, kind: Widgets = WIDGET, settings: Settings = SETTINGS) -> Json:
    """Return the Deployment in the answer of one sync."""
    answer = synced(parent, *children, kind=kind, settings=settings)
    (deployment,) = [child for child in answer["children"] if child["kind"] == "Deployment"]
    return dict(deployment)


def foreign(change: Callable[[Json], None] = lambda _: None, *, record: str | None = None) -> Json:
    """Return the Deployment of another operator: by default without a record, and its template differs from ours."""
    deployment = copy.deepcopy(answered(widget()))
    deployment["metadata"] |= {"uid": "d", "annotations": {} if record is None else {LAST_APPLIED: record}}
    deployment["spec"]["template"]["metadata"].setdefault("annotations", {})["other.io/hash"] = "1"
    deployment["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
    change(deployment["spec"]["template"])
    return deployment


def template(deployment: Json) -> Json:
    return dict(deployment["spec"]["template"])


def after(parent: Json, before: Json, kind: Widgets = WIDGET, settings: Settings = SETTINGS) -> Json:
    """Return the Deployment after Metacontroller has applied the answer."""
    return apply.updated(before, answered(parent, before, kind=kind, settings=settings))


def settled(parent: Json, before: Json, kind: Widgets = WIDGET) -> Json:
    """Return the Deployment when answers do not change it any more."""
    for _ in range(4):
        answer = after(parent, before, kind)
        if answer == before:
            return answer
        before = answer
    raise AssertionError("answers do not settle")


def test_a_template_without_a_record_stays() -> None:
    taken = foreign()
    first = after(widget(), taken)
    assert template(first) == template(taken)
    second = after(widget(), first)
    assert second == first


def test_an_equal_template_is_not_kept() -> None:
    """Fields besides ours, such as the API server's defaults, are not removed."""

    def equal(pods: Json) -> None:
        pods["spec"] = {**template(answered(widget()))["spec"], "dnsPolicy": "ClusterFirst"}

    taken = foreign(equal)
    answer = answered(widget(), taken)
    assert KEPT not in answer["metadata"]["annotations"]
    assert template(apply.updated(taken, answer)) == template(taken)


def test_a_change_by_the_user_is_made() -> None:
    """Nothing of the other operator's template is left."""
    changed = widget(annotations={"image": "mine"})
    last = settled(changed, settled(widget(), foreign()))
    assert template(last) == template(answered(changed))
    assert not {KEPT, TAKEN_OVER} & last["metadata"]["annotations"].keys()


def test_a_kept_template_is_replaced_where_the_user_asks_for_it() -> None:
    first = after(widget(), foreign())
    assert template(settled(widget(annotations={ROLLOUT: LATEST}), first)) == template(answered(widget()))
    assert template(after(widget(annotations={ROLLOUT: "x"}), first)) == template(first)


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
    assert template(settled({**parent, "status": status}, foreign()))["spec"]["containers"][0]["image"] != "other"
    status = orjson.loads(orjson.dumps(status).replace(b":1", b":2"))
    assert template(answered({**parent, "status": status}, foreign()))["spec"]["containers"][0]["image"] == "other"


@pytest.mark.parametrize("status", [{}, {"observedGeneration": None, "conditions": None}, {"conditions": "x"}])
def test_a_status_without_the_condition_keeps_the_template(status: Json) -> None:
    assert KEPT in answered({**widget(), "status": status}, foreign())["metadata"]["annotations"]


def test_an_edit_of_our_template_is_reverted() -> None:
    """An edit of a recorded template is undone."""
    deployment = after(widget(), answered(widget()))
    deployment["spec"]["template"]["spec"]["containers"][0]["image"] = "edited"
    assert template(answered(widget(), deployment)) == template(answered(widget()))


@pytest.mark.parametrize("record", ["x", "[]", '{"kind":"Deployment","spec":[]}'])
def test_an_unreadable_record_is_not_another_operators(record: str) -> None:
    assert template(answered(widget(), foreign(record=record))) == template(answered(widget()))


def test_a_child_that_was_only_named_so_far_is_still_the_other_operators() -> None:
    record = '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"w"}}'
    assert KEPT in answered(widget(), foreign(record=record))["metadata"]["annotations"]


def test_nulls_of_the_api_server_are_not_sent() -> None:
    def with_null(pods: Json) -> None:
        pods["metadata"]["creationTimestamp"] = None

    assert "creationTimestamp" not in template(answered(widget(), foreign(with_null)))["metadata"]


def test_a_template_that_the_merge_would_change_is_left_out() -> None:
    """Two variables of one name would become one. A change takes ownership of one first, so that it can be removed."""

    def twice(pods: Json) -> None:
        first, second = {"name": "A", "value": "1"}, {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}
        pods["spec"]["containers"][0]["env"] = [first, second]

    taken = foreign(twice)
    assert "template" not in answered(widget(), taken)["spec"]
    first = after(widget(), taken)
    assert template(first) == template(taken)
    assert after(widget(), first) == first
    changed = widget(annotations={"image": "mine"})
    last = settled(changed, first)
    assert template(last)["spec"]["containers"][0]["image"] == "mine"
    assert template(last) == template(answered(changed))


# A release with other templates.


NEXT = replace(WIDGET, hooks=replace(WIDGET.hooks, sync=partial(sync, args=["--new-default"])))
"""With a template that differs in a field that the user does not set."""


def ready(answer: Json) -> str:
    message: str = answer["status"]["conditions"][0].get("message", "")
    return message


def test_a_release_restarts_nothing_and_says_what_waits() -> None:
    before = after(widget(), answered(widget()))
    upgraded = after(widget(), before, NEXT)
    assert template(upgraded) == template(before)
    assert after(widget(), upgraded, NEXT) == upgraded
    assert ready(synced(widget(), before, kind=NEXT)) == f"{WAITS} (Deployment w: spec.containers[main].args)"
    assert ready(synced(widget(), before)) == ""


@pytest.mark.parametrize("length", [0, 10, MESSAGE_MAX])
def test_bounds_the_message_about_pending_changes(length: int) -> None:
    status = {"conditions": [{"type": "Ready", "message": "x" * length}, {"type": "Other", "message": "y"}]}
    fields = [f"Deployment w: spec.x{number}" for number in range(7)]
    with_note = noted(status, [waiting_note(fields)])
    assert noted(with_note, [waiting_note(fields)]) == with_note
    message = with_note["conditions"][0]["message"]
    assert message.endswith(f"{WAITS} ({', '.join(fields[:5])}, and 2 more)")
    assert len(message) <= MESSAGE_MAX
    assert with_note["conditions"][1] == status["conditions"][1]


@pytest.mark.parametrize(("count", "end"), [(4, "spec.x3)"), (5, "spec.x4)"), (6, "spec.x4, and 1 more)")])
def test_five_fields_that_wait_are_named(count: int, end: str) -> None:
    assert waiting_note([f"spec.x{number}" for number in range(count)]).endswith(end)


def test_a_change_of_replicas_leaves_the_waiting_change_waiting() -> None:
    """Additional replicas have the same template as the others."""
    upgraded = after(widget(), after(widget(), answered(widget())), NEXT)
    scaled = after(widget({"size": "small", "replicas": 3}), upgraded, NEXT)
    assert (scaled["spec"]["replicas"], template(scaled)) == (3, template(upgraded))
    assert scaled["metadata"]["annotations"][INPUTS] != upgraded["metadata"]["annotations"][INPUTS]


def test_the_next_change_to_the_pods_makes_the_waiting_change() -> None:
    upgraded = after(widget(), after(widget(), answered(widget())), NEXT)
    changed = after(widget(annotations={"image": "mine"}), upgraded, NEXT)
    assert template(changed)["spec"]["containers"] == [{"name": "main", "image": "mine", "args": ["--new-default"]}]
    assert KEPT not in changed["metadata"]["annotations"]


def test_a_change_together_with_the_release_is_made() -> None:
    before = after(widget(), answered(widget()))
    changed = after(widget(annotations={"image": "mine"}), before, NEXT)
    assert template(changed)["spec"]["containers"][0]["image"] == "mine"


def test_going_back_to_the_release_before_restarts_nothing() -> None:
    before = after(widget(), answered(widget()))
    back = after(widget(), after(widget(), before, NEXT))
    assert back == before


@pytest.mark.parametrize(
    ("parent", "settings"),
    [(widget(annotations={ROLLOUT: LATEST}), SETTINGS), (widget(), Settings(keep_pod_templates=False))],
)
def test_it_rolls_out_at_once_where_that_is_asked_for(parent: Json, settings: Settings) -> None:
    before = after(widget(), answered(widget()))
    rolled = after(parent, before, NEXT, settings)
    assert template(rolled) == template(answered(widget(), kind=NEXT))
    assert ready(synced(parent, rolled, kind=NEXT, settings=settings)) == ""


def unnoted(deployment: Json) -> Json:
    """Return a Deployment of a release that wrote no digest of inputs."""
    child = copy.deepcopy(deployment)
    record = orjson.loads(child["metadata"]["annotations"][LAST_APPLIED])
    for version in (child, record):
        version["metadata"]["annotations"].pop(INPUTS)
    child["metadata"]["annotations"][LAST_APPLIED] = orjson.dumps(record).decode()
    return child


def test_what_a_release_wrote_that_noted_nothing_stays() -> None:
    before = unnoted(after(widget(), answered(widget())))
    upgraded = after(widget(), before, NEXT)
    assert template(upgraded) == template(before)
    assert INPUTS in upgraded["metadata"]["annotations"]
    assert ready(synced(widget(), before, kind=NEXT)) == f"{WAITS} (Deployment w: spec.containers[main].args)"
    changed = after(widget(annotations={"image": "mine"}), upgraded, NEXT)
    assert template(changed)["spec"]["containers"] == [{"name": "main", "image": "mine", "args": ["--new-default"]}]


def test_a_change_that_a_release_did_not_see_that_noted_nothing_is_made() -> None:
    before = unnoted(after(widget(), answered(widget())))
    parent = {**widget(generation=2), "status": {"conditions": [{"type": "Ready", "observedGeneration": 1}]}}
    assert template(after(parent, before, NEXT)) == template(answered(widget(), kind=NEXT))


def test_a_release_may_look_at_more_than_the_one_before() -> None:
    """Inputs that are empty do not change the digest."""
    empty: Json = {"accounts": {}, "claims": [], "tls": None}
    next_sync = partial(sync, args=["--new-default"], more_inputs=empty)
    more = replace(WIDGET, hooks=replace(WIDGET.hooks, sync=next_sync))
    before = after(widget(), answered(widget()))
    assert template(after(widget(), before, more)) == template(before)


def test_a_fix_that_must_not_wait_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """This includes a template that already waits, because the earlier release did not know of the fix."""
    before = after(widget(), answered(widget()))
    waiting = after(widget(), before, NEXT)
    monkeypatch.setattr("app.hooks.template.MUST_NOT_WAIT", ("MH-2030-01",))
    for deployment in (before, waiting):
        assert template(after(widget(), deployment, NEXT)) == template(answered(widget(), kind=NEXT))


def test_while_nothing_is_known_the_inputs_are_those_of_the_template() -> None:
    """A user's change to an invalid spec is applied once the spec is valid, and not kept as a release's."""
    before = after(widget(), answered(widget()))
    invalid = widget({"size": "tiny"}, annotations={"image": "mine"})
    kept = after(invalid, before)
    assert kept["metadata"]["annotations"] == before["metadata"]["annotations"]
    repaired = after(widget(annotations={"image": "mine"}), kept)
    assert template(repaired)["spec"]["containers"][0]["image"] == "mine"


def test_process_settings_are_not_template_inputs() -> None:
    def stamped(**chosen: Any) -> str:
        digest: str = answered(widget(), settings=Settings(**chosen))["metadata"]["annotations"][INPUTS]
        return digest

    assert stamped(port=1) == stamped(port=2) == stamped(llmaz_gateway_timeout="1s") == stamped()
    assert stamped(cluster_domain="a") != stamped(cluster_domain="b")


@pytest.mark.parametrize("running", [{"workerTemplate": "x"}, {"workerTemplate": {"spec": ["x"]}}, {}])
def test_a_template_that_others_wrote_in_another_form_has_no_rights(running: Json) -> None:
    """The schema of a workload may be open, so the API server stores any value."""
    planned: Json = {"workerTemplate": {"spec": {"containers": []}}}
    assert without_rights(planned, running) == planned
