"""The engines and examples that are shipped for the family."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from app import images
from app.desk.cluster.kinds import find
from app.kube.base import Json
from tests.llmaz.world import PLAYGROUND, admit, child, model, playground, runner, sync

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "llmaz"


def documents(file: Path) -> list[Json]:
    return [document for document in yaml.load_all(file.read_text(), yaml.CSafeLoader) if document]


ENGINES: dict[str, Json] = {
    engine["metadata"]["name"]: engine
    for file in sorted((ROOT / "manifests" / "llmaz-runtimes").glob("*.yaml"))
    for engine in documents(file)
    if engine["kind"] == "BackendRuntime"
}

ANYWHERE = "0.0.0.0"  # noqa: S104 - inside a pod

TABLE: dict[tuple[str, str], tuple[str, list[str], tuple[str, str, str, str] | None]] = {
    ("vllm", "default"): (
        "vllm/vllm-openai:v0.7.3",
        ["--model", "PATH", "--served-model-name", "opt", "--host", ANYWHERE, "--port", "8080"],
        ("4", "8Gi", "4", "8Gi"),
    ),
    ("vllm", "speculative-decoding"): (
        "vllm/vllm-openai:v0.7.3",
        [
            *("--model", "PATH", "--served-model-name", "opt", "--speculative_model", "DRAFT"),
            *("--host", ANYWHERE, "--port", "8080", "--num_speculative_tokens", "5", "-tp", "1"),
        ],
        ("4", "8Gi", "8", "16Gi"),
    ),
    ("sglang", "default"): (
        "lmsysorg/sglang:v0.4.5-cu121",
        [
            *("--model-path", "PATH", "--served-model-name", "opt"),
            *("--host", ANYWHERE, "--port", "8080", "--enable-metrics"),
        ],
        ("4", "8Gi", "4", "8Gi"),
    ),
    ("llamacpp", "default"): (
        images.LLAMACPP,
        ["-m", "PATH", "--host", ANYWHERE, "--port", "8080", "--cache-ram", "1024", "--metrics"],
        ("2", "4Gi", "2", "4Gi"),
    ),
    ("llamacpp", "speculative-decoding"): (
        images.LLAMACPP,
        [
            *("-m", "PATH", "-md", "DRAFT", "--host", ANYWHERE, "--port", "8080"),
            *("--spec-draft-n-max", "16", "--spec-draft-n-min", "5", "--cache-ram", "1024", "--metrics"),
        ],
        None,
    ),
    ("tgi", "default"): (
        "ghcr.io/huggingface/text-generation-inference:2.3.1",
        ["--model-id", "PATH", "--port", "8080"],
        ("4", "8Gi", "4", "8Gi"),
    ),
    ("tensorrt-llm", "default"): (
        "nvcr.io/nvidia/tritonserver:25.03-trtllm-python-py3",
        ["PATH", "--host", ANYWHERE, "--port", "8080"],
        ("4", "16Gi", "4", "16Gi"),
    ),
}
"""Image, arguments, requests and limits by engine and preset (LZ-3.1)."""


def engine_container(engine: str, preset: str) -> Json:
    claim = [{"name": "opt"}, *([{"name": "small", "role": "draft"}] if preset != "default" else [])]
    item = playground(modelClaims={"models": claim}, backendRuntimeConfig={"backendName": engine})
    answer = sync(PLAYGROUND, item, model(), model("small"), ENGINES[engine])
    return runner(child(answer, "Service")["spec"]["workloadTemplate"]["workerTemplate"])


@pytest.mark.parametrize(("engine", "preset"), TABLE)
def test_each_preset_gives_the_container_of_llmaz(engine: str, preset: str) -> None:
    """Each preset of each engine gives the same container as llmaz's preset."""
    image, args, amounts = TABLE[engine, preset]
    container = engine_container(engine, preset)
    known = {"PATH": "opt", "DRAFT": "small"}
    assert container["image"] == image
    assert container["args"] == [
        f"/workspace/models/models--facebook--{known[arg]}" if arg in known else arg for arg in args
    ]
    if amounts is None:
        assert "resources" not in container
    else:
        cpu, memory, most_cpu, most_memory = amounts
        assert container["resources"] == {
            "requests": {"cpu": cpu, "memory": memory},
            "limits": {"cpu": most_cpu, "memory": most_memory},
        }


def test_there_are_six() -> None:
    """The six engines are valid and cause no warnings, and all their presets are in the table."""
    assert sorted(ENGINES) == ["llamacpp", "ollama", "sglang", "tensorrt-llm", "tgi", "vllm"]
    for engine in ENGINES.values():
        kind = find(engine["apiVersion"], engine["kind"])
        assert kind is not None
        verdict = admit(kind, engine)
        assert (verdict.errors, verdict.warnings) == ([], [])
    presets = {(name, c["name"]) for name, e in ENGINES.items() for c in e["spec"]["recommendedConfigs"]}
    assert presets == {*TABLE, ("ollama", "default")}


