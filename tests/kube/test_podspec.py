"""Pod specs in the form in which the API server would store them: what differs from it looks like a change for ever."""

from __future__ import annotations

from typing import Any

import pytest

from app.kube.base import Json
from app.kube.podspec import normalised


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({"hostNetwork": False, "stdin": True}, {"stdin": True}),
        ({"initialDelaySeconds": 0, "periodSeconds": 5.0}, {"periodSeconds": 5}),
        ({"env": [{"name": "A", "value": ""}]}, {"env": [{"name": "A"}]}),
        ({"args": [], "command": ["x", ""]}, {"command": ["x", ""]}),
        ({"resources": {"limits": {"cpu": "1000m"}, "requests": {}}}, {"resources": {"limits": {"cpu": "1"}}}),
        ({"emptyDir": {}}, {"emptyDir": {}}),
        ({"storageClassName": ""}, {"storageClassName": ""}),
        ({"grpc": {"port": 9000, "service": ""}}, {"grpc": {"port": 9000, "service": ""}}),
        (
            {"resourceFieldRef": {"resource": "limits.cpu"}},
            {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}},
        ),
        ({"resourceFieldRef": {"divisor": "1000m"}}, {"resourceFieldRef": {"divisor": "1"}}),
    ],
)
def test_zero_values(given: Json, stored: Json) -> None:
    """What Go leaves out is left out, what has a meaning of its own stays, quantities are canonical."""
    assert normalised(given) == stored


@pytest.mark.parametrize("name", ["httpHeaders", "sysctls"])
def test_values_that_are_required_stay(name: str) -> None:
    """A header's value may be empty and may not be missing, as LeaderWorkerSet's schema has it."""
    items = [{"name": "A", "value": ""}, {"name": "B", "value": "b"}]
    assert normalised({name: items}) == {name: items}


def test_selectors_that_name_nothing() -> None:
    """An empty selector selects everything; the map in it is not stored."""
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {}}}
    assert normalised({"terms": [term]}) == {"terms": [{"topologyKey": "zone", "labelSelector": {}}]}


def test_sources_of_projected_volumes_are_complete() -> None:
    """Their list is replaced as a whole, so what the API server adds to an item would be taken away at every sync."""
    field = {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}
    cpu = {"path": "cpu", "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu"}}
    sources = [
        {"serviceAccountToken": {"path": "token"}},
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 600}},
        {"downwardAPI": {"items": [field, cpu]}},
        {"secret": {"name": "s"}},
    ]
    stored = normalised({"projected": {"sources": sources}})["projected"]["sources"]
    assert [source.get("serviceAccountToken", {}).get("expirationSeconds") for source in stored[:2]] == [3600, 600]
    assert stored[2]["downwardAPI"]["items"][0]["fieldRef"] == {"apiVersion": "v1", "fieldPath": "metadata.name"}
    assert stored[2]["downwardAPI"]["items"][1]["resourceFieldRef"]["divisor"] == "0"
    assert stored[3] == {"secret": {"name": "s"}}


@pytest.mark.parametrize(
    "sources", [["x"], [{"downwardAPI": "x"}], [{"downwardAPI": {"items": "x"}}], [{"serviceAccountToken": 1}]]
)
def test_wrong_types_are_left_alone(sources: list[Any]) -> None:
    """Another check reports them."""
    assert normalised({"sources": sources}) == {"sources": sources}
