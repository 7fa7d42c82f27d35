"""llama.cpp's prompt cache beside the host memory of its pod: what validate says, fit counts and new pods get."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import yaml

from app.kube.base import Json
from tests.cli.files import Command, model, service
from tests.cli.test_fit import llmaz

CUDA = "ghcr.io/ggml-org/llama.cpp:server-cuda"


def playground(*args: str, memory: str = "") -> list[Json]:
    """Return a Playground that serves one file with the preset, or with a limit of memory."""
    claimed, item = llmaz(*args)
    hub = {"modelID": "Qwen/Qwen2.5-7B-Instruct-GGUF", "filename": "qwen2.5-7b-instruct-q4_k_m.gguf"}
    claimed["spec"] = {"familyName": "qwen2", "source": {"modelHub": hub}}
    config = item["spec"]["backendRuntimeConfig"]
    config["backendName"] = "llamacpp"
    if memory:
        config["resources"] = {"limits": {"memory": memory}}
    return [claimed, item]


def group(limits: Json, *args: str, env: list[Json] | None = None) -> list[Json]:
    """Return a Service of llmaz whose pods the user wrote."""
    container = {"name": "model-runner", "image": CUDA, "args": [*args], "resources": {"limits": limits}}
    pods = {"spec": {"containers": [{**container, "env": env or []}]}}
    spec = {"modelClaims": {"models": [{"name": "big"}]}, "workloadTemplate": {"workerTemplate": pods}}
    meta = {"name": "big"}
    return [{"apiVersion": "inference.llmaz.io/v1alpha1", "kind": "Service", "metadata": meta, "spec": spec}]


def kserve(limits: Json) -> list[Json]:
    main = {"name": "main", "image": CUDA, "args": ["-m", "/mnt/models/m.gguf"], "resources": {"limits": limits}}
    spec = {"model": {"uri": "hf://org/m", "name": "m"}, "template": {"containers": [main]}}
    meta = {"name": "chat"}
    return [{"apiVersion": "serving.kserve.io/v1alpha2", "kind": "LLMInferenceService", "metadata": meta, "spec": spec}]


def llmkube(memory: str, *extra: str, **spec: Any) -> list[Json]:
    return [model(), service({"resources": {"memory": memory}, "extraArgs": [*extra], **spec})]


def warnings(command: Command, documents: list[Json]) -> list[str]:
    findings = command("validate", command.file("all.yaml", *documents), "--output", "json").findings
    return [f"{f['path']}: {f['message']}" for f in findings if "earlier prompts" in f["message"]]


@pytest.mark.parametrize(
    ("documents", "path", "grown", "value"),
    [
        (playground(memory="1Gi"), "spec.backendRuntimeConfig.resources", "to 1024 MiB", "256"),
        (playground("--cache-ram", "-1"), "spec.backendRuntimeConfig.resources", "without a limit", "1024"),
        (
            group({"memory": "4Gi"}),
            "spec.workloadTemplate.workerTemplate.spec.containers[0].resources.limits.memory",
            "to 8192 MiB",
            "1024",
        ),
        (
            kserve({"memory": "6Gi"}),
            "spec.template.containers[0].resources.limits.memory",
            "to 8192 MiB",
            "1536",
        ),
        (llmkube("16Gi", "--cache_ram", "40960"), "spec.resources.memory", "to 40960 MiB", "4096"),
        (llmkube("4Gi", image=CUDA), "spec.resources.memory", "to 8192 MiB", "1024"),
    ],
    ids=["playground", "without a limit", "service of llmaz", "KServe", "LLMKube", "unknown release"],
)
def test_a_cache_that_outgrows_the_memory_is_warned_of(
    command: Command, documents: list[Json], path: str, grown: str, value: str
) -> None:
    (message,) = warnings(command, documents)
    assert message.startswith(f"{path}: llama.cpp keeps earlier prompts in host memory, which grow {grown}, and ")
    assert message.endswith(f"; set --cache-ram {value}")


@pytest.mark.parametrize(
    "documents",
    [
        playground(),
        playground("-cram", "0", memory="1Gi"),
        group({"memory": "16Gi"}),
        group({"memory": "4Gi"}, "--embedding"),
        group({"memory": "4Gi"}, env=[{"name": "LLAMA_ARG_CACHE_RAM", "value": "512"}]),
        group({"nvidia.com/gpu": "1"}),
        llmkube("1Gi"),
        llmkube("1Gi", mode="embedding"),
        llmkube("1Gi", "--cache-ram", "256", image=CUDA),
    ],
    ids=["preset", "none", "enough", "embedding", "variable", "no limit", "LLMKube", "mode", "own option"],
)
def test_other_caches_are_not_warned_of(command: Command, documents: list[Json]) -> None:
    assert warnings(command, documents) == []


@pytest.mark.parametrize(
    ("documents", "value"),
    [
        (llmkube("1Gi"), "256"),
        (llmkube("12Gi"), "3072"),
        (llmkube("64Gi"), None),
        (llmkube("1Gi", image=CUDA), None),
        (llmkube("1Gi", "--cache-ram", "100"), "100"),
        ([model(spec={"source": "https://m.example.com/m.gguf", "resources": {"memory": "2Gi"}}), service()], "512"),
        ([model(), service()], None),
    ],
    ids=["small", "larger", "enough", "release that may not have it", "own option", "of the Model", "not known"],
)
def test_new_pods_get_a_cache_by_their_memory(command: Command, documents: list[Json], value: str | None) -> None:
    children = yaml.load_all(command("render", command.file("all.yaml", *documents)).out, yaml.CSafeLoader)
    (deployment,) = (child for child in children if child and child["kind"] == "Deployment")
    args = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert [after for word, after in itertools.pairwise(args) if word == "--cache-ram"] == (
        [] if value is None else [value]
    )


def test_fit_counts_the_cache(command: Command) -> None:
    large = command("fit", command.file("all.yaml", *playground("--cache-ram", "6000"))).out
    assert "earlier prompts grow up to 5.9 GiB, and the server has 4.0 GiB of host memory: set --cache-ram" in large
    beside = command("fit", command.file("all.yaml", *playground())).out
    assert "prompt cache     up to 1.0 GiB   earlier prompts, in host memory" in beside
    assert "with up to 1.0 GiB for earlier prompts that is more than the server's 4.0 GiB of host memory" in beside
    enough = command("fit", command.file("all.yaml", *playground(memory="16Gi"))).out
    assert "up to 1.0 GiB" in enough
    assert "earlier prompts grow" not in enough
    assert "for earlier prompts" not in enough


def test_fit_says_that_a_cache_has_no_limit(command: Command) -> None:
    unlimited = command("fit", command.file("all.yaml", *playground("--cache-ram", "-1", memory="16Gi"))).out
    assert "prompt cache     without a limit  earlier prompts, in host memory" in unlimited
    assert (
        "earlier prompts grow without a limit, and the server has 16.0 GiB of host memory: set --cache-ram" in unlimited
    )


@pytest.mark.parametrize("documents", [playground("--cache-ram", "0"), playground("--embedding"), llmaz()])
def test_fit_has_no_line_for_a_server_without_the_cache(command: Command, documents: list[Json]) -> None:
    answer = command("fit", command.file("all.yaml", *documents)).out
    assert "weights" in answer
    assert "prompt" not in answer
