"""The Gateway API's HTTPRouteSpec, v1.4: what a user may write where we make an HTTPRoute.

The types carry the schema's own limits; rules between fields stand beside them as CEL for the CRD, and
:mod:`app.kube.gatewayapi_rules` answers them where no API server did.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from app.kube.base import Int32, KubeModel
from app.kube.gatewayapi_filters import (
    FILTERS_CEL,
    HTTPRouteFilter,
)
from app.kube.gatewayapi_types import (
    ATOMIC,
    BY_NAME,
    PATH_CHARACTERS,
    BackendObjectReference,
    Duration,
    HeaderName,
    Method,
    ParentReference,
    RouteHostname,
    SectionName,
    cel,
)

ROOT_PATH = {"type": "PathPrefix", "value": "/"}
DEFAULT_MATCHES: list[dict[str, Any]] = [{"path": ROOT_PATH}]
DEFAULT_RULES: list[dict[str, Any]] = [{"matches": DEFAULT_MATCHES}]
"""What the schema puts where a route has no rules: everything, to no backend."""


class HTTPBackendRef(BackendObjectReference):
    """A backend with its share of the traffic."""

    weight: Int32 = Field(1, description="Share of the traffic, relative to the sum of all.", ge=0, le=1000000)
    filters: list[HTTPRouteFilter] | None = Field(
        None,
        description="Steps for requests to this backend only.",
        max_length=16,
        json_schema_extra=ATOMIC | FILTERS_CEL,
    )


PATH_START = "an Exact or PathPrefix path starts with '/'"
_EXACT = "self.type in ['Exact','PathPrefix']"
_PATH_CEL = cel(
    (f"({_EXACT}) ? self.value.startsWith('/') : true", PATH_START),
    *(
        (f"({_EXACT}) ? !self.value.contains('{part}') : true", f"an Exact or PathPrefix path has no '{part}'")
        for part in ("//", "/./", "/../", "%2f", "%2F", "#")
    ),
    *(
        (f"({_EXACT}) ? !self.value.endsWith('{end}') : true", f"an Exact or PathPrefix path does not end in '{end}'")
        for end in ("/..", "/.")
    ),
    (
        f'({_EXACT}) ? self.value.matches(r"""{PATH_CHARACTERS}""") : true',
        "an Exact or PathPrefix path has only characters that URLs allow",
    ),
)


class HTTPPathMatch(KubeModel):
    """Which paths match."""

    model_config = ConfigDict(json_schema_extra=_PATH_CEL)

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
    headers: list[HTTPHeaderMatch] | None = Field(
        None, description="By headers.", max_length=16, json_schema_extra=BY_NAME
    )
    query_params: list[HTTPQueryParamMatch] | None = Field(
        None, description="By query parameters.", max_length=16, json_schema_extra=BY_NAME
    )
    method: Method | None = Field(None, description="By method.")


class HTTPRouteTimeouts(KubeModel):
    model_config = ConfigDict(
        json_schema_extra=cel(
            (
                (
                    "!(has(self.request) && has(self.backendRequest) && duration(self.request) != duration('0s') && "
                    "duration(self.backendRequest) > duration(self.request))"
                ),
                "backendRequest is at most as long as request",
            )
        )
    )

    request: Duration | None = Field(None, description="Longest time for the whole exchange; 0s for no limit.")
    backend_request: Duration | None = Field(None, description="Longest time for one try at a backend.")


class HTTPRouteRetry(KubeModel):
    codes: list[Annotated[int, Field(ge=400, le=599)]] | None = Field(
        None, description="Status codes after which to try again.", json_schema_extra=ATOMIC
    )
    attempts: int | None = Field(None, description="How often to try again.")
    backoff: Duration | None = Field(None, description="Shortest time between two tries.")


class CookieConfig(KubeModel):
    lifetime_type: Literal["Permanent", "Session"] = Field("Session", description="How long the cookie lives.")


class SessionPersistence(KubeModel):
    """Sends one client's requests to one backend."""

    model_config = ConfigDict(
        json_schema_extra=cel(
            (
                (
                    "!has(self.cookieConfig) || !has(self.cookieConfig.lifetimeType) || "
                    "self.cookieConfig.lifetimeType != 'Permanent' || has(self.absoluteTimeout)"
                ),
                "a Permanent cookie needs absoluteTimeout",
            )
        )
    )

    session_name: str | None = Field(None, description="Name of the session's token.", max_length=128)
    absolute_timeout: Duration | None = Field(None, description="Longest life of a session.")
    idle_timeout: Duration | None = Field(None, description="Longest pause within a session.")
    type: Literal["Cookie", "Header"] = Field("Cookie", description="What carries the token.")
    cookie_config: CookieConfig | None = Field(None, description="Details of the cookie.")


