"""``LLMInferenceService``: what users write and what we report. Source: KS-1."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from pydantic import ConfigDict, Field

from app.kube.base import DECIMAL_PATTERN, EmbeddedType, Int32, Json, KubeModel, pattern
from app.kube.gatewayapi import GROUP_PATTERN, KIND_PATTERN, NAMESPACE_PATTERN, HTTPRouteSpec, PortNumber

PartialPodSpec = Annotated[Json, EmbeddedType("PodSpec", optional=("containers",))]
"""A pod spec that presets complete, so ``containers`` is not required."""

FailureMode = Literal["FailOpen", "FailClose"]


def _cel(*rules: tuple[str, str]) -> dict[str, Any]:
    return {"x-kubernetes-validations": [{"rule": rule, "message": message} for rule, message in rules]}


class NameReference(KubeModel):
    """An object of the service's own namespace, by name."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})

    name: str = Field("", description="Name of the object.")


# The model.


class LoRASpec(KubeModel):
    """Adapters of the base model, which vLLM loads beside it."""

    adapters: Any = Field(
        None, description="The adapters: a list of objects with a name of their own and the uri of the files."
    )
    max_rank: Int32 | None = Field(None, description="Largest rank of an adapter; vLLM's default when not set.", ge=1)
    max_adapters: Int32 | None = Field(
        None, description="Adapters that one batch may use; vLLM's default when not set.", ge=1
    )
    max_cpu_adapters: Int32 | None = Field(
        None, description="Adapters that are kept in memory; as many as maxAdapters when not set.", ge=1
    )


class LLMModelSpec(KubeModel):
    """Which model is served, and where it comes from."""

    uri: str = Field(
        description="Where the model is: hf://, s3://, gs://, https://, http://, hdfs://, webhdfs://, pvc:// or oci://."
    )
    name: str | None = Field(None, description="Name under which the model is served; the service's own when not set.")
    lora: LoRASpec | None = Field(None, description="LoRA adapters.")


class StorageInitializerSpec(KubeModel):
    enabled: bool | None = Field(None, description="False when the containers fetch the model themselves.")


# The workload.


class ParallelismSpec(KubeModel):
    """How one replica is spread over GPUs and nodes."""

    tensor: Int32 | None = Field(None, description="GPUs that share each layer.", ge=1)
    pipeline: Int32 | None = Field(None, description="Nodes that share the layers of one replica.", ge=1)
    data: Int32 | None = Field(None, description="Copies of the model in one replica.", ge=1)
    data_local: Int32 | None = Field(None, description="Copies of the model on each node.", ge=1)
    data_rpc_port: Int32 | None = Field(
        None, alias="dataRPCPort", description="Port by which the copies talk; 5555 when not set.", ge=1, le=65535
    )
    expert: bool = Field(False, description="Whether experts are spread over the GPUs.")


class ScalingModifiers(KubeModel):
    """KEDA's formula. Must stay empty: the autoscaler sets it."""

    formula: str = Field("", description="Must be empty.")
    target: str = Field("", description="Must be empty.")
    activation_target: str = Field("", description="Must be empty.")
    metric_type: Literal["AverageValue", "Value"] | None = Field(None, description="Must not be set.")


class HorizontalPodAutoscalerConfig(KubeModel):
    name: str = Field("", description="Must be empty: the autoscaler's name is fixed.")
    behavior: Annotated[Json, EmbeddedType("HorizontalPodAutoscalerBehavior")] | None = Field(
        None, description="How fast replicas come and go."
    )


_MODIFIERS = "self.advanced.scalingModifiers"


class KEDAAdvanced(KubeModel):
    horizontal_pod_autoscaler_config: HorizontalPodAutoscalerConfig | None = Field(
        None, description="Details of the autoscaler that KEDA makes."
    )
    restore_to_original_replica_count: bool = Field(
        False, description="Whether replicas go back to their number before KEDA when it leaves."
    )
    scaling_modifiers: ScalingModifiers | None = Field(None, description="KEDA's formula; must stay empty.")


class KEDAFallback(KubeModel):
    """What to do when metrics fail."""

    failure_threshold: Int32 = Field(description="Failures in a row before the fallback.")
    replicas: Int32 = Field(description="Replicas of the fallback.")
    behavior: Literal["static", "currentReplicas", "currentReplicasIfHigher", "currentReplicasIfLower"] = Field(
        "static", description="Which number wins during the fallback."
    )


