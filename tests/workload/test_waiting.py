"""Children that were requested and do not exist, or did not change: detected by Metacontroller's record and by time."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from app.hooks.kept import with_kept_templates
from app.hooks.protocol import Applied, InterimTemplate, NoObjects, Parent, SyncRequest
from app.kube.base import Json
from app.kube.conditions import Condition, Conditions
from app.kube.names import LAST_APPLIED
from app.kube.objects import ObservedDeployment, ObservedMeta, ObservedObject, RelatedMeta
from app.limits import CHILD_TIMEOUT_SECONDS, MAX_COMMAND_CHARACTERS
from app.workload.readiness.cause import Stage
from app.workload.readiness.ready import ready_message
from app.workload.readiness.waiting import (
    NOTHING,
    Outstanding,
    absent_causes,
    change_causes,
    missing_causes,
    note_children,
    outstanding,
    waiting_causes,
)
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
    """Return a Deployment with that record, as Go writes it: sorted, with ``<``, ``>`` and ``&`` escaped."""
    text = (
        record
        if isinstance(record, str) or record is None
        else json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    )
    if text is not None:
        text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    annotations = {} if text is None else {LAST_APPLIED: text}
    body = {**child(), "metadata": {"name": "chat", "namespace": "ns1", "annotations": annotations}}
    return request(Children(deployments={"chat": msgspec.json.decode(json.dumps(body), type=ObservedDeployment)}))


def request(children: Children) -> SyncRequest[Children, Any]:
    return SyncRequest(Parent(), children, NoObjects())


@pytest.mark.parametrize("text", ["a", "<b> & 'c'", "\\u003c", 'x"template":{', "ü"])
def test_equal_pods(text: str) -> None:
    """Escaped characters do not differ from plain ones."""
    assert outstanding([child(text)], observed(child(text))) is NOTHING
    assert outstanding([child(text)], observed(child(text + "!"))).pending == ["Deployment chat"]


@pytest.mark.parametrize("text", ["a", "<b> & 'c'", "ü"])
def test_a_child_that_equals_its_record_is_applied(text: str) -> None:
    """Then it is neither outstanding nor compared again."""
    request = observed(child(text))
    (applied,) = with_kept_templates([child(text)], request)
    assert isinstance(applied, Applied)
    assert outstanding([applied], request) is NOTHING


@pytest.mark.parametrize(
    "record",
    [None, "", "{", "[]", "null", child("b"), child(replicas=2), {"kind": "Deployment"}, {**child(), "rules": []}],
    ids=["none", "empty", "half", "list", "null", "spec", "replicas", "no spec", "another field"],
)
def test_a_child_that_differs_from_its_record_is_not_applied(record: Json | str | None) -> None:
    (desired,) = with_kept_templates([child("a")], observed(record))
    assert not isinstance(desired, Applied)


@pytest.mark.parametrize(
    ("desired", "recorded"), [("<", "\\u003c"), ("\\<", "\\u003c"), ("\\u003c", "\\<"), ("\\u003c", "<")]
)
def test_a_backslash_is_no_escape(desired: str, recorded: str) -> None:
    """A record that spells an escape of Go in a string differs from the character."""
    (built,) = with_kept_templates(
        [child(desired)], observed(json.dumps(child(recorded), sort_keys=True, separators=(",", ":")))
    )
    assert not isinstance(built, Applied)


def test_only_what_the_owner_writes_counts() -> None:
    """The number of replicas in the record may be older; Metacontroller adds labels and annotations."""
    record = child(replicas=3)
    record["metadata"]["labels"] = {"controller-uid": "u"}
    assert outstanding([child(replicas=1)], observed(record)) is NOTHING


@pytest.mark.parametrize("recorded", [1, 3])
def test_the_number_of_replicas_counts(recorded: int) -> None:
    """The answer has another number than the cluster: it is not written yet, refused, or somebody scales the child."""
    request = observed(child(replicas=recorded))
    (desired,) = with_kept_templates([child(replicas=3)], request)
    assert outstanding([desired], request).pending == ["Deployment chat"]
    (same,) = with_kept_templates([child(replicas=1)], request)
    assert outstanding([same], request) is NOTHING


def test_a_child_that_is_being_deleted_is_outstanding() -> None:
    """It is made again once it is gone."""
    request = observed(child())
    request.children.deployments["chat"].metadata.deletion_timestamp = "2026-01-01T00:00:00Z"  # type: ignore[index]
    found = outstanding(with_kept_templates([child()], request), request)
    assert (found.going, found.pending) == (["Deployment chat"], [])
    (cause,) = waiting_causes(found, [], NOW)
    assert (cause.reason, cause.stage) == ("ChildTerminating", Stage.STARTING)


class Named(msgspec.Struct, rename={"deployments": "Deployment.apps/v1"}):
    deployments: dict[str, RelatedMeta] | None = None


@pytest.mark.parametrize(("uid", "reason"), [("other", "NameConflict"), ("u1", "CreateRefused")])
def test_a_name_is_taken_where_another_object_is_seen(uid: str, reason: str) -> None:
    """Only then is it known. An own object may just not be observed yet."""
    owner = {"uid": uid, "controller": True}
    meta = msgspec.convert({"metadata": {"name": "chat", "namespace": "ns1", "ownerReferences": [owner]}}, RelatedMeta)
    parent = msgspec.convert({"metadata": {"name": "chat", "namespace": "ns1", "uid": "u1"}}, Parent)
    found = outstanding([child()], SyncRequest(parent, Children(), Named({"ns1/chat": meta})))
    for waited, expected in ((1, "Creating"), (CHILD_TIMEOUT_SECONDS + 1, reason)):
        causes = waiting_causes(found, [Condition("ChildrenCreated", "False", "Creating", "", since(waited))], NOW)
        assert {cause.reason for cause in causes} == {expected}


def test_the_time_is_that_of_its_own_condition() -> None:
    """Whatever else keeps the service from being ready, and however often it is synced."""
    found, conditions = Outstanding(absent=["Service chat"]), Conditions([], None, NOW)
    for seconds, reason in ((0, "Creating"), (30, "Creating"), (61, "CreateRefused"), (62, "CreateRefused")):
        now = NOW + timedelta(seconds=seconds)
        conditions = Conditions(conditions.list(), None, now)
        causes = waiting_causes(found, conditions.list(), now)
        note_children(conditions, causes)
        assert [cause.reason for cause in causes] == [reason]
    note_children(conditions, ())
    assert conditions.list() == []


def test_every_part_of_every_child_counts() -> None:
    """Other fields of a Deployment count, and so do the rules of a Role, which has no spec."""
    paused = child()
    paused["spec"]["paused"] = True
    assert outstanding([paused], observed(child())).pending == ["Deployment chat"]
    role = {"apiVersion": "rbac", "kind": "Role", "metadata": {"name": "epp"}, "rules": [{"verbs": ["get"]}]}
    record = json.dumps({**role, "rules": []})
    there = {**role, "metadata": {"name": "epp", "annotations": {LAST_APPLIED: record}}}
    children = Children(roles={"epp": msgspec.json.decode(json.dumps(there), type=ObservedObject)})
    assert outstanding([role], request(children)).pending == ["Role epp"]


def test_another_change_follows_an_interim_template() -> None:
    """Its record is equal as soon as it was written."""
    assert outstanding([InterimTemplate(child())], observed(child())).pending == ["Deployment chat"]


def test_a_child_that_goes_is_not_asked_to_change() -> None:
    """A child that the answer leaves out is deleted."""
    assert outstanding([], observed(child())) is NOTHING


@pytest.mark.parametrize("record", [None, "", "{", "null", "[]", '{"kind": "Job"}'])
def test_without_a_record_nothing_is_known(record: str | None) -> None:
    """The Deployment was just taken over, or has an invalid annotation."""
    assert outstanding([child()], observed(record)) is NOTHING


def test_a_record_in_another_form() -> None:
    """Whitespace does not count; a record without a spec differs."""
    assert outstanding([child()], observed(json.dumps(child()))) is NOTHING
    assert outstanding([child("b")], observed(json.dumps(child()))).pending == ["Deployment chat"]
    assert outstanding([child()], observed('{"kind": "Deployment"}')).pending == ["Deployment chat"]


def test_what_is_not_there() -> None:
    """Only the missing child is absent, although another of the same name exists."""
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "chat"}, "spec": {}}
    found = outstanding([child(), service], observed(child()))
    assert (found.absent, found.pending) == (["Service chat"], [])


def since(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_at_first_they_are_on_their_way() -> None:
    """They are being created when requested, and for a minute after."""
    for asked in (None, since(1), since(CHILD_TIMEOUT_SECONDS)):
        (cause,) = absent_causes(["Service chat"], asked, NOW)
        assert (cause.reason, cause.text) == ("Creating", "Service chat is being created")


def test_after_a_minute_both_reasons_are_named() -> None:
    """The causes are another object of that name, and a refusal by the API server, which an event explains."""
    causes = absent_causes(["Service chat", "Deployment chat"], since(CHILD_TIMEOUT_SECONDS + 1), NOW)
    (cause,) = causes
    assert cause.reason == "CreateRefused"
    assert cause.text.startswith("Service chat, Deployment chat cannot be created: ")
    for part in ("another object has that name", "the API server rejects", "events"):
        assert part in cause.text


def test_the_command_for_many_children_fits_into_ready() -> None:
    """The next message has the others."""
    kinds = (
        "Service",
        "Deployment",
        "Role",
        "RoleBinding",
        "ServiceAccount",
        "InferencePool",
        "HTTPRoute",
        "ConfigMap",
    )
    children = [{"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "x" * 50}} for kind in kinds]
    parent = Parent(metadata=ObservedMeta(uid="new", namespace="ns"))
    found = outstanding(children, SyncRequest(parent, NoObjects(), NoObjects()))
    waiting = [Condition("ChildrenCreated", "False", "Creating", "", since(CHILD_TIMEOUT_SECONDS + 1))]
    message = ready_message(waiting_causes(found, waiting, NOW))
    command = message.rpartition("kubectl label")[2]
    assert command.count("example.com/x") >= 3
    assert command.endswith(" controller-uid=new")
    assert "…" not in command


def test_a_command_has_as_many_children_as_fit() -> None:
    parent = ObservedMeta(uid="new", namespace="ns")
    first, service = {"name": "x" * 200}, {"apiVersion": "v1", "kind": "Service"}
    command = "kubectl label --overwrite --namespace ns service/ service/ controller-uid=new"
    room = MAX_COMMAND_CHARACTERS - len(command) - 200
    for length, fits in ((room, True), (room + 1, False)):
        children = [{**service, "metadata": first}, {**service, "metadata": {"name": "y" * length}}]
        (_, cause) = missing_causes(children, parent, since(CHILD_TIMEOUT_SECONDS + 1), NOW)
        assert ("/y" in cause.text) == fits


def test_what_a_restore_left_is_handed_over_by_one_command() -> None:
    """Such objects have the label of an earlier parent and no owner, so Metacontroller does not take them over."""
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "chat"}, "spec": {}}
    parent = Parent(metadata=ObservedMeta(uid="new", namespace="ns"))
    request: SyncRequest[Any, Any] = SyncRequest(parent, NoObjects(), NoObjects())
    found = outstanding([child(), service], request)
    command = "kubectl label --overwrite --namespace ns deployment.apps/chat service/chat controller-uid=new"
    for seconds, said in ((CHILD_TIMEOUT_SECONDS, False), (CHILD_TIMEOUT_SECONDS + 1, True)):
        waiting = [Condition("ChildrenCreated", "False", "Creating", "", since(seconds))]
        causes = waiting_causes(found, waiting, NOW)
        assert any(command in cause.text and "an earlier parent" in cause.text for cause in causes) == said
        assert {cause.reason for cause in causes} == {"CreateRefused" if said else "Creating"}


def test_children_that_were_never_seen_are_handed_over_too() -> None:
    parent, service = ObservedMeta(uid="new", namespace="ns"), {"apiVersion": "v1", "kind": "Service"}
    children = [{**service, "metadata": {"name": "chat"}}]
    creating = missing_causes(children, parent, since(1), NOW)
    assert [cause.text for cause in creating] == ["Service chat is being created"]
    refused, left_over = missing_causes(children, parent, since(CHILD_TIMEOUT_SECONDS + 1), NOW)
    assert refused.text.startswith("Service chat cannot be created: ")
    assert left_over.text.endswith("kubectl label --overwrite --namespace ns service/chat controller-uid=new")
    assert missing_causes([], parent, since(CHILD_TIMEOUT_SECONDS + 1), NOW) == []


def test_a_change_that_is_not_made_was_refused_after_a_minute() -> None:
    """During the first minute the change is in progress."""
    now = datetime(2026, 1, 1, 12, 1, 1, tzinfo=UTC)
    assert CHILD_TIMEOUT_SECONDS == 60
    for since in (None, "2026-01-01T12:00:30Z"):
        assert [cause.reason for cause in change_causes(["Deployment chat"], since, now)] == ["RollingOut"]
    refused = change_causes(["Deployment chat", "Service chat"], "2026-01-01T12:00:00Z", now)
    assert [cause.reason for cause in refused] == ["ChangeRefused", "ChangeRefused"]
    assert refused[1].text.startswith("Service chat cannot be changed")
