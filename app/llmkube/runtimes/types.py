"""What a service may say to one runtime only. Source: LK-1.5.

The runtimes' own modules turn these into arguments; the llama.cpp fields stand on the service itself.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, WithJsonSchema

from app.kube.base import EmbeddedType, Int32, Json, KubeModel
from app.kube.fieldclass import DEFAULTED, HONOURED, PASSED_THROUGH, defaulted, honoured

SecretKeySelector = Annotated[
    Json,
    EmbeddedType("SecretKeySelector"),
    WithJsonSchema(
        {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "required": ["key"],
            "properties": {"key": {"type": "string", "description": "Key of the Secret that holds the token."}},
        }
    ),
]
"""A key of a Secret of the same namespace, handed to the container's environment as it is."""

_TOKEN = "Key of a Secret in the same namespace with the Hugging Face access token."  # noqa: S105 - a description


class Speculative(KubeModel):
    """Speculative decoding: a small model proposes tokens, the large one checks them."""

    enabled: Annotated[bool, HONOURED] = Field(
        default=False, description="Switches speculative decoding on. It needs model."
    )
    model: Annotated[str, HONOURED] = Field(
        default="",
        description="The proposing model: a Model of this namespace by name, or else a repository or path for vLLM.",
    )
    num_speculative_tokens: Annotated[Int32 | None, DEFAULTED] = Field(
        default=4, ge=1, le=16, description="Tokens proposed at a time."
    )


class VLLMConfig(KubeModel):
    """Options of vLLM."""

    tensor_parallel_size: Annotated[Int32 | None, DEFAULTED] = Field(
        default=None, description="GPUs one model is spread over. Absent: all GPUs of the pod."
    )
    max_model_len: Annotated[Int32 | None, HONOURED] = Field(default=None, description="Longest context in tokens.")
    quantization: Annotated[
        Literal["awq", "gptq", "squeezellm", "fp8", "nvfp4", "mxfp4", "compressed-tensors"] | None, HONOURED
    ] = Field(default=None, description="How the weights are quantized.")
    dtype: Annotated[Literal["auto", "float16", "bfloat16"] | None, HONOURED] = Field(
        default=None, description="Number format of weights and activations."
    )
    kv_cache_dtype: Annotated[Literal["auto", "fp8_e5m2", "fp8_e4m3"], DEFAULTED] = Field(
        default="auto", description="Number format of the key-value cache; auto leaves it to vLLM."
    )
    kv_cache_custom_dtype: Annotated[str, HONOURED] = Field(
        default="", description="Number format of the key-value cache that kvCacheDtype does not list. It wins."
    )
    enable_prefix_caching: Annotated[bool, HONOURED] = Field(
        default=False, description="Reuses the cache of equal prompt beginnings."
    )
    enable_chunked_prefill: Annotated[bool, HONOURED] = Field(
        default=False, description="Splits long prompts between other requests."
    )
    max_num_batched_tokens: Annotated[Int32 | None, HONOURED] = Field(
        default=None, ge=512, description="Most tokens that are computed in one step."
    )
    attention_backend: Annotated[
        Literal["FLASH_ATTN", "FLASHINFER", "XFORMERS", "flashinfer", "flash_attn", "xformers", "torch_sdpa"] | None,
        HONOURED,
    ] = Field(default=None, description="Implementation of attention, handed to vLLM as it is written here.")
    speculative: Speculative | None = Field(default=None, description="Speculative decoding.")
    enable_expert_parallel: Annotated[bool, HONOURED] = Field(
        default=False, description="Spreads the experts of a mixture-of-experts model over the GPUs."
    )
    hf_token_secret_ref: Annotated[SecretKeySelector | None, HONOURED] = Field(default=None, description=_TOKEN)
    cpu_offload_gb: Annotated[Int32 | None, honoured("with a GPU")] = Field(
        default=None,
        alias="cpuOffloadGB",
        ge=0,
        description="GiB of weights per GPU that are kept in main memory. No effect without a GPU.",
    )
    gpu_memory_utilization: Annotated[float | None, honoured("with a GPU")] = Field(
        default=None, ge=0.1, le=0.99, description="Share of the GPU's memory vLLM may take. No effect without a GPU."
    )


class TGIConfig(KubeModel):
    """Options of Text Generation Inference."""

    quantize: Annotated[Literal["bitsandbytes", "gptq", "awq", "eetq"] | None, HONOURED] = Field(
        default=None, description="How the weights are quantized."
    )
    max_input_length: Annotated[Int32 | None, HONOURED] = Field(default=None, description="Longest prompt in tokens.")
    max_total_tokens: Annotated[Int32 | None, HONOURED] = Field(
        default=None, description="Longest prompt and answer together, in tokens."
    )
    dtype: Annotated[Literal["float16", "bfloat16"] | None, HONOURED] = Field(
        default=None, description="Number format of weights and activations."
    )
    hf_token_secret_ref: Annotated[SecretKeySelector | None, HONOURED] = Field(default=None, description=_TOKEN)


