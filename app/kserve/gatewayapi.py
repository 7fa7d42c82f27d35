"""The Gateway API's HTTPRouteSpec, v1.4: what a user may write where an HTTPRoute is made."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BaseModel, Field, StringConstraints
from pydantic.alias_generators import to_camel, to_snake

from app.kube import field
from app.kube.base import Int32, KubeModel, pattern
from app.kube.names import SUBDOMAIN
from app.kube.rules import Rule, Rules

GROUP_PATTERN = pattern(rf"^$|^{SUBDOMAIN}$", "must be an API group, for example gateway.networking.k8s.io, or empty")
KIND_PATTERN = pattern(
    r"^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$", "must be a kind: letters, digits and '-', for example Gateway"
)
NAMESPACE_PATTERN = pattern(
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "must be a namespace: lower case letters, digits and '-', for example team-a"
)
_HEADER_PATTERN = pattern(
    r"^[A-Za-z0-9!#$%&'*+\-.^_\x60|~]+$", "must be the name of a header: no blanks or colons, for example X-Team"
)
PATH_CHARACTERS = pattern(
    r"^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})+$",
    "must be a path; other characters than those of a URL are written as %20 and the like",
)
_DURATION_PATTERN = pattern(r"^([0-9]{1,5}(h|m|s|ms)){1,4}$", "must be a duration, for example 30s or 1m30s")
_ORIGIN_PATTERN = pattern(
    r"(^\*$)|(^([a-zA-Z][a-zA-Z0-9+\-.]+):\/\/([^:/?#]+)(:([0-9]{1,5}))?$)",
    "must be an origin, for example https://chat.example.com, or *",
)
_NAME_PATTERN = pattern(
    rf"^{SUBDOMAIN}$", "must be lower case letters, digits, '-' and '.', for example chat.example.com"
)
_WILDCARD_PATTERN = pattern(
    rf"^(\*\.)?{SUBDOMAIN}$", "must be a host name in lower case, for example chat.example.com or *.example.com"
)

Text253 = Annotated[str, StringConstraints(min_length=1, max_length=253)]
Namespace = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=NAMESPACE_PATTERN)]
Group = Annotated[str, StringConstraints(max_length=253, pattern=GROUP_PATTERN)]
KindName = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=KIND_PATTERN)]
SectionName = Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=_NAME_PATTERN)]
RouteHostname = Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=_WILDCARD_PATTERN)]
PreciseHostname = Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=_NAME_PATTERN)]
HeaderName = Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=_HEADER_PATTERN)]
Origin = Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=_ORIGIN_PATTERN)]
Duration = Annotated[str, StringConstraints(pattern=_DURATION_PATTERN)]
Method = Literal["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"]
CORSMethod = Literal["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "*"]
PortNumber = Annotated[Int32, Field(ge=1, le=65535)]

MAX_RULES, MAX_MATCHES, MAX_ALL_MATCHES, MAX_HEADERS = 16, 64, 128, 16
"""Rules of a route, matches of a rule, matches of all rules, headers that a filter sets."""
ATOMIC: dict[str, Any] = {"x-kubernetes-list-type": "atomic"}
SET: dict[str, Any] = {"x-kubernetes-list-type": "set"}
BY_NAME: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}


def _items(longest: int, description: str, extra: dict[str, Any]) -> Any:
    """Declare a list that may be absent; ``extra`` tells the API server how it merges, and its default."""
    return Field(None, description=description, max_length=longest, json_schema_extra=extra)


_DURATION = re.compile(r"([0-9]+)(ms|h|m|s)")
_UNITS = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}


@dataclass(frozen=True, slots=True)
class Since:
    """Version of the Gateway API from which on HTTPRoutes may have a field."""

    version: str
    values: tuple[int, ...] = ()
    """The values that it holds for; empty for all."""

    def __str__(self) -> str:
        subject = f"{', '.join(map(str, self.values))} need" if self.values else "needs"
        return f"{subject} Gateway API {self.version} or newer"


_NEWER = Since("1.5")
_NEWER_CODES = Since("1.5", (303, 307, 308))


def newer_fields(part: BaseModel, path: field.Path) -> Iterator[field.Advice]:
    """Warn of fields for which the API server refuses the route if its Gateway API is older."""
    for name, info in type(part).model_fields.items():
        value, where = getattr(part, name), path.child(info.alias or name)
        since = next((item for item in info.metadata if isinstance(item, Since)), None)
        if since is not None and value is not None and (not since.values or value in since.values):
            yield field.advice(where, f"{since}; with an older one the HTTPRoute is refused")
        for place, item in where.each(value) if isinstance(value, list) else [(where, value)]:
            if isinstance(item, BaseModel):
                yield from newer_fields(item, place)


def _chosen(by: str, value: str, alias: str, chooser: str) -> tuple[Rule, Rule]:
    """A field's value that requires another field, which no other value allows."""
    name, chosen = to_snake(alias), to_snake(by)
    return (
        Rule(
            f"self.{by} == '{value}' ? has(self.{alias}) : true",
            f"{chooser} needs {alias}",
            lambda part: getattr(part, chosen) != value or getattr(part, name) is not None,
        ),
        Rule(
            f"has(self.{alias}) ? self.{by} == '{value}' : true",
            f"{alias} belongs to {by} {value}",
            lambda part: getattr(part, name) is None or getattr(part, chosen) == value,
        ),
    )


