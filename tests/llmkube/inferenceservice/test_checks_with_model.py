"""Rules over a service and its Model (LK-6.5)."""

from typing import Any

import orjson
import pytest
from msgspec import Raw

from app.hooks.protocol import Parent, SyncRequest
from app.kube.objects import ObservedMeta
from app.kube.resource import Resource
from app.llmkube.inferenceservice.checks import warnings_with_related as across
from app.llmkube.inferenceservice.observed import InferenceChildren, InferenceRelated
from app.llmkube.inferenceservice.types import InferenceServiceSpec, InferenceServiceStatus
from app.settings import Settings

URL = "https://example.com/model.gguf"
METAL = {"source": URL, "hardware": {"accelerator": "metal"}}
TWO = {"source": URL, "hardware": {"accelerator": "cuda", "gpu": {"count": 2}}}
LAYERS = {"source": URL, "hardware": {"accelerator": "cuda", "gpu": {"layers": 8}}}
SHARDED = {"source": URL, "hardware": {"accelerator": "cuda", "gpu": {"sharding": {}}}}
GGUF = {"source": "https://example.com/m.gguf?v=2"}
CLAIMS = {"resourceClaims": [{"name": "g", "resourceClaimName": "c"}]}
CLAIMED = {"source": "owner/repo", "format": "safetensors", "hardware": {"gpu": CLAIMS}}
AMD = {"source": URL, "hardware": {"gpu": {"count": 2, "vendor": "amd"}}}

