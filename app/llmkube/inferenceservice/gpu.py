"""How many GPUs a pod gets, and whose. Source: llmkube spec 3.3."""

from __future__ import annotations

from app.llmkube import names
from app.llmkube.inferenceservice.types import InferenceServiceSpec
from app.llmkube.model.types import ModelSpec
from app.settings import Settings
from app.workload.parts import GPURequest


def gpu_request(model: ModelSpec, spec: InferenceServiceSpec, settings: Settings) -> GPURequest:
    """The GPUs of one pod. A service cannot ask for fewer than its Model does, not even for none."""
    gpu = model.hardware.gpu if model.hardware else None
    wanted = spec.resources.gpu if spec.resources else None
    return GPURequest(count=(gpu.count if gpu else None) or wanted or 0, resource=_resource(model, settings))


def _resource(model: ModelSpec, settings: Settings) -> str:
    """Accelerator and vendor together name the resource; Intel wins over AMD, and both over the default."""
    hardware = model.hardware
    said = (hardware.accelerator, hardware.gpu.vendor if hardware.gpu else "") if hardware else ()
    if "intel" in said:
        return settings.llmkube_intel_gpu_resource or names.INTEL_GPU
    return names.AMD_GPU if "rocm" in said or "amd" in said else names.NVIDIA_GPU


def known_resources(settings: Settings) -> tuple[str, ...]:
    """Every resource that counts as a GPU when the scheduler says that it is insufficient (spec 5.4)."""
    fixed = (names.NVIDIA_GPU, names.AMD_GPU, names.INTEL_GPU, names.INTEL_XE_GPU)
    return tuple(dict.fromkeys((*fixed, settings.llmkube_intel_gpu_resource or names.INTEL_GPU)))
