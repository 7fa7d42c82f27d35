"""Command lines: upstream's samples, and the tables of LK-3.4 and LK-3.5."""

from __future__ import annotations

from typing import Any

import pytest

from app import images
from app.kube.base import Json
from app.llmkube.runtimes.registry import RUNTIMES, runtime
from app.settings import Settings
from tests.llmkube.inferenceservice.world import HTTP_SOURCE, args, container, model, pod_spec, service, sync

MODEL_PATH = "/models/8cc5f1f83d631cc0/m.gguf"
HUB = "https://huggingface.co"
LLAMACPP = images.LLAMACPP
CUDA = "ghcr.io/ggml-org/llama.cpp:server-cuda13"
VLLM = images.VLLM


def gpus(count: int, **more: Any) -> Json:
    """Return a Model's hardware with this number of GPUs."""
    return {"accelerator": "cuda", "gpu": {"enabled": True, "count": count, **more}}


def requests(cpu: str, memory: str) -> Json:
    return {"cpu": cpu, "memory": memory}


SPLIT_2 = "--n-gpu-layers 99 --split-mode layer --tensor-split 1,1"

# Sample: Model name, its spec, service spec, expected image, arguments, resources.
SAMPLES: dict[str, tuple[str, Json, Json, str, str, Json]] = {
    "S01 quickstart": (
        "tinyllama",
        {
            "source": f"{HUB}/TheBloke/TinyLlama-1.1B-Chat-v1.0-GGUF/resolve/main/tinyllama-1.1b-chat-v1.0.Q4_K_M.gguf",
            "hardware": {"accelerator": "cpu"},
        },
        {"resources": requests("500m", "1Gi")},
        LLAMACPP,
        "--model /models/ffd7696959984b4f/tinyllama.gguf --host 0.0.0.0 --port 8080 --cache-ram 256 --metrics",
        {"requests": {"cpu": "500m", "memory": "1Gi"}},
    ),
    "S02 one GPU, all layers by -1": (
        "llama-3b-gpu",
        {
            "source": f"{HUB}/bartowski/Llama-3.2-3B-Instruct-GGUF/resolve/main/Llama-3.2-3B-Instruct-Q8_0.gguf",
            "hardware": gpus(1, layers=-1, memory="8Gi", vendor="nvidia"),
        },
        {"image": CUDA, "resources": {"gpu": 1, "gpuMemory": "8Gi", **requests("2", "4Gi")}},
        CUDA,
        "--model /models/53b88354db8cdfa1/llama-3b-gpu.gguf --host 0.0.0.0 --port 8080 --n-gpu-layers 99 --metrics",
        {"limits": {"nvidia.com/gpu": "1"}, "requests": {"cpu": "2", "memory": "4Gi"}},
    ),
    "S05 context, flash attention, jinja": (
        "phi-3-mini",
        {
            "source": f"{HUB}/microsoft/Phi-3-mini-4k-instruct-gguf/resolve/main/Phi-3-mini-4k-instruct-q4.gguf",
            "hardware": gpus(1),
        },
        {"contextSize": 8192, "flashAttention": True, "jinja": True, "resources": requests("2", "4Gi")},
        images.LLAMACPP_CUDA,
        (
            "--model /models/8d34541a994928a3/phi-3-mini.gguf --host 0.0.0.0 --port 8080 --n-gpu-layers 99 "
            "--ctx-size 8192 --flash-attn on --jinja --cache-ram 1024 --metrics"
        ),
        {"limits": {"nvidia.com/gpu": "1"}, "requests": {"cpu": "2", "memory": "4Gi"}},
    ),
    "S06 two GPUs": (
        "llama-13b-multi-gpu",
        {
            "source": f"{HUB}/TheBloke/Llama-2-13B-GGUF/resolve/main/llama-2-13b.Q4_K_M.gguf",
            "hardware": gpus(2, sharding={"strategy": "layer"}),
        },
        {"image": CUDA, "resources": {"gpu": 2, **requests("4", "8Gi")}},
        CUDA,
        f"--model /models/0e38d54121d62f7d/llama-13b-multi-gpu.gguf --host 0.0.0.0 --port 8080 {SPLIT_2} --metrics",
        {"limits": {"nvidia.com/gpu": "2"}, "requests": {"cpu": "4", "memory": "8Gi"}},
    ),
    "S07 four GPUs": (
        "llama-70b-multi-gpu",
        {"source": f"{HUB}/TheBloke/Llama-2-70B-GGUF/resolve/main/llama-2-70b.Q4_K_M.gguf", "hardware": gpus(4)},
        {"image": CUDA, "resources": {"gpu": 4, **requests("8", "32Gi")}},
        CUDA,
        (
            "--model /models/438c170081007690/llama-70b-multi-gpu.gguf --host 0.0.0.0 --port 8080 --n-gpu-layers 99 "
            "--split-mode layer --tensor-split 1,1,1,1 --metrics"
        ),
        {"limits": {"nvidia.com/gpu": "4"}, "requests": {"cpu": "8", "memory": "32Gi"}},
    ),
    "S14 smallest vLLM": (
        "qwen25-0-5b-instruct",
        {"source": "Qwen/Qwen2.5-0.5B-Instruct", "format": "safetensors", "hardware": gpus(1)},
        {
            "runtime": "vllm",
            "skipModelInit": True,
            "resources": {"gpu": 1, **requests("2", "8Gi")},
            "vllmConfig": {"maxModelLen": 4096, "dtype": "float16"},
        },
        VLLM,
        "Qwen/Qwen2.5-0.5B-Instruct --host 0.0.0.0 --port 8000 --max-model-len 4096 --dtype float16",
        {"limits": {"nvidia.com/gpu": "1"}, "requests": {"cpu": "2", "memory": "8Gi"}},
    ),
    "S15 a cache format of one's own": (
        "qwen32b-instruct",
        {"source": "Qwen/Qwen2.5-32B-Instruct", "format": "safetensors", "hardware": gpus(2)},
        {
            "runtime": "vllm",
            "skipModelInit": True,
            "resources": {"gpu": 2, **requests("4", "16Gi")},
            "vllmConfig": {
                "tensorParallelSize": 2,
                "maxModelLen": 131072,
                "dtype": "bfloat16",
                "kvCacheCustomDtype": "turboquant_k8v4",
                "enablePrefixCaching": True,
                "enableChunkedPrefill": True,
            },
        },
        VLLM,
        (
            "Qwen/Qwen2.5-32B-Instruct --host 0.0.0.0 --port 8000 --tensor-parallel-size 2 --max-model-len 131072 "
            "--dtype bfloat16 --kv-cache-dtype turboquant_k8v4 --enable-prefix-caching --enable-chunked-prefill"
        ),
        {"limits": {"nvidia.com/gpu": "2"}, "requests": {"cpu": "4", "memory": "16Gi"}},
    ),
    "S16 fp8": (
        "qwen3-coder-30b-fp8",
        {"source": "Qwen/Qwen3-Coder-30B-A3B-Instruct-FP8", "format": "safetensors", "hardware": gpus(2)},
        {
            "runtime": "vllm",
            "skipModelInit": True,
            "vllmConfig": {
                "tensorParallelSize": 2,
                "maxModelLen": 65536,
                "quantization": "fp8",
                "dtype": "bfloat16",
                "kvCacheDtype": "fp8_e4m3",
                "enablePrefixCaching": True,
                "enableChunkedPrefill": True,
                "maxNumBatchedTokens": 4096,
                "attentionBackend": "FLASHINFER",
            },
        },
        VLLM,
        (
            "Qwen/Qwen3-Coder-30B-A3B-Instruct-FP8 --host 0.0.0.0 --port 8000 --tensor-parallel-size 2 "
            "--max-model-len 65536 --quantization fp8 --dtype bfloat16 --kv-cache-dtype fp8_e4m3 "
            "--enable-prefix-caching --enable-chunked-prefill --max-num-batched-tokens 4096 "
            "--attention-backend FLASHINFER"
        ),
        {"limits": {"nvidia.com/gpu": "2"}},
    ),
}


