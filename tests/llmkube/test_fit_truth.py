"""Estimates beside figures of others: what engines keep for one request, and what publishers' repositories weigh."""

from __future__ import annotations

import pytest

from app.hooks.fit import FitAnswer
from app.workload.fit.gpumodels import gpu_model
from app.workload.fit.memory import GIB, Question, Usage, cache, judge, weights

VLLM = "the KV cache specifications of vLLM 0.33.0 for the model's config.json"
LLAMA = "llama.cpp v0.5.0 with a model of that shape, measured at 8192 or 16384 tokens"
CARD = "the size of the files in the repository"
CONFIG = "the product of the fields in the model's config.json"

CACHES = [
    ("Qwen/Qwen3-8B", 131072, 1, "auto", 18.0, VLLM),
    ("meta-llama/Llama-3.3-70B-Instruct", 131072, 1, "auto", 40.0, CONFIG),
    ("openai/gpt-oss-20b", 131072, 1, "auto", 3.19, VLLM),
    ("openai/gpt-oss-120b", 131072, 1, "auto", 4.79, VLLM),
    ("google/gemma-3-27b-it", 32768, 1, "auto", 6.73, VLLM),
    ("google/gemma-3-27b-it", 131072, 1, "auto", 14.2, VLLM),
    ("deepseek-ai/DeepSeek-V3.1", 131072, 8, "auto", 68.6, VLLM),
    ("deepseek-ai/DeepSeek-V3.2", 131072, 8, "fp8", 46.96, VLLM),
    ("moonshotai/Kimi-K2-Instruct", 131072, 8, "auto", 68.6, VLLM),
    ("zai-org/GLM-4.6", 131072, 8, "auto", 46.0, VLLM),
    ("zai-org/GLM-4.5-Air", 131072, 4, "auto", 23.0, VLLM),
    ("PrimeIntellect/INTELLECT-3", 131072, 1, "auto", 23.0, LLAMA),
    ("Qwen/Qwen3-Next-80B-A3B-Instruct", 131072, 1, "auto", 3.04, VLLM),
    ("Qwen/Qwen3.5-27B", 131072, 1, "auto", 8.18, VLLM),
    ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 131072, 1, "auto", 0.80, VLLM),
    ("microsoft/Phi-4-mini-instruct", 131072, 1, "auto", 16.0, VLLM),
    ("mistralai/Mistral-Small-3.2-24B-Instruct-2506", 131072, 1, "auto", 20.0, VLLM),
    ("mistralai/Mistral-Nemo-Instruct-2407", 65536, 1, "auto", 10.0, CONFIG),
    ("meta-llama/Llama-3.1-8B-Instruct", 131072, 1, "auto", 16.0, CONFIG),
    ("Qwen/Qwen3-0.6B", 16384, 1, "auto", 1.75, LLAMA),
]
"""Repository, tokens, GPUs, format of the cache, and GiB of all GPUs."""
WEIGHTS = [
    ("meta-llama/Meta-Llama-3-8B-Instruct", 16.06),
    ("meta-llama/Llama-3.3-70B-Instruct", 141.1),
    ("meta-llama/Llama-4-Scout-17B-16E-Instruct", 217.3),
    ("Qwen/Qwen3-30B-A3B", 61.1),
    ("Qwen/Qwen3-235B-A22B-FP8", 239.0),
    ("mistralai/Mistral-Small-3.1-24B-Instruct-2503", 48.0),
    ("mistralai/Mixtral-8x7B-Instruct-v0.1", 93.4),
    ("google/gemma-2-9b-it", 18.5),
    ("google/gemma-3-27b-it", 54.9),
    ("microsoft/phi-4", 29.3),
    ("deepseek-ai/DeepSeek-V2-Lite-Chat", 31.4),
    ("deepseek-ai/DeepSeek-R1-0528", 688.6),
    ("moonshotai/Kimi-K2-Instruct", 1029.0),
    ("openai/gpt-oss-20b", 13.76),
    ("openai/gpt-oss-120b", 65.25),
    ("openai/gpt-oss-safeguard-20b", 13.76),
    ("zai-org/GLM-4.5-Air", 213.7),
    ("ibm-granite/granite-3.3-8b-instruct", 16.3),
    ("tiiuae/Falcon3-7B-Instruct", 14.9),
    ("mistralai/Devstral-Small-2-24B-Instruct-2512", 24.9),
]
"""Repository and 10⁹ bytes: the sizes that the Hub shows for the files."""


