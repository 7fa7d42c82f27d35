"""The description of a custom resource, from which hooks, CRDs, CompositeControllers and RBAC rules are derived."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Generic, Literal, TypeVar

import msgspec

from app.kube.base import Json, KubeModel
from app.kube.child import child
from app.kube.objects import ObservedMeta

SpecT = TypeVar("SpecT", bound=KubeModel | None)
StatusT = TypeVar("StatusT", bound=msgspec.Struct)


class Resource(msgspec.Struct, Generic[SpecT, StatusT], frozen=True):
    """A decoded custom resource. ``status`` is the one last written, empty if absent or unreadable."""

    metadata: ObservedMeta
    spec: SpecT
    status: StatusT


AnyResource = Resource[Any, Any]
"""A resource of some kind; its own types are in the kind's functions."""


class Column(msgspec.Struct, frozen=True):
    """An additional printer column (``kubectl get``); ``priority`` 1 shows it with ``-o wide`` only."""

    name: str
    json_path: str
    type: Literal["string", "integer", "date", "boolean", "number"] = "string"
    priority: int = 0
    description: str = ""


class Scale(msgspec.Struct, frozen=True):
    spec_replicas: str
    status_replicas: str
    label_selector: str | None = None


class ChildKind(msgspec.Struct, frozen=True):
    """A kind that the sync hook may return."""

    api_version: str
    kind: str
    plural: str
    update: Literal["InPlace", "OnDelete"] = "InPlace"
    component: str = ""
    """Name of the kustomize component below ``metacontroller/components`` that declares it; empty if it always is."""

    @property
    def key(self) -> str:
        """The outer key in a hook request: ``Deployment.apps/v1``."""
        return f"{self.kind}.{self.api_version}"

    def build(self, metadata: Json, **content: object) -> Json:
        """Build an object of the kind; ``content`` is ``spec``, or what the kind has in its place."""
        return child(self.api_version, self.kind, metadata, **content)


class Selection(StrEnum):
    """The ways in which a rule of customize selects related objects."""

    NAMES = "by name"
    LABELS = "by one label"
    NAMESPACE = "all of the namespace"
    CLUSTER = "all of the cluster"


class RelatedKind(msgspec.Struct, frozen=True):
    """A kind that the customize hook may request; Metacontroller needs to list and watch it."""

    api_version: str
    plural: str
    selection: Selection = Selection.NAMES
    """The widest selection."""
    use: str = ""
    """Effect of the objects, and the services that request them if not all do."""
    component: str = ""
    """Set if the kind is only requested together with an optional child kind's component."""


class Grant(msgspec.Struct, frozen=True):
    """Rights that children grant, as a Role's rule: their creator must have these rights too."""

    group: str
    plurals: tuple[str, ...]
    verbs: tuple[str, ...]
    component: str = ""


class CustomResource(msgspec.Struct, frozen=True):
    """The description of one kind. Source: the family's spec, section 1."""

    family: str
    """First path segment of the hooks."""
    group: str
    version: str
    kind: str
    description: str
    spec: type[KubeModel]
    status: type[msgspec.Struct]
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    scale: Scale | None = None
    spec_required: bool = True
    children: tuple[ChildKind, ...] = ()
    related: tuple[RelatedKind, ...] = ()
    """Empty: no customize hook is configured."""
    related_elsewhere: bool = True
    """False if no related object is of another namespace than the parent: then Metacontroller compares namespaces
    before it makes label selectors (MC-6)."""
    finalize_component: str = ""
    """Name of the kustomize component that configures the finalize hook; empty for a kind without one."""
    grants: tuple[Grant, ...] = ()
    counted: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Fields of the status that syncs are counted by, with the values that are counted separately."""
    older: tuple[CustomResource, ...] = ()
    """The kind in its other served versions."""
    stored: bool = True
    """False for the older versions; the hooks work with the stored one."""

    @property
    def names(self) -> set[str]:
        """Every name of the kind that kubectl accepts, in lower case."""
        bare = {self.kind.lower(), self.plural, *self.short_names}
        return bare | {f"{name}.{self.group}" for name in bare}

    @property
    def qualified_name(self) -> str:
        """``inferenceservice.inference.llmkube.dev``, as kubectl prints it."""
        return f"{self.kind.lower()}.{self.group}"

    @property
    def plural(self) -> str:
        return f"{self.kind.lower()}s"

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"

    @property
    def hook_path(self) -> str:
        """``/<family>/<plural>``: ``/sync``, ``/customize`` and ``/finalize`` are below."""
        return f"/{self.family}/{self.plural}"

    @property
    def admission_path(self) -> str:
        """kubebuilder's convention: ``/validate-<group with dashes>-<version>-<kind>``, all lower case."""
        return f"/validate-{self.group.replace('.', '-')}-{self.version}-{self.kind}".lower()


# Kinds of Kubernetes' and LeaderWorkerSet's that more than one family owns or reads.

DEPLOYMENTS = ChildKind("apps/v1", "Deployment", "deployments")
SERVICES = ChildKind("v1", "Service", "services")
AUTOSCALERS = ChildKind("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
LEADER_WORKER_SETS = ChildKind(
    "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "leaderworkersets", component="leaderworkerset"
)

PODS = RelatedKind("v1", "pods", Selection.LABELS, "the cause in `Ready`; not with `WATCH_PODS=false`")
