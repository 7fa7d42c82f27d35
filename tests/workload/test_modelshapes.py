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
