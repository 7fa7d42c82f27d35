"""``LLMInferenceServiceConfig``: the spec of a service, with looser rules where a value may be a template (KS-1.1)."""

from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from pydantic import Field

from app.kserve import gatewayapi
from app.kserve.llminferenceservice import types
from app.kube.base import Int64, with_types
from app.kube.schema.fieldclass import HONOURED, no_effect

_RULES: Any = gatewayapi.DEFAULT_RULES
IN_USE = "ConfigInUse"


class ConfigModelSpec(types.LLMModelSpec):
    uri: Annotated[str, HONOURED] = ""
    """Address of the model, as in an LLMInferenceService. Optional in a config."""


class TemplatedPathMatch(gatewayapi.HTTPPathMatch):
    constraints = ()  # they apply to the rendered value

    value: str = Field("/", description="Value to match; may be a template.")


class TemplatedPathModifier(gatewayapi.HTTPPathModifier):
    constraints = ()

    replace_full_path: str | None = Field(None, description="Path in place of the whole path; may be a template.")
    replace_prefix_match: str | None = None
    """Path in place of the matched prefix; may be a template."""


def _name(description: str, longest: int | None = None) -> tuple[object, object]:
    return str, Field(description=f"{description}; may be a template.", min_length=1, max_length=longest)


@with_types(
    {
        "matches.path": TemplatedPathMatch | None,
        "matches.headers.name": _name("Name of the header", 256),
        "filters.url_rewrite.path": TemplatedPathModifier | None,
        "backend_refs.name": _name("Name of the backend"),
    }
)
class TemplatedRouteRule(gatewayapi.HTTPRouteRule):
    """A rule of an HTTPRoute, with templates."""


@with_types(
    {
        "parent_refs.namespace": (
            str | None,
            Field(None, description="Namespace of the parent; may be a template. Defaults to the route's own."),
        ),
        "parent_refs.name": _name("Name of the parent"),
        "rules": (
            Annotated[list[TemplatedRouteRule] | None, gatewayapi.ROUTE_RULES],
            Field(
                None,
                description="Routing rules. A list that is the API server's default counts as none.",
                max_length=16,
                json_schema_extra={**gatewayapi.ATOMIC, "default": _RULES},
            ),
        ),
    }
)
class TemplatedHTTPRouteSpec(gatewayapi.HTTPRouteSpec):
    """Content of the managed HTTPRoute, with templates."""


LABELS = (
    Annotated[dict[str, str] | None, types.MATCH_LABELS],
    Field(None, description="Labels of the pods, in addition to the service's own; may be templates."),
)
PICKER = (Annotated[str, types.PICKER_NAME], _name("Name of the endpoint picker's Service")[1])
_PORTS = Field(None, description="Ports of the model server.", max_length=8, json_schema_extra=gatewayapi.ATOMIC)


@with_types(
    {
        "model": ConfigModelSpec | None,
        "router.route.http.spec": TemplatedHTTPRouteSpec | None,
        "router.scheduler.pool.spec": types.InferencePoolSpec | None,
        "router.scheduler.pool.spec.selector": types.PoolSelector | None,
        "router.scheduler.pool.spec.selector.match_labels": LABELS,
        "router.scheduler.pool.spec.target_ports": (Annotated[list[types.Port] | None, types.PORT_RULES], _PORTS),
        "router.scheduler.pool.spec.endpoint_picker_ref": types.EndpointPickerReference | None,
        "router.scheduler.pool.spec.endpoint_picker_ref.name": PICKER,
    }
)
class LLMInferenceServiceConfigSpec(types.LLMInferenceServiceSpec):
    """Part of a service's spec, to be combined with others."""

    base_refs: Annotated[list[types.NameReference] | None, no_effect(note="refused: configs do not nest")] = None
    """LLMInferenceServiceConfigs to combine with this spec. Later ones override earlier ones."""


class ConfigReason(StrEnum):
    INVALID_SPEC = "InvalidSpec"
    """The spec breaks a rule, or one of its templates does not render."""
    RENDERED = "Rendered"
    """Every template renders for a sample service."""
    IN_USE = "InUse"
    NOT_IN_USE = "NotInUse"
    DELETION_BLOCKED = "DeletionBlocked"
    """Services refer to the config, so its deletion waits."""


class ServiceReference(msgspec.Struct, rename="camel", frozen=True):
    name: Annotated[str, Meta(description="Name of the service.")] = ""
    namespace: Annotated[str, Meta(description="Namespace of the service.")] = ""


class LLMInferenceServiceConfigStatus(msgspec.Struct, rename="camel", omit_defaults=True):
    conditions: Annotated[list[types.KServeCondition], Meta(description="Conditions of the config.")] = []
    referenced_by: Annotated[
        list[ServiceReference],
        Meta(
            description="Services whose baseRefs name the config. Not set for configs of the system namespace.",
            extra_json_schema={"x-kubernetes-list-type": "atomic"},
        ),
    ] = []
    observed_generation: Annotated[Int64 | None, Meta(description="Generation of the spec that this status is of.")] = (
        None
    )