@pytest.mark.parametrize(
    ("name", "spec", "isvc", "image", "expected", "resources"), SAMPLES.values(), ids=SAMPLES.keys()
)
def test_upstreams_samples_get_upstreams_command_lines(
    name: str, spec: Json, isvc: Json, image: str, expected: str, resources: Json
) -> None:
    """Upstream's sample manifests give upstream's image, arguments and resources."""
    answer = sync(service(modelRef=name, **isvc), model(name, **spec))
    server = container(answer)
    assert server["image"] == image
    assert args(answer) == expected
    assert server["resources"] == resources


EVERYTHING: Json = {
    "contextSize": 4096,
    "ropeScaling": {"type": "yarn", "factor": "2.0", "originalContext": 131072},
    "parallelSlots": 4,
    "flashAttention": True,
    "jinja": True,
    "cacheTypeK": "q8_0",
    "cacheTypeV": "q4_0",
    "moeCPUOffload": True,
    "moeCPULayers": 8,
    "noKvOffload": True,
    "tensorOverrides": ["exps=CPU", "token_embd=CUDA0"],
    "batchSize": 2048,
    "uBatchSize": 256,
    "noWarmup": True,
    "reasoningBudget": 1024,
    "reasoningBudgetMessage": "wrap it up",
    "metadataOverrides": ["a.b=int:1"],
    "extraArgs": ["--log-disable"],
}
ROPE: Json = {"type": "yarn", "factor": "2.0"}
LLAMA = f"--model {MODEL_PATH} --host 0.0.0.0 --port 8080"
VLLM_ALL: Json = {
    "maxModelLen": 8192,
    "quantization": "awq",
    "dtype": "bfloat16",
    "kvCacheDtype": "fp8_e4m3",
    "kvCacheCustomDtype": "turboquant_k8v4",
    "enablePrefixCaching": True,
    "enableChunkedPrefill": True,
    "maxNumBatchedTokens": 8192,
    "attentionBackend": "flashinfer",
    "speculative": {"enabled": True, "model": "org/small"},
    "enableExpertParallel": True,
    "cpuOffloadGB": 0,
    "gpuMemoryUtilization": 0.8,
    "hfTokenSecretRef": {"name": "t", "key": "k"},
}

