"""Estimates of the memory that a model needs, compared with published numbers; answers only if certain."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from msgspec.structs import replace

from app.hooks.fit import Fit, FitAnswer
from app.kube.base import Json
from app.llmkube.inferenceservice.fitting import fit_with
from app.llmkube.inferenceservice.observed import decode
from app.llmkube.inferenceservice.types import InferenceServiceSpec
from app.settings import Settings
from app.workload.fit.gpumodels import MIB
from app.workload.fit.memory import (
    GIB,
    Amount,
    Question,
    Usage,
    cache,
    indivisible,
    judge,
    parameters,
    quantization,
    too_large,
    weights,
)
from app.workload.fit.models import SHAPES, Shape, shape_of
from tests.contract.recordings import cases
from tests.llmkube.inferenceservice.world import KIND, model, service
from tests.llmkube.objects import model as written
from tests.llmkube.objects import warned
from tests.repository.test_readme import ROOT

GIGABYTE = 10**9
PAGE = (ROOT / "docs" / "fit.md").read_text()
ROWS = re.findall(r"^\| `(.+?)` \| (\S+) \| ([\d.]+ to [\d.]+ GB) \| ([\d.]+) GB \| (.+) \|$", PAGE, re.MULTILINE)


def question(name: str, tokens: int = 4096, **facts: Any) -> Question:
    given = {"names": (name,), "formats": (name,), "gguf": True, "size": 0, "parameters": 0, "shape": None}
    here = {"use": Usage(context=tokens), "gpus": 1, "memory": 24 * GIB, "memory_from": "the test"}
    return Question(**{**given, **here, **facts})


def total(fit: Fit) -> tuple[float, float]:
    """Return the bounds of the memory needed, in bytes, from the answer's row in GiB."""
    text = next(amount for name, amount, _ in fit.rows if name == "needed")
    numbers = [float(number) * GIB for number in re.findall(r"[\d.]+", text)]
    return numbers[0], numbers[-1]


@pytest.mark.parametrize(("name", "tokens", "here", "published", "source"), ROWS, ids=[row[0] for row in ROWS])
def test_published_needs_lie_between_the_two_ends(
    name: str, tokens: str, here: str, published: str, source: str
) -> None:
    """The table of docs/fit.md matches the code. Published numbers are rounded, and some exclude the cache."""
    least, most = total(judge(question(name, int(tokens))))
    assert here == f"{least / GIGABYTE:.1f} to {most / GIGABYTE:.1f} GB"
    without_cache = least if "with" in source else total(judge(question(name, 1)))[0]
    assert without_cache <= float(published) * GIGABYTE * 1.02
    assert float(published) * GIGABYTE <= most


def test_ten_models_are_compared() -> None:
    assert len(ROWS) >= 10
    assert len({row[0] for row in ROWS}) == len(ROWS)


NAMES = [
    ("Llama-3-8B-Instruct-Q4_K_M.gguf", 8.03, 4.92),
    ("Qwen2.5-72B-Instruct-q8_0.gguf", 72.7, 77.3),
    ("gemma-2-27b-it-Q6_K.gguf", 27.2, 22.3),
    ("Phi-3-medium-14B-F16.gguf", 14.0, 28.0),
    ("mixtral-8x22b-v0.1.Q4_K_M.gguf", 140.6, 85.6),
    ("Qwen3-30B-A3B-Q5_K_M.gguf", 30.5, 21.7),
    ("smollm2-1.7b-instruct-q4_0.gguf", 1.71, 0.99),
    ("org/Llama-3.3-70B-Instruct-AWQ", 70.6, 39.8),
    ("org/Llama-3.1-405B-Instruct-FP8", 405.9, 410.0),
    ("HuggingFaceTB/SmolLM2-135M-Instruct", 0.135, 0.269),
    ("Qwen/Qwen2.5-14B-Instruct-1M", 14.8, 29.5),
]
"""Published files: name, parameters and bytes, both in billions."""


@pytest.mark.parametrize(("name", "count", "size"), NAMES)
def test_a_name_tells_weights_between_two_ends(name: str, count: float, size: float) -> None:
    told = parameters([name])
    assert told.most is not None
    assert told.least <= count * 1e9 <= told.most
    bits = quantization([name], gguf=name.endswith("gguf"))
    assert bits.most is not None
    assert told.least * bits.least / 8 <= size * 1e9 <= told.most * bits.most / 8


