"""Changes that were asked for and are not made: Metacontroller's record on the child tells."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from app.hooks.response import Prepared
from app.kube.labels import LAST_APPLIED
from app.kube.objects import ObservedDeployment, ObservedObject
from app.workload.absent import PATIENCE
from app.workload.pending import change_causes, pending_children

Json = dict[str, Any]


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


def observed(record: Json | str | None) -> Children:
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
    return Children(deployments={"chat": msgspec.json.decode(json.dumps(body), type=ObservedDeployment)})


@pytest.mark.parametrize("prepared", [True, False])
@pytest.mark.parametrize("text", ["a", "<b> & 'c'", "\\u003c", 'x"template":{', "ü"])
def test_equal_pods(text: str, prepared: bool) -> None:
    """However it is written, and asked as often as you like."""
    asked: list[Any] = [child(text)]
    children = Prepared(asked, "ns1") if prepared else asked
    for _ in range(2):
        assert pending_children(children, observed(child(text))) == []
        assert pending_children(children, observed(child(text + "!"))) == ["Deployment chat"]


def test_only_what_the_owner_writes_counts() -> None:
    """The number of replicas may be an autoscaler's, labels and annotations are also Metacontroller's."""
    record = child(replicas=3)
    record["metadata"]["labels"] = {"controller-uid": "u"}
    assert pending_children([child(replicas=1)], observed(record)) == []


def test_every_part_of_every_child_counts() -> None:
    """Not only pods: a strategy, or the rules of a Role, which has no spec."""
    paused = child()
    paused["spec"]["paused"] = True
    assert pending_children([paused], observed(child())) == ["Deployment chat"]
    role = {"apiVersion": "rbac", "kind": "Role", "metadata": {"name": "epp"}, "rules": [{"verbs": ["get"]}]}
    record = json.dumps({**role, "rules": []})
    there = {**role, "metadata": {"name": "epp", "annotations": {LAST_APPLIED: record}}}
    children = Children(roles={"epp": msgspec.json.decode(json.dumps(there), type=ObservedObject)})
    assert pending_children([role], children) == ["Role epp"]


def test_a_child_that_goes_is_not_asked_to_change() -> None:
    """It is left out of the answer, which deletes it."""
    assert pending_children([], observed(child())) == []


@pytest.mark.parametrize("record", [None, "", "{", "null", "[]", '{"kind": "Job"}'])
def test_without_a_record_nothing_is_known(record: str | None) -> None:
    """A Deployment that was just taken over, or that somebody wrote on."""
    assert pending_children([child()], observed(record)) == []


def test_a_record_in_another_form() -> None:
    """Blanks in it change nothing, and one that only names the child asked for no pods."""
    assert pending_children([child()], observed(json.dumps(child()))) == []
    assert pending_children([child("b")], observed(json.dumps(child()))) == ["Deployment chat"]
    assert pending_children([child()], observed('{"kind": "Deployment"}')) == ["Deployment chat"]


def test_time_tells() -> None:
    """First it is under way; after a minute the API server must have refused it."""
    now = datetime(2026, 1, 1, 12, 1, 1, tzinfo=UTC)
    assert PATIENCE == 60
    for since in (None, "2026-01-01T12:00:30Z"):
        assert [cause.reason for cause in change_causes(["Deployment chat"], since, now)] == ["RollingOut"]
    refused = change_causes(["Deployment chat", "Service chat"], "2026-01-01T12:00:00Z", now)
    assert [cause.reason for cause in refused] == ["ChangeRefused", "ChangeRefused"]
    assert refused[1].text.startswith("Service chat cannot be changed")
