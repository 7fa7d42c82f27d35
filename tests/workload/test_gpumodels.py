"""GPUs by the labels of nodes."""

from __future__ import annotations

import pytest

from app.workload.fit.gpumodels import (
    GPU_MODELS,
    gpu_model,
    gpu_without_bfloat16,
    node_gpu_memory,
    slice_memory,
    tells_memory,
    unsuitable_image,
)

PRODUCT = "nvidia.com/gpu.product"
GKE = "cloud.google.com/gke-accelerator"


@pytest.mark.parametrize(
    ("label", "name", "is_older"),
    [
        (PRODUCT, "Tesla-T4", True),
        (PRODUCT, "Tesla-V100-SXM2-16GB", True),
        (GKE, "nvidia-tesla-p4", True),
        ("karpenter.k8s.aws/instance-gpu-name", "t4g", True),
        (PRODUCT, "NVIDIA-L4", False),
        (GKE, "nvidia-a100-80gb", False),
        ("example.com/gpu", "Tesla-T4", False),
    ],
)
def test_gpus_without_bfloat16(label: str, name: str, is_older: bool) -> None:
    assert gpu_without_bfloat16({label: name}) == (name if is_older else "")


LABELS = {
    "Tesla-T4": "T4 16 GB",
    "Tesla-V100-SXM2-16GB": "V100 16 GB",
    "Tesla-V100-SXM3-32GB": "V100 32 GB",
    "NVIDIA-A10G": "A10G 24 GB",
    "NVIDIA-GeForce-RTX-3060": "RTX 3060 12 GB",
    "NVIDIA-GeForce-RTX-3070-Ti": "RTX 3070 8 GB",
    "NVIDIA-GeForce-RTX-3090-Ti": "RTX 3090 24 GB",
    "NVIDIA-GeForce-RTX-4070-SUPER": "RTX 4070 12 GB",
    "NVIDIA-GeForce-RTX-4070-Ti": "RTX 4070 12 GB",
    "NVIDIA-GeForce-RTX-4070-Ti-SUPER": "RTX 4070 Ti SUPER 16 GB",
    "NVIDIA-GeForce-RTX-5070-Ti": "RTX 5070 Ti 16 GB",
    "NVIDIA-A100-SXM4-40GB": "A100 40 GB",
    "NVIDIA-A100-80GB-PCIe": "A100 80 GB",
    "nvidia-tesla-a100": "A100 40 GB",
    "NVIDIA-L40S": "L40S 48 GB",
    "NVIDIA-RTX-6000-Ada-Generation": "RTX 6000 Ada 48 GB",
    "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition": "RTX PRO 6000 96 GB",
    "NVIDIA-GeForce-RTX-5090": "RTX 5090 32 GB",
    "NVIDIA-H100-80GB-HBM3": "H100 80 GB",
    "nvidia-h100-mega-80gb": "H100 80 GB",
    "NVIDIA-H100-NVL": "H100 NVL 94 GB",
    "NVIDIA-GH200-480GB": "GH200 96 GB",
    "NVIDIA-H20": "H20 96 GB",
    "NVIDIA-H20-3e": "H20-3e 141 GB",
    "nvidia-h200-141gb": "H200 141 GB",
    "NVIDIA-GB200": "GB200 186 GB",
    "NVIDIA-B300-SXM6-AC": "B300 270 GB",
    "AMD_Instinct_MI300X_OAM": "MI300X 192 GB",
    "AMD_Instinct_MI325X_OAM": "MI325X 256 GB",
}
"""Values of node labels, as GPU feature discovery and clouds write them."""


@pytest.mark.parametrize("label", LABELS)
def test_labels_name_gpus(label: str) -> None:
    gpu = gpu_model(label)
    assert gpu is not None
    assert gpu.name == LABELS[label]
    assert node_gpu_memory({PRODUCT: label}) == (gpu.memory, f"{gpu.name} by {PRODUCT}")


def test_each_gpu_is_found_by_its_own_name() -> None:
    assert [gpu_model(gpu.name) for gpu in GPU_MODELS] == list(GPU_MODELS)
    assert [gpu_model(gpu.label) for gpu in GPU_MODELS] == list(GPU_MODELS)


@pytest.mark.parametrize(
    "label",
    [
        "NVIDIA-A10-4Q",
        "NVIDIA-L4-SHARED",
        "NVIDIA-A100-SXM-64GB",
        "NVIDIA-GH200-144G-HBM3e",
        "NVIDIA-GeForce-RTX-3080",  # 10 GB or 12
        "NVIDIA-GeForce-RTX-4060-Ti",
        "NVIDIA-GeForce-RTX-4090-Laptop-GPU",
        "Quadro-RTX-6000",
    ],
)
def test_a_part_of_a_gpu_and_one_with_other_memory_are_unknown(label: str) -> None:
    assert gpu_model(label) is None
    assert node_gpu_memory({PRODUCT: label}) == (0, "")


def test_labels_for_gpus_of_several_sizes_are_unknown() -> None:
    karpenter = {"karpenter.k8s.aws/instance-gpu-name": "a100"}
    assert node_gpu_memory(karpenter) == (0, "")
    assert node_gpu_memory({**karpenter, "karpenter.k8s.aws/instance-gpu-memory": "81920"})[0] == 81920 * 2**20
    shared = {GKE: "nvidia-l4", "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing"}
    assert node_gpu_memory(shared) == (0, "")


@pytest.mark.parametrize(
    ("resource", "gibibytes"),
    [
        ("nvidia.com/mig-3g.40gb", 38),
        ("nvidia.com/mig-1g.10gb.me", 9.5),
        ("nvidia.com/gpu", 0),
        ("example.com/mig-x", 0),
    ],
)
def test_slices_have_the_memory_of_their_profile(resource: str, gibibytes: float) -> None:
    assert slice_memory(resource) == gibibytes * 2**30


@pytest.mark.parametrize(
    ("name", "tells"),
    [
        (PRODUCT, True),
        ("cloud.google.com/gke-gpu-partition-size", True),
        ("nvidia.com/mig-1g.10gb", True),
        ("nvidia.com/gpu", False),
        ("kubernetes.io/arch", False),
    ],
)
def test_some_labels_and_resources_tell_memory(name: str, tells: bool) -> None:
    assert tells_memory(name) is tells


@pytest.mark.parametrize(
    ("resources", "requested"),
    [
        ([], "none is requested"),
        (["cpu", "memory"], "none is requested"),
        (["amd.com/gpu"], "only AMD devices are requested"),
        (["gpu.intel.com/i915", "amd.com/gpu"], "only AMD, Intel devices are requested"),
        (["amd.com/gpu", "nvidia.com/gpu"], ""),
    ],
)
def test_an_image_needs_the_gpus_that_it_is_built_for(resources: list[str], requested: str) -> None:
    problem = f"image vllm/vllm-openai needs an NVIDIA GPU, but {requested}"
    assert unsuitable_image("vllm/vllm-openai:v0.20.0", resources) == (problem if requested else "")
    assert unsuitable_image("example.com/server:1", resources) == ""