class ParentReference(KubeModel):
    group: Group = Field("gateway.networking.k8s.io", description="API group of the parent.")
    kind: KindName = Field("Gateway", description="Kind of the parent.")
    namespace: Namespace | None = Field(None, description="Namespace of the parent; the route's own when not set.")
    name: Text253 = Field(description="Name of the parent.")
    section_name: SectionName | None = Field(None, description="The one listener of the parent to attach to.")
    port: PortNumber | None = Field(None, description="Attach only to listeners on this port.")


class BackendObjectReference(KubeModel):
    constraints = (
        Rule(
            "(!has(self.group) || size(self.group) == 0) && (!has(self.kind) || self.kind == 'Service') "
            "? has(self.port) : true",
            "a reference to a Service needs a port",
            lambda backend: backend.group != "" or backend.kind != "Service" or backend.port is not None,
        ),
    )

    group: Group = Field("", description="API group of the backend; empty for a Service.")
    kind: KindName = Field("Service", description="Kind of the backend.")
    name: Text253 = Field(description="Name of the backend.")
    namespace: Namespace | None = Field(None, description="Namespace of the backend; the route's own when not set.")
    port: PortNumber | None = Field(None, description="Port of the backend; a Service needs one.")


# Filters: what happens to requests on their way.


class HTTPHeader(KubeModel):
    name: HeaderName = Field(description="Name of the header, in any case.")
    value: str = Field(description="Value of the header.", min_length=1, max_length=4096)


class HTTPHeaderFilter(KubeModel):
    set: list[HTTPHeader] | None = _items(MAX_HEADERS, "Headers to write over.", BY_NAME)
    add: list[HTTPHeader] | None = _items(16, "Headers to append a value to.", BY_NAME)
    remove: list[str] | None = _items(16, "Headers to take away.", SET)


class Fraction(KubeModel):
    constraints = (
        Rule(
            "self.numerator <= self.denominator",
            "a fraction is at most one",
            lambda fraction: fraction.numerator <= fraction.denominator,
        ),
    )

    numerator: Int32 = Field(description="Upper part of the fraction.", ge=0)
    denominator: Int32 = Field(100, description="Lower part of the fraction.", ge=1)


class HTTPRequestMirrorFilter(KubeModel):
    constraints = (
        Rule(
            "!(has(self.percent) && has(self.fraction))",
            "set percent or fraction, not both",
            lambda mirror: mirror.percent is None or mirror.fraction is None,
        ),
    )

    backend_ref: BackendObjectReference = Field(description="Where the copies go.")
    percent: Int32 | None = Field(None, description="Share of requests that are copied, in percent.", ge=0, le=100)
    fraction: Fraction | None = Field(None, description="Share of requests that are copied, as a fraction.")


