"""vLLM's OpenAI server. Source: LK-3.5.2."""

import json
from collections.abc import Iterator
from itertools import pairwise

from app import images
from app.kube.field import SPEC, Advice, advice
from app.llmkube.inferenceservice.types import InferenceReason, InferenceServiceSpec
from app.llmkube.runtimes.runtime import Runtime, Serving, flag, memory_use, read_extra
from app.llmkube.runtimes.types import Speculative, VLLMConfig
from app.workload.engines.engine import BATCH, Engine, batch_problem
from app.workload.engines.parse import number_of
from app.workload.fit.gpumodels import dtype_problem

SPECULATIVE_CONFIG = "--speculative-config"
_LENGTH = "--max-model-len"
_NEWEST = Engine("vllm")
_NOT_SPECULATIVE, _DEFAULTS = Speculative(), VLLMConfig()


def arguments(serving: Serving) -> list[str]:
    """Build the command line in the order of the table in LK-3.5.2. The model comes first, without a flag."""
    spec, config = serving.spec, serving.spec.vllm_config
    is_stated = config is not None and config.tensor_parallel_size is not None  # even a 1 leaves the others idle
    return [
        serving.path or serving.repository,
        *serving.listen(),
        *flag("--port", serving.port),
        *serving.revision,
        *(serving.options(config, speculative=_speculative(serving)) if config else []),
        *flag("--tensor-parallel-size", serving.gpus if serving.gpus > 1 and not is_stated else None),
        *([] if serving.has("--max-num-seqs") else serving.options(spec, "parallel_slots")),
        *spec.extra_args,
    ]


def _speculative(serving: Serving) -> list[str]:
    """Return no arguments without a draft model."""
    if not serving.draft or (serving.engine is not None and not serving.engine.has(SPECULATIVE_CONFIG)):
        return []
    values = {"model": serving.draft, "num_speculative_tokens": _speculation(serving.spec).num_speculative_tokens}
    written = {name: value for name, value in values.items() if value is not None}
    keyed = next(
        (occurrence.name for occurrence in reversed(serving.extra.all(SPECULATIVE_CONFIG)) if occurrence.keys), ""
    )
    if keyed:  # vLLM then reads nothing of a whole object
        return [word for name, value in written.items() for word in (f"{keyed}.{name}", str(value))]
    return [SPECULATIVE_CONFIG, json.dumps(written, separators=(",", ":"))]


def draft_of(arguments: list[str]) -> str:
    """Return the draft model on a command line; earlier releases wrote ``--speculative-model``."""
    following = dict(pairwise(arguments))
    parsed = _NEWEST.read(arguments)
    keyed = [occurrence.value for occurrence in parsed.all(SPECULATIVE_CONFIG) if occurrence.keys == ("model",)]
    if keyed or SPECULATIVE_CONFIG not in following:
        return keyed[-1] if keyed else following.get("--speculative-model", "")
    try:
        return str(json.loads(following[SPECULATIVE_CONFIG])["model"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""


def warnings(spec: InferenceServiceSpec) -> Iterator[Advice]:
    """Warn of speculative decoding without a model, or that is not enabled (LK-V-I49, LK-V-I50)."""
    path, speculative = SPEC.child("vllmConfig", "speculative"), _speculation(spec)
    if speculative.enabled and not speculative.model:
        message = "no effect without model: the service runs without speculative decoding"
        yield advice(path.child("enabled"), message, "no-effect")
    default = _NOT_SPECULATIVE.num_speculative_tokens  # which stored objects have even if the user did not write it
    written = speculative.model or speculative.num_speculative_tokens not in (None, default)
    if written and not speculative.enabled:
        yield advice(path, "no effect unless enabled is true", "no-effect")
    yield from _contradictory_arguments(spec)


def _contradictory_arguments(spec: InferenceServiceSpec) -> Iterator[Advice]:
    """Warn of options that vLLM does not accept together, without another, or on the GPU (LK-V-I86)."""
    if spec.command:
        return
    path, config, extra = SPEC.child("extraArgs"), spec.vllm_config or _DEFAULTS, read_extra(spec, VLLM)
    fields = (spec.parallel_slots, config.max_num_batched_tokens, config.max_model_len)
    requests, tokens, length = (
        number_of(extra, option) if extra.gives(option) else field
        for option, field in zip((*BATCH, _LENGTH), fields, strict=True)
    )
    if not all(map(extra.gives, BATCH)) and (problem := batch_problem(requests, tokens)):
        yield advice(path, problem)
    dtype = "" if extra.gives("--dtype") else config.dtype or ""
    if problem := dtype_problem(VLLM.name, dtype, spec.node_selector):
        yield advice(SPEC.child("vllmConfig", "dtype"), problem)
    chunks = extra.last("--enable-chunked-prefill")
    is_less = length is not None and tokens is not None and tokens < length
    if chunks is not None and not chunks.is_on and is_less:
        yield advice(path, f"without chunks, {BATCH[1]} must be at least {_LENGTH}: {tokens} is less than {length}")


def _speculation(spec: InferenceServiceSpec) -> Speculative:
    return (spec.vllm_config.speculative if spec.vllm_config else None) or _NOT_SPECULATIVE


def draft(spec: InferenceServiceSpec) -> str:
    speculative = _speculation(spec)
    return speculative.model if speculative.enabled else ""


def needed_gpus(spec: InferenceServiceSpec) -> dict[str, int]:
    size = spec.vllm_config.tensor_parallel_size if spec.vllm_config else None
    return {"tensorParallelSize": size or 1}


def draft_problem(spec: InferenceServiceSpec) -> str:
    speculative = _speculation(spec)
    missing = speculative.enabled and not speculative.model
    return "vllmConfig.speculative.enabled requires model; speculative decoding is left out" if missing else ""


def judge(spec: InferenceServiceSpec) -> tuple[str, str] | None:
    problem = draft_problem(spec)
    return (InferenceReason.SPECULATIVE_MISSING_MODEL, f"SpeculativeInvalid: {problem}") if problem else None


VLLM: Runtime = Runtime(
    name="vllm",
    container="vllm",
    image=images.VLLM,
    device_images=dict.fromkeys(("amd", "rocm", "vulkan"), images.VLLM_ROCM),
    command=("vllm", "serve"),
    port=8000,
    metric="vllm:num_requests_running",
    mounts_model=True,
    loads_directories=True,
    divides_layers=True,
    unprobed=("--ssl-keyfile", "--uds", "--headless"),
    scraped=True,
    service_links=False,  # vLLM warns about every VLLM_* variable, and a Service called vllm makes some (LK-T-55)
    arguments=arguments,
    reads=("extraArgs", "skipModelInit", "vllmConfig"),
    config="vllmConfig",
    advice=warnings,
    needed_gpus=needed_gpus,
    condition="VLLMSpecValid",
    valid="the vLLM options fit together",
    judge=judge,
    draft=draft,
    draft_problem=draft_problem,
    draft_of=draft_of,
    memory_share=0.92,
    divides_heads=True,
    keeps_latent=True,
    keeps_windows=True,
    memory_flags=(
        *("--pipeline-parallel-size", "--data-parallel-size"),
        *("--swap-space", "--kv-offloading-size", "--enable-lora", "--disable-hybrid-kv-cache-manager"),
    ),
    use=lambda spec, _: memory_use(spec, VLLM, () if draft(spec) else ("vllmConfig.speculative",)),
)
