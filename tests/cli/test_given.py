"""What is taken as given: the same in validate, explain and render, said, and changed with one option."""

from __future__ import annotations

import pytest

from tests.cli.files import Command
from tests.cli.test_fit import llmaz

NOTE = "taken as given: BackendRuntime llamacpp, ollama, sglang, tensorrt-llm, tgi, vllm"


@pytest.mark.parametrize("name", ["validate", "explain", "render", "fit"])
def test_every_command_says_it(command: Command, name: str) -> None:
    file = command.file("all.yaml", *llmaz())
    assert NOTE in command(name, file).err
    assert "taken as given" not in command(name, file, "--without", "installation").err


def test_an_engine_of_the_installation_is_there(command: Command) -> None:
    file = command.file("all.yaml", *llmaz())
    assert "kind: Deployment" in command("render", file).out
    assert "kind: Deployment" not in command("render", file, "--without", "installation").out


def test_an_engine_of_ones_own_is_no_finding(command: Command) -> None:
    """It may be in the cluster; only among files that have engines is a missing one a finding."""
    model, playground = llmaz()
    playground["spec"]["backendRuntimeConfig"] = {"backendName": "vlm"}
    assert "dangling" not in command("validate", command.file("all.yaml", model, playground), "--output", "json").out


def test_a_misspelt_command_is_corrected(command: Command) -> None:
    result = command("valdate")
    assert result.status == 2
    assert 'no such command "valdate"; did you mean "validate"?' in result.err