class HTTPPathModifier(KubeModel):
    constraints: ClassVar[tuple[Rule, ...]] = (
        *_chosen("type", "ReplaceFullPath", "replaceFullPath", "ReplaceFullPath"),
        *_chosen("type", "ReplacePrefixMatch", "replacePrefixMatch", "ReplacePrefixMatch"),
    )

    type: Literal["ReplaceFullPath", "ReplacePrefixMatch"] = Field(description="What is replaced.")
    replace_full_path: str | None = Field(None, description="The new path.", max_length=1024)
    replace_prefix_match: str | None = Field(None, description="Replacement of the matched prefix.", max_length=1024)


class HTTPRequestRedirectFilter(KubeModel):
    scheme: Literal["http", "https"] | None = Field(None, description="Scheme of the new location.")
    hostname: PreciseHostname | None = Field(None, description="Host of the new location.")
    path: HTTPPathModifier | None = Field(None, description="Path of the new location.")
    port: PortNumber | None = Field(None, description="Port of the new location.")
    status_code: Annotated[Literal[301, 302, 303, 307, 308], _NEWER_CODES] = Field(
        302, description=f"Status code of the answer; {_NEWER_CODES}."
    )


class HTTPURLRewriteFilter(KubeModel):
    hostname: PreciseHostname | None = Field(None, description="Host that the backend sees.")
    path: HTTPPathModifier | None = Field(None, description="Path that the backend sees.")


class LocalExtensionReference(KubeModel):
    group: Group = Field(description="API group of the extension.")
    kind: KindName = Field(description="Kind of the extension.")
    name: Text253 = Field(description="Name of the extension.")


_ANY_ALONE = Rules(
    Rule(
        "!('*' in self && self.size() > 1)",
        "'*' must be the only value",
        lambda items: "*" not in items or len(items) == 1,
    ),
)


class HTTPCORSFilter(KubeModel):
    allow_origins: Annotated[list[Origin] | None, _ANY_ALONE] = _items(64, "Origins that may ask.", SET)
    allow_credentials: bool | None = Field(None, description="Whether requests may carry credentials.")
    allow_methods: Annotated[list[CORSMethod] | None, _ANY_ALONE] = _items(9, "Methods that may be used.", SET)
    allow_headers: list[HeaderName] | None = _items(64, "Request headers that may be used.", SET)
    expose_headers: list[HeaderName] | None = _items(64, "Response headers that may be read.", SET)
    max_age: Int32 = Field(5, description="Seconds that a preflight answer is kept.", ge=1)


class GRPCAuthConfig(KubeModel):
    allowed_headers: list[str] | None = _items(64, "Request headers the service gets.", SET)


class HTTPAuthConfig(KubeModel):
    path: str | None = Field(None, description="Path that is asked.", max_length=1024, pattern=PATH_CHARACTERS)
    allowed_headers: list[str] | None = _items(64, "Request headers the service gets.", SET)
    allowed_response_headers: list[str] | None = _items(64, "Headers of its answer that go to the backend.", SET)


class ForwardBodyConfig(KubeModel):
    max_size: Int32 | None = Field(None, description="Bytes of the body that are sent along.", ge=0)


class HTTPExternalAuthFilter(KubeModel):
    constraints = (
        *_chosen("protocol", "GRPC", "grpc", "protocol GRPC"),
        *_chosen("protocol", "HTTP", "http", "protocol HTTP"),
    )

    protocol: Literal["HTTP", "GRPC"] = Field(description="How the service is asked.")
    backend_ref: BackendObjectReference = Field(description="The service.")
    grpc: GRPCAuthConfig | None = Field(None, description="How it is asked over gRPC.")
    http: HTTPAuthConfig | None = Field(None, description="How it is asked over HTTP.")
    forward_body: ForwardBodyConfig | None = Field(None, description="Whether the body goes along.")


