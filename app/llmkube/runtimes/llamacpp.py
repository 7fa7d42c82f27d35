"""llama.cpp's server, with one model or a directory of them. Source: LK-3.4, LK-3.5.1 and LK-3.5.6."""

import posixpath
from collections.abc import Iterator
from math import gcd

from msgspec.structs import replace

from app import images
from app.kube.field import SPEC, Advice, advice, did_you_mean, with_hint
from app.kube.quantity import is_quantity, parse
from app.kube.regex import regex
from app.llmkube.inferenceservice.types import InferenceServiceSpec, SpeculativeDecoding
from app.llmkube.model.types import ModelSpec, layers
from app.llmkube.names import MODELS_DIR
from app.llmkube.runtimes.runtime import Runtime, Serving, flag, host_memory, memory_use, read_extra, switch
from app.llmkube.source import SourceClass, source_of
from app.workload.address import repository_and_tag
from app.workload.engines import promptcache
from app.workload.engines.commandline import variables_of
from app.workload.engines.engine import Engine, engine_of
from app.workload.fit.gpumodels import MIB
from app.workload.fit.memory import Usage
from app.workload.readiness.cause import Cause, Stage

_LLAMACPP = Engine("llamacpp")
MODEL_FLAGS = ("--model", "-m", "--model-url", "-mu", "--hf-repo", "-hf", "-hfr", "--docker-repo", "-dr")
"""Flags by which a user names the model."""


def arguments(serving: Serving) -> list[str]:
    """Build the command line in the order of the table in LK-3.5.1."""
    spec, rope = serving.spec, serving.spec.rope_scaling
    return [
        *_model(serving),
        *serving.listen(),
        *flag("--port", serving.port),
        *_gpu(serving),
        *serving.options(spec, "context_size"),
        *([] if rope is None or serving.has("--rope-scaling") else serving.options(rope)),
        *([] if serving.has("--parallel") else serving.options(spec, "parallel_slots")),
        *serving.options(spec, "flash_attention", "jinja"),
        *serving.options(spec, "cache_type_k", "cache_type_v", "cache_type_custom_k", "cache_type_custom_v"),
        *serving.options(spec, "moe_cpu_offload", "moe_cpu_layers", "no_kv_offload", "tensor_overrides"),
        *serving.options(spec, "batch_size", "u_batch_size", "no_warmup"),
        *_speculation(serving),
        *_reasoning(serving),
        *_projector(serving),
        *serving.options(spec, "metadata_overrides"),
        *(item for flags in _PURPOSES.get(spec.mode, ()) if not serving.has(flags[0]) for item in flags),
        *_prompt_cache(serving),
        *spec.extra_args,
        *switch("--metrics", not serving.has("--metrics")),
    ]


def _prompt_cache(serving: Serving) -> list[str]:
    """Return the limit of the cache of prompts, by the memory that is asked for, of an engine that has the option."""
    is_set = serving.has(promptcache.OPTION) or _sets_prompt_cache(serving.spec)
    if serving.spec.mode in _PURPOSES or is_set or serving.engine is None or not serving.engine.has(promptcache.OPTION):
        return []
    memory = _memory(serving.spec, serving.model)
    return flag(promptcache.OPTION, promptcache.suitable(memory) if memory else None)


def _sets_prompt_cache(spec: InferenceServiceSpec) -> bool:
    return any(variable.get("name") == promptcache.VARIABLE for variable in spec.env)


def _memory(spec: InferenceServiceSpec, model: ModelSpec) -> int:
    """Return the bytes of host memory that a pod requests; 0 if no field does."""
    text = host_memory(spec, model)
    return int(parse(text)) if is_quantity(text) else 0


def _model(serving: Serving) -> list[str]:
    """Return the model's flag. The server downloads a repository itself, unless the user already names a model."""
    if not serving.mounts_model or serving.source.kind is not SourceClass.REPOSITORY:
        return ["--model", serving.path]
    named = serving.has(*MODEL_FLAGS) or _LLAMACPP.read(serving.spec.command).gives(*MODEL_FLAGS)
    return [] if named else ["--hf-repo", serving.repository]


def lacks_model(spec: InferenceServiceSpec) -> bool:
    """Return True if no flag names a model and none is mounted. A custom command may find its model (LK-3.5.1)."""
    return spec.skip_model_init and not spec.command and not read_extra(spec, LLAMACPP).gives(*MODEL_FLAGS)


