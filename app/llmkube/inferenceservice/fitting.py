"""Check whether a service's model fits into the memory of its GPUs. Source: LK-7."""

from collections.abc import Iterable

from app.hooks.fit import NOTHING, Asked, Fit, FitAnswer
from app.hooks.protocol import AnyRequest, get
from app.kube.field import SPEC
from app.kube.quantity import is_quantity, parse
from app.kube.regex import regex
from app.llmkube.inferenceservice.observed import decode
from app.llmkube.inferenceservice.plan import gpu_request
from app.llmkube.inferenceservice.podview import container_of
from app.llmkube.inferenceservice.types import InferenceService, InferenceServiceSpec
from app.llmkube.model.types import GGUF, Model, ModelSpec
from app.llmkube.runtimes.registry import runtime
from app.llmkube.runtimes.runtime import host_memory
from app.llmkube.runtimes.usage import usage_of
from app.llmkube.source import source_of
from app.settings import Settings
from app.workload.devices import ONE_EACH, counts
from app.workload.engines.commandline import CommandLine, passes_arguments, script_line
from app.workload.engines.engine import PROGRAMS
from app.workload.fit.gpumodels import gpu_asked_for, node_gpu, node_gpu_memory, slice_memory
from app.workload.fit.memory import Amount, Question, Usage, judge, weights
from app.workload.fit.modelfacts import facts_of
from app.workload.fit.models import Shape, shape_of

_OWN_COMMAND = Usage(unknown="spec.command starts another server")
_PART = regex(r"-[0-9]{5}-of-[0-9]{5}\.")
_PLAIN = ("llama", "qwen2")
"""Architectures with heads of embedding size / number of heads, that attend to the whole context."""
_LATENT = (
    *("deepseek2", "deepseek32", "glm-dsa", "glm5-next", "kimi-linear", "kimi-k3", "minicpm3", "plm", "bailingmoe3"),
    *("dots3note", "hy_v4", "mistral4"),
)
"""Architectures with latent attention, whose heads in the metadata do not tell the width of what is cached."""


_WIDEST = 4
"""A head of some architectures is wider than the embedding's share, which earlier downloads did not report."""


def fit(service: InferenceService, request: AnyRequest, settings: Settings, asked: Asked = NOTHING) -> Fit:
    """Return the answer for a service."""
    spec, related = service.spec, request.related
    model = decode(get(related.models if related else None, spec.model_ref, service.metadata.namespace))
    if model is None:
        return Fit(FitAnswer.CANNOT_KNOW, f"Model {spec.model_ref} is not known", ())
    return fit_with(spec, model, settings, asked)


def fit_with(spec: InferenceServiceSpec, model: Model, settings: Settings, asked: Asked = NOTHING) -> Fit:
    if model.spec.on_metal:
        return Fit(FitAnswer.CANNOT_KNOW, "the agent on the Mac decides by the memory of its host", ())
    return judge(_question(spec, model, settings, asked.gpu_memory), facts_of(asked))


def weights_of(spec: InferenceServiceSpec, model: Model, settings: Settings) -> Amount:
    return weights(_question(spec, model, settings, ""))


def _question(spec: InferenceServiceSpec, model: Model, settings: Settings, gpu_memory: str) -> Question:
    request = gpu_request(model.spec, spec, settings)
    memory, memory_from = _memory(spec, model, request.resource, gpu_memory)
    metadata, source = model.status.gguf, source_of(model.spec)
    is_parts = any(map(_PART.search, source.files or (source.text,)))
    names = tuple(filter(None, (metadata.model_name if metadata else "", source.text, *source.files)))
    return Question(
        names=names,
        formats=tuple(filter(None, (metadata.quantization if metadata else "", model.spec.quantization, *names))),
        gguf=model.spec.format == "gguf",
        size=model.status.source_content_length if (len(source.files) < 2) != is_parts else 0,
        parameters=metadata.parameter_count if metadata and not is_parts else 0,
        shape=_shape(model, names),
        use=_use(spec, model.spec),
        dtype=str(getattr(runtime(spec.runtime).options(spec), "dtype", None) or ""),
        gpus=min(request.count, 1) if counts(request.resource) in ONE_EACH else request.count,
        memory=memory,
        gpu=gpu_asked_for(gpu_memory)[1] if gpu_memory else node_gpu(spec.node_selector),
        claimed=bool(model.spec.gpu.resource_claims),
        memory_from=memory_from,
        resource=request.resource,
        host=_host(spec, model),
    )


