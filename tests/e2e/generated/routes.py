"""HTTPRouteSpecs with consistent rules. Only the Gateway API's standard channel is used, which is the installed one."""

from __future__ import annotations

from collections.abc import Mapping

from app.kserve.gatewayapi import (
    FILTER_FIELDS,
    HTTPHeaderMatch,
    HTTPQueryParamMatch,
    HTTPRouteFilter,
    HTTPRouteMatch,
    HTTPRouteRule,
    ParentReference,
)
from app.kube.base import Json
from tests.e2e.generated.draw import ABSENT, Draw, Pool, Rule

_NAMES = ("web", "other-service")
_HOSTS = ("example.com", "*.example.com", "a.b.example.com")

POOLS: Mapping[str, Pool] = {
    **dict.fromkeys(
        ("HTTPRouteSpec.useDefaultGateways", "HTTPRouteRule.retry", "HTTPRouteRule.sessionPersistence"), ABSENT
    ),
    **dict.fromkeys(("HTTPRouteFilter.cors", "HTTPRouteFilter.externalAuth"), ABSENT),
    "HTTPRouteFilter.type": tuple(type_ for type_ in FILTER_FIELDS if type_ != "CORS"),  # of a newer Gateway API
    "HTTPRouteSpec.hostnames": lambda d: d.some(_HOSTS),
    "HTTPRouteSpec.parentRefs": lambda d: [
        d.model(ParentReference, name=name) for name in d.some(("gateway", "other"))
    ],
    "ParentReference.group": ("gateway.networking.k8s.io",),
    "ParentReference.kind": ("Gateway",),
    "ParentReference.namespace": ("kserve",),
    "ParentReference.sectionName": ("http",),
    "HTTPRouteRule.filters": lambda d: [d.model(HTTPRouteFilter) for _ in range(d.randint(0, 5))],
    "HTTPRouteSpec.rules": lambda d: [_rule(d, number) for number in range(d.randint(0, 4))],
    "HTTPRouteRule.matches": lambda d: [d.model(HTTPRouteMatch) for _ in range(d.randint(0, 2))],
    "HTTPRouteRule.backendRefs": lambda d: [_backend(d, name) for name in d.some(_NAMES)],
    "HTTPPathMatch.value": ("/", "/v1/a_b~c", "/%20"),
    "HTTPHeaderMatch.value": ("a", "^b.*$"),
    "HTTPRouteMatch.headers": lambda d: [d.model(HTTPHeaderMatch, name=n) for n in d.some(("X-A", "x-b"))],
    "HTTPRouteMatch.queryParams": lambda d: [d.model(HTTPQueryParamMatch, name=n) for n in d.some(("a", "b"))],
    "HTTPQueryParamMatch.value": ("x", "^y"),
    "HTTPHeaderFilter.set": lambda d: [{"name": n, "value": "x"} for n in d.some(("X-A", "X-B"))],
    "HTTPHeaderFilter.add": lambda d: [{"name": n, "value": "y z"} for n in d.some(("X-C",))],
    "HTTPHeaderFilter.remove": lambda d: d.some(("X-D", "X-E")),
    "BackendObjectReference.group": ("",),
    "BackendObjectReference.kind": ("Service",),
    "BackendObjectReference.name": _NAMES,
    "BackendObjectReference.namespace": ABSENT,
    "HTTPBackendRef.weight": (0, 1, 90),
    "Fraction.numerator": (0, 1),
    "HTTPRequestRedirectFilter.hostname": ("example.com",),
    "HTTPRequestRedirectFilter.statusCode": (301, 302),  # the others are of a newer Gateway API
    "HTTPURLRewriteFilter.hostname": ("example.com",),
    "LocalExtensionReference.group": ("example.com",),
    "LocalExtensionReference.kind": ("Filter",),
    "LocalExtensionReference.name": _NAMES,
    "HTTPRouteTimeouts.request": ("0s", "10m"),
    "HTTPRouteTimeouts.backendRequest": ("1s", "500ms"),
}


def _rule(d: Draw, number: int) -> Json:
    rule = d.model(HTTPRouteRule, name=f"rule-{number}")
    if d.chance(0.5):
        del rule["name"]
    return rule


def _backend(d: Draw, name: str) -> Json:
    backend: Json = {"name": name, "port": d.choice((80, 8000))}
    if d.chance():
        backend["weight"] = d.choice((0, 1, 90))
    if d.chance(0.2):
        backend["filters"] = [
            {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "A", "value": "b"}]}}
        ]
    return backend


def _backend_reference(d: Draw, value: Json) -> None:
    value["port"] = d.choice((80, 8000))


def _mirror(d: Draw, value: Json) -> None:
    if "percent" in value:
        value.pop("fraction", None)


def _path_modifier(d: Draw, value: Json) -> None:
    """Keep whole paths only: replacing a prefix requires a single match with that prefix."""
    value.clear()
    value.update(type="ReplaceFullPath", replaceFullPath="/new")


def _filter(d: Draw, value: Json) -> None:
    name = FILTER_FIELDS[value["type"]]
    aliases = {field: HTTPRouteFilter.model_fields[field].alias or field for field in FILTER_FIELDS.values()}
    for other, alias in aliases.items():
        if other != name:
            value.pop(alias, None)
    if aliases[name] not in value:
        value[aliases[name]] = d.field(HTTPRouteFilter.model_fields[name])


def _filters(d: Draw, value: Json) -> None:
    """Keep each type once; a redirect has no backends and rewrites nothing."""
    by_type = {item["type"]: item for item in value.get("filters", [])}
    if "RequestRedirect" in by_type:
        by_type.pop("URLRewrite", None)
        value.pop("backendRefs", None)
    if "filters" in value:
        value["filters"] = list(by_type.values())
    matches = value.get("matches", [])
    prefixed = len(matches) == 1 and matches[0].get("path", {}).get("type", "PathPrefix") == "PathPrefix"
    for item in value.get("filters", []):
        changed = item.get("urlRewrite") or item.get("requestRedirect") or {}
        if prefixed and "path" in changed and d.chance(0.5):
            changed["path"] = {"type": "ReplacePrefixMatch", "replacePrefixMatch": d.choice(("/", "/new", ""))}
    timeouts = value.get("timeouts", {})
    if "request" in timeouts and timeouts["request"] == "0s":
        timeouts.pop("backendRequest", None)


RULES: Mapping[str, Rule] = {
    "BackendObjectReference": _backend_reference,
    "HTTPRequestMirrorFilter": _mirror,
    "HTTPPathModifier": _path_modifier,
    "HTTPRouteFilter": _filter,
    "HTTPRouteRule": _filters,
}
