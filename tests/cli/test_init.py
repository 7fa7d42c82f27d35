"""``modelhooks init``: manifests to start from, which pass every check."""

from __future__ import annotations

from pathlib import Path

import pytest

from app import images
from tests.cli.files import Command

FILE = "https://huggingface.co/HuggingFaceTB/SmolLM2-360M-Instruct-GGUF/resolve/main/smollm2-360m-instruct-q8_0.gguf"
EMBEDDER = "https://huggingface.co/Qwen/Qwen3-Embedding-0.6B-GGUF/resolve/main/Qwen3-Embedding-0.6B-Q8_0.gguf"
REQUESTS = [
    ("llmkube", FILE, "--parameters", "0.36"),
    ("llmkube", FILE, "--parameters", "0.36", "--gpu", "T4"),
    ("llmkube", "meta-llama/Llama-3.1-8B-Instruct", "--gpu", "L4"),
    ("llmaz", "Qwen/Qwen2.5-7B-Instruct", "--gpu", "A100"),
    ("kserve", "Qwen/Qwen2.5-7B-Instruct", "--gpu", "L4", "--name", "chat"),
    ("kserve", "meta-llama/Llama-3.3-70B-Instruct", "--gpu", "H100"),
    ("llmaz", "a/mine", "--gpu", "L4", "--parameters", "7"),
    ("llmaz", FILE),
    ("kserve", "Qwen/Qwen2.5-0.5B-Instruct"),
    ("kserve", "deepseek-ai/DeepSeek-R1", "--gpu", "H100", "--nodes", "2"),
    ("kserve", "openai/gpt-oss-20b", "--gpu", "L4"),
    ("kserve", "openai/gpt-oss-120b", "--gpu", "H100"),
    ("llmkube", "Qwen/Qwen2.5-7B-Instruct", "--gpu", "V100"),
    ("llmkube", "Qwen/Qwen3-8B", "--gpu", "MI300X"),
    ("kserve", "Qwen/Qwen3-8B", "--gpu", "MI300X"),
    ("kserve", "s3://weights/qwen2.5-7b-instruct", "--gpu", "L4"),
    ("llmaz", "s3://weights/qwen2.5-7b-instruct", "--gpu", "L4"),
    ("llmkube", "s3://weights/qwen2.5-7b-instruct-q4_k_m.gguf", "--gpu", "L4"),
    ("kserve", "pvc://weights/qwen2.5-7b-instruct", "--gpu", "L4"),
    ("llmkube", "pvc://weights/qwen2.5-7b-instruct", "--gpu", "L4"),
    ("llmkube", "pvc://weights/qwen2.5-7b-instruct-q4_k_m.gguf"),
    ("llmkube", "BAAI/bge-m3", "--gpu", "T4"),
    ("llmaz", "Qwen/Qwen3-Embedding-0.6B", "--gpu", "L4"),
    ("kserve", "BAAI/bge-reranker-v2-m3", "--gpu", "L4"),
    ("kserve", "BAAI/bge-small-en-v1.5"),
    ("llmkube", EMBEDDER),
    ("llmkube", EMBEDDER, "--gpu", "T4", "--parameters", "0.6"),
]


