"""The default images; renovate updates them.

An engine's image changes only together with the catalogue of its release (``app/workload/engines/releases``).
"""

LLAMACPP = "ghcr.io/ggml-org/llama.cpp:server-v0.7.0"
LLAMACPP_CUDA = "ghcr.io/ggml-org/llama.cpp:server-cuda-v0.7.0"
LLAMACPP_VULKAN = (
    "ghcr.io/defilantech/llmkube-llama-vulkan@sha256:cbab8af682ecac9b5c865d85219d808dc356814326c70346e05b8b20b333e295"
)
LLAMACPP_ROCM = (
    "ghcr.io/defilantech/llmkube-llama-rocm@sha256:8da16041a18b4f03f0be4de5e064be97ba8937149091d6693ee09711da362849"
)
VLLM = "vllm/vllm-openai:v0.20.0"
VLLM_ROCM = "vllm/vllm-openai-rocm:v0.20.0"
SGLANG = "lmsysorg/sglang:v0.5.15.post1-cu129"
SGLANG_ROCM = "lmsysorg/sglang:v0.5.15.post1-rocm720-mi30x"
TGI = "ghcr.io/huggingface/text-generation-inference:3.3.7"
DOWNLOADER = "docker.io/curlimages/curl:8.18.0"
"""Downloads models of LLMKube."""

STORAGE_INITIALIZER = "kserve/storage-initializer:v0.17.0"
"""Downloads models of KServe, and those of llmaz from object storage."""
MODEL_LOADER = "inftyai/model-loader:v0.0.10"
"""Downloads models of llmaz from hubs, where its ConfigMap names no image."""

LLM_D = "ghcr.io/llm-d/llm-d-cuda:v0.8.0"
"""The server of KServe's presets; ``app/workload/engines/engine.py`` has its release of vLLM."""
ROUTING_SIDECAR = "ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.9.0"
ENDPOINT_PICKER = "ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.9.0"
LATENCY_TRAINING = "ghcr.io/llm-d/llm-d-latency-predictor-training-server:v0.8.0"
LATENCY_PREDICTION = "ghcr.io/llm-d/llm-d-latency-predictor-prediction-server:v0.8.0"
TOKENIZER = "ghcr.io/llm-d/llm-d-uds-tokenizer:vllm-v0.19.1"

LLM_D_V017 = "ghcr.io/llm-d/llm-d-cuda:v0.4.0"
"""The server of the presets of KServe v0.17."""
ROUTING_SIDECAR_V017 = "ghcr.io/llm-d/llm-d-routing-sidecar:v0.4.0"
ENDPOINT_PICKER_V017 = "ghcr.io/llm-d/llm-d-inference-scheduler:v0.4.0"

LLMAZ_RUNTIMES = {
    "llamacpp": LLAMACPP,
    "ollama": "ollama/ollama:0.34.4",
    "sglang": "lmsysorg/sglang:v0.4.5-cu121",
    "tensorrt-llm": "nvcr.io/nvidia/tritonserver:25.03-trtllm-python-py3",
    "tgi": "ghcr.io/huggingface/text-generation-inference:2.3.1",
    "vllm": "vllm/vllm-openai:v0.7.3",
}
"""The images of llmaz' BackendRuntimes, ``manifests/llmaz-runtimes``, by their name."""


INSTALLATION = ("modelhooks:0.1.0", "docker.io/metacontrollerio/metacontroller:v4.17.2")
"""The images of ``manifests/base`` and ``manifests/metacontroller``."""


def default_images() -> tuple[str, ...]:
    """Every default image, once, in the order of this module."""
    single = [value for name, value in globals().items() if name.isupper() and isinstance(value, str)]
    return tuple(dict.fromkeys([*single, *LLMAZ_RUNTIMES.values()]))
