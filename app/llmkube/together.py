"""What only a Model and a service together show: fields of one that the other makes meaningless.

Admission sees one object, so these are findings of ``modelhooks validate`` when both are among its files (spec 6.5).
What keeps pods from running is in :mod:`app.llmkube.inferenceservice.causes`: the cluster says it too.
"""

from __future__ import annotations

from collections.abc import Iterator

from app.llmkube.inferenceservice.types import InferenceServiceSpec
from app.llmkube.model.types import ModelSpec
from app.llmkube.source import METAL, SourceClass, parse

_READS_MODEL = ("llamacpp", "vllm")


def findings(model: ModelSpec, service: InferenceServiceSpec) -> list[str]:
    """One line for each field that does nothing, or cannot work, with this Model."""
    if model.hardware and model.hardware.accelerator == METAL:
        return list(_on_metal(service))
    return [*_source(model, service), *_gpus(model, service)]


_NOT_ON_METAL = {
    "image": "image",
    "command": "command",
    "args": "args",
    "env": "env",
    "containerPort": "container_port",
    "autoscaling": "autoscaling",
    "tolerations": "tolerations",
    "nodeSelector": "node_selector",
    "podLabels": "pod_labels",
    "podAnnotations": "pod_annotations",
    "runtimeClassName": "runtime_class_name",
    "probeOverrides": "probe_overrides",
    "podSecurityContext": "pod_security_context",
    "securityContext": "security_context",
    "imagePullSecrets": "image_pull_secrets",
    "priorityClassName": "priority_class_name",
    "resources": "resources",
}


def _on_metal(service: InferenceServiceSpec) -> Iterator[str]:
    """V-I64 and V-X11: the agent starts one process, and there is no pod."""
    unread = [
        name for name, attribute in _NOT_ON_METAL.items() if getattr(service, attribute) not in (None, "", [], {})
    ]
    if unread:
        yield f"no effect with a Model on metal: {', '.join('spec.' + name for name in unread)}"
    if (service.replicas or 0) > 1:
        yield f"spec.replicas {service.replicas}: the agent of a Model on metal runs one process, never more"
    if service.endpoint and service.endpoint.port != 8080:
        yield "spec.endpoint.port: the agent's Service always has port 8080, so status.endpoint would be wrong"
    if service.endpoint and service.endpoint.type != "ClusterIP":
        yield "spec.endpoint.type has no effect with a Model on metal: the Service is the agent's"


def _source(model: ModelSpec, service: InferenceServiceSpec) -> Iterator[str]:
    """V-X03."""
    is_repository = parse(model.source).kind is SourceClass.REPOSITORY
    if is_repository and service.runtime in _READS_MODEL and not service.skip_model_init:
        yield "spec.skipModelInit should be true: the Model is a repository, which the server fetches itself"


def _gpus(model: ModelSpec, service: InferenceServiceSpec) -> Iterator[str]:
    """V-I40, V-I42 and V-X06: GPUs may be counted in both objects."""
    gpu, resources, vllm = model.hardware and model.hardware.gpu, service.resources, service.vllm_config
    declared, wanted = (gpu and gpu.count) or 0, (resources and resources.gpu) or 0
    count = declared or wanted
    if declared and wanted and declared != wanted:
        yield f"spec.resources.gpu has no effect: the Model's gpu.count {declared} wins over {wanted}"
    if service.runtime == "llamacpp" and service.flash_attention and not count:
        yield "spec.flashAttention has no effect without a GPU"
    if service.runtime == "llamacpp" and declared and not wanted and not service.image:
        yield "spec.image is not set, and the Model asks for GPUs: the default image of llamacpp uses the CPU only"
    if service.runtime != "vllm" or vllm is None:
        return
    if not count:
        given = {"cpuOffloadGB": vllm.cpu_offload_gb, "gpuMemoryUtilization": vllm.gpu_memory_utilization}
        yield from (f"spec.vllmConfig.{name} has no effect without a GPU" for name, v in given.items() if v is not None)