# Case: Model spec, service spec, expected arguments.
CASES: dict[str, tuple[Json, Json, str]] = {
    "A nothing but a Model": ({}, {}, f"{LLAMA} --metrics"),
    "B every llama.cpp field": (
        {"hardware": gpus(1, layers=32)},
        EVERYTHING,
        (
            f"{LLAMA} --n-gpu-layers 32 --ctx-size 4096 --rope-scaling yarn --rope-scale 2.0 --yarn-orig-ctx 131072 "
            "--parallel 4 --flash-attn on --jinja --cache-type-k q8_0 --cache-type-v q4_0 --cpu-moe --n-cpu-moe 8 "
            "--no-kv-offload --override-tensor exps=CPU,token_embd=CUDA0 --batch-size 2048 "
            "--ubatch-size 256 --no-warmup --reasoning-budget 1024 --reasoning-budget-message wrap it up "
            "--override-kv a.b=int:1 --log-disable --metrics"
        ),
    ),
    "C the user's flags win, and none comes twice": (
        {},
        {
            "parallelSlots": 4,
            "ropeScaling": ROPE,
            "extraArgs": ["--parallel=8", "--rope-scaling", "linear", "--metrics"],
        },
        f"{LLAMA} --parallel=8 --rope-scaling linear --metrics",
    ),
    "D shares by layers": (
        {"hardware": gpus(3, sharding={"strategy": "tensor", "layerSplit": ["0-15", "16-31", "32-39"]})},
        {},
        f"{LLAMA} --n-gpu-layers 99 --split-mode row --tensor-split 2,2,1 --metrics",
    ),
    "E not split": (
        {"hardware": gpus(2, sharding={"strategy": "none"})},
        {},
        f"{LLAMA} --n-gpu-layers 99 --split-mode none --metrics",
    ),
    "a short flag is the same flag": (
        {},
        {"parallelSlots": 4, "extraArgs": ["-np", "8"]},
        f"{LLAMA} -np 8 --metrics",
    ),
    "reasoning switched off": (
        {},
        {"reasoningBudget": 0, "reasoningBudgetMessage": "stop"},
        f"{LLAMA} --reasoning-budget 0 --reasoning-budget-message stop --metrics",
    ),
    "a reasoning message alone": ({}, {"reasoningBudgetMessage": "stop"}, f"{LLAMA} --metrics"),
    "custom cache formats win": (
        {},
        {"image": "a/fork:1", "cacheTypeK": "q8_0", "cacheTypeCustomK": "turbo3", "cacheTypeCustomV": "turbo4"},
        f"{LLAMA} --cache-type-k turbo3 --cache-type-v turbo4 --metrics",
    ),
    "flash attention needs a GPU": ({}, {"flashAttention": True}, f"{LLAMA} --metrics"),
    "no experts in main memory": ({}, {"moeCPULayers": 0}, f"{LLAMA} --metrics"),
    "the service's GPUs": ({}, {"resources": {"gpu": 2}}, f"{LLAMA} {SPLIT_2} --metrics"),
    "the Model's GPUs win": (
        {"hardware": gpus(2)},
        {"resources": {"gpu": 1}},
        f"{LLAMA} {SPLIT_2} --metrics",
    ),
    "H vllm, nothing else": ({}, {"runtime": "vllm"}, f"{MODEL_PATH} --host 0.0.0.0 --port 8000"),
    "I every vLLM field": (
        {"source": "org/repo", "hardware": gpus(2)},
        {
            "runtime": "vllm",
            "skipModelInit": True,
            "parallelSlots": 8,
            "extraArgs": ["--seed", "1"],
            "vllmConfig": VLLM_ALL,
        },
        (
            "org/repo --host 0.0.0.0 --port 8000 --max-model-len 8192 --quantization awq --dtype bfloat16 "
            "--kv-cache-dtype turboquant_k8v4 --enable-prefix-caching --enable-chunked-prefill "
            "--max-num-batched-tokens 8192 "
            '--attention-backend flashinfer --speculative-config {"model":"org/small","num_speculative_tokens":4} '
            "--enable-expert-parallel --cpu-offload-gb 0 --gpu-memory-utilization 0.8 "
            "--tensor-parallel-size 2 --max-num-seqs 8 --seed 1"
        ),
    ),
    "J one GPU is left idle when the user says so": (
        {"hardware": gpus(2)},
        {"runtime": "vllm", "vllmConfig": {"tensorParallelSize": 1}},
        f"{MODEL_PATH} --host 0.0.0.0 --port 8000",
    ),
    "vLLM's memory flags need a GPU": (
        {},
        {"runtime": "vllm", "vllmConfig": {"cpuOffloadGB": 4, "gpuMemoryUtilization": 0.9}},
        f"{MODEL_PATH} --host 0.0.0.0 --port 8000",
    ),
    "vLLM's automatic cache format is no flag": (
        {},
        {"runtime": "vllm", "vllmConfig": {"kvCacheDtype": "auto", "dtype": "auto"}},
        f"{MODEL_PATH} --host 0.0.0.0 --port 8000 --dtype auto",
    ),
    "speculative decoding without a model is left out": (
        {},
        {"runtime": "vllm", "vllmConfig": {"speculative": {"enabled": True, "numSpeculativeTokens": 3}}},
        f"{MODEL_PATH} --host 0.0.0.0 --port 8000",
    ),
    "speculative decoding that is off": (
        {},
        {"runtime": "vllm", "vllmConfig": {"speculative": {"model": "draft"}}},
        f"{MODEL_PATH} --host 0.0.0.0 --port 8000",
    ),
    "K every TGI field": (
        {"source": "org/repo", "hardware": gpus(4)},
        {
            "runtime": "tgi",
            "extraArgs": ["--trust-remote-code"],
            "args": ["--ignored"],
            "tgiConfig": {
                "quantize": "bitsandbytes",
                "maxInputLength": 2048,
                "maxTotalTokens": 4096,
                "dtype": "float16",
            },
        },
        (
            "--model-id org/repo --hostname 0.0.0.0 --port 80 --quantize bitsandbytes --max-input-length 2048 "
            "--max-total-tokens 4096 --dtype float16 --num-shard 4 --trust-remote-code"
        ),
    ),
    "TGI decides about the data type by the quantization": (
        {"source": "org/repo"},
        {"runtime": "tgi", "tgiConfig": {"quantize": "awq", "dtype": "float16"}},
        "--model-id org/repo --hostname 0.0.0.0 --port 80 --quantize awq",
    ),
    "TGI gets other sources as they are written": (
        {},
        {"runtime": "tgi"},
        f"--model-id {HTTP_SOURCE} --hostname 0.0.0.0 --port 80",
    ),
    "L every PersonaPlex field": (
        {"hardware": gpus(1)},
        {
            "runtime": "personaplex",
            "image": "p",
            "containerPort": 9000,
            "extraArgs": ["--quantize-4bit"],
            "personaPlexConfig": {"quantize4Bit": True, "cpuOffload": True},
        },
        "--ssl /app/ssl --port 9000 --cpu-offload --quantize-4bit",
    ),
    "M generic": ({}, {"runtime": "generic", "image": "i", "args": ["b"]}, "b"),
    "N a file on a claim": (
        {"source": "pvc://claim/dir/m.gguf"},
        {},
        "--model /model-source/dir/m.gguf --host 0.0.0.0 --port 8080 --metrics",
    ),
    "O nothing mounted": (
        {"source": "pvc://claim/dir/m.gguf"},
        {"skipModelInit": True},
        "--model  --host 0.0.0.0 --port 8080 --metrics",
    ),
    "R llama.cpp fetches a repository itself": (
        {"source": "org/repo"},
        {},
        "--hf-repo org/repo --host 0.0.0.0 --port 8080 --metrics",
    ),
    "a repository beside a model that the user names": (
        {"source": "org/repo"},
        {"extraArgs": ["-hf", "org/repo:Q4_K_M"]},
        "--host 0.0.0.0 --port 8080 -hf org/repo:Q4_K_M --metrics",
    ),
    "vLLM fetches a repository itself": (
        {"source": "org/repo"},
        {"runtime": "vllm"},
        "org/repo --host 0.0.0.0 --port 8000",
    ),
    "T an empty endpoint sets vLLM's port": (
        {"source": "org/repo"},
        {"runtime": "vllm", "skipModelInit": True, "endpoint": {}},
        "org/repo --host 0.0.0.0 --port 8080",
    ),
    "containerPort beats endpoint.port": (
        {},
        {"containerPort": 9999, "endpoint": {"port": 7000}},
        f"--model {MODEL_PATH} --host 0.0.0.0 --port 9999 --metrics",
    ),
}


