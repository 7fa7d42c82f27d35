"""The ``InferenceService`` kind: a Model, a runtime, and the settings of its pods. Source: LK-1.4 to LK-1.6."""

from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta
from pydantic import Field

from app.kube import base, resource
from app.kube.base import DECIMAL_PATTERN, DateTime, Int32, Int64, KubeModel, MemoryAmount, pattern
from app.kube.conditions import Condition
from app.kube.schema.fieldclass import (
    DEFAULTED,
    HONOURED,
    PASSED_THROUGH,
    defaulted,
    honoured,
    no_effect,
    passed_through,
)
from app.kube.schema.rules import Rule
from app.llmkube.model.types import COMPARED, TO_AGENT
from app.llmkube.runtimes import types as options
from app.llmkube.runtimes.flag import Flag, Memory
from app.llmkube.runtimes.types import NO_ITEMS, ContextLength, NonNegative, Positive, Probability

_AS_A_WHOLE = defaulted("replaced as a whole")
_NOT_EVICTED = no_effect("pods are not evicted for their age")

Port = Annotated[Int32, Field(ge=1, le=65535)]
Runtime = Literal["llamacpp", "llamacpp-router", "personaplex", "vllm", "tgi", "sglang", "generic"]
CacheType = Literal["f16", "f32", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "iq4_nl"]
Priority = Literal["critical", "high", "normal", "low", "batch"]
GATEWAY_HINT = "no route is made; create an AIGatewayRoute to the Service of this name"
_PARTITIONED = "(has(self.mode) && self.mode == 'partitioned')"
_HAS_PROFILE = "(has(self.profile) && self.profile != '')"


class Metric(KubeModel):
    habits: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("pods", "resource"), "write name, and targetAverageUtilization or targetAverageValue, beside type"
    )

    type: Annotated[Literal["Pods", "Resource"], HONOURED]
    """Pods: a metric of the pods that a metrics adapter offers. Resource: their CPU or memory."""
    name: Annotated[str, HONOURED]
    """Name of the metric; cpu or memory for type Resource."""
    target_average_value: Annotated[str, honoured("type Pods")] = ""
    """Target average per pod, as a quantity. Required for type Pods."""
    target_average_utilization: Annotated[Int32 | None, honoured("type Resource")] = None
    """Target average in percent of the request. Required for type Resource."""


class Autoscaling(KubeModel):
    min_replicas: Annotated[Int32 | None, DEFAULTED] = Field(default=1, ge=1, le=10)
    """Minimum number of replicas. Must not be 0."""
    max_replicas: Annotated[Int32, HONOURED] = Field(ge=1, le=100)
    """Maximum number of replicas. Must not be less than minReplicas."""
    metrics: list[Metric] = NO_ITEMS
    """Metrics that drive scaling. Defaults to the number of in-flight requests; required with the runtimes generic,
    personaplex and llamacpp-router, which have no such metric."""


class GatewayReference(KubeModel):
    name: str
    """Name of the Gateway."""
    namespace: str = ""
    """Namespace of the Gateway."""


class EndpointGateway(KubeModel):
    enabled: bool = False
    """Requests a route."""
    gateway_ref: GatewayReference
    """The Gateway of the route."""
    model_name: str = ""
    """Name of the model in requests."""


class Endpoint(KubeModel):
    port: Annotated[Port, DEFAULTED] = 8080
    """Port of the Service; also the container's, unless containerPort is set."""
    path: Annotated[str, DEFAULTED] = "/v1/chat/completions"
    """Path in status.endpoint. It changes nothing about the server."""
    type: Annotated[Literal["ClusterIP", "NodePort", "LoadBalancer"], DEFAULTED] = "ClusterIP"
    """Type of the Service."""
    node_port: Annotated[Int32 | None, honoured("endpoint.type NodePort")] = Field(default=None, ge=30000, le=32767)
    """Port on the nodes. Allocated by the cluster if not set."""
    gateway: Annotated[EndpointGateway | None, no_effect(GATEWAY_HINT)] = None
    """No effect: a route of Envoy AI Gateway."""