class KEDASpec(KubeModel):
    """Scaling by a KEDA ScaledObject."""

    model_config = ConfigDict(
        json_schema_extra=_cel(
            (
                f"!has(self.advanced) || !has({_MODIFIERS}) || ("
                + " && ".join(
                    f"(!has({_MODIFIERS}.{name}) || size({_MODIFIERS}.{name}) == 0)"
                    for name in ("formula", "target", "activationTarget", "metricType")
                )
                + ")",
                "leave scalingModifiers empty: the autoscaler sets the formula",
            ),
            (
                (
                    "!has(self.advanced) || !has(self.advanced.horizontalPodAutoscalerConfig) || "
                    "!has(self.advanced.horizontalPodAutoscalerConfig.name) || "
                    "size(self.advanced.horizontalPodAutoscalerConfig.name) == 0"
                ),
                "leave horizontalPodAutoscalerConfig.name empty: the name is fixed",
            ),
        )
    )

    polling_interval: Int32 | None = Field(None, description="Seconds between two looks at the metrics.", ge=1)
    cooldown_period: Int32 | None = Field(None, description="Seconds of quiet before scaling to idle.", ge=0)
    initial_cooldown_period: Int32 | None = Field(
        None, description="Seconds after the start before the cooldown counts.", ge=0
    )
    idle_replica_count: Int32 | None = Field(None, description="Replicas while nothing happens.", ge=1)
    fallback: KEDAFallback | None = Field(None, description="What to do when metrics fail.")
    advanced: KEDAAdvanced | None = Field(None, description="Details for KEDA.")


class HPASpec(KubeModel):
    behavior: Annotated[Json, EmbeddedType("HorizontalPodAutoscalerBehavior")] | None = Field(
        None, description="How fast replicas come and go."
    )


class WVASpec(KubeModel):
    """Scaling by the workload variant autoscaler."""

    model_config = ConfigDict(
        json_schema_extra=_cel(
            ("!(has(self.hpa) && has(self.keda))", "set hpa or keda, not both"),
            ("has(self.hpa) || has(self.keda)", "set hpa or keda"),
        )
    )

    variant_cost: str = Field(
        "10.0", description="Cost of one replica, to compare variants by.", pattern=DECIMAL_PATTERN
    )
    hpa: HPASpec | None = Field(None, description="Scale by a HorizontalPodAutoscaler.")
    keda: KEDASpec | None = Field(None, description="Scale by KEDA.")


_IDLE = "!has(self.wva) || !has(self.wva.keda) || !has(self.wva.keda.idleReplicaCount)"


class ScalingSpec(KubeModel):
    """Autoscaling. Stored and checked, not acted on: attach a HorizontalPodAutoscaler of your own."""

    model_config = ConfigDict(
        json_schema_extra=_cel(
            ("has(self.maxReplicas)", "scaling needs maxReplicas"),
            ("has(self.wva)", "scaling needs wva"),
            (
                "!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",
                "minReplicas is at most maxReplicas",
            ),
            (f"{_IDLE} || has(self.minReplicas)", "idleReplicaCount needs minReplicas"),
            (
                f"{_IDLE} || !has(self.minReplicas) || self.wva.keda.idleReplicaCount < self.minReplicas",
                "idleReplicaCount is less than minReplicas",
            ),
        )
    )

    min_replicas: Int32 | None = Field(None, description="Fewest replicas.", ge=1)
    max_replicas: Int32 | None = Field(None, description="Most replicas.", ge=1)
    wva: WVASpec | None = Field(None, description="The autoscaler.")


_REPLICAS_CEL = _cel(("!(has(self.replicas) && has(self.scaling))", "set replicas or scaling, not both"))


class WorkloadSpec(KubeModel):
    """Pods that run the model: alone, or as a leader with workers."""

    model_config = ConfigDict(json_schema_extra=_REPLICAS_CEL)

    replicas: Int32 | None = Field(None, description="Copies of the workload; left alone when not set.", ge=0)
    scaling: ScalingSpec | None = Field(None, description="Autoscaling. Stored, not acted on.")
    parallelism: ParallelismSpec | None = Field(None, description="How one replica is spread over GPUs and nodes.")
    labels: dict[str, str] | None = Field(None, description="Labels for the pods.")
    annotations: dict[str, str] | None = Field(None, description="Annotations for the pods.")
    template: PartialPodSpec | None = Field(
        None, description="The pod, or the leader's pod; what is not said comes from presets."
    )
    worker: PartialPodSpec | None = Field(
        None, description="The workers' pod; with it one replica spans several nodes."
    )


