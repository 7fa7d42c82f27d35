"""Desired objects: typed where we decide, plain JSON where users do. Unset fields are left out, never null."""

from collections.abc import Sequence

import msgspec

from app.kube.base import Json


class Desired(msgspec.Struct, rename="camel", omit_defaults=True, kw_only=True):
    """Base of desired objects: camelCase, without unset fields."""


class TemplateMeta(Desired):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class ObjectMeta(TemplateMeta, kw_only=True):
    """Metadata of a child. Metacontroller adds the owner and the label ``controller-uid`` (MC-3.5)."""

    name: str
    namespace: str


class ContainerPort(Desired):
    """A port of a container. Metacontroller merges ports by their number alone: each number once."""

    name: str
    container_port: int
    protocol: str = msgspec.field(default_factory=lambda: "TCP")


class VolumeMount(Desired):
    """A mount. Metacontroller merges mounts by ``mount_path``: each path once in a container."""

    name: str
    mount_path: str
    read_only: bool | None = None


class ResourceRequirements(Desired):
    """Quantities as canonical text (:func:`app.kube.quantity.canonical`)."""

    limits: dict[str, str] | None = None
    requests: dict[str, str] | None = None
    claims: list[Json] | None = None


class Container(Desired):
    """One container. ``env``, probes and security contexts are plain JSON: users may write them."""

    name: str
    image: str
    command: list[str] | None = None
    args: list[str] | None = None
    ports: list[ContainerPort] | None = None
    env: list[Json] | None = None
    env_from: list[Json] | None = None
    resources: ResourceRequirements | None = None
    volume_mounts: Sequence[VolumeMount | Json] | None = None
    startup_probe: Json | None = None
    liveness_probe: Json | None = None
    readiness_probe: Json | None = None
    security_context: Json | None = None
    termination_message_policy: str | None = None


class PodSpec(Desired):
    """A pod. Lists and maps without entries are ``None``: the API server drops them, so each sync would write again."""

    containers: list[Container]
    init_containers: list[Container] | None = None
    volumes: list[Json] | None = None
    restart_policy: str | None = None
    security_context: Json | None = None
    priority_class_name: str | None = None
    runtime_class_name: str | None = None
    image_pull_secrets: list[Json] | None = None
    enable_service_links: bool | None = None
    tolerations: list[Json] | None = None
    node_selector: dict[str, str] | None = None
    affinity: Json | None = None
    topology_spread_constraints: list[Json] | None = None
    resource_claims: list[Json] | None = None
    automount_service_account_token: bool | None = None


class PodTemplateSpec(Desired):
    """A pod template; ``spec`` is plain JSON where the pod comes from a user's own template."""

    metadata: TemplateMeta
    spec: PodSpec | Json


class LabelSelector(Desired):
    """An immutable selector, so never built from anything that a user may change (MC-3.7)."""

    match_labels: dict[str, str]


class DeploymentSpec(Desired):
    selector: LabelSelector
    template: PodTemplateSpec
    replicas: int | None = None
    """``None`` leaves the number to an autoscaler (:func:`app.hooks.kept.desired_replicas`)."""
    strategy: Json | None = None
    revision_history_limit: int | None = None


class Deployment(Desired, tag_field="kind", tag="Deployment"):
    """``apps/v1``, updated in place; a change of the template restarts its pods."""

    metadata: ObjectMeta
    spec: DeploymentSpec
    api_version: str = msgspec.field(default_factory=lambda: "apps/v1")


class ServicePort(Desired):
    """A port of a Service. As in containers, a TCP and a UDP port of one number would become one."""

    name: str
    port: int
    target_port: int | str
    protocol: str = msgspec.field(default_factory=lambda: "TCP")
    node_port: int | None = None


class CoreServiceSpec(Desired):
    """``clusterIP`` is absent: the cluster chooses addresses."""

    selector: dict[str, str] | None = None
    ports: list[ServicePort] | None = None
    type: str | None = None


class Service(Desired, tag_field="kind", tag="Service"):
    """Core ``v1``, updated in place."""

    metadata: ObjectMeta
    spec: CoreServiceSpec
    api_version: str = msgspec.field(default_factory=lambda: "v1")


class ScaleTarget(Desired):
    """The workload that an autoscaler scales, by name, so names of workloads never change."""

    api_version: str
    kind: str
    name: str


class HorizontalPodAutoscalerSpec(Desired):
    """``metrics`` and ``behavior`` are autoscaling/v2 JSON."""

    scale_target_ref: ScaleTarget
    max_replicas: int
    min_replicas: int | None = None
    metrics: list[Json] | None = None
    behavior: Json | None = None


class HorizontalPodAutoscaler(Desired, tag_field="kind", tag="HorizontalPodAutoscaler"):
    """``autoscaling/v2``, updated in place."""

    metadata: ObjectMeta
    spec: HorizontalPodAutoscalerSpec
    api_version: str = msgspec.field(default_factory=lambda: "autoscaling/v2")


class JobSpec(Desired):
    """Immutable in a cluster."""

    template: PodTemplateSpec
    backoff_limit: int | None = None
    pod_failure_policy: Json | None = None


class Job(Desired, tag_field="kind", tag="Job"):
    """``batch/v1``, created and deleted but never updated."""

    metadata: ObjectMeta
    spec: JobSpec
    api_version: str = msgspec.field(default_factory=lambda: "batch/v1")


class PersistentVolumeClaimSpec(Desired):
    """Class and access modes are immutable, and a smaller size is rejected."""

    access_modes: list[str]
    resources: ResourceRequirements
    storage_class_name: str | None = None


class PersistentVolumeClaim(Desired, tag_field="kind", tag="PersistentVolumeClaim"):
    """Core ``v1``, created and never updated. Leaving it out of an answer would delete the data."""

    metadata: ObjectMeta
    spec: PersistentVolumeClaimSpec
    api_version: str = msgspec.field(default_factory=lambda: "v1")
