"""Cases that the replay of the recordings cannot compare: stricter rules, and upstream's children that are refused."""

from __future__ import annotations

import pytest

from app.desk.cluster.kinds import find
from app.hooks.sendable import clashes
from app.kube import field
from app.kube.base import Json
from tests.contract.recordings import cases
from tests.llmaz.world import admit, sync

STRICTER = [case for case in cases("llmaz") if "object" in case and case.get("designRejects")]


@pytest.mark.parametrize("case", STRICTER, ids=lambda case: f"{case['designRejects']} {case['name']}")
def test_what_upstream_accepts_and_cannot_work_is_refused(case: Json) -> None:
    """Upstream accepts these objects, although they cannot work."""
    item = case["object"]
    kind = find(item["apiVersion"], item["kind"])
    assert kind is not None
    assert admit(kind, item).errors


REFUSED = [case for case in cases("llmaz") if "ChildRejected" in str(case["expect"].get("error"))]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["name"])
def test_children_that_upstream_makes_twice_over(case: Json) -> None:
    """The API server refuses upstream's workload for a duplicate name in a list; ours has each name once."""
    world = {**case, **case.get("asDeployment", {})}
    (parent,) = [o for o in world["expect"]["children"] if o["apiVersion"].startswith("inference.llmaz.io")] or [
        o for o in world["objects"] if o["kind"] == "Service"
    ]
    kind = find(parent["apiVersion"], "Service")
    assert kind is not None
    parent["metadata"] |= {"uid": "u", "generation": 1}
    related = [o for o in world["objects"] if o["kind"] in ("OpenModel", "ConfigMap")]
    answer = sync(kind, parent, *related)
    assert len(answer["children"]) == 2
    for child in answer["children"]:
        assert list(clashes(child["spec"], field.Path("spec"))) == []
