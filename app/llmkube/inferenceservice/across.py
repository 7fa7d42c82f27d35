"""What a service and its Model say that does not fit together: for ``modelhooks validate`` on files that hold both.

Admission sees the service alone, so these are no admission warnings. In the cluster they show in ``Ready``, where they
keep pods from running. Rule numbers are those of llmkube spec 6.3 and 6.5.
"""

from __future__ import annotations

from typing import Any

from app.hooks.protocol import SyncRequest, one
from app.kube.resource import Resource
from app.llmkube.inferenceservice import models
from app.llmkube.inferenceservice.causes import contradictions
from app.llmkube.inferenceservice.observed import Related
from app.llmkube.inferenceservice.plan import Plan, plan, proposing_model
from app.llmkube.inferenceservice.storage import Model
from app.llmkube.inferenceservice.types import InferenceServiceSpec, InferenceServiceStatus
from app.llmkube.source import METAL, SourceClass, parse
from app.settings import Settings
from app.workload.cause import Stage

Service = Resource[InferenceServiceSpec, InferenceServiceStatus]


def across(service: Service, request: SyncRequest[Any, Any], settings: Settings) -> list[str]:
    """One line for each contradiction; none where the Model is not among the related objects."""
    related: Related = request.related or Related()
    metadata, spec = service.metadata, service.spec
    model = models.decode(one(related.models, spec.model_ref, metadata.namespace))
    if model is None:
        return []
    if model.spec.hardware and model.spec.hardware.accelerator == METAL:
        return _on_metal(spec)
    proposer = models.decode(one(related.models, proposing_model(spec), metadata.namespace))
    wanted = plan(metadata, spec, model, proposer, operator_claim=False, settings=settings)
    causes = contradictions(spec, wanted, model, proposer)
    return [f"spec: {cause.text}" for cause in causes if cause.stage is Stage.SPEC] + _in_cluster(spec, model, wanted)


def _in_cluster(spec: InferenceServiceSpec, model: Model, wanted: Plan) -> list[str]:
    found, count = [], wanted.gpus.count
    asked = spec.resources.gpu if spec.resources else None
    if asked is not None and asked != count:  # V-X06
        found.append(f"spec.resources.gpu has no effect: Model {spec.model_ref} wants {count} GPUs, and it wins")
    if spec.flash_attention and not count:  # V-I42
        found.append(f"spec.flashAttention has no effect without a GPU, and Model {spec.model_ref} wants none")
    if spec.vllm_config and not count:
        config = spec.vllm_config
        unused = {"cpuOffloadGB": config.cpu_offload_gb, "gpuMemoryUtilization": config.gpu_memory_utilization}
        found += [f"spec.vllmConfig.{name} has no effect without a GPU" for name, value in unused.items() if value]
    if count and asked is None and not spec.image and spec.runtime == "llamacpp":  # V-I40
        found.append(
            f"spec.image is not set: Model {spec.model_ref} wants GPUs, and the default image uses the CPU only"
        )
    source = parse(model.spec.source)
    mounts = wanted.runtime.mounts_model and not spec.skip_model_init
    if mounts and source.kind is SourceClass.REPOSITORY:  # V-X03
        found.append(
            f"spec.skipModelInit is not set: Model {spec.model_ref} is a Hugging Face repository, which the server "
            "fetches itself; the service acts as if it were true"
        )
    return found


_UNUSED_ON_METAL = {
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
_AGENT_PORT = 8080


def _on_metal(spec: InferenceServiceSpec) -> list[str]:
    """V-I64 and V-X11: the agent runs one process, and none of what makes a pod."""
    unused = [f"spec.{name}" for name, attribute in _UNUSED_ON_METAL.items() if getattr(spec, attribute)]
    found = [f"no effect with accelerator metal: {', '.join(unused)}"] if unused else []
    if (spec.replicas or 0) > 1:
        found.append("spec.replicas: a metal agent runs one process, whatever is wanted")
    if spec.endpoint and spec.endpoint.port != _AGENT_PORT:
        found.append(f"spec.endpoint.port: the agent's Service has port {_AGENT_PORT}, so the URL in status is wrong")
    return found
