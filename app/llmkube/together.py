"""What only a Model and a service together show: fields of one that the other makes meaningless.

Admission sees one object, so these are findings of ``modelhooks validate`` when both are among its files (spec 6.5).
What keeps pods from running is in :mod:`app.llmkube.inferenceservice.causes`: the cluster says it too.
"""

from __future__ import annotations

from collections.abc import Iterator

from app.llmkube.inferenceservice.types import InferenceServiceSpec
from app.llmkube.model.types import GPU, ModelSpec
from app.llmkube.source import METAL, SourceClass, parse


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
    """V-X03: what each pod fetches is worth knowing. llamacpp must not be told to skip: it would have no model then."""
    if parse(model.source).kind is not SourceClass.REPOSITORY or service.skip_model_init:
        return
    if service.runtime == "vllm":
        yield "spec.skipModelInit should be true: the Model is a repository, which the server fetches itself"
    if service.runtime == "llamacpp":
        yield "the Model is a repository: each pod of llamacpp fetches it when it starts (--hf-repo)"


def _gpus(model: ModelSpec, service: InferenceServiceSpec) -> Iterator[str]:
    """V-I40, V-I42 and V-X06: GPUs may be counted in both objects."""
    gpu, vllm = (model.hardware and model.hardware.gpu) or GPU(), service.vllm_config
    declared, wanted = gpu.count or 0, service.resources.gpu if service.resources else None
    count = declared or wanted or 0
    if declared and wanted not in (None, declared):
        yield f"spec.resources.gpu has no effect: the Model's gpu.count {declared} wins over {wanted}"
    yield from _offload(gpu, service.runtime, count)
    if service.runtime == "llamacpp" and service.flash_attention and not count:
        yield "spec.flashAttention has no effect without a GPU"
    if service.runtime == "llamacpp" and declared and not wanted and not service.image:
        yield "spec.image is not set, and the Model asks for GPUs: the default image of llamacpp uses the CPU only"
    if service.runtime == "vllm" and vllm is not None and not count:
        given = {"cpuOffloadGB": vllm.cpu_offload_gb, "gpuMemoryUtilization": vllm.gpu_memory_utilization}
        yield from (f"spec.vllmConfig.{name} has no effect without a GPU" for name, v in given.items() if v is not None)


def _offload(gpu: GPU, runtime: str, count: int) -> Iterator[str]:
    """What llama.cpp alone is told of the Model's GPUs, and only where there are some (spec 3.4, 3.5.1)."""
    for name, value, needed in (("layers", gpu.layers, 1), ("sharding", gpu.sharding, 2)):
        if value is None:
            continue
        if runtime != "llamacpp":
            yield f"the Model's hardware.gpu.{name} has no effect with runtime {runtime}"
        elif count < needed:
            yield f"the Model's hardware.gpu.{name} has no effect with {count} GPUs in a pod"
