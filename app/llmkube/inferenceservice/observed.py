"""What a sync of an InferenceService is given: its children and the related objects, by Metacontroller's keys."""

from __future__ import annotations

import msgspec

from app.hooks.protocol import RelatedResource
from app.kube.objects import (
    ObjectMeta,
    Observed,
    ObservedClaim,
    ObservedDeployment,
    ObservedObject,
    ObservedPod,
    RelatedMeta,
)
from app.llmkube.names import POD_MONITOR_API


class Children(
    msgspec.Struct,
    rename={
        "deployments": "Deployment.apps/v1",
        "services": "Service.v1",
        "autoscalers": "HorizontalPodAutoscaler.autoscaling/v2",
        "pod_monitors": f"PodMonitor.{POD_MONITOR_API}",
    },
):
    """Observed children; ``pod_monitors`` is ``None`` where that kind is not declared."""

    deployments: dict[str, ObservedDeployment] | None = None
    services: dict[str, ObservedObject] | None = None
    autoscalers: dict[str, ObservedObject] | None = None
    pod_monitors: dict[str, ObservedObject] | None = None


class EndpointConditions(Observed):
    ready: bool | None = None


class SliceEndpoint(Observed):
    addresses: list[str] | None = None
    conditions: EndpointConditions = msgspec.field(default_factory=EndpointConditions)


class ObservedSlice(Observed):
    """An EndpointSlice, as a metal agent writes it (appendix C.3)."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    endpoints: list[SliceEndpoint] | None = None


class NeighbourStatus(Observed):
    phase: str = ""


class Neighbour(Observed):
    """Another InferenceService, of any namespace: only its place in the queue matters."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    status: NeighbourStatus = msgspec.field(default_factory=NeighbourStatus)


class ObservedPriorityClass(Observed):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    value: int = 0


class Related(
    msgspec.Struct,
    rename={
        "models": "Model.inference.llmkube.dev/v1alpha1",
        "services": "InferenceService.inference.llmkube.dev/v1alpha1",
        "pods": "Pod.v1",
        "claims": "PersistentVolumeClaim.v1",
        "slices": "EndpointSlice.discovery.k8s.io/v1",
        "priority_classes": "PriorityClass.scheduling.k8s.io/v1",
        "runtime_classes": "RuntimeClass.node.k8s.io/v1",
    },
):
    """Related objects; ``None`` where customize did not ask for the kind."""

    models: dict[str, RelatedResource] | None = None
    services: dict[str, Neighbour] | None = None
    pods: dict[str, ObservedPod] | None = None
    claims: dict[str, ObservedClaim] | None = None
    slices: dict[str, ObservedSlice] | None = None
    priority_classes: dict[str, ObservedPriorityClass] | None = None
    runtime_classes: dict[str, RelatedMeta] | None = None
