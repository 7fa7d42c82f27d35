"""What a Model and a service only show together (llmkube spec 6.5)."""

from typing import Any

import pytest

from app.llmkube.inferenceservice.types import InferenceServiceSpec
from app.llmkube.model.types import ModelSpec
from app.llmkube.together import findings

URL = "https://example.com/model.gguf"
METAL = {"source": URL, "hardware": {"accelerator": "metal"}}
TWO = {"source": URL, "hardware": {"accelerator": "cuda", "gpu": {"count": 2}}}

CASES: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("V-I64", METAL, {"image": "i", "resources": {"gpu": 1}}, "no effect with a Model on metal: spec.image, spec.reso"),
    ("V-I64", METAL, {"endpoint": {"port": 80}}, "always has port 8080"),
    ("V-I64", METAL, {"endpoint": {"type": "NodePort"}}, "endpoint.type has no effect"),
    ("V-X11", METAL, {"replicas": 2}, "runs one process"),
    ("V-X04", {"source": URL}, {"runtime": "tgi"}, "tgi serves Hugging Face repositories only"),
    ("V-X03", {"source": "owner/repo"}, {}, "skipModelInit should be true"),
    ("V-M16", {"source": URL, "format": "safetensors"}, {}, "llamacpp loads gguf only"),
    ("V-X06", TWO, {"resources": {"gpu": 1}}, "the Model's gpu.count 2 wins"),
    ("V-I42", {"source": URL}, {"flashAttention": True}, "flashAttention has no effect without a GPU"),
    ("V-I42", {"source": URL}, {"runtime": "vllm", "vllmConfig": {"cpuOffloadGB": 0}}, "cpuOffloadGB has no effect"),
    ("V-I40", TWO, {}, "the Model asks for GPUs"),
    ("V-X05", TWO, {"runtime": "vllm", "vllmConfig": {"tensorParallelSize": 8}}, "a pod has 2 GPUs"),
]


def judge(model: dict[str, Any], service: dict[str, Any]) -> list[str]:
    spec = InferenceServiceSpec.model_validate({"modelRef": "m", **service})
    return findings(ModelSpec.model_validate(model), spec)


@pytest.mark.parametrize(("rule", "model", "service", "words"), CASES)
def test_what_does_not_fit_is_said(rule: str, model: dict[str, Any], service: dict[str, Any], words: str) -> None:
    assert [text for text in judge(model, service) if words in text], rule


@pytest.mark.parametrize(
    ("model", "service"),
    [
        ({"source": URL}, {}),
        (METAL, {"endpoint": {}, "contextSize": 4096}),
        ({"source": "owner/repo"}, {"runtime": "vllm", "skipModelInit": True}),
        ({"source": "owner/repo", "format": "safetensors"}, {"runtime": "tgi"}),
        (TWO, {"image": "i", "flashAttention": True, "resources": {"gpu": 2}}),
    ],
)
def test_what_fits_is_not(model: dict[str, Any], service: dict[str, Any]) -> None:
    assert judge(model, service) == []
