"""Findings have a range, and a fix that removes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.kube.base import Json
from tests.cli.files import Command
from tests.studio.conftest import EXAMPLES, Ask

REJECTED = sorted(name for name in EXAMPLES if "/rejected/" in name)
SERVICE = """apiVersion: inference.llmkube.dev/v1alpha1
kind: InferenceService
metadata: {name: chat}
spec:
  modelRef: chat
"""
MODEL = """apiVersion: inference.llmkube.dev/v1alpha1
kind: Model
metadata: {name: chat}
spec:
  source: https://models.example.com/chat.gguf
"""
KSERVE = """apiVersion: serving.kserve.io/v1alpha2
kind: LLMInferenceService
metadata: {name: chat}
spec:
  model: {uri: hf://facebook/opt-125m}
"""
PLAYGROUND = """apiVersion: inference.llmaz.io/v1alpha1
kind: Playground
metadata: {name: chat}
spec:
  modelClaim: {modelName: chat}
"""
SLIPS = {
    "a field": (SERVICE + "  replcas: 2\n", ["replicas: 2"]),
    "a field of a flow mapping": (MODEL + "  hardware: {acelerator: cpu}\n", ["{accelerator: cpu}"]),
    "a field one level too high": (SERVICE + "  memory: 4Gi\n", ["resources:\n    memory: 4Gi"]),
    "a field of another family": (KSERVE.replace("model:", "modle:"), ["  model: {uri"]),
    "a value": (SERVICE + "  runtime: vlm\n", ["runtime: vllm"]),
    "a unit": (SERVICE + "  resources: {memory: 8GB}\n", ["{memory: 8G}", "{memory: 8Gi}"]),
    "a number in quotes": (SERVICE + '  replicas: "2"\n', ["replicas: 2\n"]),
    "a number without quotes": (SERVICE + "  resources: {cpu: 2}\n", ['{cpu: "2"}']),
    "a boolean without quotes": (SERVICE + "  nodeSelector: {gpu: yes}\n", ['{gpu: "yes"}']),
    "a text for a list": (SERVICE + "  extraArgs: --jinja\n", ['extraArgs: ["--jinja"]']),
    "another object": (SERVICE.replace("Ref: chat", "Ref: chta") + "---\n" + MODEL, ["modelRef: chat"]),
    "a kind": (MODEL.replace("kind: Model", "kind: Modle"), ["kind: Model\n"]),
    "a group": (PLAYGROUND.replace("llmaz.io", "lmaz.io"), ["inference.llmaz.io/v1alpha1"]),
    "a quote that is not closed": (SERVICE + "  image: 'server:1\n", ["image: 'server:1'\n"]),
    "a colon in a value": (SERVICE + "  image: server: 1\n", ["image: 'server: 1'\n"]),
    "a character that cannot begin a value": (SERVICE + "  image: @server\n", ["image: '@server'\n"]),
    "a tab": (SERVICE + "\truntime: vllm\n", ["\n  runtime: vllm"]),
}


def applied(text: str, fix: Json) -> str:
    """Return the document after a fix, applied from the end, so that no position moves."""
    lines = text.splitlines(keepends=True)
    for edit in sorted(fix["edits"], key=lambda edit: (edit["line"], edit["column"]), reverse=True):
        starts = [sum(map(len, lines[: edit[line] - 1])) for line in ("line", "endLine")]
        whole = "".join(lines)
        text = whole[: starts[0] + edit["column"] - 1] + edit["text"] + whole[starts[1] + edit["endColumn"] - 1 :]
        lines = text.splitlines(keepends=True)
    return "".join(lines)


@pytest.mark.parametrize("case", SLIPS.values(), ids=list(SLIPS))
def test_a_fix_takes_its_finding_away(ask: Ask, case: tuple[str, list[str]]) -> None:
    text, wanted = case
    findings = [finding for finding in ask("check", text) if finding["fixes"]]
    assert len(findings) == 1, findings
    results = [applied(text, fix) for fix in findings[0]["fixes"]]
    assert len(results) == len(wanted)
    for result, part in zip(results, wanted, strict=True):
        assert part in result
        left = ask("check", result)
        assert not [finding for finding in left if finding["level"] == "error"], left
        assert findings[0]["message"] not in {finding["message"] for finding in left}


def test_no_fix_of_the_rejected_examples_makes_it_worse(ask: Ask) -> None:
    tried = 0
    for name in REJECTED:
        before = ask("check", EXAMPLES[name])
        for finding in before:
            for fix in finding["fixes"]:
                tried += 1
                after = ask("check", applied(EXAMPLES[name], fix))
                assert len(after) < len(before), (name, fix)
    assert tried > 3


def test_findings_are_those_of_validate_with_an_end(ask: Ask) -> None:
    (finding,) = ask("check", SERVICE + "  runtime: vlm\n")
    assert (finding["document"], finding["line"], finding["column"]) == ("0.yaml", 6, 3)
    assert (finding["endLine"], finding["endColumn"]) == (6, 15)
    assert (finding["level"], finding["id"], finding["path"]) == ("error", "unsupported-value", "spec.runtime")
    assert finding["help"].endswith("/docs/findings.md#unsupported-value")


def test_a_reference_is_checked_across_documents(ask: Ask) -> None:
    assert ask("check", SERVICE, MODEL) == []
    (finding,) = ask("check", SERVICE.replace("Ref: chat", "Ref: other"), MODEL)
    assert (finding["document"], finding["id"], finding["level"]) == ("0.yaml", "dangling-reference", "warning")


def test_a_setting_decides_what_is_allowed(ask: Ask) -> None:
    text = MODEL.replace("https://models.example.com", "/models")
    assert [finding["path"] for finding in ask("check", text)] == ["spec.source"]
    assert ask("check", text, settings={"MODELHOOKS_LLMKUBE_ALLOWED_HOST_PATHS": "/models"}) == []


@pytest.mark.parametrize("name", REJECTED)
def test_every_range_is_inside_its_document(ask: Ask, name: str) -> None:
    lines = EXAMPLES[name].splitlines()
    findings = ask("check", EXAMPLES[name])
    assert any(finding["level"] == "error" for finding in findings)
    for finding in findings:
        assert (finding["line"], finding["column"]) < (finding["endLine"], finding["endColumn"])
        assert finding["endColumn"] <= len(lines[finding["endLine"] - 1]) + 1


def test_valid_examples_have_no_errors(ask: Ask) -> None:
    allowed = {"MODELHOOKS_LLMKUBE_ALLOWED_HOST_PATHS": "/"}
    for name in set(EXAMPLES) - set(REJECTED):
        assert not [
            finding for finding in ask("check", EXAMPLES[name], settings=allowed) if finding["level"] == "error"
        ], name


def test_the_assumptions_are_those_of_validate(ask: Ask, command: Command) -> None:
    for text in (PLAYGROUND, SERVICE, KSERVE, f"{PLAYGROUND}---\n{MODEL}", "kind: {"):
        file = Path(command.file("0.yaml", {}))
        file.write_text(text)
        printed = [
            line for line in command("validate", str(file)).err.splitlines() if "taken as" in line or "among" in line
        ]
        assert [f"modelhooks validate: {sentence}" for sentence in ask("assumptions", text)] == printed
    assert ask("assumptions", PLAYGROUND)[1] == "not among the files: OpenModel chat"
