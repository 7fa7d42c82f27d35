"""GPUs that clusters commonly have, and the node labels that name them."""

import re
from collections.abc import Collection, Mapping

import msgspec

from app.kube.quantity import integer, parse
from app.kube.regex import regex
from app.workload.address import repository_and_tag
from app.workload.devices import Counts, counts, is_accelerator, maker

MIB = 2**20


class GPUModel(msgspec.Struct, frozen=True):
    """A GPU with the memory that its driver reports, which is less than the vendor's number of gigabytes."""

    name: str
    mebibytes: int
    capability: float
    """NVIDIA's compute capability; 0 for other makers."""
    words: frozenset[str]
    """Words that all have to be in a label or name of this GPU."""
    label: str
    """Its value of ``nvidia.com/gpu.product`` or ``amd.com/gpu.product-name``; some GPUs have several."""

    @property
    def memory(self) -> int:
        return self.mebibytes * MIB

    @property
    def is_amd(self) -> bool:
        return self.label.startswith("AMD")

    @property
    def has_bfloat16(self) -> bool:
        return not 0 < self.capability < BFLOAT16


BFLOAT16 = 8.0
"""The least compute capability with bfloat16."""
GPU_MODELS = tuple(
    GPUModel(name, mebibytes, capability, frozenset(words.split()), label)
    for name, mebibytes, capability, words, label in (
        ("RTX 5060 8 GB", 8151, 12.0, "5060", "NVIDIA-GeForce-RTX-5060"),
        ("RTX 4060 8 GB", 8188, 8.9, "4060", "NVIDIA-GeForce-RTX-4060"),
        ("RTX 3060 Ti 8 GB", 8192, 8.6, "3060 ti", "NVIDIA-GeForce-RTX-3060-Ti"),
        ("RTX 3070 8 GB", 8192, 8.6, "3070", "NVIDIA-GeForce-RTX-3070"),
        ("RTX 2080 Ti 11 GB", 11264, 7.5, "2080 ti", "NVIDIA-GeForce-RTX-2080-Ti"),
        ("RTX 5070 12 GB", 12227, 12.0, "5070", "NVIDIA-GeForce-RTX-5070"),
        ("RTX 4070 12 GB", 12282, 8.9, "4070", "NVIDIA-GeForce-RTX-4070"),
        ("RTX 3060 12 GB", 12288, 8.6, "3060", "NVIDIA-GeForce-RTX-3060"),
        ("RTX 3080 Ti 12 GB", 12288, 8.6, "3080 ti", "NVIDIA-GeForce-RTX-3080-Ti"),
        ("T4 16 GB", 15360, 7.5, "t4", "Tesla-T4"),
        ("V100 16 GB", 16384, 7.0, "v100", "Tesla-V100-SXM2-16GB"),
        ("RTX 5070 Ti 16 GB", 16303, 12.0, "5070 ti", "NVIDIA-GeForce-RTX-5070-Ti"),
        ("RTX 5080 16 GB", 16303, 12.0, "5080", "NVIDIA-GeForce-RTX-5080"),
        ("RTX A4000 16 GB", 16376, 8.6, "a4000", "NVIDIA-RTX-A4000"),
        ("RTX 4070 Ti SUPER 16 GB", 16376, 8.9, "4070 ti super", "NVIDIA-GeForce-RTX-4070-Ti-SUPER"),
        ("RTX 4080 16 GB", 16376, 8.9, "4080", "NVIDIA-GeForce-RTX-4080"),
        ("RTX 2000 Ada 16 GB", 16380, 8.9, "2000 ada", "NVIDIA-RTX-2000-Ada-Generation"),
        ("RTX A4500 20 GB", 20470, 8.6, "a4500", "NVIDIA-RTX-A4500"),
        ("RTX 4000 Ada 20 GB", 20475, 8.9, "4000 ada", "NVIDIA-RTX-4000-Ada-Generation"),
        ("A10 24 GB", 23028, 8.6, "a10", "NVIDIA-A10"),
        ("A10G 24 GB", 23028, 8.6, "a10g", "NVIDIA-A10G"),
        ("L4 24 GB", 23034, 8.9, "l4", "NVIDIA-L4"),
        ("A30 24 GB", 24576, 8.0, "a30", "NVIDIA-A30"),
        ("RTX A5000 24 GB", 24564, 8.6, "a5000", "NVIDIA-RTX-A5000"),
        ("RTX 3090 24 GB", 24576, 8.6, "3090", "NVIDIA-GeForce-RTX-3090"),
        ("RTX 4090 24 GB", 24564, 8.9, "4090", "NVIDIA-GeForce-RTX-4090"),
        ("RTX 4500 Ada 24 GB", 24570, 8.9, "4500 ada", "NVIDIA-RTX-4500-Ada-Generation"),
        ("RTX 5090 32 GB", 32607, 12.0, "5090", "NVIDIA-GeForce-RTX-5090"),
        ("V100 32 GB", 32768, 7.0, "v100 32gb", "Tesla-V100-SXM2-32GB"),
        ("RTX 5000 Ada 32 GB", 32760, 8.9, "5000 ada", "NVIDIA-RTX-5000-Ada-Generation"),
        ("A100 40 GB", 40960, 8.0, "a100", "NVIDIA-A100-SXM4-40GB"),
        ("A40 48 GB", 46068, 8.6, "a40", "NVIDIA-A40"),
        ("L40 48 GB", 46068, 8.9, "l40", "NVIDIA-L40"),
        ("L40S 48 GB", 46068, 8.9, "l40s", "NVIDIA-L40S"),
        ("RTX A6000 48 GB", 49140, 8.6, "a6000", "NVIDIA-RTX-A6000"),
        ("RTX 6000 Ada 48 GB", 49140, 8.9, "6000 ada", "NVIDIA-RTX-6000-Ada-Generation"),
        ("A100 80 GB", 81920, 8.0, "a100 80gb", "NVIDIA-A100-SXM4-80GB"),
        ("H100 80 GB", 81559, 9.0, "h100", "NVIDIA-H100-80GB-HBM3"),
        ("H100 NVL 94 GB", 95830, 9.0, "h100 nvl", "NVIDIA-H100-NVL"),
        ("GH200 96 GB", 97871, 9.0, "gh200", "NVIDIA-GH200-480GB"),
        ("H20 96 GB", 97871, 9.0, "h20", "NVIDIA-H20"),
        ("RTX PRO 6000 96 GB", 97887, 12.0, "pro 6000", "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition"),
        ("H20-3e 141 GB", 143771, 9.0, "h20 3e", "NVIDIA-H20-3e"),
        ("H200 141 GB", 143771, 9.0, "h200", "NVIDIA-H200"),
        ("B200 180 GB", 183359, 10.0, "b200", "NVIDIA-B200"),
        ("GB200 186 GB", 189471, 10.0, "gb200", "NVIDIA-GB200"),
        ("MI300X 192 GB", 196592, 0.0, "mi300x", "AMD_Instinct_MI300X_OAM"),
        ("MI325X 256 GB", 262128, 0.0, "mi325x", "AMD_Instinct_MI325X_OAM"),
        ("B300 270 GB", 275040, 10.3, "b300", "NVIDIA-B300-SXM6-AC"),
        ("GB300 278 GB", 284208, 10.3, "gb300", "NVIDIA-GB300"),
    )
)
"""By memory, as nvidia-smi and rocm-smi report it; with or without error correction, as delivered.

RTX 3080 is not among them: one name and one label are for 10 GB and for 12 GB.
"""
_USUAL = frozenset(("T4", "A10", "A10G", "L4", "RTX 4090", "A100", "L40S", "H100", "H200", "B200", "MI300X"))
USUAL_GPUS = tuple(gpu for gpu in GPU_MODELS if gpu.name.rpartition(" ")[0].rpartition(" ")[0] in _USUAL)
"""GPUs to suggest to a user who asks which would be enough."""
_SHARED = frozenset({"shared", "mig", "laptop"})
"""Words of labels and names for a part of a GPU, or for another GPU of the same name."""
_VARIED = frozenset({"a100", "v100"})
"""Names that Karpenter's label gives to GPUs of different memory."""
_TWO_SIZES = (frozenset({"4060", "ti"}), frozenset({"5060", "ti"}))
"""Words of GPUs that one label names, with 8 or 16 GB."""
_KARPENTER = "karpenter.k8s.aws/instance-gpu-name"
_PRODUCT_LABELS = (
    "nvidia.com/gpu.product",
    "cloud.google.com/gke-accelerator",
    _KARPENTER,
    "amd.com/gpu.product-name",
)
MEMORY_LABELS = ("nvidia.com/gpu.memory", "karpenter.k8s.aws/instance-gpu-memory")
"""Labels with a number of MiB."""
LOWER_CASE_LABELS = ("cloud.google.com/gke-accelerator", _KARPENTER)
"""Labels whose values have no capitals."""
_OLDER = frozenset({"k80", "m60", "p4", "p40", "p100", "t4", "t4g", "v100"})
"""Words for NVIDIA's data center GPUs of a compute capability below 8.0, which have no bfloat16."""
NODE_LABELS = (*_PRODUCT_LABELS, *MEMORY_LABELS)


