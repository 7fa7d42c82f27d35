"""The Gateway API's HTTPRouteSpec, v1.4: what a user may write where an HTTPRoute is made."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal, get_args

import msgspec
from pydantic import BaseModel, Field, StringConstraints
from pydantic.alias_generators import to_camel, to_snake

from app.kube import field
from app.kube.base import Int32, Json, KubeModel, pattern
from app.kube.names import SUBDOMAIN
from app.kube.schema.rules import Rule, Rules

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


class Requires(msgspec.Struct, frozen=True):
    """The part of the Gateway API that must be installed for HTTPRoutes to have a field."""

    installed: str = "Gateway API 1.5 or newer"
    otherwise: str = "with an older one the HTTPRoute is refused"
    values: tuple[int, ...] = ()
    """The values that it holds for; empty for all."""

    def __str__(self) -> str:
        subject = f"{', '.join(map(str, self.values))} need" if self.values else "needs"
        return f"{subject} {self.installed}"


_NEWER = Requires()
_NEWER_CODES = Requires(values=(303, 307, 308))
_EXPERIMENTAL = Requires("the experimental channel of the Gateway API", "with the standard one it has no effect")


def newer_fields(part: BaseModel, path: field.Path) -> Iterator[field.Advice]:
    """Warn of fields that the API server refuses or drops unless its Gateway API has them."""
    for name, info in type(part).model_fields.items():
        value, where = getattr(part, name), path.child(info.alias or name)
        needs = next((item for item in info.metadata if isinstance(item, Requires)), None)
        if needs is not None and value is not None and (not needs.values or value in needs.values):
            yield field.advice(where, f"{needs}; {needs.otherwise}")
        for place, item in where.each(value) if isinstance(value, list) else [(where, value)]:
            if isinstance(item, BaseModel):
                yield from newer_fields(item, place)


def _chosen(by: str, value: str, alias: str) -> tuple[Rule, Rule]:
    """A field's value that requires another field, which no other value allows."""
    name, chosen = to_snake(alias), to_snake(by)
    return (
        Rule(
            f"self.{by} == '{value}' ? has(self.{alias}) : true",
            f"{alias} is required when {by} is {value}",
            lambda part: getattr(part, chosen) != value or getattr(part, name) is not None,
        ),
        Rule(
            f"has(self.{alias}) ? self.{by} == '{value}' : true",
            f"{alias} must not be set unless {by} is {value}",
            lambda part: getattr(part, name) is None or getattr(part, chosen) == value,
        ),
    )


class ParentReference(KubeModel):
    group: Group = Field("gateway.networking.k8s.io", description="API group of the parent.")
    kind: KindName = Field("Gateway", description="Kind of the parent.")
    namespace: Namespace | None = None
    """Namespace of the parent. Defaults to the namespace of the route."""
    name: Text253 = Field(description="Name of the parent.")
    section_name: SectionName | None = None
    """Name of the parent's listener to attach to. Defaults to all."""
    port: PortNumber | None = Field(None, description="Port of the listeners to attach to. Defaults to all.")


class BackendObjectReference(KubeModel):
    constraints = (
        Rule(
            "(!has(self.group) || size(self.group) == 0) && (!has(self.kind) || self.kind == 'Service') "
            "? has(self.port) : true",
            "port is required for a reference to a Service",
            lambda backend: backend.group != "" or backend.kind != "Service" or backend.port is not None,
        ),
    )

    group: Group = Field("", description="API group of the backend. Defaults to the core group, which has Services.")
    kind: KindName = Field("Service", description="Kind of the backend.")
    name: Text253 = Field(description="Name of the backend.")
    namespace: Namespace | None = None
    """Namespace of the backend. Defaults to the namespace of the route."""
    port: PortNumber | None = Field(None, description="Port of the backend. Required for a Service.")


# Filters: what happens to requests on their way.


class HTTPHeader(KubeModel):
    name: HeaderName = Field(description="Name of the header, case-insensitive.")
    value: str = Field(description="Value of the header.", min_length=1, max_length=4096)


class HTTPHeaderFilter(KubeModel):
    set: list[HTTPHeader] | None = _items(MAX_HEADERS, "Headers to set. Existing values are replaced.", BY_NAME)
    add: list[HTTPHeader] | None = _items(16, "Headers to add. Existing values are kept.", BY_NAME)
    remove: list[str] | None = _items(16, "Names of the headers to remove.", SET)


class Fraction(KubeModel):
    constraints = (
        Rule(
            "self.numerator <= self.denominator",
            "numerator must be less than or equal to denominator",
            lambda fraction: fraction.numerator <= fraction.denominator,
        ),
    )

    numerator: Int32 = Field(description="Numerator of the fraction.", ge=0)
    denominator: Int32 = Field(100, description="Denominator of the fraction.", ge=1)


