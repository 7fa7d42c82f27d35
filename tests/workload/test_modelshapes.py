"""What files of models tell of their cache and weights, by the table beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import asdict

from app.kube.base import Json
from app.workload.fit import ggufheader, modelconfig
from app.workload.fit.modelfacts import ModelFacts
from app.workload.fit.models import Shape
from tests.llmkube.gguf import ARRAY, BOOL, STRING, U32, gguf

TABLE: dict[str, dict[str, Json]] = yaml.load(
    Path(__file__).with_name("modelshapes.yaml").read_text(), yaml.CSafeLoader
)
CONFIGS, HEADERS, WEIGHTS, QUANTIZATIONS = (TABLE[name] for name in ("configs", "headers", "weights", "quantizations"))
OTHERS = {"billions", "bits", "format"}
"""Parts of a shape that are about its weights."""


def shape_in(facts: ModelFacts | None) -> Shape:
    assert facts is not None
    assert facts.shape is not None
    return facts.shape


def cache_of(shape: Shape) -> Json:
    """Return the parts of a shape that are not the default, of those about the cache."""
    usual = asdict(Shape(layers=-1, kv_heads=-1, head=-1))
    parts = {name: value for name, value in asdict(shape).items() if name not in OTHERS and value != usual[name]}
    return {**parts, **({"ends": pytest.approx(parts["ends"], abs=1e-5)} if "ends" in parts else {})}


@pytest.mark.parametrize("name", CONFIGS)
def test_the_shape_of_a_configuration(name: str) -> None:
    row = CONFIGS[name]
    assert row["shape"] == cache_of(shape_in(modelconfig.facts_of(row["keys"])))


def typed(value: Any) -> tuple[int, Any]:
    if isinstance(value, list):
        return ARRAY, (typed(value[0])[0], value)
    return (BOOL if isinstance(value, bool) else U32), value


@pytest.mark.parametrize("name", HEADERS)
def test_the_shape_of_a_header(name: str, tmp_path: Path) -> None:
    row = HEADERS[name]
    keys = [(f"{row['architecture']}.{key}", *typed(value)) for key, value in row["keys"].items()]
    (tmp_path / "m.gguf").write_bytes(gguf([("general.architecture", STRING, row["architecture"]), *keys]))
    assert row["shape"] == cache_of(shape_in(ggufheader.facts_of(tmp_path / "m.gguf")))


@pytest.mark.parametrize("name", WEIGHTS)
def test_the_weights_of_a_published_model_are_within_the_bounds(name: str) -> None:
    """The least is close; the most is far where layers may have a third matrix."""
    shape = shape_in(modelconfig.facts_of(WEIGHTS[name]["keys"]))
    least, most = (amount / WEIGHTS[name]["billions"] for amount in shape.billions)
    assert 0.975 < least <= 1
    assert 1 <= most < (1.45 if "two matrices" in name else 1.03)


@pytest.mark.parametrize("name", QUANTIZATIONS)
def test_the_format_and_the_bits_of_published_weights(name: str) -> None:
    row = QUANTIZATIONS[name]
    config = {"num_hidden_layers": 4, "num_attention_heads": 8, "quantization_config": row.get("written")}
    shape = shape_in(modelconfig.facts_of(config))
    assert (shape.format, list(shape.bits or ())) == (row["format"], row["bits"])


def test_experts_in_four_bits_are_mxfp4() -> None:
    config = {"num_hidden_layers": 4, "expert_dtype": "fp4", "quantization_config": {"quant_method": "fp8"}}
    assert shape_in(modelconfig.facts_of(config)).format == "mxfp4"


USUAL: Json = {
    "model_type": "mistral",
    "vocab_size": 32000,
    "hidden_act": "silu",
    "sliding_window": 512,
    "num_hidden_layers": 5,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "hidden_size": 1024,
    "head_dim": 64,
    "intermediate_size": 4096,
    "max_position_embeddings": 4096,
}
EXPERTS: Json = {**USUAL, "num_experts": 8, "moe_intermediate_size": 512, "routed_expert_hidden_size": 256}
SPELLINGS = {
    "num_hidden_layers": "n_layer num_layers n_layers",
    "num_attention_heads": "n_head num_heads n_heads",
    "max_position_embeddings": "n_positions seq_length max_sequence_length n_ctx",
    "num_key_value_heads": (
        "num_kv_heads multi_query_group_num n_head_kv num_query_groups num_attention_groups n_kv_heads"
    ),
    "hidden_size": "n_embd d_model",
    "head_dim": "attention_head_dim kv_channels",
    "intermediate_size": "ffn_dim n_inner moe_intermediate_size",
    "sliding_window": "attention_chunk_size sliding_window_size",
    "num_experts": "num_local_experts n_routed_experts moe_num_experts",
    "moe_intermediate_size": "expert_intermediate_size",
    "routed_expert_hidden_size": "moe_latent_size",
}


@pytest.mark.parametrize(
    ("usual", "other"), [(key, name) for key, names in SPELLINGS.items() for name in names.split()]
)
def test_another_name_of_a_key_tells_the_same(usual: str, other: str) -> None:
    config = EXPERTS if usual in EXPERTS and usual not in USUAL else USUAL
    rest = {key: value for key, value in config.items() if key != usual}
    assert modelconfig.facts_of({**rest, other: config[usual]}) == modelconfig.facts_of(config)
    assert modelconfig.facts_of(rest) != modelconfig.facts_of(config)


@pytest.mark.parametrize("key", ["text_config", "llm_config", "language_config", "thinker_config"])
def test_a_model_that_sees_or_hears_may_have_a_tenth_and_a_billion_weights_more(key: str) -> None:
    alone, inside = shape_in(modelconfig.facts_of(USUAL)), shape_in(modelconfig.facts_of({key: USUAL}))
    assert cache_of(inside) == cache_of(alone)
    least, most = alone.billions
    assert inside.billions == pytest.approx((least, most / 1.02 * 1.1 + 1))
    fp8 = {"quantization_config": {"quant_method": "fp8"}}
    for config in ({key: USUAL, **fp8}, {key: {**USUAL, **fp8}}):
        assert shape_in(modelconfig.facts_of(config)).format == "fp8"


@pytest.mark.parametrize(
    "keys",
    [
        {"hidden_size": 0},
        {"intermediate_size": 0},
        {"layer_types": ["conv", "full_attention"] * 2, "conv_L_cache": 3},
        {"layer_types": ["conv", "full_attention"] * 2},
        {"hybrid_override_pattern": "*****"},
        {"attn_layer_period": 1},
        {"use_cla": True, "cla_share_factor": 2, "sliding_window": 0},
        {"experts": [4, 8]},
    ],
)
def test_weights_are_not_guessed_of_layers_that_the_configuration_does_not_describe(keys: Json) -> None:
    assert shape_in(modelconfig.facts_of(USUAL)).billions > (0, 0)
    assert shape_in(modelconfig.facts_of({**USUAL, **keys})).billions == (0, 0)


@pytest.mark.parametrize(
    ("keys", "dense"), [({"mlp_only_layers": [0, 4]}, 2), ({"interleave_moe_layer_step": 2}, 3), ({}, 0)]
)
def test_layers_without_experts_are_counted(keys: Json, dense: int) -> None:
    same = modelconfig.facts_of({**EXPERTS, "first_k_dense_replace": dense})
    assert modelconfig.facts_of({**EXPERTS, **keys}) == same
    assert same != modelconfig.facts_of({**EXPERTS, "first_k_dense_replace": dense + 1})


def test_heads_of_layers_with_a_window_count_among_the_weights() -> None:
    windowed = shape_in(modelconfig.facts_of({**USUAL, "swa_num_key_value_heads": 8}))
    assert windowed.billions == shape_in(modelconfig.facts_of({**USUAL, "num_key_value_heads": 8})).billions
    assert windowed.billions > shape_in(modelconfig.facts_of(USUAL)).billions
