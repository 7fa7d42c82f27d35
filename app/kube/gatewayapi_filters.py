"""The filters of the Gateway API's HTTPRoute, v1.4: what happens to requests on their way."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints

from app.kube.base import Int32, KubeModel, pattern
from app.kube.gatewayapi_types import (
    BY_NAME,
    PATH_CHARACTERS,
    SET,
    BackendObjectReference,
    CORSMethod,
    Group,
    HeaderName,
    KindName,
    PortNumber,
    PreciseHostname,
    Text253,
    cel,
)

_ORIGIN_PATTERN = pattern(
    r"(^\*$)|(^([a-zA-Z][a-zA-Z0-9+\-.]+):\/\/([^:/?#]+)(:([0-9]{1,5}))?$)",
    "must be an origin, for example https://chat.example.com, or *",
)


class HTTPHeader(KubeModel):
    name: HeaderName = Field(description="Name of the header, in any case.")
    value: str = Field(description="Value of the header.", min_length=1, max_length=4096)


class HTTPHeaderFilter(KubeModel):
    """Headers to change."""

    set: list[HTTPHeader] | None = Field(
        None, description="Headers to write over.", max_length=16, json_schema_extra=BY_NAME
    )
    add: list[HTTPHeader] | None = Field(
        None, description="Headers to append a value to.", max_length=16, json_schema_extra=BY_NAME
    )
    remove: list[str] | None = Field(None, description="Headers to take away.", max_length=16, json_schema_extra=SET)


class Fraction(KubeModel):
    model_config = ConfigDict(
        json_schema_extra=cel(("self.numerator <= self.denominator", "a fraction is at most one"))
    )

    numerator: Int32 = Field(description="Upper part of the fraction.", ge=0)
    denominator: Int32 = Field(100, description="Lower part of the fraction.", ge=1)


class HTTPRequestMirrorFilter(KubeModel):
    """Sends a copy of requests elsewhere."""

    model_config = ConfigDict(
        json_schema_extra=cel(("!(has(self.percent) && has(self.fraction))", "set percent or fraction, not both"))
    )

    backend_ref: BackendObjectReference = Field(description="Where the copies go.")
    percent: Int32 | None = Field(None, description="Share of requests that are copied, in percent.", ge=0, le=100)
    fraction: Fraction | None = Field(None, description="Share of requests that are copied, as a fraction.")


_MODIFIER_CEL = cel(
    (
        "self.type == 'ReplaceFullPath' ? has(self.replaceFullPath) : true",
        "ReplaceFullPath needs replaceFullPath",
    ),
    (
        "has(self.replaceFullPath) ? self.type == 'ReplaceFullPath' : true",
        "replaceFullPath belongs to type ReplaceFullPath",
    ),
    (
        "self.type == 'ReplacePrefixMatch' ? has(self.replacePrefixMatch) : true",
        "ReplacePrefixMatch needs replacePrefixMatch",
    ),
    (
        "has(self.replacePrefixMatch) ? self.type == 'ReplacePrefixMatch' : true",
        "replacePrefixMatch belongs to type ReplacePrefixMatch",
    ),
)


class HTTPPathModifier(KubeModel):
    """How a path is rewritten."""

    model_config = ConfigDict(json_schema_extra=_MODIFIER_CEL)

    type: Literal["ReplaceFullPath", "ReplacePrefixMatch"] = Field(description="What is replaced.")
    replace_full_path: str | None = Field(None, description="The new path.", max_length=1024)
    replace_prefix_match: str | None = Field(None, description="What stands for the matched prefix.", max_length=1024)


class HTTPRequestRedirectFilter(KubeModel):
    """Answers with a redirection."""

    scheme: Literal["http", "https"] | None = Field(None, description="Scheme of the new location.")
    hostname: PreciseHostname | None = Field(None, description="Host of the new location.")
    path: HTTPPathModifier | None = Field(None, description="Path of the new location.")
    port: PortNumber | None = Field(None, description="Port of the new location.")
    status_code: Literal[301, 302] = Field(302, description="Status code of the answer.")


class HTTPURLRewriteFilter(KubeModel):
    """Changes a request's URL on its way to the backend."""

    hostname: PreciseHostname | None = Field(None, description="Host that the backend sees.")
    path: HTTPPathModifier | None = Field(None, description="Path that the backend sees.")


class LocalExtensionReference(KubeModel):
    group: Group = Field(description="API group of the extension.")
    kind: KindName = Field(description="Kind of the extension.")
    name: Text253 = Field(description="Name of the extension.")


class HTTPCORSFilter(KubeModel):
    """Answers cross-origin requests."""

    allow_origins: (
        list[
            Annotated[
                str,
                StringConstraints(
                    min_length=1,
                    max_length=253,
                    pattern=_ORIGIN_PATTERN,
                ),
            ]
        ]
        | None
    ) = Field(
        None,
        description="Origins that may ask.",
        max_length=64,
        json_schema_extra=SET | cel(("!('*' in self && self.size() > 1)", "'*' stands alone")),
    )
    allow_credentials: bool | None = Field(None, description="Whether requests may carry credentials.")
    allow_methods: list[CORSMethod] | None = Field(
        None,
        description="Methods that may be used.",
        max_length=9,
        json_schema_extra=SET | cel(("!('*' in self && self.size() > 1)", "'*' stands alone")),
    )
    allow_headers: list[HeaderName] | None = Field(
        None, description="Request headers that may be used.", max_length=64, json_schema_extra=SET
    )
    expose_headers: list[HeaderName] | None = Field(
        None, description="Response headers that may be read.", max_length=64, json_schema_extra=SET
    )
    max_age: Int32 = Field(5, description="Seconds that a preflight answer is kept.", ge=1)