FilterType = Literal[
    "RequestHeaderModifier",
    "ResponseHeaderModifier",
    "RequestMirror",
    "RequestRedirect",
    "URLRewrite",
    "ExtensionRef",
    "CORS",
]
FILTER_FIELDS = {type_: to_snake(type_) for type_ in get_args(FilterType)}


def _belongs(type_: str, name: str) -> Rule:
    alias = to_camel(name)
    return Rule(
        f"has(self.{alias}) == (self.type == '{type_}')",
        f"{alias} is set for type {type_}, and only then",
        lambda part: (getattr(part, name) is not None) == (part.type == type_),
    )


def _once(type_: str) -> Rule:
    return Rule(
        f"self.filter(f, f.type == '{type_}').size() <= 1",
        f"{type_} must not be repeated",
        lambda filters: sum(part.type == type_ for part in filters) <= 1,
    )


FILTER_RULES = Rules(
    Rule(
        "!(self.exists(f, f.type == 'RequestRedirect') && self.exists(f, f.type == 'URLRewrite'))",
        "RequestRedirect and URLRewrite exclude each other",
        lambda filters: not {"RequestRedirect", "URLRewrite"} <= {part.type for part in filters},
    ),
    *map(_once, ("RequestHeaderModifier", "ResponseHeaderModifier", "RequestRedirect", "URLRewrite", "CORS")),
)


class HTTPRouteFilter(KubeModel):
    constraints = tuple(_belongs(*pair) for pair in FILTER_FIELDS.items())

    type: FilterType = Field(description="Which of the fields below applies.")
    request_header_modifier: HTTPHeaderFilter | None = Field(None, description="Changes request headers.")
    response_header_modifier: HTTPHeaderFilter | None = Field(None, description="Changes response headers.")
    request_mirror: HTTPRequestMirrorFilter | None = Field(None, description="Copies requests.")
    request_redirect: HTTPRequestRedirectFilter | None = Field(None, description="Redirects.")
    url_rewrite: HTTPURLRewriteFilter | None = Field(None, description="Rewrites the URL.")
    cors: Annotated[HTTPCORSFilter | None, _NEWER] = Field(None, description=f"Cross-origin requests; {_NEWER}.")
    external_auth: HTTPExternalAuthFilter | None = None
    """External authorisation; experimental in the Gateway API."""
    extension_ref: LocalExtensionReference | None = Field(None, description="A filter of the implementation's own.")


ROOT_PATH = {"type": "PathPrefix", "value": "/"}
DEFAULT_MATCHES: list[dict[str, Any]] = [{"path": ROOT_PATH}]
DEFAULT_RULES: list[dict[str, Any]] = [{"matches": DEFAULT_MATCHES}]
"""The schema's default for a route without rules: every request, no backend."""


class HTTPBackendRef(BackendObjectReference):
    weight: Int32 = Field(1, description="Share of the traffic, relative to the sum of all.", ge=0, le=1000000)
    filters: Annotated[list[HTTPRouteFilter] | None, FILTER_RULES] = _items(
        16, "Steps for requests to this backend only.", ATOMIC
    )


def _literal(condition: str, rendered: str, holds: Callable[[str], bool]) -> Rule:
    """A rule for paths that are not regular expressions."""
    return Rule(
        f"(self.type in ['Exact','PathPrefix']) ? {condition} : true",
        f"an Exact or PathPrefix path {rendered}",
        lambda match: match.type == "RegularExpression" or holds(match.value),
    )


def _without(part: str) -> Rule:
    return _literal(f"!self.value.contains('{part}')", f"has no '{part}'", lambda value: part not in value)


def _not_at_the_end(end: str) -> Rule:
    condition, phrase = f"!self.value.endsWith('{end}')", f"does not end in '{end}'"
    return _literal(condition, phrase, lambda value: not value.endswith(end))