class GPUSharing(KubeModel):
    constraints: ClassVar = (
        Rule(
            f"{_PARTITIONED} ? {_HAS_PROFILE} : true",
            "profile is required with mode partitioned, for example 1g.10gb",
            lambda sharing: sharing.mode != "partitioned" or bool(sharing.profile),
        ),
        Rule(
            f"{_HAS_PROFILE} ? {_PARTITIONED} : true",
            "profile must only be set with mode partitioned",
            lambda sharing: not sharing.profile or sharing.mode == "partitioned",
        ),
        Rule(
            "has(self.memoryLimitGiB) ? has(self.mode) && self.mode == 'shared' : true",
            "memoryLimitGiB must only be set with mode shared",
            lambda sharing: sharing.memory_limit_gi_b is None or sharing.mode == "shared",
        ),
    )

    mode: Annotated[Literal["exclusive", "shared", "partitioned"], DEFAULTED] = "exclusive"
    """Sharing mode: exclusive requests whole GPUs, partitioned a MIG partition, shared a GPU of the operator's pool.
    partitioned and shared require exactly one GPU."""
    profile: Annotated[str, honoured("mode partitioned")] = ""
    """MIG profile of mode partitioned, for example 1g.10gb."""
    memory_limit_gi_b: Annotated[Int32 | None, no_effect("nothing limits the memory of a pod on a shared GPU")] = Field(
        default=None, alias="memoryLimitGiB", ge=1
    )
    """No effect: GPU memory in mode shared, for quotas."""


LlamaFlag = partial(Flag, runtimes=("llamacpp",))
_CACHE_KEYS = LlamaFlag("--cache-type-k", ("-ctk",), memory=(Memory.KEYS,))
_CACHE_VALUES = LlamaFlag("--cache-type-v", ("-ctv",), memory=(Memory.VALUES,))
_DRAFT = LlamaFlag("--model-draft", ("-md",), memory=(Memory.MORE,))

SpeculationType = Literal[
    "none",
    "disabled",
    "mtp",
    "draft",
    "draft-simple",
    "draft-eagle3",
    "draft-mtp",
    "draft-dflash",
    "draft-dspark",
    "ngram-simple",
    "ngram-map-k",
    "ngram-map-k4v",
    "ngram-mod",
    "ngram-cache",
]
DRAFT_TYPES = ("draft", "draft-simple", "draft-eagle3", "draft-dflash", "draft-dspark")
_HAS_DRAFT_REF = "(has(self.draftModelRef) && self.draftModelRef != '')"
_HAS_DRAFT_FILE = "(has(self.draftModel) && self.draftModel != '')"


class SpeculativeDecoding(KubeModel):
    constraints: ClassVar = (
        Rule(
            f"!(self.type in {list(DRAFT_TYPES)}) || {_HAS_DRAFT_REF} || {_HAS_DRAFT_FILE}",
            "this type requires draftModelRef or draftModel",
            lambda speculation: speculation.type not in DRAFT_TYPES or bool(speculation.draft),
        ),
        Rule(
            f"self.type in {[*DRAFT_TYPES, 'draft-mtp']} || !({_HAS_DRAFT_REF} || {_HAS_DRAFT_FILE})",
            "draftModelRef and draftModel must only be set with a type that uses a draft model",
            lambda speculation: speculation.takes_draft or not speculation.draft,
        ),
        Rule(
            f"!({_HAS_DRAFT_REF} && {_HAS_DRAFT_FILE})",
            "draftModelRef and draftModel must not both be set",
            lambda speculation: not (speculation.draft_model_ref and speculation.draft_model),
        ),
    )

    type: Annotated[SpeculationType, HONOURED, LlamaFlag("--spec-type")]
    """Method by which tokens are drafted. draft is short for draft-simple, mtp for draft-mtp; none and disabled switch
    speculative decoding off."""
    draft_model_ref: Annotated[str, HONOURED, _DRAFT] = ""
    """Name of the draft Model, in the same namespace."""
    draft_model: Annotated[str | None, HONOURED, _DRAFT] = Field(default=None, min_length=1, max_length=253)
    """Draft model as one of the Model's files, by its path in the repository or below the prefix."""
    n_draft_max: Annotated[Positive | None, HONOURED, LlamaFlag("--spec-draft-n-max")] = None
    """Maximum number of tokens to draft. Defaults to the server's own."""
    p_min: Annotated[Probability | None, HONOURED, LlamaFlag("--spec-draft-p-min")] = None
    """Minimum probability of a drafted token. Defaults to the server's own."""

    @property
    def draft(self) -> str:
        return self.draft_model_ref or self.draft_model or ""

    @property
    def takes_draft(self) -> bool:
        return self.type in (*DRAFT_TYPES, "draft-mtp")