@pytest.mark.parametrize(("spec", "isvc", "expected"), CASES.values(), ids=CASES.keys())
def test_each_field_gives_its_flag_in_order(spec: Json, isvc: Json, expected: str) -> None:
    """Each field gives its flag, in the contract's order, and only if it has an effect (LK-3.5.2)."""
    assert args(sync(service(**isvc), model(**spec))) == expected


def test_without_a_cache_the_file_is_the_pods_own() -> None:
    """Q: with an empty cache path the model is in an emptyDir, named after the namespace and the Model."""
    answer = sync(service(), model(), settings=Settings(llmkube_model_cache_path=""))
    assert args(answer).startswith("--model /models/ns1-m.gguf ")
    assert pod_spec(answer)["volumes"] == [{"name": "model-storage", "emptyDir": {}}]


SPLITS = {
    "halves": (["0-15", "16-31"], 2, "1,1"),
    "lowest terms": (["0-24", "25-39"], 2, "5,3"),
    "three": (["0-15", "16-31", "32-39"], 3, "2,2,1"),
    "too few": (["0-15"], 2, "1,1"),
    "no range": (["0-15", "bad"], 2, "1,1"),
    "backwards": (["5-3", "4-9"], 2, "1,1"),
    "negative": (["-1-5", "6-9"], 2, "1,1"),
    "blanks": ([" 0 - 9 ", "10-14"], 2, "2,1"),
}


