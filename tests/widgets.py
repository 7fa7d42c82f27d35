"""A small kind for tests of the generic layers without any family."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from pydantic import Field

from app.hooks.kept import with_kept_templates
from app.hooks.kind import Admission, Hooks, Kind
from app.hooks.protocol import NoObjects, RelatedRule, SyncRequest, SyncResponse
from app.hooks.template import inputs
from app.kube import field
from app.kube.base import EnvVar, KubeModel, pattern
from app.kube.child import child, metadata
from app.kube.conditions import Condition, Conditions
from app.kube.objects import ObservedDeployment
from app.kube.resource import ChildKind, CustomResource, RelatedKind, Resource
from app.settings import Settings

NOW_TEXT = "2030-01-01T00:00:00Z"


class WidgetPort(KubeModel):
    number: Annotated[int, Field(ge=1, le=65535, description="Port number.")]


class WidgetSpec(KubeModel):
    size: Annotated[Literal["small", "large"], Field(description="How big.")]
    replicas: Annotated[int, Field(ge=0, le=10, description="How many.")] = 1
    minimum: Annotated[int | None, Field(description="At least so many.")] = None
    name: Annotated[
        str | None,
        Field(
            pattern=pattern("^[a-z]+$", "must be lower case letters"), max_length=10, description="What it is called."
        ),
    ] = None
    ports: Annotated[list[WidgetPort] | None, Field(max_length=3, description="Ports.")] = None
    env: Annotated[list[EnvVar] | None, Field(description="Environment.")] = None


class WidgetStatus(msgspec.Struct, rename="camel", omit_defaults=True):
    conditions: Annotated[list[Condition], Meta(description="Conditions.")] = []


class Children(msgspec.Struct, rename={"deployments": "Deployment.apps/v1"}):
    deployments: dict[str, ObservedDeployment] | None = None


def validate(
    new: Resource[WidgetSpec, WidgetStatus], old: Resource[WidgetSpec, WidgetStatus] | None, settings: Settings
) -> list[field.Error]:
    """``minimum`` must not exceed ``replicas``; ``size`` is immutable."""
    errors = []
    path = field.Path("spec")
    if new.spec.minimum is not None and new.spec.minimum > new.spec.replicas:
        errors.append(
            field.invalid(path.child("minimum"), new.spec.minimum, f"must not exceed replicas ({new.spec.replicas})")
        )
    if old is not None and new.spec.size != old.spec.size:
        errors.append(field.immutable(path.child("size"), new.spec.size))
    return errors


def warnings(widget: Resource[WidgetSpec, WidgetStatus]) -> list[field.Advice]:
    return [field.advice(field.Path("spec").child("name"), "has no effect", "no-effect")] if widget.spec.name else []


def sync(
    widget: Resource[WidgetSpec, WidgetStatus],
    request: SyncRequest[Any, Any],
    settings: Settings,
    now: datetime,
    args: list[str] | None = None,
    more_inputs: dict[str, object] | None = None,
) -> SyncResponse:
    meta = widget.metadata
    labels, image = {"app": meta.name}, (meta.annotations or {}).get("image", "widget")
    container = {"name": "main", "image": image, **({} if args is None else {"args": args})}
    spec = {
        "replicas": widget.spec.replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
    deployment = child("apps/v1", "Deployment", metadata(meta.name, meta.namespace, labels), spec=spec)
    conditions = Conditions(widget.status.conditions, meta.generation, now)
    conditions.set("Ready", True, "Fine")
    template_inputs = {"image": (meta.annotations or {}).get("image"), **(more_inputs or {})}
    children = with_kept_templates([deployment], request, inputs(request.parent, "test", template_inputs, settings))
    return SyncResponse(status=WidgetStatus(conditions=conditions.list()), children=children)


def invalid(widget: Resource[Any, WidgetStatus], errors: Sequence[field.Error], now: datetime) -> WidgetStatus:
    conditions = Conditions(widget.status.conditions, widget.metadata.generation, now)
    conditions.set("Ready", False, "InvalidSpec", field.aggregate(errors))
    return WidgetStatus(conditions=conditions.list())


def customize(
    widget: Resource[WidgetSpec, WidgetStatus], declared: frozenset[str], settings: Settings
) -> list[RelatedRule]:
    return [RelatedRule(api_version="v1", resource="configmaps", namespace=widget.metadata.namespace, names=("w",))]


WIDGET: Kind[WidgetSpec, WidgetStatus] = Kind(
    resource=CustomResource(
        family="test",
        group="example.dev",
        version="v1",
        kind="Widget",
        description="A widget.",
        spec=WidgetSpec,
        status=WidgetStatus,
        children=(ChildKind("apps/v1", "Deployment", "deployments"),),
        related=(RelatedKind("v1", "configmaps"),),
    ),
    hooks=Hooks(
        children=Children,
        related=NoObjects,
        sync=sync,
        invalid=invalid,
        customize=customize,
    ),
    admission=Admission(validate=validate, warnings=warnings),
)


def widget(spec: Any = None, **metadata: Any) -> dict[str, Any]:
    """Return a widget as the API server stores it."""
    return {
        "apiVersion": "example.dev/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "namespace": "ns", "uid": "u-1", "generation": 1, **metadata},
        "spec": {"size": "small"} if spec is None else spec,
    }