class HTTPPathMatch(KubeModel):
    constraints = (
        _literal("self.value.startsWith('/')", "starts with '/'", lambda value: value.startswith("/")),
        *map(_without, ("//", "/./", "/../", "%2f", "%2F", "#")),
        *map(_not_at_the_end, ("/..", "/.")),
        _literal(
            f'self.value.matches(r"""{PATH_CHARACTERS}""")',
            "has only characters that URLs allow",
            lambda value: re.fullmatch(PATH_CHARACTERS, value) is not None,
        ),
    )

    type: Literal["Exact", "PathPrefix", "RegularExpression"] = Field("PathPrefix", description="How to compare.")
    value: str = Field("/", description="What to compare with.", max_length=1024)


class HTTPHeaderMatch(KubeModel):
    type: Literal["Exact", "RegularExpression"] = Field("Exact", description="How to compare.")
    name: HeaderName = Field(description="Name of the header.")
    value: str = Field(description="What to compare with.", min_length=1, max_length=4096)


class HTTPQueryParamMatch(KubeModel):
    type: Literal["Exact", "RegularExpression"] = Field("Exact", description="How to compare.")
    name: HeaderName = Field(description="Name of the parameter.")
    value: str = Field(description="What to compare with.", min_length=1, max_length=1024)


class HTTPRouteMatch(KubeModel):
    """Which requests match: all that is set must hold."""

    path: HTTPPathMatch | None = Field(None, description="By path.", json_schema_extra={"default": dict(ROOT_PATH)})
    headers: list[HTTPHeaderMatch] | None = _items(16, "By headers.", BY_NAME)
    query_params: list[HTTPQueryParamMatch] | None = _items(16, "By query parameters.", BY_NAME)
    method: Method | None = Field(None, description="By method.")


def milliseconds(duration: str | None) -> int:
    """Parse a Gateway API duration such as ``1m30s``; 0 for none."""
    return sum(int(number) * _UNITS[unit] for number, unit in _DURATION.findall(duration or ""))


class HTTPRouteTimeouts(KubeModel):
    constraints = (
        Rule(
            "!(has(self.request) && has(self.backendRequest) && duration(self.request) != duration('0s') && "
            "duration(self.backendRequest) > duration(self.request))",
            "backendRequest is at most as long as request",
            lambda times: (
                milliseconds(times.backend_request)
                <= (milliseconds(times.request) or milliseconds(times.backend_request))
            ),
        ),
    )

    request: Duration | None = Field(None, description="Longest time for the whole exchange; 0s for no limit.")
    backend_request: Duration | None = Field(None, description="Longest time for one try at a backend.")


class HTTPRouteRetry(KubeModel):
    codes: list[Annotated[int, Field(ge=400, le=599)]] | None = Field(None, json_schema_extra=ATOMIC)
    """Status codes after which to try again."""
    attempts: int | None = Field(None, description="How often to try again.")
    backoff: Duration | None = Field(None, description="Shortest time between two tries.")


class CookieConfig(KubeModel):
    lifetime_type: Literal["Permanent", "Session"] = Field("Session", description="How long the cookie lives.")


class SessionPersistence(KubeModel):
    constraints = (
        Rule(
            "!has(self.cookieConfig) || !has(self.cookieConfig.lifetimeType) || "
            "self.cookieConfig.lifetimeType != 'Permanent' || has(self.absoluteTimeout)",
            "a Permanent cookie needs absoluteTimeout",
            lambda session: (
                session.cookie_config is None
                or session.cookie_config.lifetime_type != "Permanent"
                or session.absolute_timeout is not None
            ),
        ),
    )

    session_name: str | None = Field(None, description="Name of the session's token.", max_length=128)
    absolute_timeout: Duration | None = Field(None, description="Longest life of a session.")
    idle_timeout: Duration | None = Field(None, description="Longest pause within a session.")
    type: Literal["Cookie", "Header"] = Field("Cookie", description="What carries the token.")
    cookie_config: CookieConfig | None = Field(None, description="Details of the cookie.")