@pytest.mark.parametrize("name", ["gemma-3n-E4B-it", "phi-4", "v0.8b1", "abc8bit", "0b", "model-v8.bin", ""])
def test_ignores_other_numbers(name: str) -> None:
    assert parameters([name]).most is None


def test_shapes_by_name() -> None:
    assert shape_of(["https://x/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf"]) == shape_of(["org/llama-3.1-8b"])
    assert shape_of(["Qwen/Qwen2.5-Coder-14B-Instruct"]) == shape_of(["qwen2.5-14b-instruct"])
    assert shape_of(["Qwen/Qwen3-8B-FP8"]) == shape_of(["qwen3-8b"]) is not None
    assert shape_of(["Qwen/Qwen2.5-VL-7B-Instruct", "org/llama-3.1-80b", "codellama-34bx"]) is None


def test_a_model_made_from_a_quantized_one_has_that_or_16_bits() -> None:
    published, tuned = shape_of(["openai/gpt-oss-20b"]), shape_of(["org/gpt-oss-20b-medical"])
    assert published is not None
    assert published.bits is not None
    assert published.format == "mxfp4"
    assert tuned == replace(published, bits=(published.bits[0], 16.1), format="")


def test_a_model_with_a_longer_context_has_the_shape_of_the_others() -> None:
    for name in ("Qwen/Qwen3-8B-Instruct-2507-FP8", "Qwen/Qwen2.5-7B-Instruct-1M", "org/LLaMA-2-7B-32K"):
        shape = shape_of([name])
        assert shape is not None
        assert (shape.context, shape.layers > 0) == (0, True)


@pytest.mark.parametrize("repository", SHAPES)
def test_each_row_is_found_by_its_repository(repository: str) -> None:
    assert shape_of([repository]) == shape_of([f"hf://{repository}"]) == SHAPES[repository]
    assert shape_of([f"s3://models/{repository.partition('/')[2]}/"]) == SHAPES[repository]


@pytest.mark.parametrize(
    "name",
    [
        "deepseek-ai/DeepSeek-V3.3",
        "microsoft/Phi-4-mini-flash-reasoning",
        "microsoft/Phi-4-multimodal-instruct",
        "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B",
        "meta-llama/Llama-3.2-11B-Vision-Instruct",
        "Qwen/Qwen3-Next-160B",
        "Qwen/Qwen3.7-9B",
        "google/gemma-3n-E4B-it",
        "org/Llama-3.1-8B-LoRA",
        "org/deepseek-r1-qwen-14b-w4a16",
    ],
)
def test_models_called_after_another_are_not_taken_for_it(name: str) -> None:
    assert shape_of([name]) is None


def test_other_spellings_of_a_name() -> None:
    assert (
        shape_of(["oci://quay.io/org/modelcar-granite-3-1-8b-starter-v1"])
        == SHAPES["ibm-granite/granite-3.1-8b-instruct"]
    )
    assert shape_of(["org/Hermes-llama3.1-8b"]) == SHAPES["meta-llama/Llama-3.1-8B"]


