"""Changes that were asked for and are not made: Metacontroller's record on the child tells."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from app.hooks.response import Prepared
from app.kube.objects import ObservedDeployment
from app.workload.absent import PATIENCE
from app.workload.pending import change_cause, is_pending

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


def observed(record: Json | str | None) -> ObservedDeployment:
    """A Deployment with that record, as Go writes it: sorted, and without ``<``, ``>`` and ``&``."""
    text = (
        record
        if isinstance(record, str) or record is None
        else json.dumps(record, sort_keys=True, separators=(",", ":"))
    )
    if text is not None:
        text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    annotations = {} if text is None else {"metacontroller.k8s.io/last-applied-configuration": text}
    body = {**child(), "metadata": {"name": "chat", "namespace": "ns1", "annotations": annotations}}
    return msgspec.json.decode(json.dumps(body), type=ObservedDeployment)


@pytest.mark.parametrize("prepared", [True, False])
@pytest.mark.parametrize("text", ["a", "<b> & 'c'", "\\u003c", 'x"template":{', "ü"])
def test_an_equal_template(text: str, prepared: bool) -> None:
    """However it is written, and asked as often as you like."""
    asked: list[Any] = [child(text)]
    children = Prepared(asked, "ns1") if prepared else asked
    for _ in range(2):
        assert not is_pending(observed(child(text)), children)
        assert is_pending(observed(child(text + "!")), children)


def test_only_the_pods_count() -> None:
    """The number of replicas may be an autoscaler's."""
    assert not is_pending(observed(child(replicas=3)), [child(replicas=1)])


@pytest.mark.parametrize("record", [None, "", "{", "null", "[]", '{"kind": "Job"}'])
def test_without_a_record_nothing_is_known(record: str | None) -> None:
    """A Deployment that was just taken over, or that somebody wrote on."""
    assert not is_pending(observed(record), [child()])


def test_a_record_in_another_form() -> None:
    """Blanks in it change nothing, and one that only names the child asked for no pods."""
    assert not is_pending(observed(json.dumps(child())), [child()])
    assert is_pending(observed(json.dumps(child("b"))), [child()])
    assert is_pending(observed('{"kind": "Deployment"}'), [child()])


def test_time_tells() -> None:
    """First it is under way; after a minute the API server must have refused it."""
    now = datetime(2026, 1, 1, 12, 1, 1, tzinfo=UTC)
    assert PATIENCE == 60
    assert change_cause("Deployment chat", None, now).reason == "RollingOut"
    assert change_cause("Deployment chat", "2026-01-01T12:00:30Z", now).reason == "RollingOut"
    refused = change_cause("Deployment chat", "2026-01-01T12:00:00Z", now)
    assert refused.reason == "ChangeRefused"
    assert refused.text.startswith("Deployment chat cannot be changed")