DRAFTED = {"speculativeDecoding": {"type": "draft", "draftModel": "d.gguf"}}
AMD_TWO: dict[str, Any] = {
    "source": "owner/repo",
    "hardware": {"accelerator": "rocm", "gpu": {"count": 2, "vendor": "amd"}},
}
CASES: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    (
        "LK-V-I64",
        METAL,
        {"image": "i", "resources": {"gpu": 1}},
        "spec.resources: no effect with a Model on metal",
    ),
    ("LK-V-I64", METAL, {"endpoint": {"port": 80}}, "always has port 8080"),
    ("LK-V-I64", METAL, {"endpoint": {"type": "NodePort"}}, "endpoint.type: no effect"),
    ("LK-V-X11", METAL, {"replicas": 2}, "runs one process"),
    ("LK-V-X04", {"source": URL}, {"runtime": "tgi"}, "tgi only serves Hugging Face repositories"),
    ("LK-V-X03", {"source": "owner/repo"}, {"runtime": "vllm"}, "skipModelInit: set it to true"),
    ("LK-V-X03", {"source": "owner/repo"}, {}, "each pod downloads it when it starts"),
    ("LK-V-I35", {"source": "owner/repo"}, {"skipModelInit": True}, "skipModelInit leaves llamacpp without a model"),
    ("LK-V-M16", {"source": URL, "format": "safetensors"}, {}, "llamacpp cannot load format safetensors"),
    (
        "LK-V-M16",
        GGUF,
        {"runtime": "vllm", "image": "vllm/vllm-openai:v0.25.1"},
        "vLLM 0.25.1 does not load GGUF files",
    ),
    ("LK-V-X06", TWO, {"resources": {"gpu": 1}}, "the Model's gpu.count 2 wins over 1"),
    ("LK-V-X06", TWO, {"resources": {"gpu": 0}}, "the Model's gpu.count 2 wins over 0"),
    ("1.2", LAYERS, {"runtime": "vllm"}, "the Model's hardware.gpu.layers has no effect with runtime vllm"),
    ("1.2", LAYERS, {}, "the Model's hardware.gpu.layers has no effect with 0 GPUs"),
    ("3.4", SHARDED, {"resources": {"gpu": 1}}, "the Model's hardware.gpu.sharding has no effect with 1 GPUs"),
    (
        "3.4",
        {"source": URL, "hardware": {"gpu": {**CLAIMS, "sharding": {}}}},
        {},
        "sharding has no effect with GPUs of resourceClaims",
    ),
    ("LK-V-I42", {"source": URL}, {"flashAttention": True}, "flashAttention: no effect without a GPU"),
    ("LK-V-I42", {"source": URL}, {"runtime": "vllm", "vllmConfig": {"cpuOffloadGB": 0}}, "cpuOffloadGB: no effect"),
    ("LK-V-X22", {"source": "Qwen/Qwen3-8B"}, {}, "llama.cpp only loads GGUF, which Qwen/Qwen3-8B may not have"),
    (
        "LK-V-I91",
        {"source": URL, "hardware": {"gpu": {"count": 1}}},
        {"image": "registry.example.com/ggml-org/llama.cpp:server-b7000"},
        "the pod has GPUs; use registry.example.com/ggml-org/llama.cpp:server-cuda-b7000",
    ),
    ("LK-V-I91", AMD_TWO, {"image": "ghcr.io/ggml-org/llama.cpp:server"}, "use ghcr.io/ggml-org/llama.cpp:server-rocm"),
    ("LK-V-I40", AMD, {}, "uses the CPU only for this GPU"),
    ("LK-V-I40", {"source": URL, "hardware": {"gpu": CLAIMS}}, {}, "llama.cpp:server-cuda"),
    (
        "LK-V-I40",
        {"source": URL, "hardware": {"gpu": {"count": 1, "resourceName": "example.com/gpu"}}},
        {},
        "llama.cpp:server-cuda",
    ),
    ("LK-V-X14", {"source": "owner/repo"}, {"runtime": "sglang"}, "SGLang needs a GPU"),
    (
        "LK-V-X18",
        {"source": "owner/repo"},
        {"runtime": "vllm"},
        "spec.runtime: image vllm/vllm-openai needs an NVIDIA GPU",
    ),
    (
        "LK-V-X18",
        AMD_TWO,
        {"runtime": "vllm", "image": "vllm/vllm-openai:v0.20.0"},
        "spec.image: image vllm/vllm-openai needs an NVIDIA GPU, but only AMD devices are requested",
    ),
    ("LK-V-X05", TWO, {"runtime": "vllm", "vllmConfig": {"tensorParallelSize": 8}}, "but a pod has 2 nvidia.com/gpu"),
    ("LK-V-X21", {"source": URL}, DRAFTED, "draftModel: Model m does not fetch this file"),
    (
        "LK-V-X21",
        {"source": "owner/repo", "files": ["a.gguf"]},
        DRAFTED,
        "draftModel: Model m does not fetch this file",
    ),
]


def test_a_device_by_its_file_may_be_the_gpu_that_an_image_needs() -> None:
    """Generic device plugins offer /dev/dri and /dev/kfd under names that an administrator chose."""
    gpu = {"count": 1, "vendor": "amd", "resourceName": "squat.ai/dri"}
    service = {"runtime": "vllm", "image": "vllm/vllm-openai-rocm:v0.20.0"}
    messages = judge({"source": "owner/repo", "hardware": {"accelerator": "rocm", "gpu": gpu}}, service)
    assert not [warning for warning in messages if "needs an AMD GPU" in warning]
    messages = judge({"source": "owner/repo", "hardware": {"gpu": {**gpu, "resourceName": "rdma/hca"}}}, service)
    assert [warning for warning in messages if "needs an AMD GPU" in warning]


def judge(model: dict[str, Any], service: dict[str, Any]) -> list[str]:
    spec = InferenceServiceSpec.model_validate({"modelRef": "m", **service})
    cluster_model = Parent("v1", "Model", ObservedMeta(name="m", namespace="ns"), spec=Raw(orjson.dumps(model)))
    parent = Parent("v1", "InferenceService", ObservedMeta(name="s", namespace="ns"))
    request = SyncRequest(parent, InferenceChildren(), InferenceRelated(models={"ns/m": cluster_model}))
    return [*across(Resource(parent.metadata, spec, InferenceServiceStatus()), request, Settings())]