class HTTPRequestMirrorFilter(KubeModel):
    constraints = (
        Rule(
            "!(has(self.percent) && has(self.fraction))",
            "percent and fraction are mutually exclusive",
            lambda mirror: mirror.percent is None or mirror.fraction is None,
        ),
    )

    backend_ref: BackendObjectReference = Field(description="Backend that receives the copies.")
    percent: Int32 | None = Field(None, description="Percentage of requests to mirror. Defaults to 100.", ge=0, le=100)
    fraction: Fraction | None = Field(None, description="Fraction of requests to mirror.")


class HTTPPathModifier(KubeModel):
    constraints: ClassVar[tuple[Rule, ...]] = (
        *_chosen("type", "ReplaceFullPath", "replaceFullPath"),
        *_chosen("type", "ReplacePrefixMatch", "replacePrefixMatch"),
    )

    type: Literal["ReplaceFullPath", "ReplacePrefixMatch"] = Field(description="Part of the path to replace.")
    replace_full_path: str | None = Field(None, description="Path in place of the whole path.", max_length=1024)
    replace_prefix_match: str | None = Field(None, description="Path in place of the matched prefix.", max_length=1024)


class HTTPRequestRedirectFilter(KubeModel):
    scheme: Literal["http", "https"] | None = None
    """Scheme of the Location header. Defaults to the request's."""
    hostname: PreciseHostname | None = None
    """Hostname of the Location header. Defaults to the request's."""
    path: HTTPPathModifier | None = None
    """Change of the path in the Location header. Defaults to the path of the request."""
    port: PortNumber | None = None
    """Port of the Location header. Defaults to the port of the scheme or the listener."""
    status_code: Annotated[Literal[301, 302, 303, 307, 308], _NEWER_CODES] = Field(
        302, description=f"Status code of the response; {_NEWER_CODES}."
    )


class HTTPURLRewriteFilter(KubeModel):
    hostname: PreciseHostname | None = Field(None, description="Hostname in the request to the backend.")
    path: HTTPPathModifier | None = Field(None, description="Change of the path in the request to the backend.")


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
    allow_origins: Annotated[list[Origin] | None, _ANY_ALONE] = _items(64, "Origins that may send requests.", SET)
    allow_credentials: bool | None = Field(None, description="Whether requests may have credentials.")
    allow_methods: Annotated[list[CORSMethod] | None, _ANY_ALONE] = _items(9, "Methods that requests may use.", SET)
    allow_headers: list[HeaderName] | None = _items(64, "Headers that requests may have.", SET)
    expose_headers: list[HeaderName] | None = _items(64, "Response headers that clients may read.", SET)
    max_age: Int32 = Field(5, description="Maximum time to cache a preflight response, in seconds.", ge=1)


class GRPCAuthConfig(KubeModel):
    allowed_headers: list[str] | None = _items(64, "Request headers to send to the authorization server.", SET)


class HTTPAuthConfig(KubeModel):
    path: str | None = Field(None, description="Path prefix of the server.", max_length=1024, pattern=PATH_CHARACTERS)
    allowed_headers: list[str] | None = _items(64, "Request headers to send to the authorization server.", SET)
    allowed_response_headers: list[str] | None = _items(64, "Response headers to copy into the request.", SET)


class ForwardBodyConfig(KubeModel):
    max_size: Int32 | None = Field(None, description="Maximum size of the body to forward, in bytes.", ge=0)


class HTTPExternalAuthFilter(KubeModel):
    constraints = (
        *_chosen("protocol", "GRPC", "grpc"),
        *_chosen("protocol", "HTTP", "http"),
    )

    protocol: Literal["HTTP", "GRPC"] = Field(description="Protocol of the authorization server.")
    backend_ref: BackendObjectReference = Field(description="Authorization server.")
    grpc: GRPCAuthConfig | None = Field(None, description="Options for protocol GRPC.")
    http: HTTPAuthConfig | None = Field(None, description="Options for protocol HTTP.")
    forward_body: ForwardBodyConfig | None = None
    """Forwards the request body to the authorization server. Defaults to no body."""


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
        f"{alias} must be set if type is {type_}, and must not be set otherwise",
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
        "RequestRedirect and URLRewrite are mutually exclusive",
        lambda filters: not {"RequestRedirect", "URLRewrite"} <= {part.type for part in filters},
    ),
    *map(_once, ("RequestHeaderModifier", "ResponseHeaderModifier", "RequestRedirect", "URLRewrite", "CORS")),
)