def _one_prefix(alias: str, *, backends: bool) -> Rule:
    """Replacing a prefix needs one to replace, in a filter of the rule or of one of its ``backends``."""
    replaced = (
        f"has(f.{alias}) && has(f.{alias}.path) && f.{alias}.path.type == 'ReplacePrefixMatch' && "
        f"has(f.{alias}.path.replacePrefixMatch)"
    )
    condition = f"(has(self.filters) && self.filters.exists_one(f, {replaced}))"
    if backends:
        filters = f"has(b.filters) && b.filters.exists_one(f, {replaced})"
        condition = f"(has(self.backendRefs) && self.backendRefs.exists_one(b, {filters}))"

    def replaces(part: HTTPRouteFilter) -> bool:
        changed = getattr(part, to_snake(alias))
        path = changed.path if changed is not None else None
        return path is not None and path.type == "ReplacePrefixMatch" and path.replace_prefix_match is not None

    def replaces_once(filters: Sequence[HTTPRouteFilter] | None) -> bool:
        return sum(map(replaces, filters or ())) == 1

    def holds(rule: HTTPRouteRule) -> bool:
        changed = [rule.filters] if not backends else [backend.filters for backend in rule.backend_refs or ()]
        if sum(map(replaces_once, changed)) != 1 or rule.matches is None:  # the API server fills in one match
            return True
        return len(rule.matches) == 1 and (rule.matches[0].path is None or rule.matches[0].path.type == "PathPrefix")

    return Rule(
        f"{condition} ? size(self.matches) == 1 && "
        "(!has(self.matches[0].path) || self.matches[0].path.type == 'PathPrefix') : true",
        f"{'in backendRefs, ' if backends else ''}{alias} with replacePrefixMatch needs exactly one match, of type "
        "PathPrefix",
        holds,
    )


class HTTPRouteRule(KubeModel):
    constraints = (
        Rule(
            "(has(self.backendRefs) && size(self.backendRefs) > 0) ? "
            "(!has(self.filters) || self.filters.all(f, !has(f.requestRedirect))) : true",
            "RequestRedirect excludes backendRefs",
            lambda rule: not rule.backend_refs or all(part.request_redirect is None for part in rule.filters or ()),
        ),
        *(
            _one_prefix(alias, backends=backends)
            for backends in (False, True)
            for alias in ("requestRedirect", "urlRewrite")
        ),
    )

    name: SectionName | None = Field(None, description="Name of the rule.")
    matches: list[HTTPRouteMatch] | None = _items(
        MAX_MATCHES,
        "Requests that the rule is for: those that any of these fits.",
        ATOMIC | {"default": DEFAULT_MATCHES},
    )
    filters: Annotated[list[HTTPRouteFilter] | None, FILTER_RULES] = _items(16, "Steps on the way.", ATOMIC)
    backend_refs: list[HTTPBackendRef] | None = _items(16, "Where the requests go.", ATOMIC)
    timeouts: HTTPRouteTimeouts | None = Field(None, description="Time limits.")
    retry: HTTPRouteRetry | None = Field(None, description="When to try again.")
    session_persistence: SessionPersistence | None = Field(None, description="Keeps clients at their backend.")


ROUTE_RULES = Rules(
    Rule(
        " + ".join(f"(self.size() > {n} ? self[{n}].matches.size() : 0)" for n in range(MAX_RULES))
        + f" <= {MAX_ALL_MATCHES}",
        f"all rules together have at most {MAX_ALL_MATCHES} matches",
        lambda rules: sum(len(rule.matches or DEFAULT_MATCHES) for rule in rules) <= MAX_ALL_MATCHES,
    ),
)


class HTTPRouteSpec(KubeModel):
    parent_refs: list[ParentReference] | None = _items(32, "Gateways that serve the route.", ATOMIC)
    use_default_gateways: Literal["All", "None"] | None = None
    """Scope of the cluster's default Gateways that serve it too."""
    hostnames: list[RouteHostname] | None = _items(16, "Hosts that the route is for; any when not set.", ATOMIC)
    rules: Annotated[list[HTTPRouteRule] | None, ROUTE_RULES] = Field(
        None, max_length=MAX_RULES, json_schema_extra=ATOMIC | {"default": DEFAULT_RULES}
    )
    """Rules for requests, first match first. A list that the API server filled in counts as none."""
