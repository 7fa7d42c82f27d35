"""The Gateway API's rules for routes: limits of the types, and rules between fields."""

from __future__ import annotations

from typing import Any

import pytest

from app.kube.decode import decode_document
from app.kube.field import Path
from app.kube.gatewayapi import HTTPRouteSpec
from app.kube.gatewayapi_rules import check, milliseconds

Json = dict[str, Any]
SPEC = Path("spec")
PREFIX = {"path": {"type": "PathPrefix", "value": "/a"}}
REWRITE: Json = {
    "type": "URLRewrite",
    "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}},
}
REDIRECT: Json = {"type": "RequestRedirect", "requestRedirect": {"scheme": "https"}}
BACKEND: Json = {"name": "s", "port": 80}


def problems(document: Json, *, templated: bool = False) -> list[str]:
    """Paths of all errors, of the types or of the rules."""
    spec, errors = decode_document(document, HTTPRouteSpec, SPEC)
    found = errors if spec is None else check(spec, SPEC, templated=templated)
    return [str(error.path) for error in found]


def rule(**fields: Any) -> Json:
    return {"rules": [fields]}


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"parentRefs": [{"name": "g"}], "hostnames": ["*.example.com", "a.example.com"]},
        rule(matches=[PREFIX], filters=[REWRITE], backendRefs=[BACKEND]),
        rule(filters=[REDIRECT]),
        rule(backendRefs=[{"name": "p", "kind": "InferencePool", "group": "inference.networking.k8s.io"}]),
        rule(timeouts={"request": "0s", "backendRequest": "30s"}),
        rule(matches=[{"path": {"type": "RegularExpression", "value": "a//b"}}]),
    ],
)
def test_routes_that_are_fine(document: Json) -> None:
    """As the API server has them."""
    assert problems(document) == []


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"hostnames": ["-bad"]}, "spec.hostnames[0]"),
        ({"hostnames": ["a"] * 17}, "spec.hostnames"),
        ({"parentRefs": [{"name": ""}]}, "spec.parentRefs[0].name"),
        ({"parentRefs": [{"name": "g", "port": 0}]}, "spec.parentRefs[0].port"),
        ({"rules": [{}] * 17}, "spec.rules"),
        ({"rules": [{"matches": [PREFIX] * 64}] * 3}, "spec.rules"),
        (rule(backendRefs=[{"name": "s"}]), "spec.rules[0].backendRefs[0]"),
        (rule(backendRefs=[{**BACKEND, "weight": -1}]), "spec.rules[0].backendRefs[0].weight"),
        (rule(filters=[REDIRECT], backendRefs=[BACKEND]), "spec.rules[0]"),
        (rule(filters=[REDIRECT, REDIRECT]), "spec.rules[0].filters"),
        (rule(filters=[REDIRECT, {"type": "URLRewrite", "urlRewrite": {}}]), "spec.rules[0].filters"),
        (rule(filters=[{"type": "URLRewrite"}]), "spec.rules[0].filters[0]"),
        (
            rule(filters=[{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "s"}}}]),
            "spec.rules[0].filters[0].requestMirror.backendRef",
        ),
        (rule(matches=[PREFIX, PREFIX], filters=[REWRITE]), "spec.rules[0]"),
        (rule(matches=[{"path": {"type": "Exact", "value": "/a"}}], filters=[REWRITE]), "spec.rules[0]"),
        (rule(matches=[{"path": {"value": "a"}}]), "spec.rules[0].matches[0].path"),
        (rule(matches=[{"path": {"value": "/a//b"}}]), "spec.rules[0].matches[0].path"),
        (rule(matches=[{"path": {"value": "/a/.."}}]), "spec.rules[0].matches[0].path"),
        (rule(matches=[{"method": "BREW"}]), "spec.rules[0].matches[0].method"),
        (rule(timeouts={"request": "1s", "backendRequest": "1m"}), "spec.rules[0].timeouts"),
        (rule(timeouts={"request": "soon"}), "spec.rules[0].timeouts.request"),
        (rule(sessionPersistence={"cookieConfig": {"lifetimeType": "Permanent"}}), "spec.rules[0].sessionPersistence"),
    ],
)
def test_routes_that_are_not(document: Json, path: str) -> None:
    """Each mistake is found where it stands."""
    assert path in problems(document)


@pytest.mark.parametrize(
    ("filter_", "path"),
    [
        ({"requestMirror": {"backendRef": BACKEND, "percent": 1, "fraction": {"numerator": 1}}}, "requestMirror"),
        ({"requestMirror": {"backendRef": BACKEND, "fraction": {"numerator": 200}}}, "requestMirror.fraction"),
    ],
)
def test_mirrors(filter_: Json, path: str) -> None:
    """A share is given once, and is at most all."""
    found = problems(rule(filters=[{"type": "RequestMirror", **filter_}]))
    assert found == [f"spec.rules[0].filters[0].{path}"]


def test_paths_that_are_templates_are_not_judged() -> None:
    """They are judged when they have been rendered."""
    document = rule(matches=[{"path": {"value": "{{ .Name }}"}}])
    assert problems(document) == ["spec.rules[0].matches[0].path"] * 2
    assert problems(document, templated=True) == []


@pytest.mark.parametrize(("text", "number"), [("0s", 0), ("10ms", 10), ("1m30s", 90_000), ("1h", 3_600_000)])
def test_durations(text: str, number: int) -> None:
    assert milliseconds(text) == number
