"""The normalized form of specs that merging works on."""

from __future__ import annotations

import pytest

from app.kserve.spec.merge import document, pool_spec
from app.kube.base import Json

PICKER: Json = {"group": "", "kind": "Service", "name": "epp", "failureMode": "FailOpen"}


@pytest.mark.parametrize(
    ("spec", "result"),
    [
        ({"worker": {}, "prefill": {}}, {"worker": {}, "prefill": {}}),
        ({"worker": None, "replicas": None}, {}),
        ({"parallelism": {"expert": False, "data": 2}}, {"parallelism": {"data": 2}}),
        ({"model": {"uri": "hf://a/b", "name": ""}}, {"model": {"uri": "hf://a/b"}}),
        ({"model": {"uri": "", "name": "m"}}, {"model": {"name": "m"}}),
        ({"template": {"containers": [], "hostNetwork": False}}, {"template": {}}),
        ({"router": {"route": {}, "gateway": {"refs": []}}}, {"router": {"route": {}, "gateway": {}}}),
        ({"router": {"route": {"http": {"refs": []}}}}, {"router": {"route": {"http": {}}}}),
        ({"router": {"scheduler": {}}}, {"router": {"scheduler": {}}}),
        ({"unknown": 1}, {}),
    ],
)
def test_what_counts_as_set(spec: Json, result: Json) -> None:
    """Empty objects count as set; null, zero values of plain fields and unknown fields do not."""
    assert document(spec) == result


def test_an_inline_configuration_is_left_alone() -> None:
    """Its schema is the endpoint picker's."""
    config: Json = {"inline": {"a": None, "b": [], "c": 1.0}}
    assert document({"router": {"scheduler": {"config": config}}})["router"]["scheduler"]["config"] == config


def test_routes_have_what_the_api_server_would_add() -> None:
    """Metacontroller replaces these lists as a whole, so without the defaults they would differ at every sync."""
    spec = {
        "parentRefs": [{"name": "g"}],
        "rules": [
            {"matches": [{"method": "GET"}], "backendRefs": [{"name": "s", "port": 80}]},
            {"filters": [{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "m", "port": 80}}}]},
        ],
    }
    route = document({"router": {"route": {"http": {"spec": spec}}}})["router"]["route"]["http"]["spec"]
    root = {"type": "PathPrefix", "value": "/"}
    assert route == {
        "parentRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "g"}],
        "rules": [
            {
                "matches": [{"method": "GET", "path": root}],
                "backendRefs": [{"group": "", "kind": "Service", "weight": 1, "name": "s", "port": 80}],
            },
            {
                "matches": [{"path": root}],
                "filters": [
                    {
                        "type": "RequestMirror",
                        "requestMirror": {"backendRef": {"group": "", "kind": "Service", "name": "m", "port": 80}},
                    }
                ],
            },
        ],
    }


@pytest.mark.parametrize(
    ("rule", "result"),
    [
        ({"matches": []}, [{"path": {"type": "PathPrefix", "value": "/"}}]),
        (
            {"matches": [{"path": {"value": "/v1"}, "headers": [{"name": "x", "value": "1"}]}]},
            [
                {
                    "path": {"type": "PathPrefix", "value": "/v1"},
                    "headers": [{"type": "Exact", "name": "x", "value": "1"}],
                }
            ],
        ),
        ({"matches": [None, "x"]}, [None, "x"]),
    ],
)
def test_matches_have_the_defaults_of_their_types(rule: Json, result: object) -> None:
    """An empty list counts as absent; what is not an object is reported elsewhere."""
    spec = {"rules": [{"name": "r", **rule}]}
    route = document({"router": {"route": {"http": {"spec": spec}}}})["router"]["route"]["http"]["spec"]
    assert route["rules"][0]["matches"] == result


@pytest.mark.parametrize(
    ("spec", "result"),
    [
        (
            {"endpointPickerRef": {"name": "epp"}},
            {"endpointPickerRef": {"group": "", "name": "epp", "kind": "Service", "failureMode": "FailClose"}},
        ),
        ({"selector": {}}, {}),
        ({}, {}),
    ],
)
def test_pools_get_the_defaults_of_the_api_server(spec: Json, result: Json) -> None:
    """Defaults are only added to objects that are present."""
    assert pool_spec(spec) == result


def test_whole_pools_stay() -> None:
    spec = {
        "selector": {"matchLabels": {"a": "b"}},
        "targetPorts": [{"number": 8000}],
        "endpointPickerRef": {**PICKER, "port": {"number": 9002}},
    }
    assert pool_spec(spec) == spec
