"""What was asked for and is not there, or not made: Metacontroller's record on the child tells, and then time."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from app.hooks.protocol import Parent, SyncRequest
from app.kube.base import Json
from app.kube.names import LAST_APPLIED
from app.kube.objects import ObservedDeployment, ObservedObject
from app.limits import CHILD_TIMEOUT_SECONDS
from app.workload.waiting import NOTHING, absent_causes, change_causes, outstanding
from tests.builders import NOW


def child(text: str = "a", replicas: int = 1) -> Json:
    pod = {"containers": [{"name": "main", "args": [text]}]}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "chat", "namespace": "ns1"},
        "spec": spec,
    }


class Children(msgspec.Struct, rename={"deployments": "Deployment.apps/v1", "roles": "Role.rbac"}):
    deployments: dict[str, ObservedDeployment] | None = None
    roles: dict[str, ObservedObject] | None = None


def observed(record: Json | str | None) -> SyncRequest[Children, Any]:
    """A Deployment with that record, as Go writes it: sorted, and without ``<``, ``>`` and ``&``."""
    text = (
        record
        if isinstance(record, str) or record is None
        else json.dumps(record, sort_keys=True, separators=(",", ":"))
    )
    if text is not None:
        text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    annotations = {} if text is None else {LAST_APPLIED: text}
    body = {**child(), "metadata": {"name": "chat", "namespace": "ns1", "annotations": annotations}}
    return request(Children(deployments={"chat": msgspec.json.decode(json.dumps(body), type=ObservedDeployment)}))


def request(children: Children) -> SyncRequest[Children, Any]:
    return SyncRequest(parent=Parent(), children=children)


@pytest.mark.parametrize("text", ["a", "<b> & 'c'", "\\u003c", 'x"template":{', "ü"])
def test_equal_pods(text: str) -> None:
    """However it is written."""
    assert outstanding([child(text)], observed(child(text))) is NOTHING
    assert outstanding([child(text)], observed(child(text + "!"))).pending == ["Deployment chat"]


def test_only_what_the_owner_writes_counts() -> None:
    """The number of replicas may be an autoscaler's, labels and annotations are also Metacontroller's."""
    record = child(replicas=3)
    record["metadata"]["labels"] = {"controller-uid": "u"}
    assert outstanding([child(replicas=1)], observed(record)) is NOTHING


def test_every_part_of_every_child_counts() -> None:
    """Not only pods: a strategy, or the rules of a Role, which has no spec."""
    paused = child()
    paused["spec"]["paused"] = True
    assert outstanding([paused], observed(child())).pending == ["Deployment chat"]
    role = {"apiVersion": "rbac", "kind": "Role", "metadata": {"name": "epp"}, "rules": [{"verbs": ["get"]}]}
    record = json.dumps({**role, "rules": []})
    there = {**role, "metadata": {"name": "epp", "annotations": {LAST_APPLIED: record}}}
    children = Children(roles={"epp": msgspec.json.decode(json.dumps(there), type=ObservedObject)})
    assert outstanding([role], request(children)).pending == ["Role epp"]


def test_a_child_that_goes_is_not_asked_to_change() -> None:
    """It is left out of the answer, which deletes it."""
    assert outstanding([], observed(child())) is NOTHING


@pytest.mark.parametrize("record", [None, "", "{", "null", "[]", '{"kind": "Job"}'])
def test_without_a_record_nothing_is_known(record: str | None) -> None:
    """A Deployment that was just taken over, or that somebody wrote on."""
    assert outstanding([child()], observed(record)) is NOTHING


def test_a_record_in_another_form() -> None:
    """Blanks in it change nothing, and one that only names the child asked for no pods."""
    assert outstanding([child()], observed(json.dumps(child()))) is NOTHING
    assert outstanding([child("b")], observed(json.dumps(child()))).pending == ["Deployment chat"]
    assert outstanding([child()], observed('{"kind": "Deployment"}')).pending == ["Deployment chat"]


def test_what_is_not_there() -> None:
    """Absent, whatever else of its kind or name is there."""
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "chat"}, "spec": {}}
    found = outstanding([child(), service], observed(child()))
    assert (found.absent, found.pending) == (["Service chat"], [])


def since(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_at_first_they_are_on_their_way() -> None:
    """In the answer that asks for them, and for a minute after."""
    for asked in (None, since(1), since(CHILD_TIMEOUT_SECONDS)):
        (cause,) = absent_causes(["Service chat"], asked, NOW)
        assert (cause.reason, cause.text) == ("Creating", "Service chat is being created")


def test_after_a_minute_both_reasons_are_named() -> None:
    """A foreign object of that name, or a refusal of the API server, whose words are in an event."""
    causes = absent_causes(["Service chat", "Deployment chat"], since(CHILD_TIMEOUT_SECONDS + 1), NOW)
    assert {cause.reason for cause in causes} == {"NameConflict"}
    assert causes[1].text.startswith("Deployment chat cannot be created: ")
    for part in ("another object has that name", "the API server rejects", "events"):
        assert part in causes[1].text


def test_a_change_that_is_not_made_was_refused_after_a_minute() -> None:
    """First it is under way; after a minute the API server must have refused it."""
    now = datetime(2026, 1, 1, 12, 1, 1, tzinfo=UTC)
    assert CHILD_TIMEOUT_SECONDS == 60
    for since in (None, "2026-01-01T12:00:30Z"):
        assert [cause.reason for cause in change_causes(["Deployment chat"], since, now)] == ["RollingOut"]
    refused = change_causes(["Deployment chat", "Service chat"], "2026-01-01T12:00:00Z", now)
    assert [cause.reason for cause in refused] == ["ChangeRefused", "ChangeRefused"]
    assert refused[1].text.startswith("Service chat cannot be changed")