class GRPCAuthConfig(KubeModel):
    allowed_headers: list[str] | None = Field(
        None, description="Request headers the service gets.", max_length=64, json_schema_extra=SET
    )


class HTTPAuthConfig(KubeModel):
    path: str | None = Field(None, description="Path that is asked.", max_length=1024, pattern=PATH_CHARACTERS)
    allowed_headers: list[str] | None = Field(
        None, description="Request headers the service gets.", max_length=64, json_schema_extra=SET
    )
    allowed_response_headers: list[str] | None = Field(
        None, description="Headers of its answer that go to the backend.", max_length=64, json_schema_extra=SET
    )


class ForwardBodyConfig(KubeModel):
    max_size: Int32 | None = Field(None, description="Bytes of the body that are sent along.", ge=0)


class HTTPExternalAuthFilter(KubeModel):
    """Asks a service whether a request may pass."""

    model_config = ConfigDict(
        json_schema_extra=cel(
            ("self.protocol == 'GRPC' ? has(self.grpc) : true", "protocol GRPC needs grpc"),
            ("has(self.grpc) ? self.protocol == 'GRPC' : true", "grpc belongs to protocol GRPC"),
            ("self.protocol == 'HTTP' ? has(self.http) : true", "protocol HTTP needs http"),
            ("has(self.http) ? self.protocol == 'HTTP' : true", "http belongs to protocol HTTP"),
        )
    )

    protocol: Literal["HTTP", "GRPC"] = Field(description="How the service is asked.")
    backend_ref: BackendObjectReference = Field(description="The service.")
    grpc: GRPCAuthConfig | None = Field(None, description="How it is asked over gRPC.")
    http: HTTPAuthConfig | None = Field(None, description="How it is asked over HTTP.")
    forward_body: ForwardBodyConfig | None = Field(None, description="Whether the body goes along.")


FILTER_FIELDS = {
    "RequestHeaderModifier": "request_header_modifier",
    "ResponseHeaderModifier": "response_header_modifier",
    "RequestMirror": "request_mirror",
    "RequestRedirect": "request_redirect",
    "URLRewrite": "url_rewrite",
    "ExtensionRef": "extension_ref",
}
"""The field that belongs to each type of filter."""

FILTER_ALIASES = {
    "RequestHeaderModifier": "requestHeaderModifier",
    "ResponseHeaderModifier": "responseHeaderModifier",
    "RequestMirror": "requestMirror",
    "RequestRedirect": "requestRedirect",
    "URLRewrite": "urlRewrite",
    "ExtensionRef": "extensionRef",
}

_FILTER_CEL = cel(
    *(
        (f"has(self.{alias}) == (self.type == '{type_}')", f"{alias} is set for type {type_}, and only then")
        for type_, alias in FILTER_ALIASES.items()
    )
)
FILTERS_CEL: dict[str, Any] = cel(
    (
        "!(self.exists(f, f.type == 'RequestRedirect') && self.exists(f, f.type == 'URLRewrite'))",
        "RequestRedirect and URLRewrite exclude each other",
    ),
    *(
        (f"self.filter(f, f.type == '{type_}').size() <= 1", f"{type_} stands only once")
        for type_ in ("RequestHeaderModifier", "ResponseHeaderModifier", "RequestRedirect", "URLRewrite")
    ),
)


class HTTPRouteFilter(KubeModel):
    """One step of a request's way."""

    model_config = ConfigDict(json_schema_extra=_FILTER_CEL)

    type: Literal[
        "RequestHeaderModifier",
        "ResponseHeaderModifier",
        "RequestMirror",
        "RequestRedirect",
        "URLRewrite",
        "ExtensionRef",
    ] = Field(description="Which of the fields below applies.")
    request_header_modifier: HTTPHeaderFilter | None = Field(None, description="Changes request headers.")
    response_header_modifier: HTTPHeaderFilter | None = Field(None, description="Changes response headers.")
    request_mirror: HTTPRequestMirrorFilter | None = Field(None, description="Copies requests.")
    request_redirect: HTTPRequestRedirectFilter | None = Field(None, description="Redirects.")
    url_rewrite: HTTPURLRewriteFilter | None = Field(None, description="Rewrites the URL.")
    cors: HTTPCORSFilter | None = Field(None, description="Cross-origin requests; experimental in the Gateway API.")
    external_auth: HTTPExternalAuthFilter | None = Field(
        None, description="External authorisation; experimental in the Gateway API."
    )
    extension_ref: LocalExtensionReference | None = Field(None, description="A filter of the implementation's own.")