REPOSITORIES = [
    ("meta-llama/Meta-Llama-3-8B-Instruct", 16.06, 131072),
    ("meta-llama/Llama-3.3-70B-Instruct", 141.1, 327680),
    ("meta-llama/Llama-4-Scout-17B-16E-Instruct", 217.3, 196608),
    ("RedHatAI/Llama-4-Scout-17B-16E-Instruct-FP8-dynamic", 111.0, 196608),
    ("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w8a16", 9.1, 131072),
    ("nvidia/Llama-3.1-405B-Instruct-FP4", 230.0, 516096),
    ("Qwen/Qwen3-30B-A3B", 61.1, 98304),
    ("Qwen/Qwen3-235B-A22B-FP8", 239.0, 192512),
    ("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int8", 77.0, 327680),
    ("mistralai/Mistral-Small-3.1-24B-Instruct-2503", 48.0, 163840),
    ("mistralai/Mixtral-8x7B-Instruct-v0.1", 93.4, 131072),
    ("google/gemma-2-9b-it", 18.5, 344064),
    ("google/gemma-3-27b-it", 54.9, 507904),
    ("microsoft/phi-4", 29.3, 204800),
    ("deepseek-ai/DeepSeek-V2-Lite-Chat", 31.4, 31104),
    ("deepseek-ai/DeepSeek-R1-0528", 674.0, 70272),
    ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", 141.1, 327680),
    ("moonshotai/Kimi-K2-Instruct", 1029.0, 70272),
    ("openai/gpt-oss-20b", 13.76, 49152),
    ("openai/gpt-oss-120b", 65.25, 73728),
    ("unsloth/gpt-oss-20b-BF16", 41.8, 49152),
    ("zai-org/GLM-4.5-Air", 213.7, 188416),
    ("ibm-granite/granite-3.3-8b-instruct", 16.3, 163840),
    ("tiiuae/Falcon3-7B-Instruct", 14.9, 114688),
    ("CohereLabs/c4ai-command-r-08-2024", 64.6, 163840),
    ("HuggingFaceTB/SmolLM3-3B", 6.15, 73728),
    ("BAAI/bge-m3", 1.14, 0),
    ("intfloat/multilingual-e5-large", 1.12, 0),
]
"""Repositories with the gigabytes of their weights, and the bytes of cache of one token in 16 bits, all layers full."""


@pytest.mark.parametrize(("name", "size", "token"), REPOSITORIES, ids=[row[0] for row in REPOSITORIES])
def test_what_repositories_need(name: str, size: float, token: int) -> None:
    use = Usage(context=1000, keeps_latent=True)
    asked = question(name, gguf=False, use=use)
    weight, kept = weights(asked), cache(asked)
    assert weight.most is not None
    assert weight.least <= size * 1e9 * 1.01
    assert size * 1e9 <= weight.most * 1.01
    assert kept.most == pytest.approx(token * 1000)
    assert kept.least <= token * 1000


FILES = [
    ("unsloth/gpt-oss-20b-GGUF/gpt-oss-20b-Q2_K.gguf", 11.5),
    ("unsloth/gpt-oss-20b-GGUF/gpt-oss-20b-Q8_0.gguf", 12.1),
    ("ggml-org/gpt-oss-120b-GGUF/gpt-oss-120b-mxfp4-00001-of-00003.gguf", 63.4),
    ("unsloth/DeepSeek-R1-GGUF/DeepSeek-R1-UD-IQ1_S.gguf", 140.0),
    ("unsloth/DeepSeek-R1-GGUF/DeepSeek-R1-UD-Q2_K_XL.gguf", 212.0),
    ("unsloth/Qwen3-8B-GGUF/Qwen3-8B-UD-Q4_K_XL.gguf", 5.14),
    ("bartowski/gemma-3-1b-it-GGUF/gemma-3-1b-it-Q4_K_M.gguf", 0.806),
    ("bartowski/Qwen2.5-0.5B-Instruct-GGUF/Qwen2.5-0.5B-Instruct-Q4_K_M.gguf", 0.398),
    ("models/llama_3.1_8b_instruct_q4_k_m.gguf", 4.92),
]


@pytest.mark.parametrize(("name", "size"), FILES, ids=[row[0].rpartition("/")[2] for row in FILES])
def test_what_files_need(name: str, size: float) -> None:
    weight = weights(question(name))
    assert weight.most is not None
    assert weight.least <= size * 1e9 * 1.01
    assert size * 1e9 <= weight.most * 1.01


def test_windows_limit_the_least_and_latent_vectors_are_copied() -> None:
    windowed = cache(question("google/gemma-3-27b-it", 131072, gguf=False))
    assert windowed.least == (10 * 131072 + 52 * 1024) * 16 * 128 * 4
    assert windowed.most == 62 * 131072 * 16 * 128 * 4
    assert "52 layers may keep 1024 tokens only" in windowed.how
    latent = question("deepseek-ai/DeepSeek-V3", 4096, use=Usage(4096, keeps_latent=True), gpus=8)
    assert (cache(latent).least, cache(latent).most) == (61 * 576 * 2 * 4096, 61 * 576 * 2 * 4096 * 8)
    file = cache(question("DeepSeek-V3-Q4_K_M.gguf", 4096))
    assert (file.least, file.most) == (61 * 576 * 2 * 4096, None)


