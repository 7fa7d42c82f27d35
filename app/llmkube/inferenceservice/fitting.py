"""Check whether a service's model fits into the memory of its GPUs, by both objects. Source: LK-7."""

from __future__ import annotations

import re
from typing import Any

from app.hooks.protocol import SyncRequest, get
from app.kube.fit import Answer, Fit
from app.kube.quantity import is_quantity, parse
from app.llmkube.fit import Question, Shape, Use, judge
from app.llmkube.inferenceservice.gpus import gpu_request
from app.llmkube.inferenceservice.observed import decode
from app.llmkube.inferenceservice.types import InferenceServiceSpec, Service
from app.llmkube.model.plan import accelerator
from app.llmkube.model.types import Model
from app.llmkube.runtimes.registry import runtime
from app.llmkube.source import METAL, source_of
from app.settings import Settings

_OWN_COMMAND = Use(unknown="spec.command starts a server of its own")


def fit(service: Service, request: SyncRequest[Any, Any], settings: Settings, gpu_memory: str = "") -> Fit:
    """The answer for a service, with its Model among the related objects.

    ``gpu_memory``: a quantity for GPUs of which neither object says how large they are.
    """
    spec, related = service.spec, request.related
    model = decode(get(related.models if related else None, spec.model_ref, service.metadata.namespace))
    if model is None:
        return Fit(Answer.CANNOT_KNOW, f"Model {spec.model_ref} is not known", ())
    return fit_with(spec, model, settings, gpu_memory)


def fit_with(spec: InferenceServiceSpec, model: Model, settings: Settings, gpu_memory: str = "") -> Fit:
    """The answer for a spec and its Model."""
    if accelerator(model.spec) == METAL:
        return Fit(Answer.CANNOT_KNOW, "the agent on the Mac judges by the memory of its host", ())
    memory, memory_from = _memory(spec, model, gpu_memory)
    told, source = model.status.gguf, source_of(model.spec)
    names = tuple(filter(None, (told.model_name if told else "", source.text, *source.files)))
    question = Question(
        names=names,
        formats=tuple(filter(None, (told.quantization if told else "", model.spec.quantization, *names))),
        gguf=model.spec.format == "gguf",
        size=0 if len(source.files) > 1 or _PART.search(source.text) else model.status.source_content_length,
        parameters=told.parameter_count if told else 0,
        shape=_shape(model),
        use=_OWN_COMMAND if spec.command else runtime(spec.runtime).use(spec, model.spec),
        gpus=gpu_request(model.spec, spec, settings).count,
        memory=memory,
        memory_from=memory_from,
    )
    return judge(question)


_PART = re.compile(r"-[0-9]{5}-of-[0-9]{5}\.")
"""A file that is one of several."""


def _memory(spec: InferenceServiceSpec, model: Model, gpu_memory: str) -> tuple[int, str]:
    """Return the bytes of one GPU, and their source."""
    gpu = model.spec.hardware.gpu if model.spec.hardware else None
    declared = (
        (gpu.memory if gpu else "", "hardware.gpu.memory of the Model"),
        (spec.resources.gpu_memory if spec.resources else "", "resources.gpuMemory"),
        (gpu_memory, "as asked"),
    )
    return next(((int(parse(text)), who) for text, who in declared if text and is_quantity(text)), (0, ""))


_PLAIN = ("llama", "qwen2")
"""Architectures whose heads are as wide as the embedding divided by their number, and see the whole context."""


def _shape(model: Model) -> Shape | None:
    """Return the metadata of the file. Other architectures have wider heads, windows, or layers without a cache."""
    told = model.status.gguf
    if told is None or not told.layer_count or not told.head_count or not told.embedding_size:
        return None
    plain = told.architecture in _PLAIN
    return Shape(
        layers=told.layer_count,
        kv_heads=told.head_count_kv or told.head_count,
        head=told.embedding_size // told.head_count,
        context=told.context_length,
        ends=(1, 1) if plain and told.head_count_kv else (0, 1 if plain else 2),
    )