@pytest.mark.parametrize(("split", "count", "ratios"), SPLITS.values(), ids=SPLITS.keys())
def test_a_layer_split_gives_each_gpu_its_share(split: list[str], count: int, ratios: str) -> None:
    """A valid layer split gives the shares; any other gives equal shares (LK-3.4)."""
    hardware = gpus(count, sharding={"layerSplit": split})
    assert f"--tensor-split {ratios} " in args(sync(service(), model(hardware=hardware)))


STRATEGIES = {"layer": "layer", "tensor": "row", "row": "row", "pipeline": "layer"}


@pytest.mark.parametrize(("strategy", "mode"), STRATEGIES.items())
def test_a_strategy_splits_by_layers_or_rows(strategy: str, mode: str) -> None:
    """llama.cpp splits by layers or rows; strategy pipeline acts like layer."""
    hardware = gpus(2, sharding={"strategy": strategy})
    assert f"--split-mode {mode} --tensor-split 1,1" in args(sync(service(), model(hardware=hardware)))


def test_unknown_runtime_is_llamacpp() -> None:
    """The registry has every runtime of the enum, and returns llamacpp for any other name."""
    assert list(RUNTIMES) == ["llamacpp", "llamacpp-router", "vllm", "tgi", "sglang", "personaplex", "generic"]
    assert runtime("nobody").name == "llamacpp"