def test_the_arithmetic_of_the_cache() -> None:
    """2 x 32 layers x 8 heads x 128 values x 2 bytes are 128 KiB per token of Llama 3.1 8B, as published."""
    exact = question("x", 131072, size=GIB, shape=Shape(32, 8, 128))
    row = judge(exact).rows[1]
    assert row[1] == "16.0 GiB"
    halved = judge(question("x", 131072, size=GIB, shape=Shape(32, 8, 128), use=Usage(131072, ("q8_0", "q4_0")))).rows[
        1
    ]
    assert halved[1] == "6.5 GiB"


HEADS, LATENT = Shape(32, 8, 128), Shape(61, 1, 576, is_latent=True)
WINDOWED, PLAIN = Shape(32, 8, 128, windowed=16, window=1024), "4096 tokens x 32 layers x 8 heads x 128 values"
LESS_ROOM = "; with less room, the server takes fewer tokens or does not start: set a context length"
IN_WORDS = [
    (HEADS, Usage(4096), f"{PLAIN}, keys and values in f16"),
    (HEADS, Usage(4096, ("q8_0", "q4_0")), f"{PLAIN}, keys and values in q8_0 and q4_0"),
    (
        replace(HEADS, ends=(0, 0.75)),
        Usage(4096),
        "4096 tokens x 32 layers x 8 heads x up to 96 values, keys and values in f16",
    ),
    (
        LATENT,
        Usage(4096, ("bf16", "f16"), keeps_latent=True),
        "4096 tokens x 61 layers x 576 latent values in bf16; each GPU may have a copy",
    ),
    (WINDOWED, Usage(4096), f"{PLAIN}, keys and values in f16; 16 layers may keep 1024 tokens only"),
    (WINDOWED, Usage(4096, keeps_windows=True), f"{PLAIN}, keys and values in f16; 16 layers keep 1024 tokens only"),
    (replace(WINDOWED, window=4096), Usage(4096), f"{PLAIN}, keys and values in f16"),
    (
        replace(HEADS, state=3 * MIB),
        Usage(4096),
        f"{PLAIN}, keys and values in f16; the other layers keep 3 MiB for each request",
    ),
    (
        replace(HEADS, context=4096),
        Usage(),
        f"{PLAIN}, keys and values in f16{LESS_ROOM}",
    ),
]


@pytest.mark.parametrize(("shape", "use", "words"), IN_WORDS)
def test_the_arithmetic_of_the_cache_is_told_in_words(shape: Shape, use: Usage, words: str) -> None:
    assert cache(question("x", shape=shape, use=use)).how == words


@pytest.mark.parametrize(
    ("queries", "gpus", "said"),
    [(0, 2, ""), (6, 1, ""), (6, 3, ""), (6, 2, "3 heads for keys and values"), (7, 2, "7 attention heads")],
)
def test_heads_are_divided_among_gpus_where_there_are_some(queries: int, gpus: int, said: str) -> None:
    asked_for = question("x", shape=Shape(1, 3, 64, queries=queries), use=Usage(4096, tensor=None))
    why = indivisible(replace(asked_for, gguf=False), gpus)
    assert said in why
    assert bool(said) is bool(why)


@pytest.mark.parametrize(
    ("resource", "said"), [("nvidia.com/gpu", ""), ("nvidia.com/gpu.shared", "how much memory a nvidia.com/gpu.shared")]
)
def test_a_part_of_a_gpu_is_named_where_its_memory_is_not_known(resource: str, said: str) -> None:
    why = judge(question("x", memory=0, resource=resource)).why
    assert said in why
    assert bool(said) is ("how much memory" in why)


def test_gpus_of_claims_are_not_missing() -> None:
    assert "no GPU is requested" in judge(question("x", gpus=0)).why
    fit = asked(hardware={"gpu": {"resourceClaims": [{"name": "g", "resourceClaimName": "c"}]}})
    assert fit.answer is FitAnswer.CANNOT_KNOW
    assert "only the ResourceClaims say which GPUs there are" in fit.why


def answer(**facts: Any) -> FitAnswer:
    return judge(question("x", **{"shape": Shape(32, 8, 128), "size": 10 * GIB, **facts})).answer


