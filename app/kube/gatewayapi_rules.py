"""The Gateway API's rules between the fields of an HTTPRouteSpec, for objects that no API server has checked."""

from __future__ import annotations

import re
from collections.abc import Iterator

from app.kube import field
from app.kube.gatewayapi import (
    DEFAULT_MATCHES,
    FILTER_ALIASES,
    FILTER_FIELDS,
    PATH_CHARACTERS,
    PATH_START,
    PORT_OF_SERVICE,
    BackendObjectReference,
    HTTPCORSFilter,
    HTTPExternalAuthFilter,
    HTTPPathMatch,
    HTTPPathModifier,
    HTTPRouteFilter,
    HTTPRouteRule,
    HTTPRouteSpec,
)


def check(spec: HTTPRouteSpec, path: field.Path, *, templated: bool = False) -> list[field.Error]:
    """What the CEL rules of the types above refuse; ``templated`` leaves out paths, which are templates still."""
    errors: list[field.Error] = []
    rules = spec.rules or []
    if sum(len(rule.matches or DEFAULT_MATCHES) for rule in rules) > 128:
        errors.append(field.invalid(path.child("rules"), "array", "all rules together have at most 128 matches"))
    for position, rule in enumerate(rules):
        errors += _check_rule(rule, path.child("rules").index(position), templated)
    return errors


def _check_rule(rule: HTTPRouteRule, path: field.Path, templated: bool) -> Iterator[field.Error]:
    backends = rule.backend_refs or []
    if backends and any(f.request_redirect for f in rule.filters or ()):
        yield field.invalid(path, "object", "RequestRedirect excludes backendRefs")
    for filters in (rule.filters, *(backend.filters for backend in backends)):
        yield from _check_prefix(rule, filters or [], path)
    for position, match in enumerate(rule.matches or ()):
        here = path.child("matches").index(position)
        if match.path is not None and not templated:
            yield from _check_path(match.path, here.child("path"))
        yield from _check_once([header.name for header in match.headers or ()], here.child("headers"))
        yield from _check_once([param.name for param in match.query_params or ()], here.child("queryParams"))
    yield from _check_filters(rule.filters or [], path.child("filters"), templated)
    for position, backend in enumerate(backends):
        here = path.child("backendRefs").index(position)
        yield from _check_backend(backend, here)
        yield from _check_filters(backend.filters or [], here.child("filters"), templated)
    yield from _check_times(rule, path)


def _check_prefix(rule: HTTPRouteRule, filters: list[HTTPRouteFilter], path: field.Path) -> Iterator[field.Error]:
    matches = rule.matches
    single = matches is None or (
        len(matches) == 1 and (matches[0].path is None or matches[0].path.type == "PathPrefix")
    )
    for name in ("request_redirect", "url_rewrite"):
        modifiers = [part.path for f in filters if (part := getattr(f, name)) is not None and part.path is not None]
        replacing = [m for m in modifiers if m.replace_prefix_match is not None]
        if len(replacing) == 1 and not single:
            yield field.invalid(path, "object", "replacePrefixMatch needs exactly one match, of type PathPrefix")


def _check_path(match: HTTPPathMatch, path: field.Path) -> Iterator[field.Error]:
    if match.type == "RegularExpression":
        return
    value = match.value
    if not value.startswith("/"):
        yield field.invalid(path, value, PATH_START)
    for part in ("//", "/./", "/../", "%2f", "%2F", "#"):
        if part in value:
            yield field.invalid(path, value, f"an Exact or PathPrefix path has no '{part}'")
    if value.endswith(("/..", "/.")):
        yield field.invalid(path, value, "an Exact or PathPrefix path does not end in '/..' or '/.'")
    if not re.fullmatch(PATH_CHARACTERS, value):
        yield field.invalid(path, value, "an Exact or PathPrefix path has only characters that URLs allow")


def _check_filters(filters: list[HTTPRouteFilter], path: field.Path, templated: bool) -> Iterator[field.Error]:
    types = [f.type for f in filters]
    if "RequestRedirect" in types and "URLRewrite" in types:
        yield field.invalid(path, "array", "RequestRedirect and URLRewrite exclude each other")
    for type_ in ("RequestHeaderModifier", "ResponseHeaderModifier", "RequestRedirect", "URLRewrite"):
        if types.count(type_) > 1:
            yield field.invalid(path, "array", f"{type_} stands only once")
    for position, item in enumerate(filters):
        yield from _check_filter(item, path.index(position), templated)