# The router.


class ObjectReference(KubeModel):
    """An object of any namespace."""

    name: str | None = Field(None, description="Name of the object.", min_length=1, max_length=253)
    namespace: str | None = Field(
        None,
        description="Namespace of the object; the service's own when not set.",
        min_length=1,
        max_length=63,
        pattern=NAMESPACE_PATTERN,
    )


class HTTPRouteConfig(KubeModel):
    """Routes of your own, or content for the one that is made."""

    refs: list[NameReference] | None = Field(None, description="Existing HTTPRoutes to use instead of a managed one.")
    spec: HTTPRouteSpec | None = Field(None, description="Content of the managed HTTPRoute.")


class RouteSpec(KubeModel):
    http: HTTPRouteConfig | None = Field(None, description="The HTTPRoute; empty for a managed one.")


class GatewaySpec(KubeModel):
    refs: list[ObjectReference] | None = Field(
        None, description="Existing Gateways; the managed route attaches to them instead of the default one."
    )


class IngressSpec(KubeModel):
    refs: list[ObjectReference] | None = Field(None, description="Existing Ingresses. Stored, not acted on.")


class EndpointPickerIdentity(KubeModel):
    """The service that picks endpoints for a pool: what all versions of it have."""

    group: str = Field(
        "",
        description="API group; empty for a Service.",
        max_length=253,
        pattern=GROUP_PATTERN,
    )
    kind: str = Field("Service", description="Kind.", min_length=1, max_length=63, pattern=KIND_PATTERN)
    name: str = Field(description="Name.", min_length=1, max_length=253)
    failure_mode: FailureMode = Field("FailClose", description="What happens while it does not answer.")


class Port(KubeModel):
    number: PortNumber = Field(description="Number of the port.")


class EndpointPickerReference(EndpointPickerIdentity):
    """The service that picks endpoints for a pool."""

    model_config = ConfigDict(
        json_schema_extra=_cel(("self.kind != 'Service' || has(self.port)", "a Service needs a port"))
    )

    port: Port | None = Field(None, description="Port; 9002 when not set, which only v1alpha1 admits for a Service.")


LABEL_PATTERN = pattern(
    r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$",
    "must be a label value: letters, digits, '-', '_' and '.', beginning and ending with a letter or digit",
)
LabelText = Annotated[str, Field(max_length=63, pattern=LABEL_PATTERN)]


class PoolSelector(KubeModel):
    model_config = ConfigDict(json_schema_extra={"required": ["matchLabels"]})  # v1alpha1 admits none

    match_labels: dict[str, LabelText] | None = Field(
        None,
        description="Labels of the pods, in addition to the service's own.",
        json_schema_extra={"minProperties": 1, "maxProperties": 64},
    )


PORTS: dict[str, Any] = {
    "x-kubernetes-list-type": "atomic",
    **_cel(("self.all(a, self.exists_one(b, a.number == b.number))", "each port once")),
}


class InferencePoolSpec(KubeModel):
    """Content of the managed InferencePool, in the form of its v1."""

    selector: PoolSelector = Field(description="Which pods are in the pool.")
    target_ports: list[Port] = Field(
        description="Ports of the model server.",
        min_length=1,
        max_length=8,
        json_schema_extra=PORTS,
    )
    endpoint_picker_ref: EndpointPickerReference = Field(description="The endpoint picker.")


class PoolSpec(KubeModel):
    spec: InferencePoolSpec | None = Field(None, description="Content of the managed pool.")
    ref: NameReference | None = Field(None, description="An existing InferencePool to use; no scheduler is made then.")


class ConfigMapKey(KubeModel):
    """A key of a ConfigMap."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})

    name: str = Field("", description="Name of the ConfigMap.")
    key: str = Field(description="Key in it; epp when empty.")
    optional: bool | None = Field(None, description="Has no effect.")


class SchedulerConfig(KubeModel):
    """The endpoint picker's configuration: written here, or in a ConfigMap."""

    inline: Json | None = Field(None, description="An EndpointPickerConfig.")
    ref: ConfigMapKey | None = Field(None, description="Where an EndpointPickerConfig stands.")


