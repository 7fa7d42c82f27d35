"""Options of the runtimes (LK-1.5). llama.cpp's are fields of the service itself."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, WithJsonSchema

from app.kube.base import EmbeddedType, Int32, Json, KubeModel
from app.kube.schema.fieldclass import DEFAULTED, HONOURED, PASSED_THROUGH, defaulted, honoured, no_effect
from app.llmkube.runtimes.flag import Flag, Memory

SecretKeySelector = Annotated[
    Json,
    EmbeddedType("SecretKeySelector"),
    WithJsonSchema(
        {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "x-kubernetes-map-type": "atomic",
            "required": ["key"],
            "properties": {
                "name": {"type": "string", "description": "Name of the Secret."},
                "key": {"type": "string", "description": "Key of the Secret whose value is the token."},
                "optional": {"type": "boolean", "description": "Whether the Secret and its key may be missing."},
            },
        }
    ),
]

Token = Annotated[
    SecretKeySelector | None,
    HONOURED,
    Field(description="Key of a Secret in the same namespace whose value is the Hugging Face access token."),
]
Positive = Annotated[Int32, Field(ge=1)]
NonNegative = Annotated[Int32, Field(ge=0)]
Probability = Annotated[float, Field(ge=0, le=1)]
ContextLength = Annotated[Int32, Field(ge=128)]
_BatchedTokens = Annotated[Int32, Field(ge=512)]
_GPUShare = Annotated[float, Field(ge=0.1, le=0.99)]
NO_ITEMS: Any = Field(default_factory=list)

_KV_CACHE = Flag("--kv-cache-dtype", default="auto", memory=(Memory.KEYS, Memory.VALUES))
KVCacheType = Annotated[
    Literal["auto", "fp8_e5m2", "fp8_e4m3"],
    DEFAULTED,
    _KV_CACHE,
    Field(description="Data type of the key-value cache. auto is the model's."),
]
KVCacheCustomType = Annotated[
    str,
    HONOURED,
    _KV_CACHE,
    Field(description="Data type of the key-value cache that kvCacheDtype does not list. Overrides it."),
]


_QUANTIZATION = (
    "leave it out: vLLM reads the method from the checkpoint, which for NVFP4 is modelopt_fp4 or compressed-tensors"
)


class Speculative(KubeModel):
    enabled: Annotated[bool, HONOURED] = False
    """Switches speculative decoding on. Requires model."""
    model: Annotated[str, HONOURED] = ""
    """Draft model: the name of a Model in this namespace, or else a repository or path for vLLM."""
    num_speculative_tokens: Annotated[Int32 | None, DEFAULTED] = Field(default=4, ge=1, le=16)
    """Number of tokens that the draft model proposes at a time."""


class VLLMConfig(KubeModel):
    other_names: ClassVar[Mapping[str, str]] = {
        "contextLength": "maxModelLen",
        "contextSize": "maxModelLen",
        "memFractionStatic": "gpuMemoryUtilization",
        "tp": "tensorParallelSize",
    }

    tensor_parallel_size: Annotated[
        Int32 | None,
        DEFAULTED,
        Flag("--tensor-parallel-size", ("-tp",), default=1, positive=True, memory=(Memory.GPUS,)),
    ] = None
    """Tensor-parallel size. Defaults to the number of GPUs of the pod."""
    max_model_len: Annotated[
        Int32 | None, HONOURED, Flag("--max-model-len", positive=True, memory=(Memory.CONTEXT,))
    ] = None
    """Maximum context length in tokens. Defaults to the model's."""
    quantization: Annotated[
        Literal["awq", "gptq", "squeezellm", "fp8", "nvfp4", "mxfp4", "compressed-tensors"] | None,
        HONOURED,
        Flag("--quantization", ("-q",), memory=(Memory.WEIGHTS,), hint=_QUANTIZATION),
    ] = None
    """Quantization method of the weights. Defaults to the one that the model's own configuration names."""
    dtype: Annotated[Literal["auto", "float16", "bfloat16"] | None, HONOURED, Flag("--dtype")] = None
    """Data type of weights and activations. Defaults to the model's."""
    kv_cache_dtype: KVCacheType = "auto"
    kv_cache_custom_dtype: KVCacheCustomType = ""
    enable_prefix_caching: Annotated[bool, HONOURED, Flag("--enable-prefix-caching")] = False
    """Lets requests with the same beginning share a part of the key-value cache."""
    enable_chunked_prefill: Annotated[bool, HONOURED, Flag("--enable-chunked-prefill")] = False
    """Computes long prompts in chunks, between other requests."""
    max_num_batched_tokens: Annotated[_BatchedTokens | None, HONOURED, Flag("--max-num-batched-tokens")] = None
    """Maximum number of batched tokens in one step."""
    attention_backend: Annotated[
        Literal["FLASH_ATTN", "FLASHINFER", "XFORMERS", "flashinfer", "flash_attn", "xformers", "torch_sdpa"] | None,
        HONOURED,
        Flag("--attention-backend"),
    ] = None
    """Attention backend. Defaults to vLLM's choice for the GPU."""
    speculative: Annotated[Speculative | None, Flag("--speculative-config", ("-sc",), memory=(Memory.MORE,))] = None
    """Speculative decoding."""
    enable_expert_parallel: Annotated[bool, HONOURED, Flag("--enable-expert-parallel")] = False
    """Distributes the experts of a mixture-of-experts model over the GPUs."""
    hf_token_secret_ref: Token = None
    cpu_offload_gb: Annotated[
        Int32 | None, honoured("with a GPU"), Flag("--cpu-offload-gb", needs_gpu=True, memory=(Memory.HOST,))
    ] = Field(default=None, alias="cpuOffloadGB", ge=0)
    """GiB of weights per GPU that are kept in host memory. No effect without a GPU."""
    gpu_memory_utilization: Annotated[
        _GPUShare | None,
        honoured("with a GPU"),
        Flag("--gpu-memory-utilization", needs_gpu=True, memory=(Memory.SHARE,)),
    ] = None
    """Fraction of the GPU's memory that vLLM uses. No effect without a GPU."""


