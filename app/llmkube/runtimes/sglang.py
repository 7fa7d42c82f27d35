"""SGLang's server. Source: LK-3.5.7."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from enum import StrEnum

from app.kube.decode import SPEC
from app.kube.field import Advice, advice
from app.llmkube.fit import Use
from app.llmkube.inferenceservice.types import InferenceServiceSpec
from app.llmkube.model.types import ModelSpec
from app.llmkube.runtimes.runtime import HEALTH, Runtime, Serving, flag, has_flag, mode, switch
from app.llmkube.runtimes.types import SGLangConfig, SGLangSpeculative
from app.llmkube.source import SourceClass, source_of
from app.workload.cause import Cause, Stage
from app.workload.parts import GPURequest

CONFIG = SPEC.child("sglangConfig")


class Reason(StrEnum):
    """Why ``SGLangSpecValid`` is false."""

    SPECULATIVE_MISSING_CONFIG = "SpeculativeMissingConfig"
    """Speculative decoding is on without an algorithm or a model."""
    SPECULATIVE_ACCEPT_THRESHOLD_UNUSED = "SpeculativeAcceptThresholdUnused"
    """A threshold of speculative decoding is set, and it is off."""


def arguments(serving: Serving) -> list[str]:
    """The command line, row by row as in the table of LK-3.5.7."""
    config = serving.spec.sglang_config or SGLangConfig()
    return [
        *("--model-path", serving.path or serving.source),
        *serving.revision,
        *flag("--port", serving.port),
        "--enable-metrics",
        *([] if serving.has("--host") else ["--host", serving.address]),
        *([] if serving.has("--served-model-name") else ["--served-model-name", serving.spec.model_ref]),
        *_options(config, serving.gpus),
        *_adapters(config),
        *flag("--log-level", config.log_level),
        *switch("--trust-remote-code", config.trust_remote_code),
        *switch("--skip-tokenizer-init", config.skip_tokenizer_init),
        *flag("--tp", serving.gpus if serving.gpus > 1 and config.tensor_parallel_size is None else None),
        *switch("--is-embedding", mode(serving.spec) == "embedding" and not serving.has("--is-embedding")),
        *serving.spec.extra_args,
    ]


def _options(config: SGLangConfig, gpus: int) -> list[str]:
    cache = config.kv_cache_custom_dtype or config.kv_cache_dtype
    return [
        *flag("--tp", config.tensor_parallel_size),
        *flag("--ep", config.expert_parallel_size),
        *flag("--dp", config.data_parallel_size),
        *flag("--context-length", config.context_length),
        *flag("--mem-fraction-static", _decimal(config.mem_fraction_static) if gpus else None),
        *flag("--chunked-prefill-size", config.chunked_prefill_size),
        *flag("--max-running-requests", config.max_running_requests),
        *flag("--quantization", config.quantization),
        *flag("--kv-cache-dtype", None if cache == "auto" else cache),
        *flag("--attention-backend", config.attention_backend),
        *switch("--enable-prefix-caching", config.enable_prefix_caching),
        *flag("--tool-call-parser", config.tool_call_parser),
        *flag("--reasoning-parser", config.reasoning_parser),
        *flag("--chat-template", config.chat_template),
        *_speculative(config.speculative or SGLangSpeculative()),
    ]


def _decimal(number: float | None) -> str | None:
    """The shortest text of a number, without an exponent."""
    return None if number is None else format(Decimal(repr(number)), "f")


def _speculative(config: SGLangSpeculative) -> list[str]:
    """Nothing unless it is switched on and has both an algorithm and a model."""
    if not config.enabled or not config.algorithm or not config.draft_model_path:
        return []
    return [
        *("--speculative-algorithm", config.algorithm),
        *("--speculative-draft-model-path", config.draft_model_path),
        *flag("--speculative-num-steps", config.num_steps),
        *flag("--speculative-eagle-topk", config.eagle_top_k),
        *flag("--speculative-num-draft-tokens", config.num_draft_tokens),
        *flag("--speculative-accept-threshold-single", _decimal(config.accept_threshold_single)),
        *flag("--speculative-accept-threshold-acc", _decimal(config.accept_threshold_acc)),
    ]


def _adapters(config: SGLangConfig) -> list[str]:
    """``--lora-paths`` with an item for each adapter, the typed ones first."""
    paths = {adapter.name: adapter.path for adapter in reversed(config.lora_adapters)}
    listed = {adapter.name: paths[adapter.name] for adapter in config.lora_adapters}
    for text in config.lora_modules:
        name, path = lora_module(text)
        if name and path:
            listed.setdefault(name, path)
    return [
        *(["--lora-paths", *(f"{name}={path}" for name, path in listed.items())] if listed else []),
        *flag("--max-lora-rank", config.max_lora_rank),
        *(["--lora-target-modules", *config.lora_target_modules] if config.lora_target_modules else []),
    ]


def lora_module(text: str) -> tuple[str, str]:
    """Name and path of an adapter in either spelling; both empty for any other text."""
    if not text.lstrip().startswith("{"):
        name, _, path = text.partition("=")
        return name.strip(), path.strip()
    try:
        written = json.loads(text)
    except (ValueError, RecursionError):
        return "", ""
    name, path = written.get("name"), written.get("path")
    return (name, path) if isinstance(name, str) and isinstance(path, str) else ("", "")


def warnings(spec: InferenceServiceSpec) -> Iterator[Advice]:
    """LK-V-I49, LK-V-I50 and LK-V-I71."""
    config = spec.sglang_config or SGLangConfig()
    speculative, path = config.speculative or SGLangSpeculative(), CONFIG.child("speculative")
    missing = _missing(speculative)
    if speculative.enabled and missing:
        message = f"no effect without {missing}: the service runs without speculative decoding"
        yield advice(path.child("enabled"), message, "no-effect")
    if not speculative.enabled and speculative != SGLangSpeculative():
        yield advice(path, "no effect unless enabled is true", "no-effect")
    for position, text in enumerate(config.lora_modules):
        name, target = lora_module(text)
        here = CONFIG.child("loraModules").index(position)
        if not name or not target:
            yield advice(here, 'no effect: write name=path, or {"name": …, "path": …} in JSON', "no-effect")
        elif any(adapter.name == name for adapter in config.lora_adapters):
            yield advice(here, f"no effect: loraAdapters has an adapter {name} as well", "no-effect")


def _missing(speculative: SGLangSpeculative) -> str:
    """The field without which speculative decoding stays off; empty when nothing is missing."""
    if not speculative.algorithm:
        return "algorithm"
    return "" if speculative.draft_model_path else "draftModelPath"


def warnings_with_model(spec: InferenceServiceSpec, model: ModelSpec, gpus: int) -> Iterator[Advice]:
    """LK-V-X03, LK-V-I42 and LK-V-X14."""
    if source_of(model).kind is SourceClass.REPOSITORY and not spec.skip_model_init:
        message = "set it to true: the Model is a repository, which the server downloads itself"
        yield advice(SPEC.child("skipModelInit"), message)
    if gpus:
        return
    yield advice(SPEC.child("runtime"), "SGLang needs a GPU, and neither the service nor its Model asks for one")
    if spec.sglang_config and spec.sglang_config.mem_fraction_static is not None:
        yield advice(CONFIG.child("memFractionStatic"), "no effect without a GPU", "no-effect")


def parallelism(spec: InferenceServiceSpec, gpus: GPURequest) -> Iterator[Cause]:
    """LK-V-X05: SGLang wants a GPU for each part of the model, and of each copy."""
    config = spec.sglang_config or SGLangConfig()
    tensor, data, expert = config.tensor_parallel_size, config.data_parallel_size, config.expert_parallel_size
    needed = {
        "tensorParallelSize times dataParallelSize": (tensor or 1) * (data or 1),
        "expertParallelSize": expert or 1,
    }
    for name, size in needed.items():
        if size > max(gpus.count, 1):
            text = f"sglangConfig.{name} is {size}, but a pod has {gpus.count} {gpus.resource}"
            yield Cause(Stage.SPEC, text, "TensorParallelSize")


def judge(spec: InferenceServiceSpec) -> tuple[str, str] | None:
    """Speculative decoding that is not what was asked for."""
    speculative = (spec.sglang_config or SGLangConfig()).speculative or SGLangSpeculative()
    missing = _missing(speculative)
    thresholds = (speculative.accept_threshold_single, speculative.accept_threshold_acc)
    if speculative.enabled and missing:
        message = f"sglangConfig.speculative.enabled needs {missing}; speculative decoding is left out"
        return Reason.SPECULATIVE_MISSING_CONFIG, message
    if not speculative.enabled and thresholds != (None, None):
        message = "the thresholds of sglangConfig.speculative have no effect unless enabled is true"
        return Reason.SPECULATIVE_ACCEPT_THRESHOLD_UNUSED, message
    return None


_MEMORY_FLAGS = (
    *("--mem-fraction-static", "--context-length", "--kv-cache-dtype", "--quantization", "--cpu-offload-gb"),
    *("--tp", "--tp-size", "--dp", "--dp-size", "--pp-size", "--enable-hierarchical-cache"),
)
USUAL_SHARE = 0.8
"""``--mem-fraction-static`` where nobody sets it: the server chooses about as much, by the GPU."""


def use(spec: InferenceServiceSpec, _: ModelSpec) -> Use:
    """One request of the longest context has to find room. Each copy of the model takes as much again."""
    config = spec.sglang_config or SGLangConfig()
    cache = config.kv_cache_custom_dtype or config.kv_cache_dtype
    own = has_flag(spec.extra_args, *_MEMORY_FLAGS)
    beside = {
        "what extraArgs add": own,
        "the proposing model": config.speculative and config.speculative.enabled,
        "adapters": config.lora_adapters or config.lora_modules,
        "further copies of the model": (config.data_parallel_size or 1) > 1,
    }
    return Use(
        context=config.context_length,
        cache=(cache, cache),
        share=config.mem_fraction_static,
        usual_share=USUAL_SHARE,
        quantization=config.quantization,
        elsewhere="extraArgs say otherwise" if own else "",
        more=", ".join(name for name, there in beside.items() if there),
    )


_FLAGS = {
    "bindAddress": ("--host",),
    "sglangConfig.tensorParallelSize": ("--tp", "--tp-size", "--tensor-parallel-size"),
    "sglangConfig.expertParallelSize": ("--ep", "--ep-size", "--expert-parallel-size"),
    "sglangConfig.dataParallelSize": ("--dp", "--dp-size", "--data-parallel-size"),
    "sglangConfig.contextLength": ("--context-length",),
    "sglangConfig.memFractionStatic": ("--mem-fraction-static",),
    "sglangConfig.chunkedPrefillSize": ("--chunked-prefill-size",),
    "sglangConfig.maxRunningRequests": ("--max-running-requests",),
    "sglangConfig.quantization": ("--quantization",),
    "sglangConfig.kvCacheDtype": ("--kv-cache-dtype",),
    "sglangConfig.kvCacheCustomDtype": ("--kv-cache-dtype",),
    "sglangConfig.attentionBackend": ("--attention-backend",),
    "sglangConfig.toolCallParser": ("--tool-call-parser",),
    "sglangConfig.reasoningParser": ("--reasoning-parser",),
    "sglangConfig.chatTemplate": ("--chat-template",),
    "sglangConfig.maxLoraRank": ("--max-lora-rank",),
    "sglangConfig.logLevel": ("--log-level",),
}

SGLANG = Runtime(
    name="sglang",
    container="sglang",
    image="lmsysorg/sglang:v0.5.15.post1-cu129",
    port=30000,
    command=("python3", "-m", "sglang.launch_server"),
    health=HEALTH,
    generates="/health_generate",
    metric="sglang:num_running_reqs",
    mounts_model=True,
    loads_directories=True,
    scraped=True,
    arguments=arguments,
    reads=("extraArgs", "skipModelInit", "sglangConfig", "bindAddress", "mode"),
    config="sglangConfig",
    token="HF_TOKEN",  # noqa: S106 - the name of a variable
    flags=_FLAGS,
    overrides=(("sglangConfig.kvCacheDtype", "sglangConfig.kvCacheCustomDtype"),),
    advice=warnings,
    advice_with_model=warnings_with_model,
    parallelism=parallelism,
    condition="SGLangSpecValid",
    valid="the SGLang options fit together",
    judge=judge,
    use=use,
)
