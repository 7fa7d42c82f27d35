"""The Gateway API's vocabulary, v1.4: names, patterns, references. Routes are in :mod:`app.kube.gatewayapi`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints

from app.kube.base import Int32, KubeModel, pattern
from app.kube.names import SUBDOMAIN

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
Duration = Annotated[str, StringConstraints(pattern=_DURATION_PATTERN)]
Method = Literal["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"]
CORSMethod = Literal["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "*"]
PortNumber = Annotated[Int32, Field(ge=1, le=65535)]

ATOMIC: dict[str, Any] = {"x-kubernetes-list-type": "atomic"}
SET: dict[str, Any] = {"x-kubernetes-list-type": "set"}
BY_NAME: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}


def cel(*rules: tuple[str, str]) -> dict[str, Any]:
    """A type's CEL rules, for its ``json_schema_extra``."""
    return {"x-kubernetes-validations": [{"rule": rule, "message": message} for rule, message in rules]}


PORT_OF_SERVICE = "a reference to a Service needs a port"
_BACKEND_CEL = cel(
    (
        (
            "(!has(self.group) || size(self.group) == 0) && (!has(self.kind) || self.kind == 'Service') "
            "? has(self.port) : true"
        ),
        PORT_OF_SERVICE,
    )
)


class ParentReference(KubeModel):
    """The Gateway, or another resource, that a route attaches to."""

    group: Group = Field("gateway.networking.k8s.io", description="API group of the parent.")
    kind: KindName = Field("Gateway", description="Kind of the parent.")
    namespace: Namespace | None = Field(None, description="Namespace of the parent; the route's own when not set.")
    name: Text253 = Field(description="Name of the parent.")
    section_name: SectionName | None = Field(None, description="The one listener of the parent to attach to.")
    port: PortNumber | None = Field(None, description="Attach only to listeners on this port.")


class BackendObjectReference(KubeModel):
    """An object that takes traffic."""

    model_config = ConfigDict(json_schema_extra=_BACKEND_CEL)

    group: Group = Field("", description="API group of the backend; empty for a Service.")
    kind: KindName = Field("Service", description="Kind of the backend.")
    name: Text253 = Field(description="Name of the backend.")
    namespace: Namespace | None = Field(None, description="Namespace of the backend; the route's own when not set.")
    port: PortNumber | None = Field(None, description="Port of the backend; a Service needs one.")