@pytest.mark.parametrize(("name", "tokens", "gpus", "kept", "truth", "source"), CACHES)
def test_the_cache_of_one_request(name: str, tokens: int, gpus: int, kept: str, truth: float, source: str) -> None:
    """The middle of both ends, or the most, is within a tenth of what an engine keeps, and the most is no less."""
    use = Usage(tokens, (kept, kept), keeps_latent=True, keeps_windows=True)
    size = cache(Question((name,), (name,), gguf=False, use=use, gpus=gpus, memory=80 * GIB))
    assert size.most is not None, source
    assert size.least <= truth * GIB * 1.02
    assert size.most >= truth * GIB * 0.98
    copies = gpus if "latent" in size.how else 1  # one copy is the least
    shown = [size.most, (size.least * copies + size.most) / 2]
    assert min(abs(amount / GIB / truth - 1) for amount in shown) < 0.1, size.how


@pytest.mark.parametrize(("name", "truth"), WEIGHTS)
def test_the_weights_of_a_repository(name: str, truth: float) -> None:
    size = weights(Question((name,), (name,), gguf=False, use=Usage(), gpus=1, memory=80 * GIB))
    assert size.most is not None, CARD
    assert (size.least + size.most) / 2 == pytest.approx(truth * 1e9, rel=0.1), size.how


def served(name: str, gpu: str, gpus: int, tokens: int) -> FitAnswer:
    model = gpu_model(gpu)
    assert model is not None
    use = Usage(tokens, ("auto", "auto"), usual_share=0.92, keeps_latent=True, keeps_windows=True, tensor=None)
    asked = Question((name,), (name,), gguf=False, use=use, gpus=gpus, memory=model.memory, gpu=model)
    return judge(asked).answer


FITS, DOES_NOT, UNKNOWN = FitAnswer.FITS, FitAnswer.DOES_NOT_FIT, FitAnswer.CANNOT_KNOW
STARTS = [
    ("openai/gpt-oss-120b", "H100", 1, 65536, {FITS}),  # the vendor's reference is one GPU of 80 GB
    ("openai/gpt-oss-20b", "T4", 1, 8192, {DOES_NOT}),
    ("openai/gpt-oss-20b", "V100", 4, 8192, {DOES_NOT}),
    ("openai/gpt-oss-20b", "L4", 1, 65536, {FITS}),
    ("openai/gpt-oss-safeguard-20b", "L4", 1, 8192, {FITS}),
    ("openai/gpt-oss-safeguard-120b", "H200", 1, 8192, {FITS}),
    ("mistralai/Mistral-Large-3-675B-Instruct-2512", "H200", 8, 32768, {FITS, UNKNOWN}),
    ("mistralai/Devstral-2-123B-Instruct-2512", "H100", 2, 32768, {FITS}),
    ("mistralai/Devstral-Small-2-24B-Instruct-2512", "RTX 5090", 1, 8192, {FITS, UNKNOWN}),
    ("Qwen/Qwen2.5-7B-Instruct", "L4", 8, 8192, {DOES_NOT}),
    ("Qwen/Qwen2.5-7B-Instruct", "L4", 4, 8192, {FITS}),
    ("microsoft/phi-4", "L4", 4, 8192, {DOES_NOT}),
    ("Qwen/Qwen2.5-0.5B-Instruct", "L4", 4, 8192, {DOES_NOT}),
    ("HuggingFaceTB/SmolLM2-135M-Instruct", "L4", 2, 8192, {DOES_NOT}),
    ("google/gemma-3-27b-it", "H100", 1, 32768, {FITS}),
    ("meta-llama/Llama-3.3-70B-Instruct", "H100", 1, 8192, {DOES_NOT}),
    ("meta-llama/Llama-3.1-405B-Instruct", "H100", 8, 8192, {DOES_NOT}),
    ("RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8", "V100", 1, 8192, {DOES_NOT}),
    ("MiniMaxAI/MiniMax-M2", "H100", 4, 32768, {FITS}),
    ("deepseek-ai/DeepSeek-V3.2", "H200", 8, 65536, {FITS}),
    ("deepseek-ai/DeepSeek-V3.2", "H100", 8, 65536, {DOES_NOT, UNKNOWN}),
    ("deepseek-ai/DeepSeek-V4-Flash", "H200", 4, 131072, {FITS}),
    ("deepseek-ai/DeepSeek-V4-Flash", "H100", 1, 8192, {DOES_NOT}),
    ("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8", "H100", 4, 131072, {FITS}),
    ("google/gemma-4-E4B-it", "L4", 1, 32768, {FITS}),
    ("org/never-seen-70b", "H100", 1, 8192, {UNKNOWN}),
    ("org/never-seen-700b", "H100", 1, 8192, {DOES_NOT}),
]
"""What starts with vLLM, by the vendors' references and by the checks of vLLM 0.33.0."""


@pytest.mark.parametrize(("name", "gpu", "gpus", "tokens", "answers"), STARTS)
def test_what_starts_fits(name: str, gpu: str, gpus: int, tokens: int, answers: set[FitAnswer]) -> None:
    assert served(name, gpu, gpus, tokens) in answers