class TGIConfig(KubeModel):
    other_names: ClassVar[Mapping[str, str]] = {"contextLength": "maxTotalTokens", "maxModelLen": "maxTotalTokens"}

    quantize: Annotated[
        Literal["bitsandbytes", "gptq", "awq", "eetq"] | None, HONOURED, Flag("--quantize", memory=(Memory.WEIGHTS,))
    ] = None
    """Quantization method of the weights. Defaults to the one that the model's own configuration names."""
    max_input_length: Annotated[
        Int32 | None, HONOURED, Flag("--max-input-length", ("--max-input-tokens",), positive=True)
    ] = None
    """Maximum length of a prompt in tokens."""
    max_total_tokens: Annotated[
        Int32 | None, HONOURED, Flag("--max-total-tokens", positive=True, memory=(Memory.CONTEXT,))
    ] = None
    """Maximum length of a prompt and its answer together, in tokens."""
    dtype: Annotated[Literal["float16", "bfloat16"] | None, HONOURED, Flag("--dtype")] = None
    """Data type of weights and activations. Defaults to the model's."""
    hf_token_secret_ref: Token = None


class SGLangSpeculative(KubeModel):
    enabled: Annotated[bool, HONOURED] = False
    """Switches speculative decoding on. Requires algorithm and draftModelPath."""
    algorithm: Annotated[
        Literal["EAGLE", "EAGLE3", "Medusa"] | None, HONOURED, Flag("--speculative-algorithm", memory=(Memory.MORE,))
    ] = None
    """Speculative decoding algorithm."""
    draft_model_path: Annotated[
        str, HONOURED, Flag("--speculative-draft-model-path", ("--speculative-draft-model",))
    ] = ""
    """Draft model: a repository, or a path in the container."""
    num_steps: Annotated[Positive | None, HONOURED, Flag("--speculative-num-steps")] = None
    """Number of steps of the draft model."""
    eagle_top_k: Annotated[Positive | None, HONOURED, Flag("--speculative-eagle-topk")] = None
    """Number of candidates that are followed in each step."""
    num_draft_tokens: Annotated[Positive | None, DEFAULTED, Flag("--speculative-num-draft-tokens")] = 4
    """Number of draft tokens that are verified at a time."""
    accept_threshold_single: Annotated[Probability | None, HONOURED, Flag("--speculative-accept-threshold-single")] = (
        None
    )
    """Minimum probability at which a single draft token is accepted."""
    accept_threshold_acc: Annotated[Probability | None, HONOURED, Flag("--speculative-accept-threshold-acc")] = None
    """Minimum accumulated probability at which draft tokens are accepted."""


class LoRAAdapter(KubeModel):
    name: Annotated[str, HONOURED] = Field(min_length=1)
    """Name of the adapter in requests."""
    path: Annotated[str, HONOURED] = Field(min_length=1)
    """Repository of the adapter, or its path in the container (extraVolumeMounts)."""