_BUILT_FOR = {
    "ghcr.io/llm-d/llm-d-cuda": "NVIDIA",
    "vllm/vllm-openai": "NVIDIA",
    "vllm/vllm-openai-rocm": "AMD",
}
"""Makers of the GPUs that images are built for, by the repository. Their server ends without one."""


def unsuitable_image(image: str, resources: Collection[str]) -> str:
    """Return why a server cannot start in an image with the resources of its container; empty where it may."""
    repository, _ = repository_and_tag(image)
    needed = _BUILT_FOR.get(repository)
    makers = {maker(name) for name in resources if is_accelerator(name)}
    if needed is None or makers & {needed, ""} or any(counts(name) is Counts.FILES for name in resources):
        return ""
    requested = f"only {', '.join(sorted(makers))} devices are" if makers else "none is"
    return f"image {repository} needs an {needed} GPU, but {requested} requested"


_SIZE = regex("[0-9]+gb")
_VIRTUAL = regex("[0-9]+[acq]")
"""The end of the name of a virtual GPU, such as ``A10-4Q``, with its gigabytes."""
_PROFILE = regex(r"mig-[0-9]g\.([0-9]{1,3})gb")
_PROFILE_LABEL = "cloud.google.com/gke-gpu-partition-size"
_SHARING_LABEL = "cloud.google.com/gke-gpu-sharing-strategy"