def test_a_model_that_needs_all_of_the_memory_fits() -> None:
    """Weights, cache, 2.5 GiB for the GPU and a twentieth of the weights: not with one byte less."""
    asked_for = question("x", shape=Shape(32, 8, 128), size=10 * GIB)
    weight, copies = weights(asked_for).most, cache(asked_for).most
    assert weight is not None
    assert copies is not None
    needed = weight * 21 // 20 + copies + 5 * GIB // 2
    assert answer(memory=needed) is FitAnswer.FITS
    assert answer(memory=needed - 1) is not FitAnswer.FITS


def test_a_need_of_which_both_ends_are_known_ends_with_what_there_is() -> None:
    """Where one end is not known, the answer says why."""
    size: dict[str, Any] = {"shape": Shape(32, 8, 128), "size": 22 * GIB}
    assert judge(question("x", **size)).why.endswith(", and has 24.0 GiB")
    assert judge(question("x", **{**size, "size": 0})).why.endswith("nor a number of parameters is known")


@pytest.mark.parametrize(
    ("use", "row", "capacity"),
    [
        (Usage(4096, share=0.5), "50% of it", "12.0 GiB of 24.0 GiB"),
        (Usage(4096, usual_share=0.5), "50% of it, the server's default", "12.0 GiB of 24.0 GiB"),
        (Usage(4096, share=0.75, usual_share=0.5), "75% of it", "18.0 GiB of 24.0 GiB"),
        (Usage(4096, share=1), "100% of it", "24.0 GiB of 24.0 GiB"),
        (Usage(4096), "", "24.0 GiB"),
    ],
)
def test_a_server_may_use_a_share_of_the_memory(use: Usage, row: str, capacity: str) -> None:
    fit = judge(question("x", shape=Shape(32, 8, 128), size=GIB, use=use))
    assert fit.why == f"it needs at most 4.0 GiB, and has {capacity}"
    assert [*fit.rows[5:]] == ([("usable", f"{capacity[:8]}", row)] if row else [])


SEVERAL = {
    "meta-llama/Llama-3.1-8B": Shape(32, 8, 128, context=131072, queries=32),
    "google/gemma-3-27b-it": Shape(62, 16, 128, context=131072, queries=32, windowed=52, window=1024),
    "google/gemma-4-26B-A4B-it": Shape(
        30, 2, 512, context=262144, queries=16, windowed=25, window=1024, windowed_heads=8, windowed_width=256
    ),
    "openai/gpt-oss-20b": Shape(
        24, 8, 64, context=131072, queries=64, windowed=12, window=128, bits=(5.2, 5.3), format="mxfp4"
    ),
    "deepseek-ai/DeepSeek-V3.2-Exp": Shape(
        61, 1, 576, context=163840, queries=128, is_latent=True, index=132, bits=(8.0, 8.25), format="fp8"
    ),
    "Qwen/Qwen3-Next-80B-A3B-Instruct": Shape(12, 2, 256, context=262144, queries=16, state=76 * MIB),
    "BAAI/bge-m3": Shape(0, 0, 0, context=8192, queries=16),
}


@pytest.mark.parametrize("repository", SEVERAL)
def test_a_row_of_the_table_is_a_shape(repository: str) -> None:
    """The number of weights is within a hundredth of a single one in the table."""
    assert replace(SHAPES[repository], billions=(0, 0)) == SEVERAL[repository]
    assert SHAPES["meta-llama/Llama-2-7b-hf"].billions == (6.74 * 0.99, 6.74 * 1.01)
    assert SHAPES["google/gemma-3-27b-it"].billions == (27.0, 27.44)
    assert SHAPES["deepseek-ai/DeepSeek-V4-Flash"].ends == (0.06593, 0.1319)


@pytest.mark.parametrize(
    ("count", "how"),
    [(135 * 10**6, "0.14B"), (10**9, "1.00B"), (1_020_000_000, "1.0B"), (8 * 10**9, "8.0B")],
)
def test_small_models_are_counted_with_two_digits(count: int, how: str) -> None:
    assert weights(question("x-Q8_0", parameters=count)).how == f"{how} parameters, Q8_0, 8.5 to 8.6 bits each"


def test_an_encoder_has_no_cache() -> None:
    assert cache(question("x", shape=Shape(0, 0, 0))) == Amount(0, 0, "none: the model is an encoder")