class SGLangConfig(KubeModel):
    other_names: ClassVar[Mapping[str, str]] = {
        "contextSize": "contextLength",
        "dpSize": "dataParallelSize",
        "epSize": "expertParallelSize",
        "gpuMemoryUtilization": "memFractionStatic",
        "maxModelLen": "contextLength",
        "tp": "tensorParallelSize",
        "tpSize": "tensorParallelSize",
    }

    tensor_parallel_size: Annotated[
        Positive | None, DEFAULTED, Flag("--tp-size", ("--tp", "--tensor-parallel-size"))
    ] = None
    """Tensor-parallel size. Defaults to the number of GPUs of the pod."""
    expert_parallel_size: Annotated[
        Positive | None, HONOURED, Flag("--ep", ("--ep-size", "--expert-parallel-size"))
    ] = None
    """Expert-parallel size of a mixture-of-experts model."""
    data_parallel_size: Annotated[Positive | None, HONOURED, Flag("--dp-size", ("--dp", "--data-parallel-size"))] = None
    """Data-parallel size: the number of copies of the model in one pod."""
    context_length: Annotated[ContextLength | None, HONOURED, Flag("--context-length", memory=(Memory.CONTEXT,))] = None
    """Maximum context length in tokens. Defaults to the model's."""
    mem_fraction_static: Annotated[
        _GPUShare | None, honoured("with a GPU"), Flag("--mem-fraction-static", needs_gpu=True, memory=(Memory.SHARE,))
    ] = None
    """Fraction of the GPU's memory for weights and the key-value cache. No effect without a GPU."""
    chunked_prefill_size: Annotated[_BatchedTokens | None, HONOURED, Flag("--chunked-prefill-size")] = None
    """Maximum number of tokens of a prompt that are computed in one chunk."""
    max_running_requests: Annotated[Positive | None, HONOURED, Flag("--max-running-requests")] = None
    """Maximum number of requests that run at the same time."""
    quantization: Annotated[str, HONOURED, Flag("--quantization", memory=(Memory.WEIGHTS,))] = ""
    """Quantization method of the weights. Defaults to the one that the model's own configuration names."""
    kv_cache_dtype: KVCacheType = "auto"
    kv_cache_custom_dtype: KVCacheCustomType = ""
    attention_backend: Annotated[
        Literal["flashinfer", "flash_attn", "torch_native"] | None, HONOURED, Flag("--attention-backend")
    ] = None
    """Attention backend. Defaults to SGLang's choice for the GPU."""
    enable_prefix_caching: Annotated[
        bool, no_effect("SGLang always caches prefixes; --disable-radix-cache in extraArgs turns that off")
    ] = False
    """No effect: SGLang always caches prefixes."""
    tool_call_parser: Annotated[
        Literal["llama3", "qwen3", "qwen25", "hermes", "functionary", "mistral"] | None,
        HONOURED,
        Flag("--tool-call-parser", instead=(("qwen3", "qwen"),)),
    ] = None
    """Parser of tool calls in the model's answers."""
    reasoning_parser: Annotated[Literal["qwen3", "deepseek-r1"] | None, HONOURED, Flag("--reasoning-parser")] = None
    """Parser that separates the reasoning from the answer."""
    chat_template: Annotated[str, HONOURED, Flag("--chat-template")] = ""
    """Chat template: a name that SGLang knows, or a path in the container. Defaults to the model's own."""
    speculative: SGLangSpeculative | None = None
    """Speculative decoding."""
    lora_adapters: Annotated[list[LoRAAdapter], Flag("--lora-paths", memory=(Memory.MORE,))] = NO_ITEMS
    """LoRA adapters that are loaded with the model."""
    lora_modules: Annotated[
        list[str], defaulted("an adapter of the same name in loraAdapters wins"), Flag("--lora-paths")
    ] = NO_ITEMS
    """LoRA adapters as name=path, or as {"name": …, "path": …} in JSON."""
    max_lora_rank: Annotated[Positive | None, HONOURED, Flag("--max-lora-rank")] = None
    """Maximum rank of a LoRA adapter."""
    lora_target_modules: Annotated[list[str], PASSED_THROUGH, Flag("--lora-target-modules")] = NO_ITEMS
    """Modules of the model that LoRA adapters change."""
    log_level: Annotated[Literal["debug", "info", "warning", "error"] | None, HONOURED, Flag("--log-level")] = None
    """Log level of SGLang."""
    trust_remote_code: Annotated[bool, HONOURED, Flag("--trust-remote-code")] = False
    """Allows code from the model's repository to run."""
    skip_tokenizer_init: Annotated[bool, HONOURED, Flag("--skip-tokenizer-init")] = False
    """Leaves the tokenizer out. Requests then carry token ids."""
    hf_token_secret_ref: Token = None


class PersonaPlexConfig(KubeModel):
    quantize_4bit: Annotated[
        bool, no_effect("PersonaPlex has no such option; for an image that has one, write it in extraArgs")
    ] = Field(default=False, alias="quantize4Bit")
    """No effect: PersonaPlex does not load weights in four bits."""
    cpu_offload: Annotated[bool, HONOURED, Flag("--cpu-offload")] = False
    """Keeps weights that do not fit the GPU in host memory."""
    hf_token_secret_ref: Token = None