def _words(name: str) -> set[str]:
    return set(re.split(r"[^a-z0-9]+|rtx", re.sub(r"\b(\d+) ?gi?b?\b", r"\1gb", name.lower())))


def gpu_model(name: str) -> GPUModel | None:
    """Return the GPU of a name, such as ``L4``, ``RTX4090``, ``a100-80g`` or ``NVIDIA-H100-80GB-HBM3``."""
    words = _words(name)
    if words & _SHARED or any(map(words.issuperset, _TWO_SIZES)) or any(map(_VIRTUAL.fullmatch, words)):
        return None
    sizes = set(filter(_SIZE.fullmatch, words)) - {"480gb"}  # of a GH200's host
    matches = [gpu for gpu in GPU_MODELS if gpu.words <= words and sizes <= gpu.words | _words(gpu.name)]
    return max(matches, key=lambda gpu: len(gpu.words), default=None)


def gpu_asked_for(text: str) -> tuple[int, GPUModel | None]:
    """Return the bytes of a GPU that is named, or given by its memory, such as ``H100`` or ``24Gi``."""
    model = gpu_model(text)
    return (model.memory if model else int(parse(text))), model


def slice_memory(resource: str) -> int:
    """Return the bytes of a slice of a GPU by its profile, such as ``nvidia.com/mig-3g.40gb``; 0 for other resources.

    Profiles round up what the driver reports.
    """
    profile = _PROFILE.search(resource.lower())
    return int(profile[1]) * 1024 * MIB * 95 // 100 if profile else 0


def tells_memory(name: str) -> bool:
    """Report whether the name of a node label or resource is one that gives the memory of a GPU."""
    return name in NODE_LABELS or name == _PROFILE_LABEL or slice_memory(name) > 0


def node_gpu(node_selector: Mapping[str, str]) -> GPUModel | None:
    """Return the GPU that labels of the selected nodes name; ``None`` if none does."""
    models = (gpu_model(node_selector.get(label, "")) for label in _PRODUCT_LABELS)
    return next((model for model in models if model is not None), None)


def node_gpu_memory(node_selector: Mapping[str, str], resource: str = "") -> tuple[int, str]:
    """Return the bytes of one GPU of the selected nodes and their source; 0 if neither the resource nor a label tells.

    A slice has the memory of its profile. Another part of a GPU has an unknown share of what a label tells.
    """
    partition, product = node_selector.get(_PROFILE_LABEL, ""), node_selector.get(_PRODUCT_LABELS[0], "")
    for profile in (resource, f"mig-{partition}", product):
        if memory := slice_memory(profile):
            return memory, f"slice {profile}"
    if resource and counts(resource) is not Counts.DEVICES:
        return 0, ""
    for label in MEMORY_LABELS:
        if (mebibytes := integer(node_selector.get(label, "")) or 0) > 0:
            return mebibytes * MIB, label
    for label in () if _SHARING_LABEL in node_selector else _PRODUCT_LABELS:
        name = node_selector.get(label, "")
        if (gpu := gpu_model(name)) is not None and not (label == _KARPENTER and name in _VARIED):
            return gpu.memory, f"{gpu.name} by {label}"
    return 0, ""


def gpu_without_bfloat16(node_selector: Mapping[str, str]) -> str:
    """Return the name of the selected nodes' GPU, if it has no bfloat16; else empty."""
    return next((name for name in map(node_selector.get, _PRODUCT_LABELS) if name and _words(name) & _OLDER), "")


def dtype_problem(engine: str, dtype: str, nodes: Mapping[str, str]) -> str:
    """Return why vLLM ends with its data type on the selected nodes; empty if it does not, or may not."""
    gpu = gpu_without_bfloat16(nodes) if engine == "vllm" and dtype == "bfloat16" else ""
    return f"vLLM ends with bfloat16 on {gpu}, which does not have it; write float16" if gpu else ""