class ServiceResources(KubeModel):
    habits: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("limits", "requests"), "write cpu, memory and gpu directly below resources; gpu: 1 asks for one GPU"
    )

    gpu: Annotated[Int32 | None, honoured("where the Model does not say how many")] = Field(default=None, ge=0, le=8)
    """GPUs per pod, where the Model does not say how many."""
    gpu_memory: Annotated[MemoryAmount, COMPARED] = ""
    """Memory of one GPU as a quantity, where the Model does not say it. It is compared with what the model needs; GPUs
    are requested by number."""
    cpu: Annotated[str, HONOURED] = ""
    """CPU request as a quantity. There is never a limit."""
    memory: Annotated[MemoryAmount, HONOURED] = ""
    """Memory request as a quantity. There is never a limit."""
    host_memory: Annotated[MemoryAmount, HONOURED] = ""
    """Memory request of a model that is partly kept in main memory. It wins over memory."""
    ephemeral_storage: Annotated[str, HONOURED] = Field(
        default="",
        pattern=pattern(
            "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$", "must be a quantity of bytes, for example 200Gi"
        ),
    )
    """Request and limit of the pod's own disk space, and the size of a model's emptyDir, as a quantity."""
    gpu_sharing: GPUSharing | None = None
    """GPU sharing. Defaults to whole GPUs."""


_NO_RESOURCES = ServiceResources()


class RopeScaling(KubeModel):
    type: Annotated[Literal["linear", "yarn", "longrope"], HONOURED, LlamaFlag("--rope-scaling", governs_block=True)]
    """Scaling method."""
    factor: Annotated[str, HONOURED, LlamaFlag("--rope-scale")] = Field(default="", pattern=DECIMAL_PATTERN)
    """Scaling factor of the context length, such as 2.0."""
    original_context: Annotated[ContextLength | None, HONOURED, LlamaFlag("--yarn-orig-ctx")] = None
    """Context length in tokens that the model was trained with."""


class ProbeOverrides(KubeModel):
    startup: Annotated[base.Probe | None, _AS_A_WHOLE] = None
    """Replaces the startup probe, which allows half an hour."""
    liveness: Annotated[base.Probe | None, _AS_A_WHOLE] = None
    """Replaces the liveness probe."""
    readiness: Annotated[base.Probe | None, _AS_A_WHOLE] = None
    """Replaces the readiness probe."""


class ModelCache(KubeModel):
    persistence: Annotated[Literal["Cached", "Ephemeral"] | None, HONOURED] = None
    """Ephemeral: each pod downloads into an empty directory. Cached: the file is on a claim."""
    claim_name: Annotated[str, HONOURED] = Field(default="", max_length=253)
    """An existing claim of this namespace in place of the Model's own. Pods download onto it."""


class Disruption(KubeModel):
    protect_startup: Annotated[
        bool, no_effect("pods are protected always or never: set protectAlways to protect them")
    ] = True
    """No effect: protection until the service is Ready would replace its pods."""
    protect_always: Annotated[bool, HONOURED] = False
    """Puts karpenter.sh/do-not-disrupt on the pods."""


