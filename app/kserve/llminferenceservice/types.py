"""``LLMInferenceService``: what users write and what we report. Source: KS-1."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta
from pydantic import ConfigDict, Field

from app.kserve import gatewayapi
from app.kube.base import DECIMAL_PATTERN, EmbeddedType, Int32, Int64, Json, KubeModel, pattern
from app.kube.field import SPEC, Path, forbidden, invalid, required
from app.kube.schema.fieldclass import DEFAULTED, HONOURED, defaulted, honoured, no_effect, passed_through
from app.kube.schema.rules import Rule, Rules, cel

_Behavior = Annotated[Json, EmbeddedType("HorizontalPodAutoscalerBehavior")]
PartialPodSpec = Annotated[Json, EmbeddedType("PodSpec", optional=("containers",))]
"""A pod spec that presets complete, so ``containers`` is not required."""

# Classes of fields that several types, or both kinds, have alike.

_REPLICAS = "left as it is in the cluster where it is not set"
_EMPTY = honoured("refused unless it is empty")
_ON_SERVER = honoured("arguments and GPUs of the server, unless the template has its own")
_ON_PODS = honoured("on the workload's pods; the service's own on prefill pods too, unless prefill has others")
_ON_PICKER = honoured("on the scheduler's pods")
ROUTE_SPEC = passed_through("to the HTTPRoute, laid over the preset")
POOL_SPEC = passed_through("to the InferencePool, laid over the preset")
MATCH_LABELS = defaulted("in addition to the service's own labels")
PICKER_NAME = honoured("name of the endpoint picker's Service, which is created")
_MODIFIERS = "self.advanced.scalingModifiers"
_IDLE = "!has(self.wva) || !has(self.wva.keda) || !has(self.wva.keda.idleReplicaCount)"
_OFFLOADING = "volumes at /mnt/kv-cache-<i>, and vLLM's --kv-transfer-config by presets of v0.20"
_DOWNLOADED = "for a model that is downloaded, by a storage initializer of v0.20 or later"
_WITH_ADAPTERS = "with adapters; vLLM has the default"
_IN_GROUPS = "rules of the managed route that are not below the service's own path"
_GROUP_NAME = pattern(
    r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", "must be a DNS label: lower case letters, digits and '-', not '-' at its ends"
)
LABEL_PATTERN = pattern(
    r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$",
    "must be a label value: letters, digits, '-', '_' and '.', beginning and ending with a letter or digit",
)
LabelText = Annotated[str, Field(max_length=63, pattern=LABEL_PATTERN)]
_NO_TOKENIZER = "no tokenizer is made; a container of scheduler.template can tokenize"


class NameReference(KubeModel):
    """An object of the service's own namespace, by name."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})

    name: str = Field("", description="Name of the object.")


# The model.


class LoRASpec(KubeModel):
    """Adapters of the base model, which vLLM loads beside it."""

    adapters: Annotated[Any, honoured("downloaded or mounted below /mnt/lora, and loaded by vLLM")] = None
    """LoRA adapters: objects with a unique name and the uri of their files."""
    max_rank: Annotated[Int32 | None, defaulted(_WITH_ADAPTERS)] = Field(None, ge=1)
    """Maximum rank of a LoRA adapter."""
    max_adapters: Annotated[Int32 | None, defaulted(_WITH_ADAPTERS)] = Field(None, ge=1)
    """Maximum number of adapters in one batch."""
    max_cpu_adapters: Annotated[Int32 | None, defaulted(_WITH_ADAPTERS)] = Field(None, ge=1)
    """Maximum number of adapters in host memory. Defaults to maxAdapters."""


class ConfidentialSpec(KubeModel):
    """A model that is encrypted where it is stored; the storage initializer decrypts it."""

    enabled: Annotated[bool, honoured(_DOWNLOADED)] = Field(description="Whether the model is encrypted.")
    resource_id: Annotated[str, honoured(_DOWNLOADED)] = ""
    """Address of the key at the key broker: kbs:///<repository>/<type>/<tag>."""


class LLMModelSpec(KubeModel):
    uri: Annotated[str, HONOURED] = Field(
        description="Address: hf://, modelscope://, s3://, gs://, https://, http://, hdfs://, webhdfs://, pvc://, "
        "oci:// or oci+native://."
    )
    name: Annotated[str | None, defaulted("a base that names the model wins")] = None
    """Name of the model in requests. Defaults to the name of the service."""
    lora: LoRASpec | None = Field(None, description="LoRA adapters.")
    confidential: ConfidentialSpec | None = Field(None, description="Decryption of an encrypted model.")


class StorageInitializerSpec(KubeModel):
    enabled: Annotated[bool | None, DEFAULTED] = None
    """Downloads the model before the server starts. Set to false if the containers fetch it themselves."""


# The workload.


