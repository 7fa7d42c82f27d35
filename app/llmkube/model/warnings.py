"""What a Model says without effect, or at its own risk. Rule numbers are those of LK-6.1."""

from __future__ import annotations

from itertools import pairwise

from app.kube.resource import Resource
from app.llmkube.model.types import GPU, Hardware, ModelResources, ModelSpec, ModelStatus, Sharding
from app.llmkube.sharding import layers
from app.llmkube.source import METAL, Source, SourceClass, host, is_archive, parse


def warnings(model: Resource[ModelSpec, ModelStatus]) -> list[str]:
    """One line for each field that does nothing, and for each combination that is probably not meant."""
    spec, source = model.spec, parse(model.spec.source)
    metal = bool(spec.hardware and spec.hardware.accelerator == METAL)
    found = _source(source) + _unused(spec, source, metal=metal)
    if metal:
        found += _unused_on_metal(spec)
    if spec.hardware:
        found += _hardware(spec.hardware, metal=metal)
    return found


def _unused_on_metal(spec: ModelSpec) -> list[str]:
    """The agent starts one process, not pods: it reads of a GPU only how many layers go there (C.8)."""
    gpu = (spec.hardware and spec.hardware.gpu) or GPU()
    resources = spec.resources or ModelResources()
    unread = {
        "hardware.gpu.count": gpu.count,
        "hardware.gpu.sharding": gpu.sharding,
        "resources.cpu": resources.cpu,
        "resources.memory": resources.memory,
    }
    return [f"spec.{name} has no effect on metal: there are no pods" for name, value in unread.items() if value]


def _source(source: Source) -> list[str]:
    """LK-V-M08 and HTTP-X49: neither the address of a page in a browser nor an archive is a model's file."""
    if source.hub_page:
        text = "spec.source is the address of a Hugging Face page and is read as the repository; write"
        return [f"{text} {source.repository}"]
    on_hub = source.kind is SourceClass.HTTP and host(source.text) in ("huggingface.co", "www.huggingface.co", "hf.co")
    if on_hub and "/resolve/" not in source.text:
        return ["spec.source is a page of the Hugging Face Hub, not a file: a file's URL has /resolve/ in it"]
    if is_archive(source):
        return ["spec.source is an archive, and nothing unpacks it; give the address of the model's own file"]
    return []


def _unused(spec: ModelSpec, source: Source, *, metal: bool) -> list[str]:
    found = []
    fetched_by_us = source.is_file and not metal
    if spec.sha256 and not fetched_by_us:  # LK-V-M12
        found.append("spec.sha256 has no effect here: the file is not downloaded by a Job or a pod of this cluster")
    if spec.refresh_policy == "OnChange":
        found += _refresh(spec, source, metal=metal)
    if spec.quantization:  # LK-B-04
        found.append("spec.quantization has no effect: the name is for people only")
    if spec.format == "mlx" and not metal:  # LK-V-M16
        found.append("spec.format mlx: only runtimes on metal load it, and hardware.accelerator is not metal")
    return found


def _refresh(spec: ModelSpec, source: Source, *, metal: bool) -> list[str]:
    """LK-V-M14. A checksum pins the file, so there is nothing to refresh either."""
    path = "spec.refreshPolicy OnChange has no effect"
    if source.kind is not SourceClass.HTTP:
        return [f"{path} here: only http and https sources are compared"]
    if metal:
        return [f"{path} on metal: the agent fetches the file once"]
    return [f"{path} beside sha256, which says which file it has to be"] if spec.sha256 else []


def _hardware(hardware: Hardware, *, metal: bool) -> list[str]:
    found = []
    if hardware.memory_budget and hardware.memory_fraction is not None:  # LK-V-M32
        found.append("spec.hardware.memoryFraction has no effect beside memoryBudget")
    if not metal:  # LK-V-M33
        set_fields = (
            ("memoryBudget", bool(hardware.memory_budget)),
            ("memoryFraction", hardware.memory_fraction is not None),
        )
        found += [
            f"spec.hardware.{name} has no effect unless accelerator is metal" for name, is_set in set_fields if is_set
        ]
    if hardware.gpu:
        found += _gpu(hardware.gpu, hardware.accelerator)
    return found


def _gpu(gpu: GPU, accelerator: str) -> list[str]:
    found, count = [], gpu.count or 0
    if gpu.enabled is False and count > 0:  # LK-V-M26
        found.append(f"spec.hardware.gpu.enabled has no effect: {count} GPUs are requested although it is false")
    if gpu.enabled and count == 0:
        found.append("spec.hardware.gpu.enabled has no effect: without gpu.count no GPU is requested by the Model")
    if gpu.memory:  # LK-V-M27
        found.append("spec.hardware.gpu.memory has no effect: GPUs are requested by number, not by memory")
    if gpu.vendor in _OTHER_VENDORS.get(accelerator, ()):  # LK-V-M28
        found.append(f"spec.hardware.gpu.vendor {gpu.vendor} does not go with accelerator {accelerator}")
    if accelerator == "cpu" and count > 0:  # LK-V-M29
        found.append(f"spec.hardware.accelerator is cpu, yet gpu.count requests {count} GPUs; name the accelerator")
    if gpu.sharding:
        found += _sharding(gpu.sharding, gpu.count)
    return found


_OTHER_VENDORS = {"cuda": ("amd", "intel"), "rocm": ("intel",), "intel": ("amd",)}
"""Pairs that contradict each other. ``nvidia`` is the default, so it may not have been written at all."""


def _sharding(sharding: Sharding, count: int | None) -> list[str]:
    found = []
    if sharding.strategy == "pipeline":  # LK-V-M22
        found.append("spec.hardware.gpu.sharding.strategy pipeline does not exist in llama.cpp and acts like layer")
    if count is not None and count < 2:  # LK-V-M23
        found.append(f"spec.hardware.gpu.sharding has no effect with gpu.count {count}: there is nothing to split")
    if sharding.layer_split:
        found += _layer_split(sharding, count)
    return found


def _layer_split(sharding: Sharding, count: int | None) -> list[str]:
    """LK-V-M24 and LK-V-M25."""
    path = "spec.hardware.gpu.sharding.layerSplit"
    if sharding.strategy == "none":
        return [f"{path} has no effect with strategy none"]
    if count is not None and count > 1 and len(sharding.layer_split) != count:
        return [f"{path} has {len(sharding.layer_split)} entries for {count} GPUs: every GPU gets an equal share"]
    ranges = [layers(entry) for entry in sharding.layer_split]
    if any(entry is None for entry in ranges):
        return [f"{path} has an entry that is not start-end with start <= end: every GPU gets an equal share"]
    known = [entry for entry in ranges if entry is not None]
    if any(later[0] != earlier[1] + 1 for earlier, later in pairwise(known)):
        return [f"{path} has gaps or overlaps: only the numbers of layers count, as shares"]
    return []