def _check_once(names: list[str], path: field.Path) -> Iterator[field.Error]:
    """No name twice in a list that is kept apart by names."""
    for position, name in enumerate(names):
        if name in names[:position]:
            yield field.duplicate(path.index(position), {"name": name})


def _check_headers(item: HTTPRouteFilter, path: field.Path) -> Iterator[field.Error]:
    for alias, change in (
        ("requestHeaderModifier", item.request_header_modifier),
        ("responseHeaderModifier", item.response_header_modifier),
    ):
        if change is not None:
            yield from _check_once([header.name for header in change.set or ()], path.child(alias, "set"))
            yield from _check_once([header.name for header in change.add or ()], path.child(alias, "add"))


def _check_filter(item: HTTPRouteFilter, path: field.Path, templated: bool) -> Iterator[field.Error]:
    for type_, name in FILTER_FIELDS.items():
        if (getattr(item, name) is not None) != (item.type == type_):
            yield field.invalid(path, "object", f"{FILTER_ALIASES[type_]} is set for type {type_}, and only then")
    yield from _check_headers(item, path)
    mirror = item.request_mirror
    if mirror is not None:
        yield from _check_backend(mirror.backend_ref, path.child("requestMirror", "backendRef"))
        if mirror.percent is not None and mirror.fraction is not None:
            yield field.invalid(path.child("requestMirror"), "object", "set percent or fraction, not both")
        if mirror.fraction is not None and mirror.fraction.numerator > mirror.fraction.denominator:
            yield field.invalid(path.child("requestMirror", "fraction"), "object", "a fraction is at most one")
    if item.external_auth is not None:
        yield from _check_external_auth(item.external_auth, path.child("externalAuth"))
    yield from _check_cors(item.cors, path.child("cors"))
    for alias, part in (("requestRedirect", item.request_redirect), ("urlRewrite", item.url_rewrite)):
        if part is not None and part.path is not None and not (templated and alias == "urlRewrite"):
            yield from _check_modifier(part.path, path.child(alias, "path"))


def _check_cors(cors: HTTPCORSFilter | None, path: field.Path) -> Iterator[field.Error]:
    if cors is None:
        return
    for alias, items in (("allowOrigins", cors.allow_origins), ("allowMethods", cors.allow_methods)):
        if items and "*" in items and len(items) > 1:
            yield field.invalid(path.child(alias), items, "'*' stands alone")


def _check_modifier(modifier: HTTPPathModifier, path: field.Path) -> Iterator[field.Error]:
    for type_, alias, value in (
        ("ReplaceFullPath", "replaceFullPath", modifier.replace_full_path),
        ("ReplacePrefixMatch", "replacePrefixMatch", modifier.replace_prefix_match),
    ):
        if (modifier.type == type_) != (value is not None):
            yield field.invalid(path, "object", f"{alias} is set for type {type_}, and only then")


def _check_external_auth(auth: HTTPExternalAuthFilter, path: field.Path) -> Iterator[field.Error]:
    for protocol, alias, value in (("GRPC", "grpc", auth.grpc), ("HTTP", "http", auth.http)):
        if (auth.protocol == protocol) != (value is not None):
            yield field.invalid(path, "object", f"{alias} is set for protocol {protocol}, and only then")
    yield from _check_backend(auth.backend_ref, path.child("backendRef"))


def _check_backend(backend: BackendObjectReference, path: field.Path) -> Iterator[field.Error]:
    if backend.group == "" and backend.kind == "Service" and backend.port is None:
        yield field.invalid(path, "object", PORT_OF_SERVICE)


_DURATION = re.compile(r"([0-9]+)(ms|h|m|s)")
_UNITS = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}


def milliseconds(duration: str) -> int:
    """A Gateway API duration such as ``1m30s``."""
    return sum(int(number) * _UNITS[unit] for number, unit in _DURATION.findall(duration))


def _check_times(rule: HTTPRouteRule, path: field.Path) -> Iterator[field.Error]:
    times = rule.timeouts
    if times is not None and times.request is not None and times.backend_request is not None:
        whole = milliseconds(times.request)
        if whole and milliseconds(times.backend_request) > whole:
            yield field.invalid(path.child("timeouts"), "object", "backendRequest is at most as long as request")
    session = rule.session_persistence
    if (
        session is not None
        and session.cookie_config is not None
        and session.cookie_config.lifetime_type == "Permanent"
        and session.absolute_timeout is None
    ):
        yield field.invalid(path.child("sessionPersistence"), "object", "a Permanent cookie needs absoluteTimeout")
