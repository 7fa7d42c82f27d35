"""A kind for tests, with one field of every sort that a real kind may have."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from pydantic import Field

from app.kube.base import DateTime, EnvVar, Int32, Int64, IntOrString, Json, KubeModel, Probe
from app.kube.conditions import Condition
from app.kube.resource import ChildKind, Column, CustomResource, RelatedKind, Scale


class Part(KubeModel):
    """Programmers read this, users do not."""

    name: str = Field(description="What the part is called.", max_length=63)
    shape: Literal["round", "square"] = Field(default="round", description="Its outline.")
    parts: list["Part"] | None = Field(default=None, description="Parts of the part.")


class Spec(KubeModel):
    """Programmers read this, users do not."""

    model_ref: str = Field(description="The model to serve.", min_length=1)
    replicas: Int32 = Field(default=1, description="How many.", ge=0, le=10)
    seed: Int64 | None = Field(default=None, description="Where chance begins.")
    ratio: float | None = Field(default=None, description="Share of the memory.", gt=0, le=1)
    max_surge: IntOrString | None = Field(default=None, description="How many more during a rollout.")
    mode: Literal["only"] | None = Field(default=None, description="There is but one.")
    paused: bool = Field(default=False, description="Whether to wait.")
    note: str = Field(default="", description="For people.")
    quiet: str = Field(default="whisper", description="Ours.", json_schema_extra={"default": None})
    labels: dict[str, str] = Field(default={}, description="Labels of the pods.", max_length=100)
    env: list[EnvVar] = Field(
        default=[],
        description="Environment.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    probe: Probe | None = Field(default=None, description="Tells whether it lives.")
    anything: Json | None = Field(default=None, description="Passed on.")
    since: DateTime | None = Field(default=None, description="Not before.")
    main: Part | None = Field(default=None, description="The first part.")
    parts: list[Part] = Field(
        default=[],
        description="The other parts.",
        max_length=20,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )


class Status(msgspec.Struct, rename="camel", omit_defaults=True):
    """Programmers read this, users do not."""

    phase: Annotated[Literal["Pending", "Ready"] | None, Meta(description="Where in its life it is.")] = None
    replicas: Annotated[Int32, Meta(description="How many there are.")] = 0
    details: Annotated[dict[str, Any] | None, Meta(description="More.")] = None
    conditions: Annotated[list[Condition], Meta(description="What is true of it.")] = []


def widget(**changes: Any) -> CustomResource:
    """Return the kind, which is valid unless the test changes something."""
    given: dict[str, Any] = {
        "family": "toys",
        "group": "toys.example.dev",
        "version": "v1alpha1",
        "kind": "Widget",
        "description": "A widget serves a model.",
        "spec": Spec,
        "status": Status,
        "short_names": ("wdg",),
        "columns": (Column("Phase", ".status.phase"), Column("Age", ".metadata.creationTimestamp", "date", 1)),
        "scale": Scale(".spec.replicas", ".status.replicas"),
        "children": (
            ChildKind("apps/v1", "Deployment", "deployments"),
            ChildKind("v1", "Service", "services"),
            ChildKind("batch/v1", "Job", "jobs", "OnDelete"),
            ChildKind("routes.example.dev/v1", "Route", "routes", component="routes"),
        ),
        "related": (
            RelatedKind("v1", "configmaps"),
            RelatedKind("routes.example.dev/v1", "gateways", component="routes"),
        ),
    }
    return CustomResource(**{**given, **changes})