@pytest.mark.parametrize("arguments", REQUESTS, ids=[" ".join(request) for request in REQUESTS])
def test_the_manifest_passes_every_check(command: Command, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """It has no warnings, and its comments explain the number of GPUs."""
    result = command("init", *arguments)
    assert result.status == 0
    path = tmp_path / "manifest.yaml"
    path.write_text(result.out)
    checked = command("validate", "--fail-on", "warning", str(path))
    assert (checked.status, checked.out) == (0, "")
    assert result.out.startswith("# ")
    assert ("GiB, and has" in result.out) == ("--gpu" in arguments)
    if "--gpu" in arguments and "--parameters" not in arguments:
        fit = command("fit", str(path), "--gpu", arguments[arguments.index("--gpu") + 1])
        assert "namespace default: fits: " in fit.out


def test_the_number_of_gpus_follows_from_the_model(command: Command) -> None:
    assert "tensor: 4" in command("init", "kserve", "meta-llama/Llama-3.3-70B-Instruct", "--gpu", "H100").out
    playground = command("init", "llmaz", "Qwen/Qwen2.5-7B-Instruct", "--gpu", "L4").out
    assert "nvidia.com/gpu: 1" in playground
    assert f"version: {images.VLLM.partition(':')[2]}" in playground


def test_the_hardware_is_that_of_the_gpu(command: Command) -> None:
    """Labels, resources and images are the vendor's, and old GPUs get a data type that they have."""
    amd = command("init", "kserve", "Qwen/Qwen3-8B", "--gpu", "MI300X").out
    assert "amd.com/gpu.product-name: AMD_Instinct_MI300X_OAM" in amd
    assert (f"image: {images.VLLM_ROCM}" in amd, 'amd.com/gpu: "1"' in amd) == (True, True)
    assert "vendor: amd" in command("init", "llmkube", "Qwen/Qwen3-8B", "--gpu", "MI300X").out
    assert "nvidia.com/gpu.product: Tesla-T4" in command("init", "kserve", "Qwen/Qwen3-8B", "--gpu", "T4").out
    assert "dtype: float16" in command("init", "llmkube", "Qwen/Qwen3-8B", "--gpu", "T4").out
    assert '"--dtype", "half"' in command("init", "llmaz", "Qwen/Qwen3-8B", "--gpu", "V100").out


def test_a_model_that_generates_nothing_is_served_as_what_it_is(command: Command) -> None:
    """Its address, its runner, and no more tokens than it takes."""
    reranker = command("init", "kserve", "BAAI/bge-reranker-v2-m3", "--gpu", "L4").out
    assert (
        '# A reranker: requests go to /v1/rerank.\n        args: ["--runner", "pooling", "--max-model-len"' in reranker
    )
    assert 'args: ["--runner", "pooling"]' in command("init", "kserve", "intfloat/e5-large-v2", "--gpu", "L4").out
    embedder = command("init", "llmkube", "BAAI/bge-m3", "--gpu", "T4").out
    assert "  endpoint: {path: /v1/embeddings}\n  extraArgs: [--runner, pooling]\n" in embedder
    file = command("init", "llmkube", "https://models.example.com/bge-reranker-v2-m3-Q8_0.gguf").out
    assert ("mode: rerank" in file, "uBatchSize: 8192" in file, "# A reranker:" in file) == (True, True, True)
    encoder = str(Path(__file__).parent / "modelconfigs" / "bert.json")
    assert "--runner" in command("init", "kserve", "org/mine", "--gpu", "L4", "--config", encoder).out
    chat = command("init", "kserve", "embedded/Qwen3-8B", "--gpu", "L4").out
    assert ("--runner" in chat, "--max-model-len" in chat) == (False, True)


def test_several_nodes_share_the_layers(command: Command) -> None:
    nodes = command("init", "kserve", "meta-llama/Llama-3.1-405B-Instruct", "--gpu", "H100", "--nodes", "2").out
    assert "  parallelism:\n    tensor: 8\n    pipeline: 2\n  worker: {}\n" in nodes


def test_memory_follows_from_the_model(command: Command) -> None:
    assert "memory: 2Gi" in command("init", "llmkube", FILE, "--parameters", "0.36").out
    large = command("init", "llmkube", "https://models.example.com/mine-Q4_K_M.gguf", "--parameters", "70").out
    assert "memory: 45Gi" in large


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("kserve", "meta-llama/Llama-3.3-70B-Instruct", "--gpu", "T4"), "does not fit into 8 x T4"),
        (("kserve", "openai/gpt-oss-20b", "--gpu", "T4"), "MXFP4 needs compute capability 8.0, and T4 16 GB has 7.5"),
        (
            ("kserve", "Qwen/Qwen2.5-7B-Instruct", "--gpu", "L4", "--gpus", "8"),
            "28 attention heads, which 8 GPUs",
        ),
        (("kserve", "a/b", "--gpu", "Z4"), 'unknown GPU "Z4"; known: RTX 5060 8 GB'),
        (("kserve", FILE, "--gpu", "L4"), "for a GGUF file use llmkube"),
        (("llmaz", FILE, "--gpu", "L4"), "needs an image of your own"),
        (("llmaz", "Qwen/Qwen3-8B", "--gpu", "MI300X"), "needs an image of your own"),
        (("llmaz", "pvc://weights/qwen2.5-7b", "--gpu", "L4"), "needs more with llmaz; see docs/howto/sources.md"),
        (("llmkube", "s3://weights/qwen2.5-7b", "--gpu", "L4"), "needs more with llmkube"),
        (("llmkube", "Qwen/Qwen3-8B", "--gpu", "L4", "--nodes", "2"), "--nodes is for kserve with GPUs"),
        (("llmaz", "a/b"), "--gpu is required"),
        (("llmaz", EMBEDDER), "is an embedding model: use llmkube for a GGUF file; see docs/howto/model-types.md"),
        (
            ("kserve", "openai/whisper-large-v3", "--gpu", "L4", "--parameters", "2"),
            "see docs/howto/model-types.md#speech",
        ),
        (("llmaz", "a/b", "--gpu", "L4"), 'the name "a/b" does not tell the model\'s size; write it as --parameters'),
        (("llmkube", "https://models.example.com/mine.gguf"), "does not tell the model's size"),
        (("llmaz", "not a model", "--gpu", "L4"), "is neither a repository"),
        (("llmaz", "a/b", "--gpu", "L4", "--name", "A_b"), "--name"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_served_is_said(command: Command, arguments: tuple[str, ...], words: str) -> None:
    result = command("init", *arguments)
    assert result.status == 2
    assert words in result.err


def test_a_configuration_tells_the_size_of_a_model_of_any_name(command: Command) -> None:
    """It counts more than the name."""
    config = str(Path(__file__).parent / "modelconfigs" / "llama.json")
    for model in ("org/assistant", "org/assistant-70b"):
        out = command("init", "kserve", model, "--gpu", "L4", "--config", config).out
        assert 'nvidia.com/gpu: "1"' in out
        assert "It needs at most 19.6 GiB, and has 20.7 GiB of 22.5 GiB." in out
    wrong = command("init", "kserve", "org/assistant", "--gpu", "L4", "--config", __file__)
    assert wrong.status == 2
    assert "neither a model's config.json" in wrong.err