class SLO(KubeModel):
    name: str = ""
    """Name of the objective."""
    objective: str = Field(pattern=DECIMAL_PATTERN)
    """Target percentage of good requests, for example 99.5."""
    window: str = Field(
        default="28d",
        pattern=pattern("^[0-9]+[mhdw]$", "must be a duration of minutes, hours, days or weeks, for example 28d"),
    )
    """Time window of the objective. Defaults to 28d."""
    indicator: Literal["availability", "latency"] = "availability"
    """Measured indicator. Defaults to availability."""
    latency_threshold: str = ""
    """Maximum duration of a good request, in seconds."""


class RolloutPolicy(KubeModel):
    wait_for_idle: bool = False
    """Lets a rollout wait until no request is in flight."""
    idle_timeout_seconds: int = Field(default=300, ge=0)
    """Maximum time to wait, in seconds."""
    force: bool = False
    """Starts the rollout at once."""


class InferenceServiceSpec(KubeModel):
    synonyms: ClassVar[Mapping[str, str]] = {
        "bnb": "bitsandbytes",
        "fp16": "float16",
        "fp8": "fp8_e4m3",
        "ggml": "llamacpp",
        "half": "float16",
        "llama": "llamacpp",
        "text-generation-inference": "tgi",
    }
    other_names: ClassVar[Mapping[str, str]] = {
        "backend": "runtime",
        "contextLength": "contextSize",
        "engine": "runtime",
        "maxModelLen": "vllmConfig.maxModelLen",
        "service": "endpoint",
    }
    habits: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("accelerator", "format", "gpuLayers", "hardware", "quantization", "source"),
            "it describes the model: write it in the Model that modelRef names",
        ),
        "imagePullPolicy": "pods have the cluster's default: Always for the tag latest, IfNotPresent for others",
        "predictor": "it belongs to KServe's InferenceService; name a Model in spec.modelRef",
        "template": "pods are described by fields of spec itself, such as spec.image, spec.args, spec.env, "
        "spec.resources and spec.podLabels",
        "containers": "there is one container; describe it by spec.image, spec.args, spec.env and spec.resources",
    }

    model_ref: Annotated[str, HONOURED]
    """Name of the Model, in the same namespace. A change rolls the pods."""
    runtime: Annotated[Runtime, DEFAULTED] = "llamacpp"
    """Server that runs the model. Defaults to llamacpp."""
    replicas: Annotated[Int32 | None, DEFAULTED] = Field(default=1, ge=0, le=10)
    """Number of replicas; 0 stops the service. With autoscaling, the initial number. Defaults to 1."""
    suspend: Annotated[bool, HONOURED] = False
    """Stops the service and keeps replicas and autoscaling as they are written."""
    mode: Annotated[Literal["chat", "embedding", "rerank"] | None, HONOURED] = None
    """Purpose of the model. llamacpp and sglang only."""
    image: Annotated[str, DEFAULTED] = ""
    """Image of the server instead of the runtime's own. generic and personaplex need it."""
    command: Annotated[list[str], PASSED_THROUGH] = NO_ITEMS
    """Command of the container instead of the image's."""
    args: Annotated[list[str], PASSED_THROUGH] = NO_ITEMS
    """All arguments of the container. Runtime generic only; no effect elsewhere."""
    extra_args: Annotated[list[str], passed_through("`--metrics` is written once")] = NO_ITEMS
    """Arguments after the generated ones. No effect with runtime generic, whose arguments are args."""
    env: Annotated[list[base.EnvVar], passed_through("of two variables with one name the last one stays")] = NO_ITEMS
    """Environment of the container; it wins over what the runtime sets."""
    container_port: Annotated[Port | None, HONOURED] = None
    """Port the server listens on. Absent: endpoint.port, else the runtime's own."""
    bind_address: Annotated[
        str,
        HONOURED,
        Flag("--host", runtimes=("llamacpp", "llamacpp-router", "vllm", "sglang")),
        Flag("--hostname", runtimes=("tgi",)),
    ] = ""
    """Address that the server listens on. Defaults to 0.0.0.0; on nodes without IPv4 write '::'. No effect on
    personaplex and generic."""
    skip_model_init: Annotated[bool, HONOURED] = False
    """Mounts no model and downloads nothing: the server finds or downloads its model itself. Set it for repositories
    with vllm and sglang. No effect on other runtimes than those and llamacpp."""
    context_size: Annotated[Int32 | None, HONOURED, LlamaFlag("--ctx-size", ("-c",), memory=(Memory.CONTEXT,))] = Field(
        default=None, ge=128, le=2_097_152
    )
    """Context size in tokens. llamacpp only."""
    parallel_slots: Annotated[
        Int32 | None, HONOURED, LlamaFlag("--parallel", ("-np",)), Flag("--max-num-seqs", runtimes=("vllm",))
    ] = Field(default=None, ge=1, le=64)
    """Maximum number of requests that run at the same time. llamacpp and vllm only."""
    flash_attention: Annotated[
        bool | None, HONOURED, LlamaFlag("--flash-attn", ("-fa",), needs_gpu=True, value="on")
    ] = None
    """Uses flash attention. llamacpp with a GPU only; on metal it is on unless false."""
    jinja: Annotated[bool, HONOURED, LlamaFlag("--jinja")] = False
    """Renders the model's own chat template, which tool calls need. llamacpp only."""
    cache_type_k: Annotated[CacheType | None, HONOURED, _CACHE_KEYS] = None
    """Data type of the keys in the key-value cache. llamacpp only."""
    cache_type_v: Annotated[CacheType | None, HONOURED, _CACHE_VALUES] = None
    """Data type of the values in the key-value cache. llamacpp only."""
    cache_type_custom_k: Annotated[str, HONOURED, _CACHE_KEYS] = ""
    """Data type of the cache's keys that cacheTypeK does not list. Overrides it. llamacpp only."""
    cache_type_custom_v: Annotated[str, HONOURED, _CACHE_VALUES] = ""
    """Data type of the cache's values that cacheTypeV does not list. Overrides it. llamacpp only."""
    moe_cpu_offload: Annotated[bool, HONOURED, LlamaFlag("--cpu-moe", ("-cmoe",), memory=(Memory.HOST,))] = Field(
        default=False, alias="moeCPUOffload"
    )
    """Keeps the weights of all experts in host memory. llamacpp only."""
    moe_cpu_layers: Annotated[
        Int32 | None, HONOURED, LlamaFlag("--n-cpu-moe", ("-ncmoe",), default=0, memory=(Memory.HOST,))
    ] = Field(default=None, alias="moeCPULayers", ge=0)
    """Number of layers whose experts are kept in host memory. llamacpp only."""
    no_kv_offload: Annotated[bool, HONOURED, LlamaFlag("--no-kv-offload", ("-nkvo",), memory=(Memory.HOST,))] = False
    """Keeps the key-value cache in host memory. llamacpp only."""
    no_warmup: Annotated[bool, HONOURED, LlamaFlag("--no-warmup")] = False
    """Skips the empty run after loading. llamacpp only."""
    reasoning_budget: Annotated[NonNegative | None, HONOURED, LlamaFlag("--reasoning-budget")] = None
    """Maximum number of reasoning tokens; 0 turns reasoning off. llamacpp only."""
    reasoning_budget_message: Annotated[str, HONOURED, LlamaFlag("--reasoning-budget-message")] = ""
    """Message that ends the reasoning when its budget is used up. llamacpp only."""
    metadata_overrides: Annotated[list[str], HONOURED, LlamaFlag("--override-kv", separator=",")] = NO_ITEMS
    """Overrides of model metadata, as key=type:value. llamacpp only."""
    tensor_overrides: Annotated[
        list[str], HONOURED, LlamaFlag("--override-tensor", ("-ot",), separator=",", memory=(Memory.HOST,))
    ] = NO_ITEMS
    """Devices of tensors by name, as pattern=device. llamacpp only."""
    batch_size: Annotated[Int32 | None, HONOURED, LlamaFlag("--batch-size", ("-b",))] = Field(
        default=None, ge=1, le=16384
    )
    """Logical maximum batch size in tokens. llamacpp only."""
    u_batch_size: Annotated[Positive | None, HONOURED, LlamaFlag("--ubatch-size", ("-ub",))] = None
    """Physical maximum batch size in tokens. llamacpp only."""
    rope_scaling: RopeScaling | None = None
    """Extension of the context beyond the trained length. llamacpp only."""
    speculative_decoding: SpeculativeDecoding | None = None
    """Speculative decoding. llamacpp only; vllm and sglang have it in their own options."""
    resources: ServiceResources | None = None
    """Resource requests of each pod."""
    endpoint: Endpoint | None = None
    """Service in front of the pods."""
    autoscaling: Autoscaling | None = None
    """Autoscaling of the number of replicas."""
    probe_overrides: ProbeOverrides | None = None
    """Probes that replace the generated ones."""
    tolerations: Annotated[list[base.Toleration], PASSED_THROUGH] = NO_ITEMS
    """Tolerations of the pods, in addition to the toleration of the GPU."""
    node_selector: Annotated[dict[str, str], PASSED_THROUGH] = Field(default_factory=dict)
    """Node labels that the pods require."""
    affinity: Annotated[base.Affinity | None, PASSED_THROUGH] = None
    """Affinity of the pods."""
    topology_spread_constraints: Annotated[list[base.TopologySpreadConstraint], PASSED_THROUGH] = NO_ITEMS
    """Topology spread constraints of the pods."""
    extra_volumes: Annotated[list[base.Volume], PASSED_THROUGH] = NO_ITEMS
    """Volumes of the pods, in addition to the model's."""
    extra_volume_mounts: Annotated[list[base.VolumeMount], PASSED_THROUGH] = NO_ITEMS
    """Volume mounts of the server's container, in addition to the model's."""
    revision_history_limit: Annotated[NonNegative | None, HONOURED] = None
    """Number of earlier ReplicaSets of the Deployment to keep. Defaults to 10."""
    model_cache: ModelCache | None = None
    """Storage of the model's file."""
    disruption: Disruption | None = None
    """Protection of the pods' nodes from Karpenter."""
    pod_annotations: Annotated[dict[str, str], PASSED_THROUGH] = Field(default_factory=dict)
    """Annotations of the pods."""
    pod_labels: Annotated[dict[str, str], HONOURED] = Field(default_factory=dict)
    """Labels of the pods. Those that find the pods of a service stay as they are."""
    runtime_class_name: Annotated[str, PASSED_THROUGH] = ""
    """RuntimeClass of the pods, often nvidia."""
    image_pull_secrets: Annotated[list[base.LocalObjectReference], PASSED_THROUGH] = NO_ITEMS
    """Secrets that hold credentials of image registries."""
    priority: Annotated[Priority, DEFAULTED] = "normal"
    """Importance of the service; names one of the PriorityClasses llmkube-*."""
    priority_class_name: Annotated[str, HONOURED] = ""
    """PriorityClass of the pods. Overrides priority."""
    eviction_protection: Annotated[bool, TO_AGENT] = False
    """Keeps a metal agent from stopping the service when memory is short. metal only."""
    pod_security_context: Annotated[base.PodSecurityContext | None, _AS_A_WHOLE] = None
    """Security settings of the pods. They replace the default as a whole, fsGroup included."""
    security_context: Annotated[base.SecurityContext | None, _AS_A_WHOLE] = None
    """Security settings of the container. They replace the default as a whole."""
    vllm_config: options.VLLMConfig | None = None
    """Options of runtime vllm."""
    tgi_config: options.TGIConfig | None = None
    """Options of runtime tgi."""
    sglang_config: options.SGLangConfig | None = None
    """Options of runtime sglang."""
    persona_plex_config: options.PersonaPlexConfig | None = None
    """Options of runtime personaplex."""
    slo: Annotated[SLO | None, no_effect("write a ServiceLevelObjective of Pyrra yourself")] = None
    """No effect: a service level objective of Pyrra."""
    rollout_policy: Annotated[
        RolloutPolicy | None,
        no_effect(
            "new pods start at once: no hook can ask a server whether it is idle",
            asks=lambda policy: policy.wait_for_idle,
        ),
    ] = None
    """No effect: waiting for requests in flight."""
    max_pod_lifetime_seconds: Annotated[Int64 | None, _NOT_EVICTED] = Field(default=None, ge=1)
    """No effect: pods are not evicted for their age."""
    max_pod_lifetime_idle_timeout_seconds: Annotated[Int64 | None, _NOT_EVICTED] = Field(default=None, ge=0)
    """No effect: pods are not evicted for their age."""
    turbo_quant_bits: Annotated[Literal[3, 6, 8] | None, TO_AGENT] = None
    """Bits of the key-value cache in oMLX. metal only."""
    paged_ssd_cache_dir: Annotated[str, TO_AGENT] = Field(default="", alias="pagedSSDCacheDir")
    """Directory of oMLX' cache on disk. metal only."""
    paged_ssd_cache_max_size: Annotated[str, TO_AGENT] = Field(default="", alias="pagedSSDCacheMaxSize")
    """Size of oMLX' cache on disk. metal only."""
    hot_cache_max_size: Annotated[str, TO_AGENT] = ""
    """Size of oMLX' cache in memory. metal only."""

    @property
    def requests(self) -> ServiceResources:
        return self.resources or _NO_RESOURCES

    @property
    def cache_claim(self) -> str:
        """Name of the claim that replaces the Model's own; empty without one."""
        return self.model_cache.claim_name if self.model_cache else ""