FITTING: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    ({"source": "bartowski/Qwen3-8B-GGUF"}, {}),
    ({"source": URL, "hardware": {"gpu": {"count": 1}}}, {"image": "ghcr.io/ggml-org/llama.cpp:server-cuda-b7000"}),
    ({"source": URL}, {"image": "ghcr.io/ggml-org/llama.cpp:server"}),
    ({"source": URL, "hardware": {"gpu": {"count": 1}}}, {"image": "example.com/own/llama.cpp:2026-01"}),
)


@pytest.mark.parametrize(("model", "service"), FITTING)
def test_what_fits_gets_no_warning_of_llamacpp(model: dict[str, Any], service: dict[str, Any]) -> None:
    assert not [text for text in judge(model, service) if "only loads GGUF" in text or "uses the CPU only" in text]


@pytest.mark.parametrize(("rule", "model", "service", "words"), CASES)
def test_warns_of_conflicts_with_the_model(
    rule: str, model: dict[str, Any], service: dict[str, Any], words: str
) -> None:
    assert [text for text in judge(model, service) if words in text], rule


@pytest.mark.parametrize(
    ("model", "service"),
    [
        ({"source": URL}, {}),
        ({"source": "owner/repo", "files": ["a.gguf", "d.gguf"]}, DRAFTED),
        (METAL, {"endpoint": {}, "contextSize": 4096}),
        ({"source": "owner/repo"}, {"runtime": "vllm", "skipModelInit": True, "resources": {"gpu": 1}}),
        ({"source": "owner/repo"}, {"runtime": "vllm", "skipModelInit": True, "runtimeClassName": "nvidia"}),
        ({"source": "owner/repo"}, {"runtime": "vllm", "skipModelInit": True, "image": "example.com/vllm-cpu:1"}),
        (AMD_TWO, {"runtime": "vllm", "skipModelInit": True}),
        (CLAIMED, {"runtime": "vllm", "skipModelInit": True, "vllmConfig": {"tensorParallelSize": 2}}),
        (CLAIMED, {"runtime": "vllm", "skipModelInit": True, "vllmConfig": {"gpuMemoryUtilization": 0.8}}),
        (CLAIMED, {"runtime": "vllm", "skipModelInit": True, "extraArgs": ["--tensor-parallel-size=2"]}),
        (CLAIMED, {"runtime": "sglang", "skipModelInit": True}),
        ({"source": "owner/repo", "format": "safetensors"}, {"runtime": "tgi"}),
        (LAYERS, {"image": "i", "resources": {"gpu": 1}}),
        (SHARDED, {"image": "i", "resources": {"gpu": 2}}),
        (TWO, {"image": "i", "flashAttention": True, "resources": {"gpu": 2}}),
        ({"source": URL, "hardware": {"gpu": {**CLAIMS, "layers": 8}}}, {"image": "i", "flashAttention": True}),
        (
            {
                "source": URL,
                "hardware": {"accelerator": "vulkan", "gpu": {"count": 1, "resourceName": "nvidia.com/gpu"}},
            },
            {},
        ),
        (CLAIMED, {"runtime": "sglang", "skipModelInit": True, "sglangConfig": {"tensorParallelSize": 2}}),
        (CLAIMED, {"runtime": "vllm", "skipModelInit": True, "vllmConfig": {"gpuMemoryUtilization": 0.9}}),
    ],
)
def test_what_fits_is_not(model: dict[str, Any], service: dict[str, Any]) -> None:
    assert judge(model, service) == []


@pytest.mark.parametrize("image", ["", "vllm/vllm-openai:v0.20.0", "vllm/vllm-openai:latest", "example.com/vllm:1"])
def test_gguf_is_for_images_that_load_it(image: str) -> None:
    """The default image loads GGUF files, and unknown images cause no warning."""
    assert not [text for text in judge(GGUF, {"runtime": "vllm", "image": image}) if "GGUF" in text]