class HTTPRouteFilter(KubeModel):
    constraints = tuple(_belongs(*pair) for pair in FILTER_FIELDS.items())

    type: FilterType = Field(description="Type of the filter. Decides which of the other fields must be set.")
    request_header_modifier: HTTPHeaderFilter | None = Field(None, description="Changes to the headers of requests.")
    response_header_modifier: HTTPHeaderFilter | None = Field(None, description="Changes to the headers of responses.")
    request_mirror: HTTPRequestMirrorFilter | None = Field(None, description="Mirrors requests to another backend.")
    request_redirect: HTTPRequestRedirectFilter | None = Field(None, description="Redirects requests.")
    url_rewrite: HTTPURLRewriteFilter | None = Field(None, description="Rewrites the URL of requests.")
    cors: Annotated[HTTPCORSFilter | None, _NEWER] = Field(None, description=f"Cross-origin requests (CORS); {_NEWER}.")
    external_auth: Annotated[HTTPExternalAuthFilter | None, _EXPERIMENTAL] = None
    """External authorization. Experimental in the Gateway API."""
    extension_ref: LocalExtensionReference | None = None
    """Filter of the Gateway's implementation."""


ROOT_PATH = {"type": "PathPrefix", "value": "/"}
DEFAULT_MATCHES: list[dict[str, Any]] = [{"path": ROOT_PATH}]
DEFAULT_RULES: list[dict[str, Any]] = [{"matches": DEFAULT_MATCHES}]
"""The schema's default for a route without rules: every request, no backend."""


class HTTPBackendRef(BackendObjectReference):
    weight: Int32 = Field(1, description="Weight, relative to the sum of all weights.", ge=0, le=1000000)
    filters: Annotated[list[HTTPRouteFilter] | None, FILTER_RULES] = _items(
        16, "Filters for requests to this backend.", ATOMIC
    )


def _literal(condition: str, rendered: str, holds: Callable[[str], bool]) -> Rule:
    """A rule for paths that are not regular expressions."""
    return Rule(
        f"(self.type in ['Exact','PathPrefix']) ? {condition} : true",
        f"{rendered} when type is Exact or PathPrefix",
        lambda match: match.type == "RegularExpression" or holds(match.value),
    )


def _without(part: str) -> Rule:
    return _literal(f"!self.value.contains('{part}')", f"must not contain '{part}'", lambda value: part not in value)


def _not_at_the_end(end: str) -> Rule:
    condition, phrase = f"!self.value.endsWith('{end}')", f"must not end with '{end}'"
    return _literal(condition, phrase, lambda value: not value.endswith(end))


class HTTPPathMatch(KubeModel):
    constraints = (
        _literal("self.value.startsWith('/')", "must start with '/'", lambda value: value.startswith("/")),
        *map(_without, ("//", "/./", "/../", "%2f", "%2F", "#")),
        *map(_not_at_the_end, ("/..", "/.")),
        _literal(
            f'self.value.matches(r"""{PATH_CHARACTERS}""")',
            "must contain only characters that are valid in a URL path",
            lambda value: re.fullmatch(PATH_CHARACTERS, value) is not None,
        ),
    )

    type: Literal["Exact", "PathPrefix", "RegularExpression"] = Field("PathPrefix", description="Match type.")
    value: str = Field("/", description="Value to match.", max_length=1024)


class HTTPHeaderMatch(KubeModel):
    type: Literal["Exact", "RegularExpression"] = Field("Exact", description="Match type.")
    name: HeaderName = Field(description="Name of the header.")
    value: str = Field(description="Value to match.", min_length=1, max_length=4096)


class HTTPQueryParamMatch(KubeModel):
    type: Literal["Exact", "RegularExpression"] = Field("Exact", description="Match type.")
    name: HeaderName = Field(description="Name of the query parameter.")
    value: str = Field(description="Value to match.", min_length=1, max_length=1024)


class HTTPRouteMatch(KubeModel):
    """Conditions for a request; all of them must be met."""

    path: HTTPPathMatch | None = Field(None, description="Path.", json_schema_extra={"default": dict(ROOT_PATH)})
    headers: list[HTTPHeaderMatch] | None = _items(16, "Headers; all must match.", BY_NAME)
    query_params: list[HTTPQueryParamMatch] | None = _items(16, "Query parameters; all must match.", BY_NAME)
    method: Method | None = Field(None, description="Method.")


def milliseconds(duration: str | None) -> int:
    """Parse a Gateway API duration such as ``1m30s``; 0 for none."""
    return sum(int(number) * _UNITS[unit] for number, unit in _DURATION.findall(duration or ""))