def _one_prefix(filters: str, where: str) -> tuple[tuple[str, str], ...]:
    """Replacing a prefix needs one to replace."""
    rules = []
    for alias in ("requestRedirect", "urlRewrite"):
        replaces = (
            f"has(f.{alias}) && has(f.{alias}.path) && f.{alias}.path.type == 'ReplacePrefixMatch' && "
            f"has(f.{alias}.path.replacePrefixMatch)"
        )
        rules.append(
            (
                (
                    f"{filters.format(replaces)} ? "
                    "size(self.matches) == 1 && "
                    "(!has(self.matches[0].path) || self.matches[0].path.type == 'PathPrefix') : true"
                ),
                f"{where}{alias} with replacePrefixMatch needs exactly one match, of type PathPrefix",
            )
        )
    return tuple(rules)


_RULE_CEL = cel(
    (
        (
            "(has(self.backendRefs) && size(self.backendRefs) > 0) ? "
            "(!has(self.filters) || self.filters.all(f, !has(f.requestRedirect))) : true"
        ),
        "RequestRedirect excludes backendRefs",
    ),
    *_one_prefix("(has(self.filters) && self.filters.exists_one(f, {}))", ""),
    *_one_prefix(
        "(has(self.backendRefs) && self.backendRefs.exists_one(b, has(b.filters) && b.filters.exists_one(f, {})))",
        "in backendRefs, ",
    ),
)


class HTTPRouteRule(KubeModel):
    """What happens to the requests that match."""

    model_config = ConfigDict(json_schema_extra=_RULE_CEL)

    name: SectionName | None = Field(None, description="Name of the rule.")
    matches: list[HTTPRouteMatch] | None = Field(
        None,
        description="Requests that the rule is for: those that any of these fits.",
        max_length=64,
        json_schema_extra=ATOMIC | {"default": DEFAULT_MATCHES},
    )
    filters: list[HTTPRouteFilter] | None = Field(
        None, description="Steps on the way.", max_length=16, json_schema_extra=ATOMIC | FILTERS_CEL
    )
    backend_refs: list[HTTPBackendRef] | None = Field(
        None, description="Where the requests go.", max_length=16, json_schema_extra=ATOMIC
    )
    timeouts: HTTPRouteTimeouts | None = Field(None, description="Time limits.")
    retry: HTTPRouteRetry | None = Field(None, description="When to try again.")
    session_persistence: SessionPersistence | None = Field(None, description="Keeps clients at their backend.")


MATCHES_CEL: dict[str, Any] = cel(
    (
        " + ".join(f"(self.size() > {n} ? self[{n}].matches.size() : 0)" for n in range(16)) + " <= 128",
        "all rules together have at most 128 matches",
    )
)


class HTTPRouteSpec(KubeModel):
    """Content of an HTTPRoute."""

    parent_refs: list[ParentReference] | None = Field(
        None, description="Gateways that serve the route.", max_length=32, json_schema_extra=ATOMIC
    )
    use_default_gateways: Literal["All", "None"] | None = Field(
        None, description="Whether the cluster's default Gateways serve it too."
    )
    hostnames: list[RouteHostname] | None = Field(
        None, description="Hosts that the route is for; any when not set.", max_length=16, json_schema_extra=ATOMIC
    )
    rules: list[HTTPRouteRule] | None = Field(
        None,
        description="What happens to requests, first match first. A list that the API server filled in counts as none.",
        max_length=16,
        json_schema_extra=ATOMIC | MATCHES_CEL | {"default": DEFAULT_RULES},
    )
