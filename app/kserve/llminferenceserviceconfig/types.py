"""``LLMInferenceServiceConfig``: the same spec, where templates fit in. Source: KS-1.1.

Every relaxation is one that upstream's ``v1alpha2`` has for this kind, or that presets cannot be stored without.
"""

from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from pydantic import Field

from app.kserve import gatewayapi
from app.kserve.llminferenceservice import types
from app.kube.base import with_types
from app.kube.fieldclass import HONOURED, no_effect

_RULES: Any = gatewayapi.DEFAULT_RULES


class ConfigModelSpec(types.LLMModelSpec):
    uri: Annotated[str, HONOURED] = Field(
        "", description="Where the model is, as in a service. A config may leave it out."
    )


class TemplatedParentReference(gatewayapi.ParentReference):
    namespace: str | None = Field(
        None, description="Namespace of the parent, may be a template; the route's own when not set."
    )
    name: str = Field(description="Name of the parent, may be a template.", min_length=1)


class TemplatedPathMatch(gatewayapi.HTTPPathMatch):
    constraints = ()  # they are for what the template renders to

    value: str = Field("/", description="What to compare with, may be a template.")


class TemplatedHeaderMatch(gatewayapi.HTTPHeaderMatch):
    name: str = Field(description="Name of the header, may be a template.", min_length=1, max_length=256)


@with_types(headers=list[TemplatedHeaderMatch] | None)
class TemplatedRouteMatch(gatewayapi.HTTPRouteMatch):
    """Which requests match, with templates."""

    path: TemplatedPathMatch | None = Field(
        None, description="By path.", json_schema_extra={"default": dict(gatewayapi.ROOT_PATH)}
    )


class TemplatedPathModifier(gatewayapi.HTTPPathModifier):
    constraints = ()

    replace_full_path: str | None = Field(None, description="The new path, may be a template.")
    replace_prefix_match: str | None = Field(None, description="Replacement of the prefix; may be a template.")


class TemplatedURLRewrite(gatewayapi.HTTPURLRewriteFilter):
    path: TemplatedPathModifier | None = Field(None, description="Path that the backend sees.")


class TemplatedRouteFilter(gatewayapi.HTTPRouteFilter):
    url_rewrite: TemplatedURLRewrite | None = Field(None, description="Rewrites the URL.")


class TemplatedBackendRef(gatewayapi.HTTPBackendRef):
    name: str = Field(description="Name of the backend, may be a template.", min_length=1)


@with_types(
    matches=list[TemplatedRouteMatch] | None,
    filters=list[TemplatedRouteFilter] | None,
    backend_refs=list[TemplatedBackendRef] | None,
)
class TemplatedRouteRule(gatewayapi.HTTPRouteRule):
    """A rule of an HTTPRoute, with templates."""


@with_types(
    parent_refs=list[TemplatedParentReference] | None,
    rules=(
        Annotated[list[TemplatedRouteRule] | None, gatewayapi.ROUTE_RULES],
        Field(
            None,
            description="What happens to requests. A list that the API server filled in counts as none.",
            max_length=16,
            json_schema_extra={**gatewayapi.ATOMIC, "default": _RULES},
        ),
    ),
)
class TemplatedHTTPRouteSpec(gatewayapi.HTTPRouteSpec):
    """Content of the managed HTTPRoute, with templates."""


class ConfigHTTPRoute(types.HTTPRouteConfig):
    spec: Annotated[TemplatedHTTPRouteSpec | None, types.ROUTE_SPEC] = Field(
        None, description="Content of the managed HTTPRoute."
    )


class ConfigRouteSpec(types.RouteSpec):
    http: ConfigHTTPRoute | None = Field(None, description="The HTTPRoute; empty for a managed one.")


class ConfigEndpointPicker(types.EndpointPickerReference):
    name: Annotated[str, types.PICKER_NAME] = Field(description="Name, may be a template.", min_length=1)


class ConfigPoolSelector(types.PoolSelector):
    match_labels: Annotated[dict[str, str] | None, types.MATCH_LABELS] = Field(
        None, description="Labels of the pods, in addition to the service's own, may be templates."
    )


@with_types(
    selector=ConfigPoolSelector | None,
    target_ports=(
        Annotated[list[types.Port] | None, types.PORT_RULES],
        Field(None, description="Ports of the model server.", max_length=8, json_schema_extra=gatewayapi.ATOMIC),
    ),
    endpoint_picker_ref=ConfigEndpointPicker | None,
)
class ConfigInferencePoolSpec(types.InferencePoolSpec):
    """Content of the managed InferencePool, or a part of it."""


class ConfigPoolSpec(types.PoolSpec):
    spec: Annotated[ConfigInferencePoolSpec | None, types.POOL_SPEC] = Field(
        None, description="Content of the managed pool."
    )


class ConfigSchedulerSpec(types.SchedulerSpec):
    pool: ConfigPoolSpec | None = Field(None, description="The InferencePool; empty for a managed one.")


class ConfigRouterSpec(types.RouterSpec):
    route: ConfigRouteSpec | None = Field(None, description="HTTP routing; empty for a managed HTTPRoute.")
    scheduler: ConfigSchedulerSpec | None = Field(None, description="The endpoint picker; empty for a managed one.")


class LLMInferenceServiceConfigSpec(types.LLMInferenceServiceSpec):
    """Part of a service's spec, to be combined with others."""

    model: ConfigModelSpec | None = Field(None, description="Which model is served.")
    router: ConfigRouterSpec | None = Field(None, description="How requests reach the model.")
    base_refs: Annotated[list[types.NameReference] | None, no_effect(note="refused: configs do not nest")] = Field(
        None, description="LLMInferenceServiceConfigs below this spec, the last one strongest."
    )


class Reason(StrEnum):
    INVALID_SPEC = "InvalidSpec"
    """The spec breaks a rule, or one of its templates does not render."""
    RENDERED = "Rendered"
    """Every template renders for a sample service."""
    IN_USE = "InUse"
    """Services refer to the config."""
    NOT_IN_USE = "NotInUse"
    DELETION_BLOCKED = "DeletionBlocked"
    """Services refer to the config, so its deletion waits."""


IN_USE = "ConfigInUse"
"""Condition: whether services refer to the config."""


class ServiceReference(msgspec.Struct, rename="camel", frozen=True):
    """A service that refers to a config."""

    name: Annotated[str, Meta(description="Name of the service.")] = ""
    namespace: Annotated[str, Meta(description="Namespace of the service.")] = ""


class LLMInferenceServiceConfigStatus(msgspec.Struct, rename="camel", omit_defaults=True):
    """State of a config, and the services that refer to it."""

    conditions: Annotated[list[types.Condition], Meta(description="The conditions.")] = msgspec.field(
        default_factory=list
    )
    referenced_by: Annotated[
        list[ServiceReference],
        Meta(
            description="Services whose baseRefs name the config; not listed for configs of the system namespace.",
            extra_json_schema={"x-kubernetes-list-type": "atomic"},
        ),
    ] = msgspec.field(default_factory=list)
    observed_generation: Annotated[
        int | None,
        Meta(description="The generation this status answers.", extra_json_schema={"format": "int64"}),
    ] = None