def test_drafts_are_resolved() -> None:
    """A draft model that names a Model of the namespace becomes its repository or file (LK-B-09)."""
    config = {"speculative": {"enabled": True, "model": "draft"}}
    parent = service(runtime="vllm", vllmConfig=config)
    remote = sync(parent, model(), model("draft", source="org/small"))
    assert '--speculative-config {"model":"org/small",' in args(remote)
    assert [volume["name"] for volume in pod_spec(remote)["volumes"]] == ["model-cache"]
    cached = sync(parent, model(), model("draft", source="https://example.com/d.gguf"))
    assert '--speculative-config {"model":"/draft-model/' in args(cached)
    assert pod_spec(cached)["volumes"][1] == {
        "name": "draft-model",
        "persistentVolumeClaim": {"claimName": "draft-cache", "readOnly": True},
    }


def test_draft_on_the_same_claim_is_not_mounted_twice() -> None:
    """Two files on one claim share one mount."""
    config = {"speculative": {"enabled": True, "model": "draft"}}
    answer = sync(
        service(runtime="vllm", vllmConfig=config),
        model(source="pvc://claim/big"),
        model("draft", source="pvc://claim/small"),
    )
    assert args(answer).startswith("/model-source/big ")
    assert '--speculative-config {"model":"/model-source/small",' in args(answer)
    assert len(pod_spec(answer)["volumes"]) == 1
