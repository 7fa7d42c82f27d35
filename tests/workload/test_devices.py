"""What extended resources are, by the names that device plugins give them."""

from __future__ import annotations

import pytest

from app.workload.devices import Counts, counts, device_meant, is_accelerator, is_unknown, maker

NAMES = {
    "nvidia.com/gpu": ("NVIDIA", Counts.DEVICES),
    "nvidia.com/GH100_H100_SXM5_80GB": ("NVIDIA", Counts.DEVICES),
    "nvidia.com/pgpu": ("NVIDIA", Counts.DEVICES),
    "nvidia.com/gpu.shared": ("NVIDIA", Counts.TURNS),
    "nvidia.com/mig-1g.10gb.shared": ("NVIDIA", Counts.TURNS),
    "nvidia.com/mig-1g.10gb": ("NVIDIA", Counts.SLICES),
    "nvidia.com/mig-1g.10gb.me": ("NVIDIA", Counts.SLICES),
    "nvidia.com/gpumem": ("NVIDIA", Counts.AMOUNT),
    "nvidia.com/hostdev": ("NVIDIA", Counts.NONE),
    "amd.com/spx_nps1": ("AMD", Counts.PARTITIONS),
    "amd.com/cpx_nps4": ("AMD", Counts.PARTITIONS),
    "gpu.intel.com/xe": ("Intel", Counts.DEVICES),
    "gpu.intel.com/xe_monitoring": ("Intel", Counts.NONE),
    "habana.ai/gaudi": ("Gaudi", Counts.DEVICES),
    "google.com/tpu": ("Google", Counts.DEVICES),
    "aws.amazon.com/neuroncore": ("AWS", Counts.PARTITIONS),
    "huawei.com/Ascend910": ("Huawei", Counts.DEVICES),
    "huawei.com/Ascend910B4-memory": ("Huawei", Counts.AMOUNT),
    "huawei.com/Ascend310P-2c": ("Huawei", Counts.PARTITIONS),
    "cambricon.com/mlu370": ("Cambricon", Counts.DEVICES),
    "cambricon.com/mlu.smlu.vmemory": ("Cambricon", Counts.AMOUNT),
    "hygon.com/dcu": ("Hygon", Counts.DEVICES),
    "metax-tech.com/sgpu": ("MetaX", Counts.TURNS),
    "mthreads.com/gpu": ("Moore Threads", Counts.DEVICES),
    "iluvatar.ai/MR-V100.vMem": ("Iluvatar", Counts.AMOUNT),
    "iluvatar.com/gpu": ("Iluvatar", Counts.DEVICES),
    "devic.es/dri-render": ("", Counts.TURNS),
    "devic.es/kfd": ("", Counts.FILES),
    "squat.ai/dri": ("", Counts.FILES),
    "smarter-devices/dri": ("", Counts.FILES),
    "rdma/hca": ("", Counts.NONE),
    "vpc.amazonaws.com/efa": ("", Counts.NONE),
    "example.com/gpu": ("", Counts.DEVICES),
    "example.com/vgpu": ("", Counts.TURNS),
    "example.com/board": ("", Counts.NONE),
}


@pytest.mark.parametrize("name", NAMES)
def test_the_makers_domain_tells_what_a_device_is(name: str) -> None:
    assert (maker(name), counts(name)) == NAMES[name]
    assert is_accelerator(name) == (NAMES[name][1] not in (Counts.NONE, Counts.FILES))
    assert is_unknown(name) == (name.startswith("example.com/") or NAMES[name][1] is Counts.FILES)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("nvidia.com/gpus", "nvidia.com/gpu"),
        ("nvidia.com/GPU", "nvidia.com/gpu"),
        ("nvidia/gpu", "nvidia.com/gpu"),
        ("nvdia.com/gpu", "nvidia.com/gpu"),
        ("google.com/tpus", "google.com/tpu"),
        ("gpu.intel.com/xee", "gpu.intel.com/xe"),
        *((name, "") for name in (*NAMES, "nvidia.com/sgpu", "nvidia.com/dpu", "amd.com/npu", "habana.ai/gaudi3")),
        *((name, "") for name in ("intel.com/gpu", "example.com/tpu", "cpu", "nvidia.com/GA102GL_A10")),
    ],
)
def test_a_hint_names_the_same_device(name: str, meant: str) -> None:
    """Another letter in front, or another domain, is another device."""
    assert device_meant(name) == meant
