"""vLLM's OpenAI server. Source: llmkube spec 3.5.2."""

from __future__ import annotations

from decimal import Decimal

from app.llmkube.inferenceservice.types import InferenceServiceSpec
from app.llmkube.runtimes.runtime import HEALTH, Json, Runtime, Serving, flag, switch, token
from app.llmkube.runtimes.types import VLLMConfig

SPECULATIVE_MODEL = "--speculative-model"
"""The flag of the proposing model."""


def arguments(serving: Serving) -> list[str]:
    """The command line, row by row as in the table of spec 3.5.2. The model stands first, without a flag."""
    spec, config = serving.spec, serving.spec.vllm_config
    return [
        serving.path or serving.source,
        *("--host", "0.0.0.0"),  # noqa: S104 - a server in a pod is reached from outside itself
        *flag("--port", serving.port),
        *(_options(config, serving) if config else []),
        *flag("--tensor-parallel-size", automatic_parallelism(config, serving.gpus)),
        *flag("--max-num-seqs", None if serving.has("--max-num-seqs") else spec.parallel_slots),
        *spec.extra_args,
    ]


def automatic_parallelism(config: VLLMConfig | None, gpus: int) -> int | None:
    """All GPUs of the pod, unless the user says anything about it: even a 1 leaves the others idle."""
    stated = config is not None and config.tensor_parallel_size is not None
    return gpus if gpus > 1 and not stated else None


def _options(config: VLLMConfig, serving: Serving) -> list[str]:
    parallel = config.tensor_parallel_size
    cache = config.kv_cache_custom_dtype or config.kv_cache_dtype
    return [
        *flag("--tensor-parallel-size", parallel if parallel is not None and parallel > 1 else None),
        *flag("--max-model-len", config.max_model_len),
        *flag("--quantization", config.quantization),
        *flag("--dtype", config.dtype),
        *flag("--kv-cache-dtype", None if cache == "auto" else cache),
        *switch("--enable-prefix-caching", config.enable_prefix_caching),
        *switch("--enable-chunked-prefill", config.enable_chunked_prefill),
        *flag("--max-num-batched-tokens", config.max_num_batched_tokens),
        *flag("--attention-backend", config.attention_backend),
        *_speculative(config, serving.draft),
        *switch("--enable-expert-parallel", config.enable_expert_parallel),
        *(_memory(config) if serving.gpus > 0 else []),
    ]


def _speculative(config: VLLMConfig, draft: str) -> list[str]:
    """Nothing unless it is switched on and has a model; the pair of flags that upstream still writes (T-32)."""
    if not draft or config.speculative is None or not config.speculative.enabled:
        return []
    return [
        *flag(SPECULATIVE_MODEL, draft),
        *flag("--num-speculative-tokens", config.speculative.num_speculative_tokens),
    ]


def _memory(config: VLLMConfig) -> list[str]:
    share = config.gpu_memory_utilization
    return [
        *flag("--cpu-offload-gb", config.cpu_offload_gb),
        *flag("--gpu-memory-utilization", None if share is None else format(Decimal(repr(share)), "f")),
    ]


def environment(spec: InferenceServiceSpec) -> list[Json]:
    return token("HF_TOKEN", spec.vllm_config.hf_token_secret_ref if spec.vllm_config else None)


_FLAGS = {
    "parallelSlots": ("--max-num-seqs",),
    "vllmConfig.tensorParallelSize": ("--tensor-parallel-size", "-tp"),
    "vllmConfig.maxModelLen": ("--max-model-len",),
    "vllmConfig.quantization": ("--quantization", "-q"),
    "vllmConfig.dtype": ("--dtype",),
    "vllmConfig.kvCacheDtype": ("--kv-cache-dtype",),
    "vllmConfig.kvCacheCustomDtype": ("--kv-cache-dtype",),
    "vllmConfig.maxNumBatchedTokens": ("--max-num-batched-tokens",),
    "vllmConfig.attentionBackend": ("--attention-backend",),
    "vllmConfig.cpuOffloadGB": ("--cpu-offload-gb",),
    "vllmConfig.gpuMemoryUtilization": ("--gpu-memory-utilization",),
}

VLLM = Runtime(
    name="vllm",
    container="vllm",
    image="vllm/vllm-openai:v0.20.0",
    port=8000,
    health=HEALTH,
    metric="vllm:num_requests_running",
    mounts_model=True,
    scraped=True,
    service_links=False,  # vLLM warns about every VLLM_* variable, and a Service called vllm makes some (T-55)
    arguments=arguments,
    environment=environment,
    flags=_FLAGS,
)