def test_only_certain_answers() -> None:
    assert answer() is FitAnswer.FITS
    assert answer(size=30 * GIB) is FitAnswer.DOES_NOT_FIT
    assert answer(size=22 * GIB) is FitAnswer.CANNOT_KNOW
    assert answer(size=30 * GIB, gpus=2) is FitAnswer.FITS
    assert answer(gpus=0) is FitAnswer.CANNOT_KNOW
    assert answer(memory=0) is FitAnswer.CANNOT_KNOW
    assert answer(size=0) is FitAnswer.CANNOT_KNOW
    assert answer(shape=None) is FitAnswer.CANNOT_KNOW
    assert answer(shape=None, size=30 * GIB) is FitAnswer.DOES_NOT_FIT
    assert answer(size=30 * GIB, use=Usage(elsewhere=("experts",))) is FitAnswer.CANNOT_KNOW
    assert answer(use=Usage(context=4096, more=("a draft",))) is FitAnswer.CANNOT_KNOW
    assert answer(size=20 * GIB, use=Usage(context=4096, share=0.5)) is FitAnswer.DOES_NOT_FIT
    assert answer(size=22 * GIB, use=Usage(context=4096, usual_share=0.5)) is FitAnswer.CANNOT_KNOW
    assert answer(size=30 * GIB, gpus=2, use=Usage(context=4096, gpus=1)) is FitAnswer.DOES_NOT_FIT
    assert answer(use=Usage(unknown="own")) is FitAnswer.CANNOT_KNOW
    assert answer(use=Usage(context=4096, cache=("odd", "odd"))) is FitAnswer.FITS


CARD: Json = {"accelerator": "cuda", "gpu": {"count": 1, "memory": "24Gi"}}
LARGE = "https://example.com/Llama-3.1-70B-Q4_K_M.gguf"


def asked(
    source: str = LARGE, status: Json | None = None, hardware: Json = CARD, files: list[str] | None = None, **spec: Any
) -> Fit:
    related = model(source=source, hardware=hardware, status=status)
    related["spec"] |= {"files": files} if files else {}
    related_ = decode(_related(related))
    assert related_ is not None
    parsed = InferenceServiceSpec.model_validate(service(**spec)["spec"])
    return fit_with(parsed, related_, Settings())


def _related(document: Json) -> Any:
    request = {
        "parent": service(),
        "children": {},
        "related": {"Model.inference.llmkube.dev/v1alpha1": {"ns1/m": document}},
    }
    related = KIND.decoder.decode(json.dumps(request).encode()).related
    assert related is not None
    return related.models["ns1/m"]


@pytest.mark.parametrize("runtime", ["llamacpp", "vllm", "sglang", "tgi"])
def test_a_model_that_is_too_large(runtime: str) -> None:
    fit = asked(runtime=runtime)
    assert fit.answer is FitAnswer.DOES_NOT_FIT
    assert "and has 24.0 GiB" in fit.why or "GiB of 24.0 GiB" in fit.why


@pytest.mark.parametrize(
    "spec",
    [
        {"moeCPUOffload": True},
        {"moeCPULayers": 4},
        {"tensorOverrides": ["exps=CPU"]},
        {"noKvOffload": True},
        {"extraArgs": ["-ngl", "20"]},
        {"env": [{"name": "GGML_CUDA_ENABLE_UNIFIED_MEMORY", "value": "1"}]},
        {"command": ["own"]},
        {"runtime": "vllm", "vllmConfig": {"cpuOffloadGB": 20}},
        {"runtime": "vllm", "extraArgs": ["--cpu-offload-gb=20"]},
        {"runtime": "sglang", "extraArgs": ["--cpu-offload-gb", "20"]},
        {"runtime": "llamacpp-router"},
        {"runtime": "generic", "image": "a:1"},
    ],
)
def test_nobody_can_know(spec: Json) -> None:
    """Part of the model may be outside GPU memory, or the server is unknown."""
    assert asked(**spec).answer is FitAnswer.CANNOT_KNOW


