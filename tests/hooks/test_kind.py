"""The generic part of hooks: malformed requests are refused, and invalid parents keep their children."""

from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from app.errors import ProtocolError
from app.hooks.answer import answer_customize, answer_sync, answer_sync_with_facts
from app.hooks.kept import keep
from app.limits import MAX_ANSWER_BYTES
from app.settings import Settings
from tests.hookcalls import NOW
from tests.hooks.test_kept import RECORD, deployment
from tests.widgets import NOW_TEXT, WIDGET, widget

SETTINGS = Settings()
ELSEWHERE = deployment(RECORD)
ELSEWHERE["metadata"] = {**ELSEWHERE["metadata"], "namespace": "other"}


def request(**over: Any) -> dict[str, Any]:
    return {
        "controller": {"spec": {}},
        "parent": widget(),
        "children": {"Deployment.apps/v1": {}},
        "related": {},
        "finalizing": False,
        **over,
    }


def sync(body: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = orjson.loads(answer_sync(WIDGET, orjson.dumps(body), SETTINGS, NOW))
    return answer


def test_a_valid_parent_gets_its_children() -> None:
    """The time in the status is the clock argument's."""
    answer = sync(request())
    assert [child["kind"] for child in answer["children"]] == ["Deployment"]
    assert answer["status"]["conditions"][0]["lastTransitionTime"] == NOW_TEXT


def test_an_answer_has_its_status_for_the_log() -> None:
    answer = answer_sync_with_facts(WIDGET, orjson.dumps(request()), SETTINGS, NOW)
    assert answer.status == orjson.loads(answer.body)["status"]


@pytest.mark.parametrize(("asked", "sent"), [(None, None), (30.0, 30.0)])
def test_an_answer_is_asked_again_after_the_seconds_at_most(asked: float | None, sent: float | None) -> None:
    answer = answer_sync_with_facts(WIDGET, orjson.dumps(request()), SETTINGS, NOW, asked)
    assert orjson.loads(answer.body).get("resyncAfterSeconds") == sent


@pytest.mark.parametrize(
    "spec", [{"size": "x"}, {"size": "small", "minimum": 5}, {}, [], "x", None, {"size": "small", "env": [{"name": 5}]}]
)
def test_an_invalid_parent_keeps_its_children(spec: Any) -> None:
    """The status is 200, every observed child is sent as last applied, and Ready is False with reason InvalidSpec."""
    parent = {**widget(), "spec": spec}
    answer = sync(request(parent=parent, children={"Deployment.apps/v1": {"ns/d": deployment(RECORD, 2)}}))
    assert answer["children"] == [RECORD]
    assert (answer["status"]["conditions"][0]["status"], answer["status"]["conditions"][0]["reason"]) == (
        "False",
        "InvalidSpec",
    )


def test_an_invalid_parent_says_how_many_replicas_are_ready() -> None:
    """Its pods go on, and nothing else of the status tells."""
    kind = replace(WIDGET, hooks=replace(WIDGET.hooks, counts=lambda _: ["1 of 2 replicas are ready"]))
    body = orjson.dumps(request(parent=widget({"size": "x"})))
    (ready, _) = orjson.loads(answer_sync(kind, body, SETTINGS, NOW))["status"]["conditions"]
    assert ready["message"].startswith("spec.size: ")
    assert ready["message"].endswith("; 1 of 2 replicas are ready")


@pytest.mark.parametrize(("stopped", "children"), [(False, [RECORD]), (True, [])])
def test_an_invalid_parent_that_is_stopped_keeps_none(stopped: bool, children: list[dict[str, Any]]) -> None:
    """This applies to kinds that can be stopped independently of the spec."""
    hooks = replace(WIDGET.hooks, invalid_children=lambda request: [] if stopped else keep(request.children))
    kind = replace(WIDGET, hooks=hooks)
    body = request(parent=widget({"size": "x"}), children={"Deployment.apps/v1": {"ns/d": deployment(RECORD, 2)}})
    answer = orjson.loads(answer_sync(kind, orjson.dumps(body), SETTINGS, NOW))
    assert answer["children"] == children


@pytest.mark.parametrize(
    "over",
    [
        {"parent": None},
        {"parent": []},
        {"parent": {**widget(), "kind": "Gadget"}},
        {"parent": {**widget(), "metadata": {"name": "w"}}},
        {"children": None},
        {"children": []},
        {"children": {"Deployment.apps/v1": {"d": deployment(RECORD)}}},
        {"children": {"Deployment.apps/v1": {"ns/d": None}}},
        {"children": {"Deployment.apps/v1": {"ns/d": {"apiVersion": "apps/v1", "kind": "Deployment"}}}},
        {"children": {"Deployment.apps/v1": {"other/d": ELSEWHERE}}},
        {"children": {"Deployment.apps/v1": {"ns/d": {**deployment(RECORD), "kind": "Service"}}}},
        {"children": {"Deployment.apps/v1": {"ns/d": {**deployment(RECORD), "apiVersion": ""}}}},
        {"children": {"Deployment.apps/v1": {"ns/d": {**deployment(RECORD), "apiVersion": "apps/v1beta1"}}}},
        {"finalizing": True},
        {"finalizing": "no"},
    ],
)
def test_malformed_requests_are_refused(over: dict[str, Any]) -> None:
    """They never get a 200 with fewer children."""
    with pytest.raises(ProtocolError):
        sync(request(**over))


@pytest.mark.parametrize("missing", ["parent", "children"])
def test_missing_keys_are_refused(missing: str) -> None:
    """A request without children does not mean that none exist."""
    body = request()
    del body[missing]
    with pytest.raises(ProtocolError):
        sync(body)


def test_every_truncation_is_refused() -> None:
    """A valid request is cut at each byte."""
    body = orjson.dumps(request(children={"Deployment.apps/v1": {"ns/d": deployment(RECORD, 2)}}))
    for end in range(len(body)):
        with pytest.raises(ProtocolError):
            answer_sync(WIDGET, body[:end], SETTINGS, NOW)


@pytest.mark.parametrize("missing", ["related", "controller", "finalizing"])
def test_optional_keys_may_be_missing(missing: str) -> None:
    """Without a customize hook there may be no related objects."""
    body = request()
    del body[missing]
    assert sync(body)["children"]


def test_unknown_child_kinds_and_garbage_status_are_ignored() -> None:
    """The status is written anew."""
    parent = {**widget(), "status": {"conditions": "garbage"}}
    answer = sync(request(parent=parent, children={"Deployment.apps/v1": {}, "Foo.example.dev/v1": {"ns/x": {}}}))
    assert answer["status"]["conditions"][0]["type"] == "Ready"


def test_the_answer_does_not_depend_on_the_order_of_children() -> None:
    """Byte for byte."""
    groups = [
        {f"ns/{n}": deployment({**RECORD, "metadata": {"name": n}}, 1, n) for n in order} for order in ("ab", "ba")
    ]
    bodies = [orjson.dumps(request(parent=widget({}), children={"Deployment.apps/v1": group})) for group in groups]
    assert len({answer_sync(WIDGET, body, SETTINGS, NOW) for body in bodies}) == 1


@pytest.mark.parametrize("spec", [{"size": "small"}, {"size": "x"}, None, []])
def test_customize_never_fails_for_a_users_mistake(spec: Any) -> None:
    """Deletion calls the hook too."""
    body = orjson.dumps({"controller": {}, "parent": {**widget(), "spec": spec}})
    assert "relatedResources" in orjson.loads(answer_customize(WIDGET, body, SETTINGS))


def test_an_answer_that_would_be_too_large_is_refused() -> None:
    """The kept children may be too many. The refusal is not an internal error, and on 413 Metacontroller keeps them."""
    records = [
        {**RECORD, "metadata": {"name": f"d{n}", "namespace": "ns"}, "spec": {"text": "x" * 100_000}}
        for n in range(MAX_ANSWER_BYTES // 100_000 + 1)
    ]
    children = {f"ns/d{n}": deployment(record, name=f"d{n}") for n, record in enumerate(records)}
    body = request(parent=widget(spec=5), children={"Deployment.apps/v1": children})
    with pytest.raises(ProtocolError, match="the children stay as they are") as refused:
        answer_sync(WIDGET, orjson.dumps(body), SETTINGS, NOW)
    assert refused.value.status == 413
