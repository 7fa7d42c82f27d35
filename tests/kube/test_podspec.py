"""Pod specs as the API server stores them; any difference would look like a change in every sync."""

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
def test_zero_values_are_stored_as_the_api_server_does(given: Json, stored: Json) -> None:
    """Values that Go omits are removed, zero values with a meaning stay, and quantities are canonical."""
    assert normalised(given) == stored


@pytest.mark.parametrize("name", ["httpHeaders", "sysctls"])
def test_required_empty_values_stay(name: str) -> None:
    """In LeaderWorkerSet's schema a header's value may be empty, but is required."""
    items = [{"name": "A", "value": ""}, {"name": "B", "value": "b"}]
    assert normalised({name: items}) == {name: items}


def test_selectors_that_name_nothing() -> None:
    """An empty selector selects everything; its empty map is not stored."""
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {}}}
    assert normalised({"terms": [term]}) == {"terms": [{"topologyKey": "zone", "labelSelector": {}}]}


def test_sources_of_projected_volumes_are_complete() -> None:
    """Their list is replaced as a whole, so each sync would remove what the API server adds to an item."""
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


@pytest.mark.parametrize("name", ["labels", "limits"])
def test_maps_of_strings_have_no_nulls_at_any_depth(name: str) -> None:
    """Below an unknown field such a map may have values of any type; a null would make the answer a fault."""
    value = {"x": {name: {"a": [None, "b"], "c": {"d": None, "e": [None]}, "f": None}}}
    assert normalised(value) == {"x": {name: {"a": ["b"], "c": {}}}}