def test_what_the_model_says_of_itself_counts() -> None:
    told = {"architecture": "gemma2", "layerCount": 46, "headCount": 32, "embeddingSize": 4608, "contextLength": 8192}
    status = {"sourceContentLength": 4 * GIB, "gguf": {**told, "keyLength": 128, "valueLength": 128}}
    fit = asked("https://example.com/model.gguf", status)
    assert fit.rows[0][1:] == ("4.0 GiB", "the size of the file")
    assert fit.answer is FitAnswer.FITS
    larger = asked("https://example.com/model.gguf", {**status, "sourceContentLength": 40 * GIB})
    assert larger.answer is FitAnswer.DOES_NOT_FIT
    part = asked("https://example.com/m-00001-of-00003.gguf", status)
    assert part.answer is FitAnswer.CANNOT_KNOW
    several = _staged_model()
    assert several.answer is FitAnswer.CANNOT_KNOW
    layers = {**CARD, "gpu": {**CARD["gpu"], "layers": 10}}
    assert asked(hardware=layers).answer is FitAnswer.CANNOT_KNOW
    assert asked(hardware={"accelerator": "metal"}).answer is FitAnswer.CANNOT_KNOW


def _staged_model() -> Fit:
    """Return the fit of a Model with two files whose status has the size of one."""
    related = model(source="org/repo", files=["a.gguf", "b.gguf"], hardware=CARD, status={"sourceContentLength": GIB})
    related_ = decode(_related(related))
    assert related_ is not None
    return fit_with(InferenceServiceSpec.model_validate(service(contextSize=4096)["spec"]), related_, Settings())


def test_the_width_of_a_head_is_that_of_the_header() -> None:
    """Other heads are wider or narrower than the embedding's share, 160 values here."""
    told = {"architecture": "llama", "layerCount": 40, "headCount": 32, "headCountKv": 8, "embeddingSize": 5120}
    widths = {"keyLength": 128, "valueLength": 128}
    answers = [
        asked("https://example.com/model.gguf", {"gguf": {**told, **keys}}, contextSize=98304).rows[1]
        for keys in ({}, widths)
    ]
    assert [row[1] for row in answers] == ["18.8 GiB", "15.0 GiB"]
    assert "8 heads x 128 values" in answers[1][2]


def test_a_width_that_was_not_reported_is_no_upper_end() -> None:
    """Files of some architectures have heads three times as wide as the embedding's share."""
    told = {"architecture": "glm4moe", "layerCount": 46, "headCount": 96, "headCountKv": 8, "embeddingSize": 4096}
    status = {"sourceContentLength": 40 * GIB, "gguf": told}
    card = {**CARD, "gpu": {**CARD["gpu"], "memory": "60Gi"}}
    fit = asked("https://example.com/assistant.gguf", status, hardware=card, contextSize=131072)
    assert fit.answer is FitAnswer.CANNOT_KNOW
    assert fit.rows[1][1] == "0.0 to 30.2 GiB"


def test_the_header_of_a_plain_file_is_exact() -> None:
    """The header has the number of key-value heads and of parameters."""
    told = {"architecture": "llama", "layerCount": 32, "headCount": 32, "headCountKv": 8, "embeddingSize": 4096}
    status = {"gguf": {**told, "parameterCount": 8_030_000_000, "quantization": "Q8_0"}}
    fit = asked("https://example.com/model.gguf", status, contextSize=8192)
    assert [row[1] for row in fit.rows[:2]] == ["7.9 to 8.1 GiB", "1.0 GiB"]


def test_models_that_are_clearly_too_large_are_warned_of_at_apply() -> None:
    """The name is enough; layers in host memory and an absent number of GPUs cause no warning."""
    assert too_large((LARGE,), (LARGE,), gguf=True, gpus=1, memory=24 * GIB)
    assert too_large((LARGE,), (LARGE,), gguf=True, gpus=2, memory=24 * GIB) == ""
    assert too_large(("x",), ("x",), gguf=True, gpus=1, memory=1) == ""
    kept: Json = {**CARD, "gpu": {**CARD["gpu"], "layers": 20}}
    for hardware, count in ((CARD, 1), (kept, 0), ({"gpu": {"memory": "24Gi"}}, 0)):
        assert len([text for text in warned(written(LARGE, hardware=hardware)) if "the weights need" in text]) == count