class ParallelismSpec(KubeModel):
    other_names: ClassVar[Mapping[str, str]] = {"dp": "data", "ep": "expert", "pp": "pipeline", "tp": "tensor"}

    tensor: Annotated[Int32 | None, _ON_SERVER] = Field(None, ge=1)
    """Tensor-parallel size."""
    pipeline: Annotated[Int32 | None, honoured("with worker")] = Field(None, ge=1)
    """Pipeline-parallel size."""
    data: Annotated[Int32 | None, defaulted("with worker, or where dataLocal is as many")] = Field(None, ge=1)
    """Data-parallel size."""
    data_local: Annotated[Int32 | None, defaulted("with data")] = Field(None, ge=1)
    """Data-parallel size on each node."""
    data_rpc_port: Annotated[Int32 | None, defaulted("with worker")] = Field(None, alias="dataRPCPort", ge=1, le=65535)
    """Port of the data-parallel coordinator. Defaults to 5555."""
    expert: Annotated[bool, _ON_SERVER] = False
    """Distributes the experts of a mixture-of-experts model over the GPUs."""

    @property
    def is_data_parallel(self) -> bool:
        """Report whether one replica holds several copies of the model."""
        return (self.data or 0) > 0 or (self.data_local or 0) > 0

    @property
    def is_pipeline_parallel(self) -> bool:
        return (self.pipeline or 0) > 0

    @property
    def pods_per_replica(self) -> int | None:
        """Number of pods of one replica, including the leader; None if it is not set."""
        if self.is_data_parallel:
            return max(max(self.data or 1, 1) // max(self.data_local or 1, 1), 1)
        return self.pipeline if self.is_pipeline_parallel else None


NO_PARALLELISM = ParallelismSpec.model_validate({})


class ScalingModifiers(KubeModel):
    """KEDA's scaling modifiers. Must be empty: the autoscaler sets the formula."""

    formula: str = Field("", description="Must be empty.")
    target: str = Field("", description="Must be empty.")
    activation_target: str = Field("", description="Must be empty.")
    metric_type: Literal["AverageValue", "Value"] | None = Field(None, description="Must not be set.")


class HorizontalPodAutoscalerConfig(KubeModel):
    name: Annotated[str, _EMPTY] = ""
    """Must be empty: the name of the HorizontalPodAutoscaler is fixed."""
    behavior: _Behavior | None = Field(None, description="Scaling policies and stabilization windows.")


class KEDAAdvanced(KubeModel):
    horizontal_pod_autoscaler_config: HorizontalPodAutoscalerConfig | None = None
    """Options of the HorizontalPodAutoscaler that KEDA creates."""
    restore_to_original_replica_count: bool = False
    """Restores the original number of replicas when the ScaledObject is deleted."""
    scaling_modifiers: Annotated[ScalingModifiers | None, _EMPTY] = None
    """Scaling modifiers. Must be empty."""

    @property
    def has_modifiers(self) -> bool:
        return self.scaling_modifiers is not None and any(value for _, value in self.scaling_modifiers)

    @property
    def autoscaler_name(self) -> str:
        config = self.horizontal_pod_autoscaler_config
        return (config.name or "") if config is not None else ""


class KEDAFallback(KubeModel):
    failure_threshold: Int32 = Field(description="Number of consecutive failures before the fallback.", ge=0)
    replicas: Int32 = Field(description="Number of replicas during the fallback.", ge=0)
    behavior: Literal["static", "currentReplicas", "currentReplicasIfHigher", "currentReplicasIfLower"] = "static"
    """Method to choose the number of replicas during the fallback."""


class KEDASpec(KubeModel):
    constraints = (
        Rule(
            f"!has(self.advanced) || !has({_MODIFIERS}) || ("
            + " && ".join(
                f"(!has({_MODIFIERS}.{name}) || size({_MODIFIERS}.{name}) == 0)"
                for name in ("formula", "target", "activationTarget", "metricType")
            )
            + ")",
            "scalingModifiers must be empty: the autoscaler sets the formula",
            lambda keda: keda.advanced is None or not keda.advanced.has_modifiers,
            lambda _, path: forbidden(
                path.child("advanced", "scalingModifiers"), "must be empty: the autoscaler sets the formula"
            ),
        ),
        Rule(
            "!has(self.advanced) || !has(self.advanced.horizontalPodAutoscalerConfig) || "
            "!has(self.advanced.horizontalPodAutoscalerConfig.name) || "
            "size(self.advanced.horizontalPodAutoscalerConfig.name) == 0",
            "horizontalPodAutoscalerConfig.name must be empty: the name is fixed",
            lambda keda: keda.advanced is None or not keda.advanced.autoscaler_name,
            lambda _, path: forbidden(
                path.child("advanced", "horizontalPodAutoscalerConfig", "name"), "must be empty: the name is fixed"
            ),
        ),
    )

    polling_interval: Int32 | None = Field(None, description="Polling interval of the metrics, in seconds.", ge=1)
    cooldown_period: Int32 | None = Field(None, description="Time before scaling to idle, in seconds.", ge=0)
    initial_cooldown_period: Int32 | None = Field(None, ge=0)
    """Delay of the cooldown period after the ScaledObject is created, in seconds."""
    idle_replica_count: Int32 | None = Field(
        None, description="Number of replicas when idle; KEDA knows 0 alone.", ge=0
    )
    fallback: KEDAFallback | None = Field(None, description="Behavior when metrics are unavailable.")
    advanced: KEDAAdvanced | None = Field(None, description="Advanced options of the ScaledObject.")


class HPASpec(KubeModel):
    behavior: _Behavior | None = None
    """Scaling policies and stabilization windows."""


class WVASpec(KubeModel):
    """Scaling by the workload variant autoscaler."""

    constraints = (
        Rule(
            "!(has(self.hpa) && has(self.keda))",
            "hpa and keda are mutually exclusive",
            lambda wva: wva.hpa is None or wva.keda is None,
            lambda _, path: forbidden(path, "hpa and keda are mutually exclusive; remove one"),
        ),
        Rule(
            "has(self.hpa) || has(self.keda)",
            "hpa or keda is required",
            lambda wva: wva.hpa is not None or wva.keda is not None,
            lambda _, path: required(path, "set hpa or keda"),
        ),
    )

    variant_cost: Annotated[str, passed_through("to the VariantAutoscaling")] = Field("10.0", pattern=DECIMAL_PATTERN)
    """Cost of one replica, relative to other variants of the model."""
    hpa: Annotated[HPASpec | None, passed_through("to the HorizontalPodAutoscaler")] = None
    """Scaling by a HorizontalPodAutoscaler."""
    keda: Annotated[KEDASpec | None, passed_through("to the ScaledObject; needs KEDA and its component")] = None
    """Scaling by KEDA, which must be installed."""


class ScalingSpec(KubeModel):
    """Autoscaling: the number of replicas is the autoscaler's."""

    habits: ClassVar[Mapping[str, str]] = {
        "keda": "it is newer than KServe v0.20; write wva.keda, or replicas and a ScaledObject of your own"
    }
    constraints = (
        Rule(
            "has(self.maxReplicas)",
            "maxReplicas is required",
            lambda scaling: scaling.max_replicas is not None,
            lambda _, path: required(path.child("maxReplicas"), "set the largest number of replicas"),
        ),
        Rule(
            "has(self.wva)",
            "wva is required",
            lambda scaling: scaling.wva is not None,
            lambda _, path: required(path.child("wva"), "configure the autoscaler, with hpa or keda"),
        ),
        Rule(
            "!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",
            "minReplicas must be less than or equal to maxReplicas",
            lambda scaling: (
                None in (scaling.min_replicas, scaling.max_replicas) or scaling.min_replicas <= scaling.max_replicas
            ),
            lambda scaling, path: invalid(
                path.child("minReplicas"), scaling.min_replicas, f"must be at most maxReplicas, {scaling.max_replicas}"
            ),
        ),
        Rule(
            f"{_IDLE} || has(self.minReplicas)",
            "minReplicas is required with idleReplicaCount",
            lambda scaling: scaling.idle_replicas is None or scaling.min_replicas is not None,
            lambda _, path: required(path.child("minReplicas"), "idleReplicaCount requires it, and must be lower"),
        ),
        Rule(
            f"{_IDLE} || !has(self.minReplicas) || self.wva.keda.idleReplicaCount < self.minReplicas",
            "idleReplicaCount must be less than minReplicas",
            lambda scaling: (
                None in (scaling.idle_replicas, scaling.min_replicas) or scaling.idle_replicas < scaling.min_replicas
            ),
            lambda scaling, path: invalid(
                path.child("wva", "keda", "idleReplicaCount"),
                scaling.idle_replicas,
                f"must be lower than minReplicas, {scaling.min_replicas}",
            ),
        ),
    )

    min_replicas: Annotated[Int32 | None, defaulted("1; what a new workload starts with")] = Field(None, ge=1)
    """Minimum number of replicas, with which the workload starts. Defaults to 1."""
    max_replicas: Int32 | None = Field(None, description="Maximum number of replicas.", ge=1)
    wva: WVASpec | None = None
    """Options of the workload variant autoscaler. Exactly one of hpa and keda must be set."""

    @property
    def idle_replicas(self) -> int | None:
        return self.wva.keda.idle_replica_count if self.wva is not None and self.wva.keda is not None else None


class WorkloadSpec(KubeModel):
    """Pods that run the model: alone, or as a leader with workers."""

    habits: ClassVar[Mapping[str, str]] = {
        "worker.replicas": "remove it: the pods of a replica follow from parallelism, data / dataLocal or pipeline",
        "rolloutStrategy": "it is newer than KServe v0.20; remove it: a rollout starts 25% more pods, at least one, "
        "before it ends others",
    }
    constraints = (
        Rule(
            "!(has(self.replicas) && has(self.scaling))",
            "replicas and scaling are mutually exclusive",
            lambda workload: workload.replicas is None or workload.scaling is None,
            lambda workload, path: invalid(
                path.child("scaling"),
                {"replicas": workload.replicas},
                "scaling and replicas are mutually exclusive: remove replicas, scaling has minReplicas and maxReplicas",
            ),
        ),
    )

    replicas: Annotated[Int32 | None, honoured(_REPLICAS)] = Field(None, ge=0)
    """Number of replicas. Not changed when unset."""
    scaling: Annotated[ScalingSpec | None, HONOURED] = None
    """Autoscaling by a HorizontalPodAutoscaler or KEDA. Excludes replicas."""
    parallelism: ParallelismSpec | None = None
    """Distribution of one replica over GPUs and nodes."""
    kv_cache_offloading: Annotated[Json | None, honoured(_OFFLOADING)] = None
    """Tiers of the key-value cache beyond GPU memory: cpu (host memory), evictionPolicy (lru or arc; defaults to lru)
    and secondary, each a fileSystem with emptyDir or pvc."""
    labels: Annotated[dict[str, str] | None, _ON_PODS] = None
    """Labels of the pods."""
    annotations: Annotated[dict[str, str] | None, _ON_PODS] = None
    """Annotations of the pods."""
    template: Annotated[PartialPodSpec | None, defaulted("laid over the preset, with the model put in")] = None
    """Pod spec of the server, or of the leader. Unset fields come from presets."""
    worker: Annotated[
        PartialPodSpec | None, defaulted("laid over the preset, with the model put in; needs LeaderWorkerSet")
    ] = None
    """Pod spec of the workers. With it a replica spans several nodes."""

    @property
    def pods_per_replica(self) -> int | None:
        return self.parallelism.pods_per_replica if self.parallelism is not None else None

    def pods(self, path: Path) -> Iterator[tuple[Json | None, Path]]:
        """Yield the pods that users write, for a workload at ``path``."""
        yield self.template, path.child("template")
        yield self.worker, path.child("worker")


# The router.


class ObjectReference(KubeModel):
    name: str | None = Field(None, min_length=1, max_length=253)
    """Name of the object."""
    namespace: str | None = Field(None, min_length=1, max_length=63, pattern=gatewayapi.NAMESPACE_PATTERN)
    """Namespace of the object. Defaults to the namespace of the service."""


class ListenerReference(ObjectReference):
    """A Gateway of any namespace, or one listener of it."""

    section_name: gatewayapi.SectionName | None = Field(None, description="Name of the listener. Defaults to all.")


class HTTPRouteConfig(KubeModel):
    """Routes of your own, or content for the one that is made."""

    refs: Annotated[list[NameReference] | None, HONOURED] = None
    """Existing HTTPRoutes to use instead of the managed one."""
    spec: Annotated[gatewayapi.HTTPRouteSpec | None, ROUTE_SPEC] = None
    """Spec of the managed HTTPRoute."""


class RouteSpec(KubeModel):
    http: HTTPRouteConfig | None = None
    """HTTPRoute of the service. {} creates a managed one."""
    group: Annotated[str | None, honoured(_IN_GROUPS)] = Field(None, min_length=1, max_length=63, pattern=_GROUP_NAME)
    """Name of the group of services that share requests."""
    weight: Annotated[Int32 | None, honoured(_IN_GROUPS)] = Field(None, ge=0, le=1_000_000)
    """Weight of the service, relative to the sum of all weights of its group."""


class GatewaySpec(KubeModel):
    habits: ClassVar[Mapping[str, str]] = {"managed": "remove it: gateway: {} is the default Gateway"}

    refs: Annotated[list[ListenerReference] | None, defaulted("they replace parentRefs of the route")] = None
    """Existing Gateways for the managed route to attach to, instead of the default Gateway."""


class IngressSpec(KubeModel):
    refs: list[ObjectReference] | None = Field(None, description="No effect: existing Ingresses.")


class EndpointPickerIdentity(KubeModel):
    """Endpoint picker of a pool, with the fields that all versions have."""

    group: str = Field("", max_length=253, pattern=gatewayapi.GROUP_PATTERN)
    """API group of the endpoint picker. Defaults to the core group, which has Services."""
    kind: str = Field("Service", min_length=1, max_length=63, pattern=gatewayapi.KIND_PATTERN)
    """Kind of the endpoint picker."""
    name: Annotated[str, PICKER_NAME] = Field(min_length=1, max_length=253)
    """Name of the endpoint picker's Service."""
    failure_mode: Literal["FailOpen", "FailClose"] = "FailClose"
    """Handling of requests while the endpoint picker does not answer."""


class Port(KubeModel):
    number: gatewayapi.PortNumber = Field(description="Number of the port.")


class EndpointPickerReference(EndpointPickerIdentity):
    model_config = ConfigDict(
        json_schema_extra=cel(("self.kind != 'Service' || has(self.port)", "port is required for a Service"))
    )  # CEL only: objects of v1alpha1 have none, and are read in this form

    port: Annotated[Port | None, DEFAULTED] = None
    """Port of the endpoint picker. Required for a Service, except in v1alpha1, where it defaults to 9002."""


class PoolSelector(KubeModel):
    model_config = ConfigDict(json_schema_extra={"required": ["matchLabels"]})  # v1alpha1 admits none

    match_labels: Annotated[dict[str, LabelText] | None, MATCH_LABELS] = Field(
        None, json_schema_extra={"minProperties": 1, "maxProperties": 64}
    )
    """Labels of the pods, in addition to the service's own."""


PORT_RULES = Rules(
    Rule(
        "self.all(a, self.exists_one(b, a.number == b.number))",
        "port numbers must be unique",
        lambda ports: len({port.number for port in ports}) == len(ports),
    ),
)


class InferencePoolSpec(KubeModel):
    """Spec of the managed InferencePool, in the form of its v1."""

    selector: PoolSelector = Field(description="Selector of the pods in the pool.")
    target_ports: Annotated[list[Port], PORT_RULES] = Field(
        description="Ports of the model server.", min_length=1, max_length=8, json_schema_extra=gatewayapi.ATOMIC
    )
    app_protocol: Literal["http", "kubernetes.io/h2c"] | None = None
    """Protocol of the model server: http, or kubernetes.io/h2c for HTTP/2 without TLS."""
    endpoint_picker_ref: EndpointPickerReference = Field(description="The endpoint picker.")


class PoolSpec(KubeModel):
    spec: Annotated[InferencePoolSpec | None, POOL_SPEC] = Field(None, description="Spec of the managed InferencePool.")
    ref: Annotated[NameReference | None, honoured("no scheduler is made then")] = None
    """Existing InferencePool to use. No scheduler is created then."""


class ConfigMapKey(NameReference):
    name: Annotated[str, DEFAULTED] = Field("", description="Name of the ConfigMap.")
    key: Annotated[str, defaulted("epp when it is empty")] = Field(description="Key. Defaults to epp when empty.")
    optional: Annotated[bool | None, no_effect("the key must exist")] = None
    """No effect: the key must exist."""


class SchedulerConfig(KubeModel):
    """The endpoint picker's configuration: written here, or in a ConfigMap."""

    inline: Annotated[Any, DEFAULTED] = None
    """An EndpointPickerConfig: an object, or a string that contains one as YAML."""
    ref: ConfigMapKey | None = Field(None, description="Key of a ConfigMap with an EndpointPickerConfig.")


class TokenizerSpec(KubeModel):
    template: Annotated[PartialPodSpec | None, no_effect(_NO_TOKENIZER)] = None
    """No effect: pod spec of the tokenizer."""


class SchedulerSpec(KubeModel):
    """The endpoint picker (EPP), which chooses a pod for each request."""

    pool: PoolSpec | None = Field(None, description="InferencePool of the service. {} creates a managed one.")
    template: Annotated[PartialPodSpec | None, defaulted("laid over the preset")] = None
    """Pod spec of the endpoint picker."""
    replicas: Annotated[Int32 | None, honoured(f"{_REPLICAS}; with more than one they elect a leader")] = None
    """Number of replicas of the endpoint picker. With more than one they elect a leader."""
    labels: Annotated[dict[str, str] | None, _ON_PICKER] = None
    """Labels of the endpoint picker's pods."""
    annotations: Annotated[dict[str, str] | None, _ON_PICKER] = None
    """Annotations of the endpoint picker's pods."""
    config: SchedulerConfig | None = None
    """Configuration of the endpoint picker. Defaults to the preset's."""
    tokenizer: Annotated[TokenizerSpec | None, no_effect(_NO_TOKENIZER)] = None
    """No effect: a separate tokenizer."""


class RouterSpec(KubeModel):
    route: RouteSpec | None = Field(None, description="HTTP routing. {} creates a managed HTTPRoute.")
    gateway: GatewaySpec | None = Field(None, description="Gateway of the service. {} uses the default one.")
    ingress: Annotated[IngressSpec | None, no_effect("use route and gateway")] = None
    """No effect: use route and gateway."""
    scheduler: SchedulerSpec | None = None
    """Endpoint picker of the service. {} creates a managed one."""


class TracingSpec(KubeModel):
    """OpenTelemetry of model servers and the endpoint picker; unset fields come from a preset."""

    exporter_endpoint: Annotated[str | None, DEFAULTED] = None
    """OTLP endpoint to which traces are exported."""
    sampler: Annotated[str | None, DEFAULTED] = Field(None, description="Sampler, as in OTEL_TRACES_SAMPLER.")
    sampler_arg: Annotated[str | None, DEFAULTED] = Field(None, description="Argument of the sampler, such as a ratio.")
    exporter: Annotated[str | None, DEFAULTED] = Field(None, description="Exporter, as in OTEL_TRACES_EXPORTER.")


class LLMInferenceServiceSpec(WorkloadSpec):
    """A model, the pods that serve it, and the way there."""

    habits: ClassVar[Mapping[str, str]] = {
        **WorkloadSpec.habits,
        "decode": "the main workload decodes: write its fields directly below spec",
        "predictor": "it belongs to KServe's InferenceService; write spec.model, and the pods in spec.template",
    }

    model: LLMModelSpec | None = Field(None, description="Model to serve.")
    storage_initializer: StorageInitializerSpec | None = Field(None, description="Download of the model.")
    prefill: WorkloadSpec | None = None
    """Workload for prefill. With it the main workload only decodes."""
    router: RouterSpec | None = Field(None, description="Routing of requests to the model.")
    tracing: TracingSpec | None = Field(None, description="OpenTelemetry tracing. {} uses the defaults.")
    base_refs: Annotated[list[NameReference] | None, HONOURED] = None
    """LLMInferenceServiceConfigs to combine with this spec. Later ones override earlier ones."""

    @property
    def route(self) -> RouteSpec | None:
        return self.router.route if self.router is not None else None

    @property
    def http(self) -> HTTPRouteConfig | None:
        return self.route.http if self.route is not None else None

    @property
    def scheduler(self) -> SchedulerSpec | None:
        return self.router.scheduler if self.router is not None else None

    @property
    def pool(self) -> PoolSpec | None:
        return self.scheduler.pool if self.scheduler is not None else None

    @property
    def pool_ref(self) -> str:
        """Name of an existing InferencePool to use; empty for a managed one."""
        return self.pool.ref.name if self.pool is not None and self.pool.ref is not None else ""

    def workloads(self) -> Iterator[tuple[WorkloadSpec, Path]]:
        """Yield the main workload and, where there is one, the prefill workload."""
        yield self, SPEC
        if self.prefill is not None:
            yield self.prefill, SPEC.child("prefill")

    def templates(self) -> Iterator[tuple[Json | None, Path]]:
        for workload, path in self.workloads():
            yield from workload.pods(path)
        if self.scheduler is not None:
            yield self.scheduler.template, SPEC.child("router", "scheduler", "template")


# Status.


class LLMCondition(StrEnum):
    """Types of conditions. KServe has all of them (KS-6) except those marked as ours."""

    READY = "Ready"
    WORKLOADS_READY = "WorkloadsReady"
    ROUTER_READY = "RouterReady"
    GROUP_READY = "GroupReady"
    GROUP_DEGRADED = "GroupDegraded"
    """True if a service of the group serves other models, absent otherwise. It decides nothing."""
    PRESETS_COMBINED = "PresetsCombined"
    MAIN_WORKLOAD_READY = "MainWorkloadReady"
    WORKER_WORKLOAD_READY = "WorkerWorkloadReady"
    PREFILL_WORKLOAD_READY = "PrefillWorkloadReady"
    PREFILL_WORKER_WORKLOAD_READY = "PrefillWorkerWorkloadReady"
    GATEWAYS_READY = "GatewaysReady"
    HTTP_ROUTES_READY = "HTTPRoutesReady"
    INFERENCE_POOL_READY = "InferencePoolReady"
    SCHEDULER_WORKLOAD_READY = "SchedulerWorkloadReady"
    SCALING_READY = "ScalingReady"
    PREFILL_SCALING_READY = "PrefillScalingReady"
    CRITICALITY_APPLIED = "CriticalityApplied"
    """Ours: whether requests get the priority that ``criticality`` asks for. Nothing depends on it (KS-4.9)."""
    FEATURES_APPLIED = "FeaturesApplied"
    """Ours: false while a feature of KServe v0.20 has no effect here, absent otherwise. It decides nothing."""
    CHILDREN_CREATED = "ChildrenCreated"
    """Ours: false while a child is not there, or not as it was asked for, absent otherwise. Its time tells how long."""
    PODS_READY = "PodsReady"
    """Ours: false while pods are held up, with the reason of the first cause, absent otherwise. It decides nothing."""


WORKLOAD_CONDITIONS = (
    LLMCondition.MAIN_WORKLOAD_READY,
    LLMCondition.WORKER_WORKLOAD_READY,
    LLMCondition.PREFILL_WORKLOAD_READY,
    LLMCondition.PREFILL_WORKER_WORKLOAD_READY,
)
"""In the order in which the first false one decides ``WorkloadsReady`` (KS-6.3)."""
SCALING_CONDITIONS = (LLMCondition.SCALING_READY, LLMCondition.PREFILL_SCALING_READY)
"""After those, where a workload has ``scaling``; a service that is stopped has none of them (KS-5.4)."""
ROUTER_CONDITIONS = (
    LLMCondition.GATEWAYS_READY,
    LLMCondition.HTTP_ROUTES_READY,
    LLMCondition.INFERENCE_POOL_READY,
    LLMCondition.SCHEDULER_WORKLOAD_READY,
)
TOP_LEVEL = (LLMCondition.READY, LLMCondition.WORKLOADS_READY, LLMCondition.ROUTER_READY)
"""Without severity; every other condition has severity ``Info``."""


class LLMReason(StrEnum):
    """Reasons of conditions, as KServe has them (KS-6.8) or in its style."""

    MEMBER_DIVERGENCE = "MemberDivergence"
    NO_WEIGHT = "NoWeight"
    """No member of a group has a weight, so that none gets the group's requests."""
    INVALID_SPEC = "InvalidSpec"
    OPERATOR_CONFIG_INVALID = "OperatorConfigInvalid"
    """A document of the ConfigMap inferenceservice-config cannot be read; nothing was changed."""
    COMBINE_BASE_ERROR = "CombineBaseError"
    """A preset or baseRef is missing, does not render, or makes an invalid spec; nothing was changed."""
    CONFIG_NOT_FOUND = "ConfigNotFound"
    RECONCILE_MULTI_NODE_ERROR = "ReconcileMultiNodeWorkloadError"
    RECONCILE_SINGLE_NODE_ERROR = "ReconcileSingleNodeWorkloadError"
    RECONCILE_SCALING_ERROR = "ReconcileScalingError"
    """The operator's settings lack what a ScaledObject needs."""
    HPA_PROGRESSING = "HPAProgressing"
    SCALED_OBJECT_PROGRESSING = "ScaledObjectProgressing"
    """The autoscaler has not reported a status yet."""
    NO_SCHEDULER = "NoScheduler"
    UNKNOWN_CRITICALITY = "UnknownCriticality"
    NOT_ROUTED = "NotRouted"
    """The managed route does not give all objectives to requests."""
    TLS_NOT_SUPPORTED = "TLSNotSupported"
    DEVICES_NOT_SUPPORTED = "DevicesNotSupported"
    PLUGIN_SERVER_MISSING = "PluginServerMissing"
    OFFLOADING_NOT_SUPPORTED = "OffloadingNotSupported"
    SCHEDULER_RECONCILE_ERROR = "SchedulerReconcileError"
    HTTP_ROUTE_RECONCILE_ERROR = "HTTPRouteReconcileError"
    """The route is written, but its URLs cannot be found out."""
    REFS_INVALID = "RefsInvalid"
    GATEWAYS_NOT_READY = "GatewaysNotReady"
    GATEWAY_FETCH_ERROR = "GatewayFetchError"
    HTTP_ROUTES_NOT_READY = "HTTPRoutesNotReady"
    WAITING_FOR_GATEWAY = "WaitingForGateway"
    INFERENCE_POOL_NOT_READY = "InferencePoolNotReady"
    INFERENCE_POOL_FETCH_ERROR = "InferencePoolFetchError"
    """The pool does not exist, or its kind is not installed."""
    STOPPED = "Stopped"
    PROGRESSING = "Progressing"
    PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"
    NAME_CONFLICT = "NameConflict"
    """A child stays unobserved: its name is taken by an object of another owner."""
    CREATE_REFUSED = "CreateRefused"
    """A child stays unobserved, and no object of its name is seen."""
    CONTRADICTION = "ParallelismContradicted"
    """GPUs or arguments of pods conflict with ``parallelism``."""
    KIND_NOT_INSTALLED = "KindNotInstalled"


class KServeCondition(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    """KServe's form of a condition: a true one has neither reason nor message, and none has a generation."""

    type: Annotated[str, Meta(description="What the condition is about.")] = ""
    status: Annotated[
        str, Meta(description="Whether the condition holds.", extra_json_schema={"enum": ["True", "False", "Unknown"]})
    ] = ""
    severity: Annotated[str, Meta(description="Info for conditions that Ready does not depend on directly.")] = ""
    reason: Annotated[str, Meta(description="Reason of a condition that is not true, as one word for programs.")] = ""
    message: Annotated[str, Meta(description="Message of a condition that is not true, for people.")] = ""
    last_transition_time: Annotated[str, Meta(description="When status last changed.")] = ""


class ServedModel(msgspec.Struct, rename="camel", frozen=True):
    name: Annotated[str, Meta(description="Name of the base model or of an adapter.")]


class ObjectIdentity(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    group: Annotated[str, Meta(description="API group; empty for the core group.")]
    kind: Annotated[str, Meta(description="Kind of the object.")]
    name: Annotated[str, Meta(description="Name of the object.")]
    namespace: Annotated[str, Meta(description="Namespace of the object. Defaults to the service's namespace.")] = ""


class ServiceAddress(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    name: Annotated[
        str,
        Meta(
            description="gateway-external, gateway-internal or internal; with the suffix -model-routing if requests "
            "are routed by the name of the model."
        ),
    ] = ""
    url: Annotated[str, Meta(description="URL of the address.")] = ""
    ca_certs: Annotated[str, Meta(description="CA certificates of the address, in PEM.")] = msgspec.field(
        default="", name="CACerts"
    )
    audience: Annotated[str, Meta(description="OIDC audience of the address.")] = ""
    origin: Annotated[ObjectIdentity | None, Meta(description="Gateway that the address is of.")] = None
    models: Annotated[
        list[ServedModel], Meta(description="Names of the model and of its LoRA adapters that requests may use there.")
    ] = []


class WorkloadIdentity(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    kind: Annotated[str, Meta(description="Kind of the workload.")]
    name: Annotated[str, Meta(description="Name of the workload.")]
    api_group: Annotated[str, Meta(description="API group; empty for the core group.")] = ""
    ready_replicas: Annotated[Int32, Meta(description="Number of available replicas.")] = 0
    selector: Annotated[str, Meta(description="Label selector of the workload's pods, for autoscalers.")] = ""


class Workloads(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    primary: Annotated[WorkloadIdentity | None, Meta(description="Model servers that decode.")] = None
    prefill: Annotated[WorkloadIdentity | None, Meta(description="Model servers that prefill.")] = None
    scheduler: Annotated[WorkloadIdentity | None, Meta(description="Endpoint picker of the service.")] = None
    service: Annotated[WorkloadIdentity | None, Meta(description="Service in front of the model servers.")] = None


class RouterGateway(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    group: Annotated[str, Meta(description="API group of the Gateway.")]
    kind: Annotated[str, Meta(description="Kind of the Gateway.")]
    name: Annotated[str, Meta(description="Name of the Gateway.")]
    namespace: Annotated[str, Meta(description="Namespace of the Gateway.")] = ""
    listeners: Annotated[
        list[str], Meta(description="Listeners that the routes are attached to. Defaults to all.")
    ] = []
    http_routes: Annotated[list[ObjectIdentity], Meta(description="HTTPRoutes of the service at this Gateway.")] = []


class RouterScheduler(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    inference_pool: Annotated[ObjectIdentity | None, Meta(description="InferencePool of the service.")] = None
    service: Annotated[ObjectIdentity | None, Meta(description="Service of the endpoint picker.")] = None


class MemberBackend(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    name: Annotated[str, Meta(description="Name of the InferencePool or Service.")]
    kind: Annotated[str, Meta(description="InferencePool or Service.")]
    group: Annotated[str, Meta(description="API group; empty for the core group.")] = ""
    port: Annotated[Int32, Meta(description="Port of the model server.")] = 0


class RouterMember(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    name: Annotated[str, Meta(description="Name of the service.")]
    weight: Annotated[Int32, Meta(description="Share of the requests.")]
    stopped: Annotated[bool, Meta(description="Whether the service is stopped, and gets no requests.")] = False
    backend_ref: Annotated[MemberBackend | None, Meta(description="Pool or Service of the member.")] = None


class RouterGroup(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    name: Annotated[str, Meta(description="Name of the group.")]
    members: Annotated[list[RouterMember], Meta(description="Services that share the requests, by name.")] = []


class Router(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    gateways: Annotated[list[RouterGateway], Meta(description="Gateways of the service's routes.")] = []
    scheduler: Annotated[RouterScheduler | None, Meta(description="The endpoint picker.")] = None
    group: Annotated[RouterGroup | None, Meta(description="The routing group.")] = None


class ConfigSource(StrEnum):
    PRESET = "Preset"
    USER_REF = "UserRef"


class AppliedConfig(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    name: Annotated[str, Meta(description="Name of the config.")]
    source: Annotated[ConfigSource, Meta(description="Preset, or UserRef if the service names it.")]
    namespace: Annotated[str, Meta(description="Namespace of the config; empty for a built-in preset.")] = ""


class LLMInferenceServiceStatus(msgspec.Struct, rename="camel", omit_defaults=True):
    url: Annotated[
        str, Meta(description="URL that is reachable from outside the cluster. The service's own path is preferred.")
    ] = ""
    addresses: Annotated[list[ServiceAddress], Meta(description="Every URL of the service.")] = []
    address: Annotated[ServiceAddress | None, Meta(description="Not used.")] = None
    annotations: Annotated[
        dict[str, str], Meta(description="Names of the presets that the service was started with.")
    ] = {}
    applied_configs: Annotated[
        list[AppliedConfig],
        Meta(description="Configs that the effective spec is combined from. Later ones override earlier ones."),
    ] = []
    workloads: Annotated[Workloads | None, Meta(description="Workloads of the service.")] = None
    router: Annotated[Router | None, Meta(description="Routing of requests to the service.")] = None
    conditions: Annotated[list[KServeCondition], Meta(description="Conditions of the service, by type.")] = []
    observed_generation: Annotated[Int64 | None, Meta(description="Generation of the spec that this status is of.")] = (
        None
    )
