"""GPUs by the labels of nodes."""

from __future__ import annotations

import pytest

from app.workload.gpumodels import gpu_without_bfloat16

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
