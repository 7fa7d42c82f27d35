"""Assumptions are the same in validate, explain and render, are printed, and change with one option."""

from __future__ import annotations

import pytest

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