class HTTPRouteTimeouts(KubeModel):
    constraints = (
        Rule(
            "!(has(self.request) && has(self.backendRequest) && duration(self.request) != duration('0s') && "
            "duration(self.backendRequest) > duration(self.request))",
            "backendRequest must not be longer than request",
            lambda times: (
                milliseconds(times.backend_request)
                <= (milliseconds(times.request) or milliseconds(times.backend_request))
            ),
        ),
    )

    request: Duration | None = None
    """Timeout of a request from the client's point of view, retries included. 0s disables it."""
    backend_request: Duration | None = Field(None, description="Timeout of one request from the gateway to a backend.")


class HTTPRouteRetry(KubeModel):
    codes: list[Annotated[int, Field(ge=400, le=599)]] | None = Field(None, json_schema_extra=ATOMIC)
    """Response status codes for which a request is retried."""
    attempts: int | None = Field(None, description="Maximum number of retries.")
    backoff: Duration | None = Field(None, description="Minimum time between two attempts.")


class CookieConfig(KubeModel):
    lifetime_type: Literal["Permanent", "Session"] = Field("Session", description="Lifetime of the cookie.")


class SessionPersistence(KubeModel):
    constraints = (
        Rule(
            "!has(self.cookieConfig) || !has(self.cookieConfig.lifetimeType) || "
            "self.cookieConfig.lifetimeType != 'Permanent' || has(self.absoluteTimeout)",
            "absoluteTimeout is required when cookieConfig.lifetimeType is Permanent",
            lambda session: (
                session.cookie_config is None
                or session.cookie_config.lifetime_type != "Permanent"
                or session.absolute_timeout is not None
            ),
        ),
    )

    session_name: str | None = Field(None, description="Name of the session token.", max_length=128)
    absolute_timeout: Duration | None = Field(None, description="Maximum duration of a session.")
    idle_timeout: Duration | None = Field(None, description="Maximum idle time of a session.")
    type: Literal["Cookie", "Header"] = Field("Cookie", description="Carrier of the session token.")
    cookie_config: CookieConfig | None = Field(None, description="Options for type Cookie.")


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
        f"{'in backendRefs, ' if backends else ''}{alias} with replacePrefixMatch requires exactly one match, of type "
        "PathPrefix",
        holds,
    )


class HTTPRouteRule(KubeModel):
    constraints = (
        Rule(
            "(has(self.backendRefs) && size(self.backendRefs) > 0) ? "
            "(!has(self.filters) || self.filters.all(f, !has(f.requestRedirect))) : true",
            "RequestRedirect and backendRefs are mutually exclusive",
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
        "Matches of the rule. The rule applies to requests that meet any of them.",
        ATOMIC | {"default": DEFAULT_MATCHES},
    )
    filters: Annotated[list[HTTPRouteFilter] | None, FILTER_RULES] = _items(16, "Filters for requests.", ATOMIC)
    backend_refs: list[HTTPBackendRef] | None = _items(16, "Backends of requests that match.", ATOMIC)
    timeouts: HTTPRouteTimeouts | None = Field(None, description="Timeouts of requests.")
    retry: Annotated[HTTPRouteRetry | None, _EXPERIMENTAL] = Field(None, description="Retries of failed requests.")
    session_persistence: Annotated[SessionPersistence | None, _EXPERIMENTAL] = None
    """Session persistence: requests of a session go to the same backend."""


def has_room(rules: Sequence[Json]) -> bool:
    """Report whether the API server accepts a route of so many rules and matches."""
    matches = [len(rule.get("matches") or ()) for rule in rules]
    return len(rules) <= MAX_RULES and max(matches, default=0) <= MAX_MATCHES and sum(matches) <= MAX_ALL_MATCHES


ROUTE_RULES = Rules(
    Rule(
        " + ".join(f"(self.size() > {n} ? self[{n}].matches.size() : 0)" for n in range(MAX_RULES))
        + f" <= {MAX_ALL_MATCHES}",
        f"the total number of matches of all rules must be at most {MAX_ALL_MATCHES}",
        lambda rules: sum(len(rule.matches or DEFAULT_MATCHES) for rule in rules) <= MAX_ALL_MATCHES,
    ),
)


class HTTPRouteSpec(KubeModel):
    parent_refs: list[ParentReference] | None = _items(32, "Parents of the route, usually Gateways.", ATOMIC)
    use_default_gateways: Annotated[Literal["All", "None"] | None, _EXPERIMENTAL] = None
    """Scope of the default Gateways to attach to, in addition to parentRefs."""
    hostnames: list[RouteHostname] | None = _items(16, "Hostnames of the route. Defaults to all.", ATOMIC)
    rules: Annotated[list[HTTPRouteRule] | None, ROUTE_RULES] = Field(
        None, max_length=MAX_RULES, json_schema_extra=ATOMIC | {"default": DEFAULT_RULES}
    )
    """Routing rules. A list that is the API server's default counts as none."""