def test_ollama_keeps_names_out_of_its_script() -> None:
    """The model's name is an argument of the shell, not part of the script."""
    item = playground(backendRuntimeConfig={"backendName": "ollama"})
    hostile = model(source={"uri": "ollama://x; rm -rf /"})
    container = runner(
        child(sync(PLAYGROUND, item, hostile, ENGINES["ollama"]), "Service")["spec"]["workloadTemplate"][
            "workerTemplate"
        ]
    )
    script, name = container["args"]
    assert name == "x; rm -rf /"
    assert "rm -rf" not in script
    assert '"$0"' in script


def test_draining_asks_the_port_that_the_engine_has() -> None:
    """With upstream's hook, vLLM's pods always used their whole grace period (LZ-T01)."""
    for name in ("vllm", "llamacpp", "tgi"):
        command: list[str] = ENGINES[name]["spec"]["lifecycle"]["preStop"]["exec"]["command"]
        assert "http://localhost:8080/metrics" in command[-1]


BUSY = 'vllm:num_requests_running{model_name="m"} 3.0\nvllm:num_requests_waiting{model_name="m"} 2.0\n'
BY_REASON = 'vllm:num_requests_waiting_by_reason{reason="capacity"} 2.0\n'
IDLE = BUSY.replace("3.0", "0.0").replace("2.0", "0.0")
HOOKS: dict[str, tuple[list[str], int, int]] = {
    "idle": ([IDLE], 1, 0),
    "busy, then idle": ([BUSY + BY_REASON, IDLE], 2, 1),
    "without the numbers, as with --disable-log-stats": (["process_cpu_seconds_total 1.0\n"], 5, 5),
    "no answer": ([""], 5, 5),
}


@pytest.mark.parametrize("case", HOOKS)
def test_vllms_hook_waits_for_requests(case: str, tmp_path: Path) -> None:
    """A page without the numbers of requests is no answer, and says nothing of requests that run."""
    pages, asked, slept = HOOKS[case]
    for at in range(1, 9):
        (tmp_path / f"page{at}").write_text(pages[min(at, len(pages)) - 1])
    _program(tmp_path / "curl", f"echo x >> {tmp_path}/asked; cat {tmp_path}/page$(grep -c x {tmp_path}/asked)")
    _program(tmp_path / "sleep", f"echo x >> {tmp_path}/slept")
    command: list[str] = ENGINES["vllm"]["spec"]["lifecycle"]["preStop"]["exec"]["command"]
    script = command[-1].replace("/proc/1/fd/1", str(tmp_path / "log"))
    path = f"{tmp_path}:{os.environ['PATH']}"
    subprocess.run([*command[:-1], script], check=True, env={"PATH": path}, timeout=60)
    assert _lines(tmp_path / "asked") == asked
    assert _lines(tmp_path / "slept") == slept
    if asked == 2:
        assert (tmp_path / "log").read_text() == "before the end: 5 requests\n"


def _program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_pods_run_on_with_the_earlier_hook() -> None:
    """To apply the manifests is no change of the pods by their user."""
    answered = " | grep -E '^vllm:num_requests_(running|waiting)[{ ]'"
    present = ENGINES["vllm"]
    text = json.dumps(present)
    assert answered in text
    earlier = json.loads(text.replace(answered, ""))
    before = sync(PLAYGROUND, playground(), model(), earlier)
    after = sync(PLAYGROUND, playground(), model(), present, children=before["children"])
    kept, made = child(after, "Service"), child(before, "Service")
    assert kept["spec"]["workloadTemplate"] == made["spec"]["workloadTemplate"]
    assert "modelhooks.dev/kept-template" in kept["metadata"]["annotations"]


def examples(*folders: str) -> list[Any]:
    files = sorted(EXAMPLES.joinpath(*folders).glob("*.yaml"))
    assert files
    return [pytest.param(file, id=file.stem) for file in files]


@pytest.mark.parametrize("file", examples())
def test_examples_are_accepted(file: Path) -> None:
    objects = [(kind, each) for each in documents(file) if (kind := find(each["apiVersion"], each["kind"])) is not None]
    assert objects
    for kind, document in objects:
        assert admit(kind, document).errors == []


@pytest.mark.parametrize("file", examples("rejected"))
def test_rejected_examples_are_refused(file: Path) -> None:
    """The errors name more than one mistake."""
    (document,) = documents(file)
    kind = find(document["apiVersion"], document["kind"])
    assert kind is not None
    assert len(admit(kind, document).errors) >= 2
