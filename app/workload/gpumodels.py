"""GPUs that clusters commonly have, and the node labels that name them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.kube.quantity import integer

MIB = 2**20


@dataclass(frozen=True, slots=True)
class GPUModel:
    """A GPU with the memory that its driver reports, which is less than the vendor's number of gigabytes."""

    name: str
    mebibytes: int
    words: frozenset[str]
    """Words that all have to be in a label or name of this GPU."""

    @property
    def memory(self) -> int:
        return self.mebibytes * MIB


GPU_MODELS = tuple(
    GPUModel(name, mebibytes, frozenset(words.split()))
    for name, mebibytes, words in (
        ("T4 16 GB", 15360, "t4"),
        ("A10 24 GB", 23028, "a10"),
        ("A10G 24 GB", 23028, "a10g"),
        ("L4 24 GB", 23034, "l4"),
        ("RTX 4090 24 GB", 24564, "4090"),
        ("A100 40 GB", 40960, "a100"),
        ("L40S 48 GB", 46068, "l40s"),
        ("A100 80 GB", 81920, "a100 80gb"),
        ("H100 80 GB", 81559, "h100"),
        ("H200 141 GB", 143771, "h200"),
        ("B200 180 GB", 183359, "b200"),
        ("MI300X 192 GB", 196592, "mi300x"),
    )
)
"""By memory, as nvidia-smi and rocm-smi report it."""
_PRODUCT_LABELS = (
    "nvidia.com/gpu.product",
    "cloud.google.com/gke-accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
    "amd.com/gpu.product-name",
)
_MEMORY_LABELS = ("nvidia.com/gpu.memory", "karpenter.k8s.aws/instance-gpu-memory")
"""Labels with a number of MiB."""
_OLDER = frozenset({"k80", "m60", "p4", "p40", "p100", "t4", "t4g", "v100"})
"""Words for NVIDIA's data center GPUs of a compute capability below 8.0, which have no bfloat16."""
NODE_LABELS = (*_PRODUCT_LABELS, *_MEMORY_LABELS)


_ACCELERATOR = re.compile(r"gpu|tpu|npu|/mig-|gaudi|neuron|ascend|mlu|dcu|/xe|accelerator", re.IGNORECASE)
_LONGEST_NAME = 317
"""Length of the longest name of a resource: a domain of 253 characters, a slash, and 63 characters."""
DEVICE = re.compile(r"[^/]+/gpu|google\.com/tpu|habana\.ai/gaudi|gpu\.intel\.com/(i915|xe)")
"""Resources that count whole devices, not slices of one, so that an engine can split a model over them."""
_BUILT_FOR = {
    "ghcr.io/llm-d/llm-d-cuda": "NVIDIA",
    "vllm/vllm-openai": "NVIDIA",
    "vllm/vllm-openai-rocm": "AMD",
}
"""Makers of the GPUs that images are built for, by the repository. Their server ends without one."""
_MAKERS = {
    "amd.com": "AMD",
    "google.com": "Google",
    "gpu.intel.com": "Intel",
    "habana.ai": "Gaudi",
    "nvidia.com": "NVIDIA",
}


def is_accelerator(resource: str) -> bool:
    """Report whether servers compute on a resource, such as ``amd.com/gpu`` or ``habana.ai/gaudi``."""
    return "/" in resource and _ACCELERATOR.search(resource, 0, _LONGEST_NAME) is not None


def unsuitable_image(image: str, resources: Iterable[str]) -> str:
    """Return why a server cannot start in an image with the resources of its container; empty where it may."""
    repository = image.partition("@")[0].removeprefix("docker.io/").partition(":")[0]
    maker = _BUILT_FOR.get(repository)
    makers = {_MAKERS.get(name.partition("/")[0]) for name in resources if is_accelerator(name)}
    if maker is None or makers & {maker, None}:
        return ""
    requested = f"only {', '.join(sorted(filter(None, makers)))} devices are" if makers else "none is"
    return f"image {repository} needs an {maker} GPU, but {requested} requested"


def _words(name: str) -> set[str]:
    return set(re.split(r"[^a-z0-9]+|rtx", re.sub(r"\b(\d+) ?gi?b?\b", r"\1gb", name.lower())))


def gpu_model(name: str) -> GPUModel | None:
    """Return the GPU of a name, such as ``L4``, ``RTX4090``, ``a100-80g`` or ``NVIDIA-H100-80GB-HBM3``."""
    words = _words(name)
    matches = [gpu for gpu in GPU_MODELS if gpu.words <= words]
    return max(matches, key=lambda gpu: len(gpu.words), default=None)


def node_gpu_memory(node_selector: Mapping[str, str]) -> tuple[int, str]:
    """Return the bytes of one GPU of the selected nodes and the label that has them; 0 without such a label."""
    for label in _MEMORY_LABELS:
        if (mebibytes := integer(node_selector.get(label, "")) or 0) > 0:
            return mebibytes * MIB, label
    for label in _PRODUCT_LABELS:
        if (gpu := gpu_model(node_selector.get(label, ""))) is not None:
            return gpu.memory, f"{gpu.name} by {label}"
    return 0, ""


def gpu_without_bfloat16(node_selector: Mapping[str, str]) -> str:
    """Return the name of the selected nodes' GPU, if it has no bfloat16; else empty."""
    return next((name for name in map(node_selector.get, _PRODUCT_LABELS) if name and _words(name) & _OLDER), "")