class InferencePhase(StrEnum):
    PENDING = "Pending"
    CREATING = "Creating"
    PROGRESSING = "Progressing"
    READY = "Ready"
    WAITING_FOR_GPU = "WaitingForGPU"
    STOPPED = "Stopped"
    SUSPENDED = "Suspended"
    """``suspend`` is true; pods may still be terminating."""
    FAILED = "Failed"
    """Nothing changes until a user acts."""


class InferenceCondition(StrEnum):
    READY = "Ready"
    """The one condition all families have; while not True its message lists why."""
    AVAILABLE = "Available"
    PROGRESSING = "Progressing"
    DEGRADED = "Degraded"
    GPU_AVAILABLE = "GPUAvailable"
    SUSPENDED = "Suspended"
    SPECULATIVE_INVALID = "SpeculativeInvalid"
    SCALING_ACTIVE = "ScalingActive"
    """False while ``autoscaling`` lacks a metric or its value, otherwise absent."""
    MODEL_TRANSFER_HEALTHY = "ModelTransferHealthy"
    DRIVER_COMPATIBLE = "DriverCompatible"
    GATEWAY_READY = "GatewayReady"
    CHILDREN_CREATED = "ChildrenCreated"
    """False while a child is not there, or not as it was asked for, absent otherwise. Its time tells how long."""


