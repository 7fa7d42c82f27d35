"""The tool that makes rows of the table of models, and compares the table with configurations."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest

from tests.cli.test_fitconfig import CONFIGS, DEEPSEEK, GPT_OSS, HYBRID, LLAMA
from tools import models

TABLE = {row["repository"]: row for row in csv.DictReader(models.TABLE.read_text(encoding="utf-8").splitlines())}
_OF_SHAPES = (
    *("layers", "queries", "heads", "width", "windowed", "window", "windowed_heads", "windowed_width", "index"),
    *("format", "share"),
)


@pytest.mark.parametrize(
    ("repository", "config"),
    [
        ("meta-llama/Llama-3.1-8B", LLAMA),
        ("openai/gpt-oss-20b", GPT_OSS),
        ("deepseek-ai/DeepSeek-V3", DEEPSEEK),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", HYBRID),
    ],
)
def test_a_row_is_that_of_the_table(repository: str, config: dict[str, object]) -> None:
    row, known = models.row(repository, config), TABLE[repository]
    assert {name: row[name] for name in _OF_SHAPES} == {name: known[name] for name in _OF_SHAPES}
    if known["state"]:
        assert abs(int(row["state"]) - int(known["state"])) <= 2


def test_a_row_has_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(CONFIGS / "llama.json")
    assert models.main(["org/Chat-8B", file, "--source", "https://example.com/config.json", "--billions", "8.03"]) == 0
    printed = capsys.readouterr().out
    assert printed == "chat-8b,org/Chat-8B,8.03,32,32,8,128,131072,,,,,,,,,,https://example.com/config.json\n"


COMPRESSED = {
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "head_dim": 512,
    "hidden_size": 64,
    "index_head_dim": 128,
    "compress_ratios": [0, 4, 128, 4, 0],
    "sliding_window": 128,
    "expert_dtype": "fp4",
    "quantization_config": {"quant_method": "fp8"},
}
BLOCKS = [
    {"attention": {"n_heads_in_group": 8, "no_op": False}},
    {"attention": {"n_heads_in_group": None, "no_op": True}},
]


@pytest.mark.parametrize(
    ("config", "columns"),
    [
        (COMPRESSED, {"layers": "3", "heads": "latent", "width": "512", "index": "132", "share": "0.08464-0.1693"}),
        (
            {"num_hidden_layers": 2, "num_attention_heads": 64, "hidden_size": 8192, "block_configs": BLOCKS},
            {"layers": "1", "heads": "8", "width": "128"},
        ),
        (
            {
                "num_attention_heads": 64,
                "num_key_value_heads": 2,
                "head_dim": 128,
                "mamba_num_heads": 256,
                "mamba_head_dim": 64,
                "ssm_state_size": 128,
                "n_groups": 8,
                "conv_kernel": 4,
                "layers_block_type": ["mamba", "moe", "attention", "mamba"],
            },
            {"layers": "1", "heads": "2", "state": "17"},
        ),
        (
            {
                "num_hidden_layers": 4,
                "num_attention_heads": 32,
                "kv_lora_rank": 512,
                "qk_rope_head_dim": 64,
                "linear_attn_config": {"full_attn_layers": [4], "num_heads": 32, "head_dim": 128},
            },
            {"layers": "1", "heads": "latent", "width": "576", "state": "6"},
        ),
        (
            {
                "num_hidden_layers": 10,
                "num_attention_heads": 8,
                "num_key_value_heads": 1,
                "head_dim": 256,
                "global_head_dim": 512,
                "num_kv_shared_layers": 5,
                "sliding_window": 512,
                "layer_types": ["sliding_attention", "full_attention"] * 5,
            },
            {"layers": "5", "width": "512", "windowed": "3", "windowed_width": "256"},
        ),
    ],
    ids=["compressed", "blocks", "Mamba", "linear attention", "shared layers"],
)
def test_layers_of_each_kind_have_their_columns(config: dict[str, object], columns: dict[str, str]) -> None:
    found = models.row("org/model", config)
    assert {name: found[name] for name in columns} == columns


def test_a_configuration_that_tells_too_little_makes_no_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**LLAMA, "model_type": "another", "sliding_window": 128}))
    with pytest.raises(SystemExit) as ended:
        models.main(["org/model", str(path)])
    assert ended.value.code == 1
    assert "does not tell which layers have a cache" in capsys.readouterr().err


def test_the_table_is_compared_with_configurations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(CONFIGS / "llama.json", tmp_path / "meta-llama--Llama-3.1-8B_config.json")
    assert models.main(["--check", str(tmp_path)]) == 0
    (tmp_path / "openai--gpt-oss-20b_config.json").write_text(json.dumps({**GPT_OSS, "head_dim": 128}))
    assert models.main(["--check", str(tmp_path)]) == 1
    assert "openai/gpt-oss-20b: head is 64, and 128 in the configuration" in capsys.readouterr().out


def test_every_source_is_an_address_or_says_what_it_is() -> None:
    sources = {row["source"] for row in TABLE.values()} - {""}
    assert sources
    assert all(source.startswith("https://") or "config.json" in source for source in sources)
