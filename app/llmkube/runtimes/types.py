"""What a service may say to one runtime only. Source: LK-1.5.

The runtimes' own modules turn these into arguments; the llama.cpp fields stand on the service itself.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, WithJsonSchema

from app.kube.base import EmbeddedType, Int32, Json, KubeModel
from app.kube.fieldclass import DEFAULTED, HONOURED, honoured

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
        Literal["awq", "gptq", "squeezellm", "fp8", "nvfp4", "compressed-tensors"] | None, HONOURED
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


class PersonaPlexConfig(KubeModel):
    """Options of PersonaPlex."""

    quantize_4bit: Annotated[bool, HONOURED] = Field(
        default=False, alias="quantize4Bit", description="Loads the weights in four bits."
    )
    cpu_offload: Annotated[bool, HONOURED] = Field(
        default=False, description="Keeps weights that do not fit the GPU in main memory."
    )
    hf_token_secret_ref: Annotated[SecretKeySelector | None, HONOURED] = Field(default=None, description=_TOKEN)