def _gpu(serving: Serving) -> list[str]:
    if serving.gpus == 0:
        return []
    offloaded = serving.model.gpu.layers or 0
    offload = flag("--n-gpu-layers", offloaded if offloaded > 0 else 99)  # more layers than any model has
    if serving.gpus == 1:
        return offload
    sharding = serving.model.gpu.sharding
    mode = _SPLIT_MODES.get(sharding.strategy if sharding else "", "layer")
    ratios = [] if mode == "none" else flag("--tensor-split", tensor_split(serving))
    return [*offload, "--split-mode", mode, *ratios]


_NO_SERVER = regex("(?:full|light)(|-.*)")
"""Variants of llama.cpp's image whose program is not the server."""
_SPLIT_MODES = {"tensor": "row", "row": "row", "none": "none"}
"""``--split-mode`` of a sharding strategy. llama.cpp has no pipeline, so that acts like ``layer``."""


def tensor_split(serving: Serving) -> str:
    """Return the GPUs' shares: those of ``layerSplit`` in lowest terms, or equal ones if it does not fit (LK-3.4)."""
    sharding = serving.model.gpu.sharding
    spans = [layers(entry) for entry in sharding.layer_split] if sharding else []
    shares = [last - first + 1 for first, last in filter(None, spans)]
    if len(spans) != serving.gpus or len(shares) < len(spans):
        shares = [1] * serving.gpus
    divisor = gcd(*shares)
    return ",".join(str(share // divisor) for share in shares)


_SPECULATION_ALIASES = {"draft": "draft-simple", "mtp": "draft-mtp", "disabled": "none"}
_NO_SPECULATION = SpeculativeDecoding(type="none")


def draft(spec: InferenceServiceSpec) -> str:
    """Return the name of the draft Model; empty without one, and if no model is mounted."""
    speculation = spec.speculative_decoding or _NO_SPECULATION
    return speculation.draft_model_ref if speculation.takes_draft and not spec.skip_model_init else ""


def _speculation(serving: Serving) -> list[str]:
    speculation = serving.spec.speculative_decoding or _NO_SPECULATION
    type_ = _SPECULATION_ALIASES.get(speculation.type, speculation.type)
    if type_ == "none" or (draft(serving.spec) and not serving.draft):
        return []
    file = posixpath.join(serving.directory, speculation.draft_model or "") if serving.directory else ""
    shortest = None if speculation.p_min is None else str(speculation.p_min).removesuffix(".0")
    return serving.options(
        speculation,
        type=["--spec-type", type_],
        draft_model_ref=flag("-md", serving.draft or (file if speculation.draft_model else "")),
        draft_model=[],
        p_min=flag("--spec-draft-p-min", shortest),
    )


def _reasoning(serving: Serving) -> list[str]:
    """Return the reasoning flags. A budget of 0 turns reasoning off; without a budget the message has no effect."""
    if serving.spec.reasoning_budget is None:
        return []
    return serving.options(serving.spec, "reasoning_budget", "reasoning_budget_message")


def _projector(serving: Serving) -> list[str]:
    file = serving.model.mmproj
    if not file or not serving.directory or serving.has("--mmproj"):
        return []
    return ["--mmproj", posixpath.join(serving.directory, file)]


_PURPOSES: dict[str | None, tuple[tuple[str, ...], ...]] = {
    "embedding": (("--embedding",), ("--pooling", "last"), ("--cache-ram", "0")),
    "rerank": (("--reranking",), ("--embedding",), ("--pooling", "rank"), ("--cache-ram", "0")),
}


def mistakes(spec: InferenceServiceSpec) -> Iterator[Cause]:
    if lacks_model(spec):
        text = "skipModelInit leaves llamacpp without a model: name one in extraArgs, or leave skipModelInit out"
        yield Cause(Stage.SPEC, text, "NoModelNamed")


def warnings(spec: InferenceServiceSpec) -> Iterator[Advice]:
    """Warn of a missing model, memory request or context, and of slots with fewer than 512 tokens (LK-V-I85)."""
    if lacks_model(spec):  # LK-V-I35
        message = "llamacpp is left without a model; name one in extraArgs, or remove skipModelInit"
        yield advice(SPEC.child("skipModelInit"), f"{message} (a Hugging Face repository does not need it)")
    if spec.skip_model_init and spec.speculative_decoding is not None and spec.speculative_decoding.draft:
        message = "the draft model has no effect with skipModelInit, which mounts none; name it in extraArgs"
        yield advice(SPEC.child("speculativeDecoding"), message, "no-effect")
    if spec.reasoning_budget_message and spec.reasoning_budget is None:  # LK-V-I45
        yield advice(SPEC.child("reasoningBudgetMessage"), "no effect without reasoningBudget", "no-effect")
    if (spec.moe_cpu_offload or spec.no_kv_offload) and not (spec.requests.memory or spec.requests.host_memory):
        message = "part of the model is kept in host memory, but no memory is requested; set it"  # LK-V-I46
        yield advice(SPEC.child("resources", "hostMemory"), message)
    slots = spec.parallel_slots or 1
    share = (spec.context_size or 0) // slots
    if slots > 1 and 0 < share < 512 and not read_extra(spec, LLAMACPP).gives("--kv-unified"):
        message = f"{slots} slots share it: {share} tokens for a request and its answer"
        yield advice(SPEC.child("contextSize"), message)
    if spec.rope_scaling and not read_extra(spec, LLAMACPP).gives("--rope-scaling"):  # LK-V-I39
        path, rope = SPEC.child("ropeScaling"), spec.rope_scaling
        if rope.type == "yarn" and rope.original_context is None:
            yield advice(path.child("originalContext"), "should be set with type yarn")
        if spec.context_size is None:
            yield advice(path, "the context does not become longer by itself; set contextSize as well")
    yield from _image(spec)
    yield from _batch(spec)


def _image(spec: InferenceServiceSpec) -> Iterator[Advice]:
    """Warn of an image that starts another program (LK-V-I90)."""
    repository, tag = repository_and_tag(spec.image)
    if repository.endswith("/llama.cpp") and not spec.command and (match := _NO_SERVER.fullmatch(tag)):
        hint = did_you_mean(f"{repository}:server{match[1]}")
        yield advice(SPEC.child("image"), with_hint("the program of this image is not llama-server", hint))


def _cached_prompts(spec: InferenceServiceSpec, model: ModelSpec) -> Iterator[Advice]:
    """Warn of a cache of prompts above the memory that is asked for, where nothing limits it (LK-V-I92)."""
    extra = read_extra(spec, LLAMACPP, variables_of(spec.env))
    if spec.mode in _PURPOSES or _limits_prompts(spec) or spec.command:
        return
    if message := promptcache.problem(extra, _memory(spec, model), "the memory that is requested"):
        stated = "hostMemory" if spec.requests.host_memory else "memory"
        is_own = bool(spec.requests.host_memory or spec.requests.memory)
        yield advice(SPEC.child("resources", stated) if is_own else SPEC, message)


def _limits_prompts(spec: InferenceServiceSpec) -> bool:
    """Report whether the server gets an option that limits its cache of prompts by the memory that is asked for."""
    engine = engine_of(spec.image or images.LLAMACPP)
    is_known = engine is not None and engine.has(promptcache.OPTION)
    is_set = read_extra(spec, LLAMACPP).gives(promptcache.OPTION) or _sets_prompt_cache(spec)
    return is_known and not is_set


def _batch(spec: InferenceServiceSpec) -> Iterator[Advice]:
    """Warn of a physical batch above the logical one (LK-V-I53)."""
    if spec.batch_size and spec.u_batch_size and spec.u_batch_size > spec.batch_size:
        yield advice(SPEC.child("uBatchSize"), f"llama.cpp lowers it to batchSize, which is {spec.batch_size}")


def warnings_with_model(spec: InferenceServiceSpec, model: ModelSpec, gpus: int, image: str) -> Iterator[Advice]:
    """Warn of repositories without GGUF files, and of GPUs for which there is no image (LK-V-X03, LK-V-I40)."""
    yield from _cached_prompts(spec, model)
    if source_of(model).kind is SourceClass.REPOSITORY and not spec.skip_model_init:
        message = "the Model is a repository: each pod downloads it when it starts (--hf-repo)"
        yield advice(SPEC.child("modelRef"), message)
        if source_of(model).revision:
            message = "the revision in the Model's source has no effect: --hf-repo takes none"
            yield advice(SPEC.child("modelRef"), message, "no-effect")
    source, drafted = source_of(model), (spec.speculative_decoding or _NO_SPECULATION).draft_model
    if drafted and not spec.skip_model_init and drafted not in source.files:
        message = f"Model {spec.model_ref} does not fetch this file; list it in files of the Model"
        yield advice(SPEC.child("speculativeDecoding", "draftModel"), message)
    file = (source.files or (source.text,))[0].partition("?")[0]
    if source.is_file and file.endswith((".safetensors", ".pt", ".pth")) and not spec.command:
        yield advice(SPEC.child("modelRef"), f"llama.cpp only loads GGUF, not {posixpath.basename(file)}")
    if source_of(model).kind is SourceClass.REPOSITORY and "gguf" not in source.repository.lower() and not spec.command:
        message = f"llama.cpp only loads GGUF, which {source.repository} may not have; such repositories end with -GGUF"
        yield advice(SPEC.child("modelRef"), message)
    other = model.accelerator if model.accelerator in ("intel", "rocm", "vulkan") else "cuda"
    build = {"amd": "rocm", "intel": "intel"}.get(model.gpu.vendor, other)
    repository, tag = repository_and_tag(spec.image)
    if gpus and not spec.command and repository.endswith("/llama.cpp") and (match := _CPU_TAG.fullmatch(tag)):
        message = f"this image uses the CPU only, and the pod has GPUs; use {repository}:server-{build}{match[1] or ''}"
        yield advice(SPEC.child("image"), message)
    if gpus and not spec.image and image == images.LLAMACPP:
        message = "the default image of llamacpp uses the CPU only for this GPU; set one that is built for the GPU"
        yield advice(SPEC.child("image"), f"{message}, such as ghcr.io/ggml-org/llama.cpp:server-{build}")


_CPU_TAG = regex(r"server(-[bv]?[0-9][0-9.]*)?")
"""Tags of llama.cpp's images without a device, with their release."""
_UNIFIED = "GGML_CUDA_ENABLE_UNIFIED_MEMORY"
"""Variable with which llama.cpp uses host memory once a GPU is full."""


def use(spec: InferenceServiceSpec, model: ModelSpec) -> Usage:
    """Return the use of memory: layers, experts and the cache may be in host memory."""
    base = memory_use(spec, LLAMACPP)
    others = {
        "hardware.gpu.layers": (model.gpu.layers or 0) > 0,
        _UNIFIED: any(variable.get("name") == _UNIFIED for variable in spec.env),
    }
    elsewhere = (*base.elsewhere, *(name for name, there in others.items() if there))
    single = model.gpu.sharding is not None and model.gpu.sharding.strategy == "none"
    return replace(base, gpus=1 if single else None, elsewhere=elsewhere, prompts=_prompts(spec, model))


def _prompts(spec: InferenceServiceSpec, model: ModelSpec) -> float:
    """Return the bytes to which the cache of prompts grows; 0 if it is not known."""
    if spec.mode in _PURPOSES:
        return 0
    memory = _memory(spec, model)
    limited = promptcache.suitable(memory) if memory and _limits_prompts(spec) else None
    parsed = read_extra(spec, LLAMACPP, variables_of(spec.env))
    return promptcache.limit_of(parsed) if limited is None else limited * MIB


LLAMACPP = Runtime(
    name="llamacpp",
    container="llama-server",
    image=images.LLAMACPP,
    device_images={"cuda": images.LLAMACPP_CUDA, "vulkan": images.LLAMACPP_VULKAN, "rocm": images.LLAMACPP_ROCM},
    port=8080,
    metric="llamacpp:requests_processing",
    mounts_model=True,
    scraped=True,
    service_links=False,
    arguments=arguments,
    formats=("gguf",),
    gpu_fields={"layers": 1, "sharding": 2},
    unprobed=("--ssl-key-file", "--api-prefix"),
    reads=("extraArgs", "mode", "skipModelInit", "speculativeDecoding"),
    not_on_metal=("bindAddress", "skipModelInit", "speculativeDecoding"),
    overrides=(("moeCPULayers", "moeCPUOffload"),),
    advice=warnings,
    advice_with_model=warnings_with_model,
    mistakes=mistakes,
    draft=draft,
    draft_is_model=True,
    keeps_windows=True,
    memory_flags=("--swa-full", "--n-gpu-layers", "--fit", "--model-draft"),
    use=use,
)


# The same server with a directory of models, from which each request chooses one (LK-3.5.6).


def router_arguments(serving: Serving) -> list[str]:
    return [
        *("--models-dir", MODELS_DIR),
        *flag("--port", serving.port),
        *serving.listen(),
        *switch("--metrics", not serving.has("--metrics")),
        *serving.spec.extra_args,
    ]


def router_warnings(spec: InferenceServiceSpec) -> Iterator[Advice]:
    """Warn of a router without a volume for its models, or without a metric to scale on (LK-V-I70)."""
    if spec.autoscaling and not spec.autoscaling.metrics:
        message = "no effect without metrics: llamacpp-router serves none that could be the default"
        yield advice(SPEC.child("autoscaling"), message, "no-effect")
    if not any(mount.get("mountPath", "").rstrip("/") == MODELS_DIR for mount in spec.extra_volume_mounts):
        message = f"llamacpp-router serves what lies in {MODELS_DIR}, and nothing is mounted there"
        yield advice(SPEC.child("extraVolumeMounts"), message)


LLAMACPP_ROUTER = Runtime(
    name="llamacpp-router",
    engine="llamacpp",
    container="llama-server",
    image=images.LLAMACPP,
    port=8080,
    metric="",  # its /metrics answers for a single model only, which the query names
    arguments=router_arguments,
    reads=("extraArgs",),
    unprobed=("--ssl-key-file", "--api-prefix"),
    advice=router_warnings,
)