class InferenceReason(StrEnum):
    INFERENCE_READY = "InferenceReady"
    NO_READY_REPLICAS = "NoReadyReplicas"
    """Pods were ready and no longer are."""
    MANUALLY_SCALED_TO_ZERO = "ManuallyScaledToZero"
    SUSPENDED = "Suspended"
    NOT_SUSPENDED = "NotSuspended"
    CREATING = "Creating"
    PENDING = "Pending"
    """The Model is not Ready."""
    WAITING_FOR_GPU = "WaitingForGPU"
    INSUFFICIENT_GPU = "InsufficientGPU"
    FAILED = "Failed"
    SPECULATIVE_INVALID = "SpeculativeInvalid"
    METRIC_REQUIRED = "MetricRequired"
    NO_REQUEST_YET = "NoRequestYet"
    CONFIG_VALID = "ConfigValid"
    INVALID_SPEC = "InvalidSpec"
    GATEWAY_NOT_INSTALLED = "GatewayCRDsNotInstalled"
    SPECULATIVE_MISSING_MODEL = "SpeculativeMissingModel"
    SPECULATIVE_MISSING_CONFIG = "SpeculativeMissingConfig"
    SPECULATIVE_ACCEPT_THRESHOLD_UNUSED = "SpeculativeAcceptThresholdUnused"
    SOURCE_UNTRUSTED = "ModelSourceUntrusted"
    SOURCE_UNAUTHORIZED = "ModelSourceUnauthorized"
    SOURCE_NOT_FOUND = "ModelSourceNotFound"
    SOURCE_UNREACHABLE = "ModelSourceUnreachable"
    OUT_OF_SPACE = "ModelTransferOutOfSpace"
    TRANSFER_SUCCEEDED = "ModelTransferSucceeded"
    DRIVER_INSUFFICIENT = "CUDADriverInsufficient"
    RUNTIME_STARTED = "RuntimeStarted"


