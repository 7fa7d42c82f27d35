"""GPUs of a service's pods: their number, resource and nodes, and why they cannot be requested (LK-3.4, LK-3.4.1)."""

from app.llmkube import names
from app.llmkube.inferenceservice.types import GPUSharing, InferenceServiceSpec
from app.llmkube.model.plan import gpu_resource
from app.llmkube.model.types import ModelSpec
from app.settings import Settings, variable_name
from app.workload.parts import GPURequest

_WHOLE_GPUS = GPUSharing()


def gpu_request(model: ModelSpec, spec: InferenceServiceSpec, settings: Settings) -> GPURequest:
    """Return the GPUs of one pod. A service cannot request fewer than its Model does, not even none."""
    shares = sharing(spec)
    resource = gpu_resource(model, (model.accelerator, model.gpu.vendor), settings) or names.NVIDIA_GPU
    if shares.mode == "partitioned":
        resource = f"{names.MIG_PARTITION}{shares.profile}"
    return GPURequest(model.gpu.count or spec.requests.gpu or 0, resource)


def sharing(spec: InferenceServiceSpec) -> GPUSharing:
    return spec.requests.gpu_sharing or _WHOLE_GPUS


def pool_selector(model: ModelSpec, spec: InferenceServiceSpec, settings: Settings) -> dict[str, str]:
    """Return the node labels of the shared pool; empty for pods that use none. AMD GPUs need no pool."""
    shared = sharing(spec).mode == "shared" and model.gpu.vendor != "amd"
    return dict(settings.llmkube_gpu_sharing_pool) if shared else {}


def sharing_problem(model: ModelSpec, spec: InferenceServiceSpec, settings: Settings) -> str:
    mode, gpu = sharing(spec).mode, model.gpu
    if mode == "exclusive":
        return ""
    count = gpu_request(model, spec, settings).count
    if count != 1:
        return f"mode {mode} requires exactly one GPU, and a pod requests {count}"
    if gpu.resource_claims:
        return f"mode {mode} cannot be combined with hardware.gpu.resourceClaims of the Model"
    if mode == "shared":
        pool = settings.llmkube_gpu_sharing_pool or gpu.vendor == "amd"
        return "" if pool else f"mode shared requires a pool of nodes ({variable_name('llmkube_gpu_sharing_pool')})"
    if gpu.vendor != "nvidia":
        return f"mode partitioned requires NVIDIA GPUs, and the Model has vendor {gpu.vendor}"
    if gpu.resource_name:
        return f"mode partitioned cannot be combined with hardware.gpu.resourceName {gpu.resource_name} of the Model"
    return ""


def gpu_resources(settings: Settings) -> tuple[str, ...]:
    """Return every resource that counts as a GPU in the scheduler's message (LK-5.4)."""
    fixed = (names.NVIDIA_GPU, names.AMD_GPU, names.INTEL_GPU, names.INTEL_XE_GPU, names.DRI_RENDER)
    return tuple(dict.fromkeys((*fixed, settings.llmkube_intel_gpu_resource or names.INTEL_GPU)))
