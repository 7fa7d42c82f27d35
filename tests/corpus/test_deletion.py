"""The status of an object that somebody's finalizer keeps says so (docs/troubleshooting.md)."""

from __future__ import annotations

from typing import Any

import pytest

from app.families import KINDS
from app.hooks.kind import Kind
from tests.corpus.kinds import cluster_of_all
from tests.hookcalls import condition

KEPT: list[Kind[Any, Any]] = [kind for kind in KINDS if kind.resource.children]
DELETED = {"deletionTimestamp": "2030-01-01T00:00:00Z", "finalizers": ["example.com/backup", "example.com/quota"]}


@pytest.mark.parametrize("kind", KEPT, ids=lambda kind: kind.resource.kind)
def test_a_deleted_object_names_its_finalizers(kind: Kind[Any, Any]) -> None:
    cluster = cluster_of_all()
    document = next(document for other, document in cluster.parents() if other is kind)
    document["metadata"] |= DELETED
    answer = cluster.ask(kind, document)
    ready = condition(answer, "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "Terminating")
    assert "waits for its finalizers: example.com/backup, example.com/quota" in ready["message"]
    document["status"] = answer["status"]
    assert cluster.ask(kind, document)["status"] == answer["status"], "nothing changes while it waits"