class SchedulerSpec(KubeModel):
    """The endpoint picker (EPP), which chooses a pod for each request."""

    pool: PoolSpec | None = Field(None, description="The InferencePool; empty for a managed one.")
    template: PartialPodSpec | None = Field(None, description="The endpoint picker's pod.")
    replicas: Int32 | None = Field(None, description="Copies of the endpoint picker; with more than one they elect.")
    labels: dict[str, str] | None = Field(None, description="Labels for its pods.")
    annotations: dict[str, str] | None = Field(None, description="Annotations for its pods.")
    config: SchedulerConfig | None = Field(None, description="Its configuration; a default when not set.")


class RouterSpec(KubeModel):
    """How requests reach the model."""

    route: RouteSpec | None = Field(None, description="HTTP routing; empty for a managed HTTPRoute.")
    gateway: GatewaySpec | None = Field(None, description="The Gateway; empty for the default one.")
    ingress: IngressSpec | None = Field(None, description="Has no effect.")
    scheduler: SchedulerSpec | None = Field(None, description="The endpoint picker; empty for a managed one.")


class LLMInferenceServiceSpec(WorkloadSpec):
    """A model, the pods that serve it, and the way there."""

    model: LLMModelSpec | None = Field(None, description="Which model is served.")
    storage_initializer: StorageInitializerSpec | None = Field(None, description="How the model gets to the pods.")
    prefill: WorkloadSpec | None = Field(
        None, description="A second workload for prefill; the main one then only decodes."
    )
    router: RouterSpec | None = Field(None, description="How requests reach the model.")
    base_refs: list[NameReference] | None = Field(
        None, description="LLMInferenceServiceConfigs below this spec, the last one strongest."
    )


# Status.


class Condition(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    """KServe's form of a condition: a true one has neither reason nor message, and there is no generation in it."""

    type: Annotated[str, Meta(description="What the condition is about.")] = ""
    status: Annotated[
        str, Meta(description="Whether the condition holds.", extra_json_schema={"enum": ["True", "False", "Unknown"]})
    ] = ""
    severity: Annotated[str, Meta(description="Info for conditions that Ready does not depend on directly.")] = ""
    reason: Annotated[str, Meta(description="Why not, as one word for programs.")] = ""
    message: Annotated[str, Meta(description="Why not, for people.")] = ""
    last_transition_time: Annotated[str, Meta(description="When status last changed.")] = ""


class ServedModel(msgspec.Struct, rename="camel", frozen=True):
    """A name that requests may ask for."""

    name: Annotated[str, Meta(description="Name of the base model or of an adapter.")]


class Address(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    """One place where the service answers."""

    name: Annotated[str, Meta(description="gateway-external, gateway-internal or internal.")] = ""
    url: Annotated[str, Meta(description="The URL.")] = ""
    ca_certs: Annotated[str, Meta(description="CA certificates to trust there, PEM.")] = msgspec.field(
        default="", name="CACerts"
    )
    audience: Annotated[str, Meta(description="OIDC audience of the address.")] = ""
    models: Annotated[
        list[ServedModel], Meta(description="The base model and its LoRA adapters, where there are adapters.")
    ] = msgspec.field(default_factory=list)


class LLMInferenceServiceStatus(msgspec.Struct, rename="camel", omit_defaults=True):
    """What was seen of a service."""

    url: Annotated[str, Meta(description="The first URL that is reachable from outside.")] = ""
    addresses: Annotated[list[Address], Meta(description="Every URL of the service.")] = msgspec.field(
        default_factory=list
    )
    address: Annotated[Address | None, Meta(description="Not used.")] = None
    annotations: Annotated[
        dict[str, str], Meta(description="Names of the presets that the service was started with.")
    ] = msgspec.field(default_factory=dict)
    conditions: Annotated[list[Condition], Meta(description="The conditions, by type.")] = msgspec.field(
        default_factory=list
    )
    observed_generation: Annotated[
        int | None,
        Meta(description="The generation this status answers.", extra_json_schema={"format": "int64"}),
    ] = None
