"""Options of a KServe server count however they are spelled, and wherever the container has them."""

from __future__ import annotations

from typing import Any

import pytest

from app.kserve.advice.prefill import connectors
from app.kserve.arguments import has_flag, has_option
from app.kserve.llminferenceservice.types import LoRASpec
from app.kserve.lora import with_adapters
from app.kserve.spec import parallelism
from app.kserve.spec.tracing import picker_arguments
from app.kube.base import Json
from app.kube.field import SPEC

COLLECTS = 'MORE=""\nif true; then\n  MORE="WORDS"\nfi\neval "vllm serve /m ${MORE}"'

PLACES: dict[str, Any] = {
    "args": lambda *words: {"args": [*words]},
    "command": lambda *words: {"command": ["vllm", "serve", "/m", *words]},
    "script": lambda *words: {"command": ["/bin/sh", "-c", f"exec vllm serve /m \\\n  {' '.join(words)}"]},
    "evaluated": lambda *words: {"command": ["bash", "-c", f'eval "vllm serve /m {" ".join(words)}"']},
    "collected": lambda *words: {"command": ["bash", "-c", COLLECTS.replace("WORDS", " ".join(words))]},
    "variable": lambda *words: {"env": [{"name": "VLLM_ADDITIONAL_ARGS", "value": " ".join(words)}]},
}


def server(place: str, *words: str) -> Json:
    return {"name": "main", **PLACES[place](*words)}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("spelled", ["--max-loras", "--max_loras", "--max-lora=4", "--max-loras=4"])
def test_an_option_is_found_in_any_spelling(place: str, spelled: str) -> None:
    wanted = "--max-lora" if spelled == "--max-lora=4" else "--max-loras"
    container = server(place, *([spelled] if "=" in spelled else [spelled, "4"]))
    is_ambiguous = wanted == "--max-lora"  # the beginning of --max-loras and of --max-lora-rank
    assert has_option(container, "--max-loras") is not is_ambiguous
    assert not has_option(container, "--lora-modules")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("words", "sizes"),
    [
        (("--tensor_parallel_size", "4"), {"--tensor-parallel-size": 4}),
        (("-tp", "2", "-dp=2"), {"--tensor-parallel-size": 2, "--data-parallel-size": 2}),
        (("--tensor-par", "8"), {"--tensor-parallel-size": 8}),
        (("--tensor-parallel-size", "2", "--tensor-parallel-size", "4"), {"--tensor-parallel-size": 4}),
        (("--served-model-name", "x-tp 2"), {}),
    ],
    ids=["underscores", "short", "prefix", "twice", "a name"],
)
def test_sizes_are_those_that_vllm_uses(place: str, words: tuple[str, ...], sizes: dict[str, int]) -> None:
    pod: Json = {"containers": [{**server(place, *words), "resources": {"limits": {"nvidia.com/gpu": "16"}}}]}
    sizes_read = {
        option: size
        for option, asked in (("--tensor-parallel-size", "tensor"), ("--data-parallel-size", "data"))
        for advice in parallelism.contradictions(pod, {asked: 3, "dataLocal": 3}, SPEC)
        for size in [int(str(advice).partition(f"passes {option} ")[2].partition(";")[0] or 0)]
        if f"passes {option} " in str(advice)
    }
    assert sizes_read == sizes


def test_adapters_are_not_loaded_twice() -> None:
    container = {"name": "main", "args": ["--lora_modules", "a=/a"]}
    assert with_adapters(container, LoRASpec.model_validate({}), [("b", "/b")]) == container


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("--kv_transfer_config", '\'{"kv_connector":"NixlConnector"}\''), ["NixlConnector"]),
        (("--kv-transfer-config.kv_connector", "LMCacheConnector"), ["LMCacheConnector"]),
        (("--kv-transfer-config.kv_role", "kv_both"), []),
        (("--kv-transfer-config", "$CONFIG"), ["?"]),
    ],
    ids=["underscores", "key", "another key", "variable"],
)
def test_connectors_are_read(place: str, words: tuple[str, ...], names: list[str]) -> None:
    in_list = tuple(word.strip("'") for word in words) if place in ("args", "command") else words
    if place in ("evaluated", "collected"):
        in_list = tuple(word.replace('"', '\\"') for word in words)
    assert connectors(server(place, *in_list)) == names


@pytest.mark.parametrize("written", ["--tracing", "-tracing", "--tracing=false"])
def test_a_picker_keeps_its_own_flag(written: str) -> None:
    assert picker_arguments({"args": [written]}) == []
    assert picker_arguments({"args": ["--tracing-sample", "1"]}) == ["--tracing=true"]
    assert has_flag({"args": [written]}, "tracing")