def _host(spec: InferenceServiceSpec, model: Model) -> int:
    """Return the bytes of host memory that pods ask for; 0 if nothing says it."""
    text = host_memory(spec, model.spec)
    return int(parse(text)) if is_quantity(text) else 0


def _use(spec: InferenceServiceSpec, model: ModelSpec) -> Usage:
    """Return the use of memory by the runtime's own program, also under another path or in a script."""
    server, container = runtime(spec.runtime), container_of(spec)
    line, program = script_line(container, SPEC), PROGRAMS.get(server.name, "")
    if line is None:
        is_own = len(spec.command) == 1 and spec.command[0].rpartition("/")[2] == program
    elif any("$@" in part or "$*" in part for part in spec.command) and not spec.args:
        is_own = passes_arguments(container) and _named(line) == server.name and not line.arguments
    elif not _names_a_repository(line):
        return usage_of(_named(line), line.parsed, spec.image, has_more=line.is_open)
    else:
        is_own = False
    return server.use(spec, model) if is_own or not spec.command else _OWN_COMMAND


def _named(line: CommandLine) -> str:
    return line.engine.name if line.engine is not None else ""


def _names_a_repository(line: CommandLine) -> bool:
    """Report whether a script serves a model by its name, not the file or directory of the Model."""
    names = [line.arguments[at] for at in line.parsed.strays[:1]]
    return any(_REPOSITORY.fullmatch(name) for name in (*names, *map(line.parsed.value, _MODEL_OPTIONS)))


_MODEL_OPTIONS = ("--model", "--model-path", "--model-id", "--hf-repo")
_REPOSITORY = regex(r"[A-Za-z0-9][\w.-]*/[\w.:-]+")


def _memory(spec: InferenceServiceSpec, model: Model, resource: str, gpu_memory: str) -> tuple[int, str]:
    declared = (
        (str(gpu_asked_for(gpu_memory)[0]) if gpu_memory else "", "as requested"),
        (str(slice_memory(resource) or ""), f"slice {resource}"),
        (model.spec.gpu.memory, "hardware.gpu.memory of the Model"),
        (spec.requests.gpu_memory, "resources.gpuMemory"),
    )
    amounts = ((int(parse(text)), source) for text, source in declared if text and is_quantity(text))
    return next(amounts, node_gpu_memory(spec.node_selector, resource))


def _is_of(named: Shape | None, metadata: GGUF) -> bool:
    """Return whether a known shape is that of a file, of which its header does not tell the width of heads."""
    return named is not None and (named.layers, named.kv_heads) == (metadata.layer_count, metadata.head_count_kv)


def _shape(model: Model, names: Iterable[str]) -> Shape | None:
    """Return the shape in the file's metadata, with bounds: some architectures have layers without a cache.

    What is known of the named model is more exact than a guess.
    """
    metadata = model.status.gguf
    if metadata is None or not metadata.layer_count or not metadata.head_count or not metadata.embedding_size:
        return None
    named, plain = shape_of(names), metadata.architecture in _PLAIN
    is_latent = metadata.kv_lora_rank or metadata.architecture in _LATENT
    if (_is_of(named, metadata) and not metadata.key_length) or is_latent or (named is not None and not plain):
        return named
    width = metadata.key_length or metadata.embedding_size // metadata.head_count
    is_exact = plain and metadata.head_count_kv and not metadata.sliding_window
    return Shape(
        layers=metadata.layer_count,
        kv_heads=metadata.head_count_kv or metadata.head_count,
        head=(width + (metadata.value_length or width)) // 2,
        context=metadata.context_length,
        ends=(1, 1) if is_exact else (0, 1 if plain or metadata.key_length else _WIDEST),
    )