class SGLangSpeculative(KubeModel):
    """Speculative decoding of SGLang."""

    enabled: Annotated[bool, HONOURED] = Field(
        default=False, description="Switches speculative decoding on. It needs algorithm and draftModelPath."
    )
    algorithm: Annotated[Literal["EAGLE", "EAGLE3", "Medusa"] | None, HONOURED] = Field(
        default=None, description="How tokens are proposed."
    )
    draft_model_path: Annotated[str, HONOURED] = Field(
        default="", description="The proposing model: a repository, or a path in the container."
    )
    num_steps: Annotated[Int32 | None, HONOURED] = Field(default=None, ge=1, description="Steps of proposing.")
    eagle_top_k: Annotated[Int32 | None, HONOURED] = Field(
        default=None, ge=1, description="Proposals that are followed at each step."
    )
    num_draft_tokens: Annotated[Int32 | None, DEFAULTED] = Field(
        default=4, ge=1, description="Tokens proposed at a time."
    )
    accept_threshold_single: Annotated[float | None, HONOURED] = Field(
        default=None, ge=0, le=1, description="Probability from which one proposed token is accepted."
    )
    accept_threshold_acc: Annotated[float | None, HONOURED] = Field(
        default=None, ge=0, le=1, description="Probability from which all proposed tokens together are accepted."
    )


class LoRAAdapter(KubeModel):
    """An adapter that is loaded beside the model."""

    name: Annotated[str, HONOURED] = Field(min_length=1, description="Name of the adapter in requests.")
    path: Annotated[str, HONOURED] = Field(
        min_length=1, description="A repository, or a path in the container (extraVolumeMounts)."
    )


class SGLangConfig(KubeModel):
    """Options of SGLang."""

    tensor_parallel_size: Annotated[Int32 | None, DEFAULTED] = Field(
        default=None, ge=1, description="GPUs one model is spread over. Absent: all GPUs of the pod."
    )
    expert_parallel_size: Annotated[Int32 | None, HONOURED] = Field(
        default=None, ge=1, description="GPUs the experts of a mixture-of-experts model are spread over."
    )
    data_parallel_size: Annotated[Int32 | None, HONOURED] = Field(
        default=None, ge=1, description="Copies of the model in one pod."
    )
    context_length: Annotated[Int32 | None, HONOURED] = Field(
        default=None, ge=128, description="Longest context in tokens."
    )
    mem_fraction_static: Annotated[float | None, honoured("with a GPU")] = Field(
        default=None,
        ge=0.1,
        le=0.99,
        description="Share of the GPU's memory for weights and the key-value cache. No effect without a GPU.",
    )
    chunked_prefill_size: Annotated[Int32 | None, HONOURED] = Field(
        default=None, ge=512, description="Most tokens of a prompt that are computed in one step."
    )
    max_running_requests: Annotated[Int32 | None, HONOURED] = Field(
        default=None, ge=1, description="Requests that are answered at the same time."
    )
    quantization: Annotated[str, HONOURED] = Field(default="", description="How the weights are quantized.")
    kv_cache_dtype: Annotated[Literal["auto", "fp8_e5m2", "fp8_e4m3"], DEFAULTED] = Field(
        default="auto", description="Number format of the key-value cache; auto leaves it to SGLang."
    )
    kv_cache_custom_dtype: Annotated[str, HONOURED] = Field(
        default="", description="Number format of the key-value cache that kvCacheDtype does not list. It wins."
    )
    attention_backend: Annotated[Literal["flashinfer", "flash_attn", "torch_native"] | None, HONOURED] = Field(
        default=None, description="Implementation of attention, handed to SGLang as it is written here."
    )
    enable_prefix_caching: Annotated[bool, HONOURED] = Field(
        default=False, description="Adds --enable-prefix-caching. SGLang reuses equal prompt beginnings without it."
    )
    tool_call_parser: Annotated[
        Literal["llama3", "qwen3", "qwen25", "hermes", "functionary", "mistral"] | None, HONOURED
    ] = Field(default=None, description="How calls of tools are read from the answers.")
    reasoning_parser: Annotated[Literal["qwen3", "deepseek-r1"] | None, HONOURED] = Field(
        default=None, description="How the reasoning is told from the answer."
    )
    chat_template: Annotated[str, HONOURED] = Field(
        default="", description="Chat template: a name that SGLang knows, or a path in the container."
    )
    speculative: SGLangSpeculative | None = Field(default=None, description="Speculative decoding.")
    lora_adapters: list[LoRAAdapter] = Field(
        default_factory=list, description="Adapters that are loaded beside the model."
    )
    lora_modules: Annotated[list[str], defaulted("an adapter of the same name in loraAdapters wins")] = Field(
        default_factory=list, description='Adapters as name=path, or as {"name": …, "path": …} in JSON.'
    )
    max_lora_rank: Annotated[Int32 | None, HONOURED] = Field(
        default=None, ge=1, description="Largest rank of an adapter."
    )
    lora_target_modules: Annotated[list[str], PASSED_THROUGH] = Field(
        default_factory=list, description="Modules of the model that adapters change."
    )
    log_level: Annotated[Literal["debug", "info", "warning", "error"] | None, HONOURED] = Field(
        default=None, description="How much SGLang logs."
    )
    trust_remote_code: Annotated[bool, HONOURED] = Field(
        default=False, description="Lets the model's repository run code of its own."
    )
    skip_tokenizer_init: Annotated[bool, HONOURED] = Field(
        default=False, description="Leaves the tokenizer out; requests then carry token ids."
    )
    hf_token_secret_ref: Annotated[SecretKeySelector | None, HONOURED] = Field(default=None, description=_TOKEN)


class PersonaPlexConfig(KubeModel):
    """Options of PersonaPlex."""

    quantize_4bit: Annotated[bool, HONOURED] = Field(
        default=False, alias="quantize4Bit", description="Loads the weights in four bits."
    )
    cpu_offload: Annotated[bool, HONOURED] = Field(
        default=False, description="Keeps weights that do not fit the GPU in main memory."
    )
    hf_token_secret_ref: Annotated[SecretKeySelector | None, HONOURED] = Field(default=None, description=_TOKEN)
