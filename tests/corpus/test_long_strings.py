"""Long strings that a regular expression may divide in many ways. Read in another way, each takes a minute or more."""

from __future__ import annotations

import pytest

from app.desk.files.manifests import looks_like_manifest
from app.families import KINDS
from app.kube.base import Json
from app.limits import MAX_ERRORS, MAX_STRING_BYTES, MAX_UNKNOWN_NAMES
from app.llmaz.arguments import misses, names_a_word
from app.llmkube.model.types import layers
from app.workload.engines.engine import engine_of
from tests.corpus.kinds import VALID, name_of, parent
from tests.hookcalls import admit

MANY = MAX_STRING_BYTES - 100
DIGITS = "9" * 5000
"""More than Python reads as a number."""
_KINDS = {kind.resource.kind: kind for kind in KINDS}


def judged(kind: str, spec: Json, **annotations: str) -> list[str]:
    document = parent(_KINDS[kind], {**VALID[name_of(_KINDS[kind])], **spec})
    document["metadata"]["annotations"] = annotations
    verdict = admit(_KINDS[kind], document)
    return [str(finding) for finding in (*verdict.errors, *verdict.warnings)]


@pytest.mark.parametrize(
    ("kind", "spec", "finding"),
    [
        ("BackendRuntime", {"image": "." * MANY}, "is not an image name"),
        ("BackendRuntime", {"version": ":." * (MANY // 2)}, "is not an image name"),
        ("InferenceService", {"image": "a." * (MANY // 2)}, "is not an image name"),
        ("InferenceService", {"metadataOverrides": [f"a=float:{'9' * MANY}x"]}, "must be of type float"),
        ("BackendRuntime", {"command": ["{{" + "TP " * (MANY // 3) + "}}"]}, "placeholders are only replaced"),
    ],
)
def test_are_read_once(kind: str, spec: Json, finding: str) -> None:
    assert [text for text in judged(kind, spec) if finding in text]


def test_a_version_of_an_engine_that_is_too_long() -> None:
    assert engine_of(f"vllm/vllm-openai:v0.{DIGITS}") is None


@pytest.mark.parametrize("text", ["{{" + "TP " * (MANY // 3), "{" * MANY, "{ " * (MANY // 2), "{{ TP" * (MANY // 5)])
def test_without_a_placeholder(text: str) -> None:
    assert not misses(text)


@pytest.mark.parametrize(
    "text", ["{{ xTP TP }}", "{{TP}}", "{{{ .TP", "{  .PP", "a {{ a-ModelName-b }}", "$(ModelPath)"]
)
def test_placeholders_in_another_form(text: str) -> None:
    assert names_a_word(text)


@pytest.mark.parametrize("text", ["{{ TPx }}", "{{ TP }", "{TP}", "{{ {TP }}", "$(TP)", "{ .TPx"])
def test_other_braces_are_no_placeholder(text: str) -> None:
    assert not names_a_word(text)


def test_a_file_of_empty_lines_is_no_manifest() -> None:
    assert not looks_like_manifest("\n" * MANY)
    assert looks_like_manifest("\n" * MANY + '{\n  "kind": "Model"}')


@pytest.mark.parametrize("entry", [f"0-{DIGITS}", f"{DIGITS}-{DIGITS}", "²-²"])
def test_numbers_of_layers_that_are_too_long(entry: str) -> None:
    assert layers(entry) is None


def test_errors_and_warnings_are_bounded() -> None:
    """Each takes as long to write as a thousand are to be found."""
    spec = {"tolerations": [{"operator": "x"}] * (MAX_ERRORS + 100)}
    spec |= {"imagePullSecrets": [{"name": "x"}] * (MAX_ERRORS + 100)}
    verdict = admit(_KINDS["InferenceService"], parent(_KINDS["InferenceService"], {"modelRef": "m", **spec}))
    assert len(verdict.errors) == MAX_ERRORS
    assert MAX_UNKNOWN_NAMES <= len(verdict.warnings) < 2 * MAX_UNKNOWN_NAMES


def test_a_number_of_devices_that_is_too_long() -> None:
    annotations = {
        f"serving.kserve.io/exp-dra-device-{key}": value for key, value in (("class", "a"), ("count", DIGITS))
    }
    assert "must be a positive number" in "".join(judged("LLMInferenceService", {}, **annotations))
