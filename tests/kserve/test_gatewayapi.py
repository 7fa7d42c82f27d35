"""The Gateway API's rules for routes: limits of types, and rules across fields."""

from __future__ import annotations

from typing import Any

import pytest

from app.kserve.gatewayapi import HTTPRouteSpec, milliseconds
from app.kserve.llminferenceserviceconfig.types import TemplatedHTTPRouteSpec
from app.kube.base import Json, KubeModel
from app.kube.field import Path
from app.kube.modelfields import fields
from app.kube.reading.decode import decode_document
from app.kube.schema.rules import Rules, violations

SPEC = Path("spec")
PREFIX = {"path": {"type": "PathPrefix", "value": "/a"}}
CORS: Json = {"type": "CORS", "cors": {"allowOrigins": ["https://a.example.com"], "maxAge": 60}}
REWRITE: Json = {
    "type": "URLRewrite",
    "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}},
}
REDIRECT: Json = {"type": "RequestRedirect", "requestRedirect": {"scheme": "https"}}
BACKEND: Json = {"name": "s", "port": 80}


def problems(document: Json, type_: type[HTTPRouteSpec] = HTTPRouteSpec) -> list[str]:
    """Return the paths of all errors, of the types or of the rules."""
    spec, errors = decode_document(document, type_, SPEC)
    return [str(error.path) for error in (errors if spec is None else violations(spec, SPEC))]


def rule(**fields: Any) -> Json:
    return {"rules": [fields]}


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"parentRefs": [{"name": "g"}], "hostnames": ["*.example.com", "a.example.com"]},
        rule(matches=[PREFIX], filters=[REWRITE], backendRefs=[BACKEND]),
        rule(filters=[REDIRECT]),
        *(rule(filters=[{"type": "RequestRedirect", "requestRedirect": {"statusCode": n}}]) for n in (303, 307, 308)),
        rule(filters=[CORS]),
        rule(backendRefs=[{"name": "p", "kind": "InferencePool", "group": "inference.networking.k8s.io"}]),
        rule(timeouts={"request": "0s", "backendRequest": "30s"}),
        rule(matches=[{"path": {"type": "RegularExpression", "value": "a//b"}}]),
    ],
)
def test_routes_that_are_fine(document: Json) -> None:
    """The API server accepts these routes, too."""
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
    """Each error is at the invalid field."""
    assert path in problems(document)


@pytest.mark.parametrize(
    ("filter_", "path"),
    [
        ({"requestMirror": {"backendRef": BACKEND, "percent": 1, "fraction": {"numerator": 1}}}, "requestMirror"),
        ({"requestMirror": {"backendRef": BACKEND, "fraction": {"numerator": 200}}}, "requestMirror.fraction"),
    ],
)
def test_a_mirror_sets_percent_or_fraction(filter_: Json, path: str) -> None:
    """A mirror sets percent or fraction, not both, and a fraction is at most one."""
    paths = problems(rule(filters=[{"type": "RequestMirror", **filter_}]))
    assert paths == [f"spec.rules[0].filters[0].{path}"]


def test_paths_that_are_templates_are_not_judged() -> None:
    """Templates are validated after rendering."""
    document = rule(matches=[{"path": {"value": "{{ .Name }}"}}])
    assert problems(document) == ["spec.rules[0].matches[0].path"] * 2
    assert problems(document, TemplatedHTTPRouteSpec) == []


def changing(name: str, **path: str) -> Json:
    """Return a filter that changes paths."""
    type_ = {"urlRewrite": "URLRewrite", "requestRedirect": "RequestRedirect"}[name]
    return {"type": type_, name: {"path": path}}


def at(path: str, type_: str = "PathPrefix") -> Json:
    return rule(matches=[{"path": {"type": type_, "value": path}}])


def filtered(type_: str, name: str, **content: Any) -> Json:
    return rule(filters=[{"type": type_, name: content}])


HEADERS: Json = {"type": "RequestHeaderModifier", "requestHeaderModifier": {}}
RESPONSE: Json = {"type": "ResponseHeaderModifier", "responseHeaderModifier": {}}
TO_URL: Json = {"type": "URLRewrite", "urlRewrite": {}}
FULL: Json = {"type": "ReplaceFullPath"}
EXTENSION: Json = {"type": "ExtensionRef", "extensionRef": {"group": "", "kind": "Filter", "name": "f"}}
TWO = [PREFIX, PREFIX]
PATH = "{} when type is Exact or PathPrefix"


def authorised(**content: Any) -> Json:
    return rule(filters=[{**EXTENSION, "externalAuth": {"backendRef": BACKEND, **content}}])


