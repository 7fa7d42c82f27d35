"""``modelhooks fit --config``: what files of a model tell counts, whatever the model is called."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from app.kube.base import Json
from tests.cli.files import Command, model, service
from tests.cli.test_fit import kserve
from tests.llmkube.gguf import ARRAY, BOOL, F32, STRING, U32, gguf, llama, text

CONFIGS = Path(__file__).parent / "modelconfigs"
LLAMA, GPT_OSS, DEEPSEEK, HYBRID = (
    json.loads((CONFIGS / f"{name}.json").read_text()) for name in ("llama", "gpt-oss", "deepseek", "hybrid")
)
"""The keys that decide, of the configurations of models with other kinds of layers each."""


def asked(command: Command, *contents: Any, args: tuple[str, ...] = ("--max-model-len", "8192"), gpu: str = "") -> str:
    """Return the answer about a service of an unknown model, with files of that model."""
    item = kserve(*args)
    item["spec"]["model"] = {"uri": "hf://org/assistant", "name": "assistant"}
    options = ["--gpu", gpu] if gpu else []
    for number, content in enumerate(contents):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        path = Path(command.file("model.yaml", item)).with_name(f"{number}.bin")
        path.write_bytes(body)
        options += ["--config", str(path)]
    result = command("fit", command.file("model.yaml", item), *options)
    return result.out + result.err


def test_without_a_file_nothing_is_known(command: Command) -> None:
    assert "cannot know: it needs an amount that is not known" in asked(command)


@pytest.mark.parametrize(
    ("config", "weights", "cached"),
    [
        (LLAMA, "14.7 to 15.4 GiB", "1.0 GiB "),
        ({**LLAMA, "quantization_config": {"quant_method": "fp8"}}, "7.3 to 9.5 GiB", "1.0 GiB "),
        ({**LLAMA, "quantization_config": {"quant_method": "awq", "bits": 4}}, "3.7 to 7.6 GiB", "1.0 GiB "),
        ({"text_config": LLAMA}, "14.7 to 18.4 GiB", "1.0 GiB "),
        (GPT_OSS, "10.0 to 14.4 GiB", "0.2 to 0.4 GiB"),
        (DEEPSEEK, "611.5 to 693.1 GiB", "0.5 GiB "),
        ({**LLAMA, "num_key_value_heads": 2, "head_dim": 256}, "16.4 to 17.1 GiB", "0.5 GiB "),
    ],
    ids=["llama", "FP8", "AWQ", "with images", "windows and MXFP4", "latent", "other heads"],
)
def test_a_configuration_tells_weights_and_cache(command: Command, config: Json, weights: str, cached: str) -> None:
    answer = asked(command, config)
    lines = {line[:18].strip(): line[19:] for line in answer.splitlines() if line.startswith("  ")}
    assert lines["weights"].startswith(weights)
    assert lines["key-value cache"].startswith(cached)


def test_layers_with_a_state_keep_no_cache(command: Command) -> None:
    answer = asked(command, HYBRID)
    assert "8192 tokens x 12 layers x 2 heads x 256 values" in answer
    assert "the other layers keep 74 MiB for each request" in answer


WITHOUT_HEADS = {key: value for key, value in LLAMA.items() if key != "num_key_value_heads"}


@pytest.mark.parametrize(
    ("config", "cached"),
    [
        ({**WITHOUT_HEADS, "num_attention_groups": 8}, "1.0 GiB "),
        ({**WITHOUT_HEADS, "n_kv_heads": 8}, "1.0 GiB "),
        ({**WITHOUT_HEADS, "attn_config": {"kv_n_heads": 8}}, "1.0 GiB "),
        ({**LLAMA, "attn_type_list": [0, 0, 0, 1] * 8}, "0.2 GiB "),
        ({**LLAMA, "attn_layer_indices": [9, 18, 27, 31]}, "0.1 GiB "),
        ({**LLAMA, "attn_layer_period": 8, "mamba_d_state": 16}, "0.1 GiB "),
        ({**LLAMA, "use_cla": True, "cla_share_factor": 2}, "0.5 to 1.0 GiB"),
        ({**LLAMA, "model_type": "rwkv7"}, "0.0 to 1.0 GiB"),
    ],
    ids=["groups", "short", "nested", "types", "indices", "period", "shared", "no attention"],
)
def test_heads_and_layers_with_a_cache_have_several_keys(command: Command, config: Json, cached: str) -> None:
    assert f"key-value cache  {cached}" in asked(command, config)


@pytest.mark.parametrize(
    "keys",
    [
        {"moe_num_experts": [64, 64], "moe_intermediate_size": [1536, 512]},
        {"experts_of_each_layer": 64},
        {"attn_type_list": [0, 0, 0, 1] * 8},
    ],
    ids=["list", "another key", "linear attention"],
)
def test_weights_that_a_configuration_does_not_tell_are_not_known(command: Command, keys: Json) -> None:
    """The model would fit by its other keys."""
    answer = asked(command, {**LLAMA, **keys}, gpu="H200")
    assert "cannot know" in answer
    assert "weights          an amount that is not known" in answer


def test_weights_loaded_in_8_bits_are_half(command: Command) -> None:
    config = {**LLAMA, "quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True}}
    assert "weights          7.3 to 9.5 GiB" in asked(command, config)


def test_an_index_tells_the_weights(command: Command) -> None:
    index = {"metadata": {"total_size": 20 * 2**30}, "weight_map": {"a": "model-00001-of-00002.safetensors"}}
    assert "weights          20.0 GiB" in asked(command, index)
    assert "fits: it needs at most" in asked(command, LLAMA, index, gpu="A100-80GB")


@pytest.mark.parametrize(
    ("metadata", "weights"),
    [
        ({"total_size": str(20 * 2**30)}, "20.0 GiB"),
        ({"total_size": 20.0 * 2**30}, "20.0 GiB"),
        ({"total_size": -1}, "an amount that is not known"),
        ({"total_size": "many"}, "an amount that is not known"),
        ({"total_size": 1e400}, "an amount that is not known"),
        ({}, "an amount that is not known"),
        (None, "an amount that is not known"),
    ],
)
def test_an_index_may_write_the_size_in_other_ways(command: Command, metadata: Json | None, weights: str) -> None:
    assert f"weights          {weights}" in asked(command, {"metadata": metadata, "weight_map": {"a": "b"}})


def test_a_format_needs_its_gpu(command: Command) -> None:
    assert "does not fit: MXFP4 needs compute capability 8.0, and T4 16 GB has 7.5" in asked(command, GPT_OSS, gpu="T4")


def test_heads_that_gpus_cannot_share_do_not_fit(command: Command) -> None:
    uneven = {**LLAMA, "num_attention_heads": 28, "num_key_value_heads": 4}
    item = kserve("--tensor-parallel-size", "8", gpus="8")
    item["spec"]["model"] = {"uri": "hf://org/assistant", "name": "assistant"}
    path = Path(command.file("model.yaml", item)).with_name("config.json")
    path.write_text(json.dumps(uneven))
    out = command("fit", command.file("model.yaml", item), "--config", str(path)).out
    assert "does not fit: it has 28 attention heads, which 8 GPUs cannot share" in out


def test_a_window_of_which_the_layers_are_not_known_is_a_range(command: Command) -> None:
    answer = asked(command, {**LLAMA, "model_type": "new_model", "sliding_window": 128})
    assert "key-value cache  0.0 to 1.0 GiB" in answer


def written(command: Command, **files: bytes) -> dict[str, str]:
    folder = Path(command.file("service.yaml", model(), service({"contextSize": 4096}))).parent
    for name, content in files.items():
        (folder / name.replace("__", "-").replace("_gguf", ".gguf")).write_bytes(content)
    return {name: str(folder / name.replace("__", "-").replace("_gguf", ".gguf")) for name in files}


def on_l4(command: Command, path: str) -> str:
    there = model(spec={"source": "https://models.example.com/m.gguf", "hardware": {"gpu": {"count": 1}}})
    return command(
        "fit", command.file("service.yaml", there, service({"contextSize": 4096})), "--config", path, "--gpu", "L4"
    ).out


def test_the_header_of_a_gguf_file_is_enough(command: Command) -> None:
    """The beginning of a file, without its weights."""
    tokens = {"tokenizer__ggml__scores": (ARRAY, (F32, [0.5] * 2000)), "general__file_type": (U32, 1)}
    head = gguf(llama(llama__block_count=(U32, 32), **tokens), {"token_embd.weight": (64, 2**26)})
    answer = on_l4(command, written(command, m_gguf=head)["m_gguf"])
    assert "weights          16.0 GiB" in answer
    assert "4096 tokens x 32 layers x 4 heads x 8 values" in answer


@pytest.mark.parametrize(
    ("keys", "cached"),
    [
        (
            {"llama__attention__key_length": (U32, 128), "llama__attention__value_length": (U32, 64)},
            "2 layers x 4 heads x 96 values",
        ),
        ({"llama__attention__head_count_kv": (ARRAY, (U32, [0, 4]))}, "1 layers x 4 heads x 8 values"),
        (
            {
                "llama__attention__sliding_window": (U32, 512),
                "llama__attention__sliding_window_pattern": (ARRAY, (BOOL, [True, False])),
            },
            "1 layers keep 512 tokens only",
        ),
        ({"llama__attention__sliding_window": (U32, 512)}, "2 layers x 4 heads x up to 8 values"),
        (
            {"llama__attention__kv_lora_rank": (U32, 512), "llama__rope__dimension_count": (U32, 64)},
            "this server or file may keep all heads",
        ),
        (
            {
                "llama__attention__kv_lora_rank": (U32, 512),
                "llama__rope__dimension_count": (U32, 64),
                "llama__attention__key_length_mla": (U32, 192),
            },
            "2 layers x 576 latent values",
        ),
    ],
    ids=["widths", "heads by layer", "windows", "unknown windows", "latent", "latent alone"],
)
def test_widths_and_kinds_of_layers_are_those_of_the_header(command: Command, keys: Any, cached: str) -> None:
    head = gguf(llama(**keys), {"token_embd.weight": (64, 32000)})
    assert cached in on_l4(command, written(command, m_gguf=head)["m_gguf"])


def test_all_parts_of_a_gguf_file_count(command: Command) -> None:
    parts = {
        f"m__0000{number}__of__00003_gguf": gguf(
            [*llama(), ("split.count", U32, 3)] if number == 1 else [("split.count", U32, 3)], {"t": (2**28,)}
        )
        for number in (1, 2, 3)
    }
    paths = written(command, **parts)
    assert "weights          3.0 GiB" in on_l4(command, paths["m__00001__of__00003_gguf"])
    Path(paths["m__00002__of__00003_gguf"]).unlink()
    assert "weights          an amount that is not known" in on_l4(command, paths["m__00001__of__00003_gguf"])


@pytest.mark.parametrize(("parts", "size"), [(1, "1.0 GiB"), (2, "an amount that is not known")])
def test_a_part_without_the_names_of_the_others_tells_no_size(command: Command, parts: int, size: str) -> None:
    head = gguf([*llama(), ("split.count", U32, parts)], {"t": (2**28,)})
    assert f"weights          {size}" in on_l4(command, written(command, m_gguf=head)["m_gguf"])


HEAD = gguf(llama(), {"token_embd.weight": (64, 32000)})
KEY = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("key")
LARGEST = struct.pack("<Q", 2**64 - 1)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{}", "neither a model's config.json, nor the index of its safetensors, nor a GGUF file"),
        (b"[1]", "neither"),
        (b"<!doctype html>", "neither"),
        (b"", "neither"),
        (HEAD[:200], "the header of the GGUF file is not whole"),
        (HEAD[:4] + struct.pack("<I", 9) + HEAD[8:], "no GGUF file of version 2 or 3"),
        (gguf([("a", STRING, "x")], count=2**64 - 1), "the header of the GGUF file is not whole"),
        (HEAD[:16] + LARGEST + HEAD[24:], "the header of the GGUF file is not whole"),
        (KEY + struct.pack("<II", ARRAY, U32) + LARGEST, "the header of the GGUF file is not whole"),
        (KEY + struct.pack("<I", STRING) + struct.pack("<Q", 2**40), "the header of the GGUF file is not whole"),
        (KEY + struct.pack("<I", 99), "a key of the GGUF file is of the unknown type 99"),
        (HEAD[:-12] + struct.pack("<IQ", 99, 0), "a tensor of the GGUF file is of the unknown type 99"),
    ],
    ids=[
        *("other JSON", "list", "page", "empty", "cut", "version", "number of tensors", "number of keys"),
        *("number of items", "length of a text", "type of a key", "type of a tensor"),
    ],
)
def test_another_file_is_refused(command: Command, content: bytes, reason: str) -> None:
    path = Path(command.file("service.yaml", model(), service())).with_name("other")
    path.write_bytes(content)
    result = command("fit", command.file("service.yaml", model(), service()), "--config", str(path))
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith(f"modelhooks fit: --config: {path}: {reason}")
    missing = command("fit", command.file("service.yaml", model(), service()), "--config", f"{path}.no")
    assert missing.err == f"modelhooks fit: --config: {path}.no: No such file or directory\n"
