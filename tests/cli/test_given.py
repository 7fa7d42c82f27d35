"""Assumptions are the same in validate, explain and render, are printed, and change with one option."""

from __future__ import annotations

import pytest

from app.kube.base import Json
from tests.cli.files import Command
from tests.cli.test_fit import llmaz

NOTE = "taken as given: BackendRuntime vllm (--without installation changes that)"


@pytest.mark.parametrize("name", ["validate", "explain", "render", "fit"])
def test_every_command_says_it(command: Command, name: str) -> None:
    file = command.file("all.yaml", *llmaz())
    assert NOTE in command(name, file).err
    assert "taken as given" not in command(name, file, "--without", "installation").err


def test_what_is_not_read_is_not_said(command: Command) -> None:
    """A Model alone needs no engine, and an engine in the files is not an assumption."""
    opt, playground = llmaz()
    assert "taken as given" not in command("validate", command.file("model.yaml", opt)).err
    engine = {
        "apiVersion": "inference.llmaz.io/v1alpha1",
        "kind": "BackendRuntime",
        "metadata": {"name": "vllm"},
        "spec": {"image": "vllm", "version": "v1", "command": ["serve"], "recommendedConfigs": [{"name": "default"}]},
    }
    file = command.file("all.yaml", opt, playground, engine)
    assert "BackendRuntime" not in command("validate", file).err.split("taken as given")[-1].split("(")[0]


@pytest.mark.parametrize("name", ["validate", "explain", "render", "fit"])
def test_every_command_names_what_is_missing(command: Command, name: str) -> None:
    """A Model may be in the cluster, so that alone is no finding."""
    model, playground = llmaz()
    missing = f"not among the files: OpenModel {model['metadata']['name']}"
    assert missing in command(name, command.file("service.yaml", playground)).err
    assert "not among" not in command(name, command.file("all.yaml", model, playground)).err


LATE = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "local-path", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": "rancher.io/local-path",
    "volumeBindingMode": "WaitForFirstConsumer",
}


def llmkube(hardware: Json | None, annotations: Json | None = None) -> tuple[Json, Json]:
    head = {"apiVersion": "inference.llmkube.dev/v1alpha1", "metadata": {"name": "chat"}}
    spec: Json = {"source": "https://models.example.com/chat.gguf", **({"hardware": hardware} if hardware else {})}
    metadata = {"name": "chat", **({"annotations": annotations} if annotations else {})}
    service = {**head, "kind": "InferenceService", "spec": {"modelRef": "chat", "resources": {"gpu": 1}}}
    return {**head, "kind": "Model", "metadata": metadata, "spec": spec}, service


@pytest.mark.parametrize("name", ["validate", "explain", "render"])
def test_every_command_says_who_downloads_where_no_class_tells(command: Command, name: str) -> None:
    """The Job of render is not what a cluster gets whose class binds late, which most small clusters have."""
    model, service = llmkube({"accelerator": "cuda", "gpu": {"count": 1}})
    words = "no StorageClass is among the files: a Job downloads Model chat"
    assert words in command(name, command.file("all.yaml", model, service)).err
    assert words not in command(name, command.file("all.yaml", model, service, LATE)).err
    chosen = llmkube({"accelerator": "cuda", "gpu": {"count": 1}}, {"modelhooks.dev/download": "Job"})
    assert words not in command(name, command.file("all.yaml", *chosen)).err


def test_a_job_that_knows_of_no_gpu_is_said(command: Command) -> None:
    """The Model asks for no GPU and its service does, so the Job may take the volume to another node."""
    words = "Model chat asks for no GPU, and InferenceService chat does"
    assert words in command("validate", command.file("all.yaml", *llmkube(None))).err
    assert words not in command("validate", command.file("all.yaml", *llmkube({"gpu": {"count": 1}}))).err
    chosen = llmkube(None, {"modelhooks.dev/download": "FirstPod"})
    assert words not in command("validate", command.file("all.yaml", *chosen)).err


def test_an_engine_of_the_installation_is_there(command: Command) -> None:
    file = command.file("all.yaml", *llmaz())
    assert "kind: Deployment" in command("render", file).out
    assert "kind: Deployment" not in command("render", file, "--without", "installation").out


def test_an_engine_of_ones_own_is_no_finding(command: Command) -> None:
    """It may exist in the cluster; a missing engine is a finding only if the files have engines."""
    model, playground = llmaz()
    playground["spec"]["backendRuntimeConfig"] = {"backendName": "house-engine"}
    assert "dangling" not in command("validate", command.file("all.yaml", model, playground), "--output", "json").out


def test_a_misspelt_command_is_corrected(command: Command) -> None:
    result = command("valdate")
    assert result.status == 2
    assert 'no such command "valdate"; did you mean "validate"?' in result.err