def test_who_says_how_large_a_gpu_is() -> None:
    bare: Json = {"accelerator": "cuda", "gpu": {"count": 1}}
    assert asked(hardware=bare).answer is FitAnswer.CANNOT_KNOW
    assert "hardware.gpu.memory" in asked(hardware=bare).why
    by_spec = asked(hardware=bare, resources={"gpuMemory": "24Gi"})
    assert (by_spec.answer, by_spec.rows[-2][2]) == (FitAnswer.DOES_NOT_FIT, "1 x 24.0 GiB, resources.gpuMemory")


def test_every_upstream_sample_fits() -> None:
    """Upstream's samples do run, so none may be reported as too large."""
    for case in cases("llmkube"):
        if case["class"] != "a":
            continue
        models = {d["metadata"]["name"]: d for d in case["objects"] if d["kind"] == "Model"}
        for document in case["objects"]:
            related = models.get(document.get("spec", {}).get("modelRef", ""))
            related_ = decode(_related({**related, "status": {}})) if related else None
            if document["kind"] == "InferenceService" and related_ is not None:
                fit = fit_with(InferenceServiceSpec.model_validate(document["spec"]), related_, Settings())
                assert fit.answer is not FitAnswer.DOES_NOT_FIT, (case["name"], fit)


PARTS = [f"m-70b-Q8_0-{number:05d}-of-00005.gguf" for number in range(1, 6)]


def test_all_parts_of_a_file_count() -> None:
    """The header of part 1 counts the weights of part 1; the download reports the bytes of all."""
    told = {
        "architecture": "llama",
        "layerCount": 80,
        "headCount": 64,
        "embeddingSize": 8192,
        "parameterCount": 70 * 10**9,
    }
    fit = asked("hf://org/repo", {"sourceContentLength": 216 * 10**9, "gguf": told}, files=PARTS)
    assert fit.rows[0][1:] == ("201.2 GiB", "the size of the file")
    assert fit.answer is FitAnswer.DOES_NOT_FIT
    single = asked(f"https://h/{PARTS[0]}", {"sourceContentLength": 36 * 10**9, "gguf": told})
    assert "by the name" in single.rows[0][2] or "70.5B parameters" in single.rows[0][2]


@pytest.mark.parametrize("command", [["llama-server"], ["/app/llama-server"]])
def test_the_program_of_the_runtime_may_be_named(command: list[str]) -> None:
    """Its arguments are the generated ones."""
    assert asked(command=command).answer is FitAnswer.DOES_NOT_FIT
    assert asked(command=["sh", "-c", "exec llama-server -m /models/m"]).answer is FitAnswer.DOES_NOT_FIT


@pytest.mark.parametrize(
    "script", ["python server.py", "llama-server -m a || llama-server -m b", "llama-server --hf-repo org/other", "'"]
)
def test_a_script_that_may_serve_something_else_is_not_judged(script: str) -> None:
    assert "starts another server" in asked(command=["sh", "-c", script]).why


def test_a_script_may_pass_the_generated_arguments_on() -> None:
    """The script has a name behind it, without which the first argument would be lost."""
    command = ["sh", "-c", 'exec llama-server "$@"']
    assert asked(command=[*command, "--"], contextSize=1024).rows == asked(contextSize=1024).rows
    assert "starts another server" in asked(command=command).why
    assert "starts another server" in asked(command=["sh", "-c", 'llama-server "$@" -c 99999', "--"]).why


def test_words_that_only_a_script_knows_are_not_counted() -> None:
    fit = asked(command=["sh", "-c", "llama-server -m /models/m $MORE"])
    assert fit.answer is FitAnswer.CANNOT_KNOW
    assert "words that only the running script knows" in fit.why


def test_the_width_of_known_models_counts() -> None:
    """The quotient of embedding and heads, 160, is not the width of Mistral Small's heads, 128."""
    told = {
        "architecture": "llama",
        "layerCount": 40,
        "headCount": 32,
        "headCountKv": 8,
        "embeddingSize": 5120,
        "contextLength": 131072,
    }
    name = "https://h/Mistral-Small-3.2-24B-Instruct-2506-Q4_K_M.gguf"
    status = {"sourceContentLength": 14_333_908_672, "gguf": told}
    fit = asked(name, status, contextSize=98304)
    assert "8 heads x 128 values" in fit.rows[1][2]