class SchedulingStatus(StrEnum):
    """Values of ``status.schedulingStatus`` that programs watch; it may also be a pod's own reason."""

    INSUFFICIENT_GPU = "InsufficientGPU"
    INSUFFICIENT_RESOURCES = "InsufficientResources"
    AGENT_HEARTBEAT_STALE = "AgentHeartbeatStale"
    WAITING_FOR_METAL_AGENT = "WaitingForMetalAgent"
    INSUFFICIENT_MEMORY = "InsufficientMemory"
    MEMORY_CHECK_FAILED = "MemoryCheckFailed"


class Acceleration(msgspec.Struct, rename="camel", omit_defaults=True):
    device: Annotated[str, Meta(description="GPU that the server uses.")] = ""
    layers_offloaded: Annotated[Int32, Meta(description="Number of layers on the GPU.")] = 0
    layers_total: Annotated[Int32, Meta(description="Number of layers of the model.")] = 0


class GatewayStatus(msgspec.Struct, rename="camel", omit_defaults=True):
    route_ready: Annotated[bool, Meta(description="Whether the route exists.")] = False
    model_name: Annotated[str, Meta(description="Name of the model in requests.")] = ""
    endpoint: Annotated[str, Meta(description="URL of the gateway.")] = ""
    auth_enabled: Annotated[bool, Meta(description="Whether the gateway requires credentials.")] = False