BROKEN: dict[str, Json] = {
    "port is required for a reference to a Service": rule(backendRefs=[{"name": "s"}]),
    "numerator must be less than or equal to denominator": filtered(
        "RequestMirror", "requestMirror", backendRef=BACKEND, fraction={"numerator": 2, "denominator": 1}
    ),
    "percent and fraction are mutually exclusive": filtered(
        "RequestMirror", "requestMirror", backendRef=BACKEND, percent=1, fraction={"numerator": 1}
    ),
    "replaceFullPath is required when type is ReplaceFullPath": rule(filters=[changing("urlRewrite", **FULL)]),
    "replaceFullPath must not be set unless type is ReplaceFullPath": rule(
        filters=[changing("urlRewrite", type="ReplacePrefixMatch", replacePrefixMatch="/", replaceFullPath="/")]
    ),
    "replacePrefixMatch is required when type is ReplacePrefixMatch": rule(
        filters=[changing("urlRewrite", type="ReplacePrefixMatch")]
    ),
    "replacePrefixMatch must not be set unless type is ReplacePrefixMatch": rule(
        filters=[changing("urlRewrite", **FULL, replaceFullPath="/", replacePrefixMatch="/")]
    ),
    "'*' must be the only value": rule(
        filters=[{"type": "CORS", "cors": {"allowOrigins": ["*", "https://a.example.com"]}}]
    ),
    "grpc is required when protocol is GRPC": authorised(protocol="GRPC"),
    "grpc must not be set unless protocol is GRPC": authorised(protocol="HTTP", http={}, grpc={}),
    "http is required when protocol is HTTP": authorised(protocol="HTTP"),
    "http must not be set unless protocol is HTTP": authorised(protocol="GRPC", grpc={}, http={}),
    **{
        f"{name} must be set if type is {type_}, and must not be set otherwise": rule(filters=[{"type": type_}])
        for type_, name in (
            ("RequestHeaderModifier", "requestHeaderModifier"),
            ("ResponseHeaderModifier", "responseHeaderModifier"),
            ("RequestMirror", "requestMirror"),
            ("RequestRedirect", "requestRedirect"),
            ("URLRewrite", "urlRewrite"),
            ("ExtensionRef", "extensionRef"),
            ("CORS", "cors"),
        )
    },
    "RequestRedirect and URLRewrite are mutually exclusive": rule(filters=[REDIRECT, TO_URL]),
    "RequestHeaderModifier must not be repeated": rule(filters=[HEADERS, HEADERS]),
    "ResponseHeaderModifier must not be repeated": rule(filters=[RESPONSE, RESPONSE]),
    "RequestRedirect must not be repeated": rule(filters=[REDIRECT, REDIRECT]),
    "URLRewrite must not be repeated": rule(filters=[TO_URL, TO_URL]),
    "CORS must not be repeated": rule(filters=[CORS, CORS]),
    PATH.format("must start with '/'"): at("a"),
    **{PATH.format(f"must not contain '{part}'"): at(f"/a{part}b") for part in ("//", "/./", "/../", "%2f", "%2F")},
    PATH.format("must not contain '#'"): at("/#", "Exact"),
    **{PATH.format(f"must not end with '{end}'"): at(f"/a{end}") for end in ("/..", "/.")},
    PATH.format("must contain only characters that are valid in a URL path"): at("/a b"),
    "backendRequest must not be longer than request": rule(timeouts={"request": "1s", "backendRequest": "1001ms"}),
    "absoluteTimeout is required when cookieConfig.lifetimeType is Permanent": rule(
        sessionPersistence={"cookieConfig": {"lifetimeType": "Permanent"}}
    ),
    "RequestRedirect and backendRefs are mutually exclusive": rule(filters=[REDIRECT], backendRefs=[BACKEND]),
    **{
        f"{where}{name} with replacePrefixMatch requires exactly one match, of type PathPrefix": rule(
            matches=TWO, **place([changing(name, type="ReplacePrefixMatch", replacePrefixMatch="/")])
        )
        for name in ("requestRedirect", "urlRewrite")
        for where, place in (
            ("", lambda filters: {"filters": filters}),
            ("in backendRefs, ", lambda filters: {"backendRefs": [{**BACKEND, "filters": filters}]}),
        )
    },
    "the total number of matches of all rules must be at most 128": {"rules": [{"matches": [PREFIX] * 43}] * 3},
}
"""For each rule, a route that breaks it. ``test_kserve_rules`` sends the same ones to the API server."""


def said(document: Json) -> set[str]:
    spec, errors = decode_document(document, HTTPRouteSpec, SPEC)
    assert spec is not None, errors
    return {error.body.partition(": ")[2].partition(": ")[2] for error in violations(spec, SPEC)}


@pytest.mark.parametrize("message", BROKEN)
def test_each_rule_is_broken_by_what_it_is_about(message: str) -> None:
    """Checked in Python. Some paths also have characters that URLs do not allow, which is a second error."""
    messages_said = said(BROKEN[message])
    assert message in messages_said
    assert messages_said - {message} <= {PATH.format("must contain only characters that are valid in a URL path")}


def messages(type_: type[KubeModel]) -> set[str]:
    """Return the messages of all rules of a type, its lists, and all types below."""
    texts = {rule.message for rule in type_.constraints}
    for info in type_.model_fields.values():
        texts |= {rule.message for marker in info.metadata if isinstance(marker, Rules) for rule in marker.rules}
    for _, shape in fields(type_).values():
        texts |= messages(shape.model) if shape.model is not None else set()
    return texts


def test_no_rule_is_without_such_a_route() -> None:
    assert messages(HTTPRouteSpec) == BROKEN.keys()


@pytest.mark.parametrize(("text", "number"), [("0s", 0), ("10ms", 10), ("1m30s", 90_000), ("1h", 3_600_000)])
def test_durations_of_the_gateway_api_are_read(text: str, number: int) -> None:
    assert milliseconds(text) == number
