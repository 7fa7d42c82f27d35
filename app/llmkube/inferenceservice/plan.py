"""Every decision about the pods of a service and what stands before them. Source: llmkube spec 3 and 4.

The builders beside this module only give these values their shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.kube.desired import Container, VolumeMount
from app.kube.objects import ObjectMeta
from app.llmkube import names
from app.llmkube.inferenceservice import pod
from app.llmkube.inferenceservice.gpu import gpu_request
from app.llmkube.inferenceservice.storage import NOTHING, Model, draft, storage
from app.llmkube.inferenceservice.types import Autoscaling, InferenceServiceSpec
from app.llmkube.runtimes.registry import runtime as runtime_of
from app.llmkube.runtimes.runtime import Runtime, Serving
from app.settings import Settings
from app.workload.parts import GPURequest, Probes, pods_metric, resource_metric

Json = dict[str, Any]

DEFAULT_SERVICE_PORT = 8080
DEFAULT_ENDPOINT_PATH = "/v1/chat/completions"
PORT_NAME = "http"
"""Name of the container's port; the Service and the PodMonitor find it by this name (T-44)."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """What the autoscaler gets."""

    minimum: int
    maximum: int
    metrics: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a service needs in the cluster. Maps and lists that are empty are left out of the objects."""

    name: str
    namespace: str
    service_name: str
    labels: dict[str, str]
    """Of the Deployment: the operator's four."""
    selector: dict[str, str]
    pod_labels: dict[str, str]
    pod_annotations: dict[str, str]
    replicas: int
    """What the user wants; an autoscaler may want something else."""
    scaling: Scaling | None
    runtime: Runtime
    image: str
    command: list[str]
    args: list[str]
    env: list[Json]
    port: int
    service_port: int
    service_type: str
    gpus: GPURequest
    requests: dict[str, str]
    init: Container | None
    volumes: list[Json]
    mounts: list[VolumeMount]
    probes: Probes
    pod_security: Json
    container_security: Json
    priority_class: str
    runtime_class: str
    image_pull_secrets: list[Json]
    tolerations: list[Json]
    node_selector: dict[str, str]


def plan(
    metadata: ObjectMeta,
    spec: InferenceServiceSpec,
    model: Model,
    proposer: Model | None,
    operator_claim: bool,
    settings: Settings,
) -> Plan:
    """The decisions for a Model that is Ready and served inside the cluster.

    ``proposer`` is the Model that ``speculative.model`` names, if there is one. ``operator_claim``: the claim that the
    operator names for all Models exists in the namespace.
    """
    runtime = runtime_of(spec.runtime)
    gpus = gpu_request(model.spec, spec, settings)
    mounts_model = runtime.mounts_model and not spec.skip_model_init
    main = storage(model, spec, operator_claim, settings) if mounts_model else NOTHING
    proposing = draft(proposing_model(spec), proposer, main, operator_claim, settings)
    port = container_port(spec, runtime)
    labels = names.pod_labels(metadata.name, spec.model_ref, runtime.name)
    serving = Serving(spec, model.spec, main.path, mounts_model, port, gpus.count, proposing.name)
    return Plan(
        name=metadata.name,
        namespace=metadata.namespace,
        service_name=names.service_name(metadata.name),
        labels=labels,
        selector=names.service_labels(metadata.name),
        pod_labels={**spec.pod_labels, **labels},
        pod_annotations=spec.pod_annotations,
        replicas=wanted_replicas(spec),
        scaling=_scaling(spec.autoscaling, runtime),
        runtime=runtime,
        image=spec.image or runtime.image,
        command=spec.command or list(runtime.command),
        args=runtime.arguments(serving),
        env=pod.environment([*runtime.environment(spec), *spec.env]),
        port=port,
        service_port=service_port(spec),
        service_type=spec.endpoint.type if spec.endpoint else "ClusterIP",
        gpus=gpus,
        requests=pod.requests(spec, model.spec),
        init=main.init,
        volumes=[*main.volumes, *proposing.volumes],
        mounts=[*main.mounts, *proposing.mounts],
        probes=pod.container_probes(spec, runtime, port),
        pod_security=pod.security(spec, settings),
        container_security=pod.container_security(spec),
        priority_class=priority_class(spec),
        runtime_class=spec.runtime_class_name,
        image_pull_secrets=pod.by_name(spec.image_pull_secrets),
        tolerations=pod.tolerations(spec, gpus),
        node_selector=spec.node_selector,
    )


def wanted_replicas(spec: InferenceServiceSpec) -> int:
    return 1 if spec.replicas is None else spec.replicas


def container_port(spec: InferenceServiceSpec, runtime: Runtime) -> int:
    """The port the server listens on and its probes ask (spec 3.3)."""
    return spec.container_port or (spec.endpoint.port if spec.endpoint else runtime.port)


def service_port(spec: InferenceServiceSpec) -> int:
    """The Service's port: never the container's, never the runtime's (spec 3.9)."""
    return spec.endpoint.port if spec.endpoint else DEFAULT_SERVICE_PORT


def endpoint(metadata: ObjectMeta, spec: InferenceServiceSpec, settings: Settings) -> str:
    """The service's URL inside the cluster (spec 5.6)."""
    host = f"{names.service_name(metadata.name)}.{metadata.namespace}.svc.{settings.cluster_domain}"
    path = (spec.endpoint.path if spec.endpoint else "") or DEFAULT_ENDPOINT_PATH
    return f"http://{host}:{service_port(spec)}{path}"


def priority_class(spec: InferenceServiceSpec) -> str:
    """The pods' PriorityClass: the user's own, else that of the level."""
    return spec.priority_class_name or names.priority_class(spec.priority)


def proposing_model(spec: InferenceServiceSpec) -> str:
    """What ``speculative.model`` says, where it counts; empty otherwise."""
    speculative = spec.vllm_config.speculative if spec.runtime == "vllm" and spec.vllm_config else None
    return speculative.model if speculative and speculative.enabled else ""


def _scaling(autoscaling: Autoscaling | None, runtime: Runtime) -> Scaling | None:
    if autoscaling is None:
        return None
    metrics = [
        pods_metric(metric.name, metric.target_average_value)
        if metric.type == "Pods"
        else resource_metric(metric.name, metric.target_average_utilization or 0)
        for metric in autoscaling.metrics
    ]
    return Scaling(
        minimum=autoscaling.min_replicas or 1,
        maximum=autoscaling.max_replicas,
        metrics=tuple(metrics) or (pods_metric(runtime.metric, "2"),),
    )