class InferenceServiceStatus(msgspec.Struct, rename="camel", omit_defaults=True):
    """The status of a service. Zero values are left out, as upstream does."""

    phase: Annotated[
        str,
        Meta(
            description="Where the service is in its life.",
            extra_json_schema={"enum": [str(p) for p in InferencePhase]},
        ),
    ] = ""
    ready_replicas: Annotated[Int32, Meta(description="Number of ready replicas.")] = 0
    desired_replicas: Annotated[Int32, Meta(description="Number of desired replicas.")] = 0
    replicas: Annotated[Int32, Meta(description="Number of replicas.")] = 0
    selector: Annotated[str, Meta(description="Label selector of the pods, for autoscalers. Empty on metal.")] = ""
    endpoint: Annotated[str, Meta(description="URL of the service inside the cluster.")] = ""
    model_ready: Annotated[bool, Meta(description="Whether the Model is Ready.")] = False
    mode: Annotated[str, Meta(description="Purpose of the model: chat, embedding or rerank.")] = ""
    acceleration: Annotated[
        Acceleration | None, Meta(description="Use of the GPU. Only kept: hooks do not read logs.")
    ] = None
    gateway: Annotated[GatewayStatus | None, Meta(description="Exposure behind a gateway. Only kept.")] = None
    last_updated: Annotated[DateTime | None, Meta(description="When another field of this status last changed.")] = None
    scheduling_status: Annotated[str, Meta(description="Why pods cannot run yet, as one word.")] = ""
    scheduling_message: Annotated[str, Meta(description="Why pods cannot run yet, in the scheduler's words.")] = ""
    waiting_for: Annotated[str, Meta(description="The resource that is missing and its number.")] = ""
    queue_position: Annotated[
        Int32, Meta(description="Place among all services that wait for a GPU, oldest first; 0 when not waiting.")
    ] = 0
    effective_priority: Annotated[Int32, Meta(description="Value of the priority.")] = 0
    conditions: Annotated[list[Condition], Meta(description="What is true of the service, by type.")] = []


InferenceService = resource.Resource[InferenceServiceSpec, InferenceServiceStatus]
