"""llama.cpp's server. Source: llmkube spec 3.4 and 3.5.1."""

from __future__ import annotations

from math import gcd

from app.llmkube.inferenceservice.types import InferenceServiceSpec
from app.llmkube.runtimes.runtime import HEALTH, Runtime, Serving, flag, nothing, switch
from app.llmkube.sharding import layers

ALL_LAYERS = 99
"""More layers than any model has: all of them go to the GPU."""

MODEL_FLAGS = ("--model", "-m", "--model-url", "-mu", "--hf-repo", "-hf", "-hfr", "--docker-repo", "-dr")
"""Flags with which a user names the model instead of us."""


def arguments(serving: Serving) -> list[str]:
    """The command line, row by row as in the table of spec 3.5.1."""
    return [
        *_model(serving),
        *("--host", "0.0.0.0"),  # noqa: S104 - a server in a pod is reached from outside itself
        *flag("--port", serving.port),
        *_gpu(serving),
        *_context(serving),
        *_cache(serving),
        *_batches(serving),
        *_reasoning(serving),
        *(item for override in serving.spec.metadata_overrides for item in ("--override-kv", override)),
        *serving.spec.extra_args,
        *switch("--metrics", "--metrics" not in serving.spec.extra_args),
    ]


def _model(serving: Serving) -> list[str]:
    """Where the model is. A repository is fetched by the server itself, unless the user already names a model."""
    if not serving.fetches:
        return ["--model", serving.path]
    return [] if names_model([*serving.spec.command, *serving.spec.extra_args]) else ["--hf-repo", serving.source]


def names_model(args: list[str]) -> bool:
    """Whether the arguments say which model to load."""
    return any(arg.partition("=")[0] in MODEL_FLAGS for arg in args)


def lacks_model(spec: InferenceServiceSpec) -> bool:
    """Whether the server starts with an empty path: the user leaves the model out, and nothing else names one (3.5.1).

    A command of the user's own may know where its model is.
    """
    return spec.skip_model_init and not spec.command and not names_model(spec.extra_args)


def _gpu(serving: Serving) -> list[str]:
    if serving.gpus == 0:
        return []
    offloaded = (serving.gpu.layers if serving.gpu else None) or 0
    offload = flag("--n-gpu-layers", offloaded if offloaded > 0 else ALL_LAYERS)
    if serving.gpus == 1:
        return offload
    mode = split_mode(serving)
    ratios = [] if mode == "none" else flag("--tensor-split", tensor_split(serving))
    return [*offload, "--split-mode", mode, *ratios]


_SPLIT_MODES = {"tensor": "row", "row": "row", "none": "none"}


def split_mode(serving: Serving) -> str:
    """``--split-mode`` of a sharding strategy. llama.cpp has no pipeline, so that acts like ``layer``."""
    sharding = serving.gpu.sharding if serving.gpu else None
    return _SPLIT_MODES.get(sharding.strategy if sharding else "", "layer")


def tensor_split(serving: Serving) -> str:
    """The GPUs' shares: those of ``layerSplit`` in lowest terms, or equal ones where it does not fit (spec 3.4)."""
    sharding = serving.gpu.sharding if serving.gpu else None
    shares = [_share(entry) for entry in sharding.layer_split] if sharding else []
    if len(shares) != serving.gpus or 0 in shares:
        shares = [1] * serving.gpus
    divisor = gcd(*shares)
    return ",".join(str(share // divisor) for share in shares)


def _share(entry: str) -> int:
    """Layers in ``start-end``, both included; 0 for anything else."""
    span = layers(entry)
    return span[1] - span[0] + 1 if span else 0


def _context(serving: Serving) -> list[str]:
    """Context, its stretching, and what is done at the same time. A flag of the user's own switches ours off."""
    spec = serving.spec
    args = flag("--ctx-size", spec.context_size)
    rope = spec.rope_scaling
    if rope is not None and not serving.has("--rope-scaling"):
        args += flag("--rope-scaling", rope.type)
        args += flag("--rope-scale", rope.factor)
        args += flag("--yarn-orig-ctx", rope.original_context)
    if not serving.has("--parallel"):
        args += flag("--parallel", spec.parallel_slots)
    if spec.flash_attention and serving.gpus > 0:
        args += ["--flash-attn", "on"]
    return args + switch("--jinja", spec.jinja)


def _cache(serving: Serving) -> list[str]:
    """The key-value cache, and what is kept in main memory."""
    spec = serving.spec
    return [
        *flag("--cache-type-k", spec.cache_type_custom_k or spec.cache_type_k),
        *flag("--cache-type-v", spec.cache_type_custom_v or spec.cache_type_v),
        *switch("--cpu-moe", spec.moe_cpu_offload),
        *flag("--n-cpu-moe", spec.moe_cpu_layers or None),
        *switch("--no-kv-offload", spec.no_kv_offload),
        *(item for override in spec.tensor_overrides for item in ("--override-tensor", override)),
    ]


def _batches(serving: Serving) -> list[str]:
    spec = serving.spec
    return [
        *flag("--batch-size", spec.batch_size),
        *flag("--ubatch-size", spec.u_batch_size),
        *switch("--no-warmup", spec.no_warmup),
    ]


def _reasoning(serving: Serving) -> list[str]:
    """A budget of 0 switches reasoning off, so it is a value; its message means nothing without it."""
    spec = serving.spec
    if spec.reasoning_budget is None:
        return []
    return [
        *flag("--reasoning-budget", spec.reasoning_budget),
        *flag("--reasoning-budget-message", spec.reasoning_budget_message),
    ]


_FLAGS = {
    "contextSize": ("--ctx-size", "-c"),
    "ropeScaling.factor": ("--rope-scale",),
    "ropeScaling.originalContext": ("--yarn-orig-ctx",),
    "parallelSlots": ("--parallel", "-np"),
    "flashAttention": ("--flash-attn", "-fa"),
    "cacheTypeK": ("--cache-type-k", "-ctk"),
    "cacheTypeV": ("--cache-type-v", "-ctv"),
    "cacheTypeCustomK": ("--cache-type-k", "-ctk"),
    "cacheTypeCustomV": ("--cache-type-v", "-ctv"),
    "moeCPULayers": ("--n-cpu-moe", "-ncmoe"),
    "batchSize": ("--batch-size", "-b"),
    "uBatchSize": ("--ubatch-size", "-ub"),
    "reasoningBudget": ("--reasoning-budget",),
    "reasoningBudgetMessage": ("--reasoning-budget-message",),
}

LLAMACPP = Runtime(
    name="llamacpp",
    container="llama-server",
    image="ghcr.io/ggml-org/llama.cpp:server",
    port=8080,
    health=HEALTH,
    metric="llamacpp:requests_processing",
    mounts_model=True,
    scraped=True,
    arguments=arguments,
    environment=nothing,
    flags=_FLAGS,
)
