"""What can keep pods from being ready, beyond what they say themselves. Source: llmkube spec 6.5."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.hooks.protocol import one
from app.kube.objects import ObservedPod
from app.llmkube import names
from app.llmkube.inferenceservice.observed import Related
from app.llmkube.inferenceservice.plan import Plan
from app.llmkube.inferenceservice.storage import Model
from app.llmkube.inferenceservice.types import InferenceServiceSpec
from app.llmkube.runtimes.llamacpp import LLAMACPP, lacks_model
from app.llmkube.source import SourceClass, parse
from app.settings import Settings
from app.workload.cause import Cause, Stage


def contradictions(spec: InferenceServiceSpec, plan: Plan, model: Model) -> Iterator[Cause]:
    """What the user wrote in two places and does not fit together."""
    parallel = spec.vllm_config.tensor_parallel_size if spec.runtime == "vllm" and spec.vllm_config else None
    if parallel and parallel > max(plan.gpus.count, 1):
        text = f"vllmConfig.tensorParallelSize is {parallel}, but a pod has {plan.gpus.count} {plan.gpus.resource}"
        yield Cause(Stage.SPEC, text, "TensorParallelSize")
    if spec.runtime == LLAMACPP.name and lacks_model(spec):
        text = "skipModelInit leaves llamacpp without a model: name one in extraArgs, or leave skipModelInit out"
        yield Cause(Stage.SPEC, text, "NoModelNamed")
    source = parse(model.spec.source)
    if spec.runtime == "tgi" and source.kind is not SourceClass.REPOSITORY:
        text = f"runtime tgi only serves Hugging Face repositories, and Model {spec.model_ref} has source {source.text}"
        yield Cause(Stage.SPEC, text, "SourceNotServable")
    if _unreadable(spec, model):
        text = f"runtime {spec.runtime} cannot load format {model.spec.format} of Model {spec.model_ref}"
        yield Cause(Stage.SPEC, text, "FormatNotServable")


_FORMATS = {"llamacpp": ("gguf",), "tgi": ("safetensors", "pytorch", "custom")}
"""Formats that a runtime loads, where it does not load just any."""


def _unreadable(spec: InferenceServiceSpec, model: Model) -> bool:
    """A format was written that the runtime surely does not load. ``gguf`` is the default, so it proves nothing."""
    formats = _FORMATS.get(spec.runtime, ())
    return bool(formats) and model.spec.format not in ("gguf", *formats) and not spec.command


def missing_classes(plan: Plan, related: Related) -> Iterator[Cause]:
    """Classes without which no pod can be created. Kinds that nobody asked for are not judged."""
    if related.priority_classes is not None and plan.priority_class not in related.priority_classes:
        yield Cause(Stage.QUOTA, f"PriorityClass {plan.priority_class} does not exist", "PriorityClassNotFound")
    known = related.runtime_classes
    if plan.runtime_class and known is not None and plan.runtime_class not in known:
        yield Cause(Stage.QUOTA, f"RuntimeClass {plan.runtime_class} does not exist", "RuntimeClassNotFound")


def multi_attach(plan: Plan, pods: Sequence[ObservedPod], related: Related, settings: Settings) -> Iterator[Cause]:
    """A cache that only one node can attach, wanted on several (T-14). Pods say no more than that they are being made.

    The kubelet tells the reason in an event, which no hook sees; but the pods' nodes and the claim's mode are known.
    """
    hosts = {pod.status.host_ip for pod in pods if pod.status.host_ip}
    claim = next((v["persistentVolumeClaim"]["claimName"] for v in plan.volumes if v["name"] == names.CACHE_VOLUME), "")
    if len(hosts) < 2 or not claim or _shareable(claim, plan.namespace, related, settings):
        return
    if any(_is_being_made(pod) for pod in pods):
        text = (
            f"pods are on {len(hosts)} nodes, but PersistentVolumeClaim {claim} can be attached to one (Multi-Attach)"
        )
        yield Cause(Stage.CLAIM, text, "MultiAttach")


def _shareable(claim: str, namespace: str, related: Related, settings: Settings) -> bool:
    """Whether several nodes can mount the claim: as it says of itself where it can be seen, else as we make them."""
    seen = one(related.claims, claim, namespace)
    modes = (seen.spec.access_modes or []) if seen else [settings.llmkube_model_cache_access_mode]
    return "ReadWriteMany" in modes


def _is_being_made(pod: ObservedPod) -> bool:
    """No container of the pod was ever started."""
    statuses = (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ()))
    return bool(statuses) and all(s.state.waiting is not None and s.last_state.terminated is None for s in statuses)
