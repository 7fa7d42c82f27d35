"""``modelhooks validate --fix`` writes unambiguous corrections into the files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.desk.files.manifests import parse
from tests.cli.files import Command, model, service

TYPED = """\
# kept
apiVersion: inference.llmkube.dev/v1alpha1
kind: InferenceService
metadata: {name: s}
spec:
  model_ref: m   # kept, too
  replicas: "2"
  tolerations:
    - operator: exists
"""


def test_corrections_are_written_and_reported(command: Command) -> None:
    """Corrections that become possible after another one are included. Comments and order are kept."""
    path = Path(command.file("all.yaml", model()))
    path.write_text(f"{path.read_text()}---\n{TYPED}")
    result = command("validate", "--fix", str(path))
    assert result.status == 0
    fixed = TYPED.replace("model_ref", "modelRef").replace('"2"', "2").replace("exists", "Exists")
    assert path.read_text().endswith(fixed)
    assert "spec.model_ref: Write modelRef" in result.err
    assert "2 objects checked, 0 errors" in result.err


def test_what_leaves_a_choice_stays(command: Command) -> None:
    path = Path(command.file("all.yaml", model(), service({"resources": {"memory": "4 GB"}})))
    before = path.read_bytes()
    result = command("validate", "--fix", str(path))
    assert result.status == 1
    assert "did you mean 4G or 4Gi?" in result.out
    assert path.read_bytes() == before


def test_line_ends_and_warnings_are_left_alone(command: Command) -> None:
    path = Path(command.file("all.yaml", model(), service()))
    path.write_bytes(TYPED.replace("\n", "\r\n").encode())
    command("validate", "--fix", str(path))
    assert b"  modelRef: m   # kept, too\r\n  replicas: 2\r\n" in path.read_bytes()


def test_standard_input_cannot_be_written(command: Command) -> None:
    result = command("validate", "--fix", "-")
    assert (result.status, result.err) == (
        2,
        "modelhooks validate: --fix writes files, and cannot write standard input\n",
    )


def test_a_finding_about_a_missing_field_changes_no_other_field(command: Command, tmp_path: Path) -> None:
    """Its place is the beginning of the object, where another field is."""
    path = tmp_path / "untyped.yaml"
    path.write_text("kind: Modle\nmetadata: {name: m}\nspec: {}\n")
    result = command("validate", "--fix", str(path))
    assert "write kind: Model and apiVersion: inference.llmkube.dev/v1alpha1" in result.out
    assert path.read_text().startswith("kind: Modle\n")


def test_a_long_correction_is_written_whole(command: Command) -> None:
    """The message shows the beginning only."""
    arguments = [f"--option-{number}" for number in range(50)]
    path = Path(command.file("all.yaml", model(), service({"extraArgs": " ".join(arguments)})))
    assert command("validate", "--fix", str(path)).status == 0
    assert parse(path.read_text(), "all.yaml")[1].document["spec"]["extraArgs"] == arguments


def test_a_field_of_a_merged_map_changes_no_other_field(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "merged.yaml"
    path.write_text(TYPED.replace("  model_ref: m   # kept, too", "  <<: {model_ref: m}"))
    result = command("validate", "--fix", str(path))
    assert 'did you mean "modelRef"?' in result.out
    assert "\nspec:\n" in path.read_text()


def test_a_blank_after_a_dash(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "dash.yaml"
    path.write_text(TYPED.replace("- operator: exists", "-operator: exists\n      key: a"))
    command("validate", "--fix", str(path))
    assert "    - operator: Exists\n      key: a\n" in path.read_text()


MISPLACED = """\
apiVersion: inference.llmaz.io/v1alpha1
kind: Playground
metadata: {name: opt}
spec:
  minReplicas: 1
  maxReplicas: 3
  replica: 1
  replicas: 1
  modelClaim: {modelName: opt}
"""


def test_no_correction_repeats_a_key(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "misplaced.yaml"
    path.write_text(MISPLACED)
    result = command("validate", "--fix", str(path))
    assert path.read_text() == MISPLACED.replace("  minReplicas", "  elasticConfig:\n    minReplicas")
    assert 'unknown field "spec.maxReplicas", did you mean "elasticConfig.maxReplicas"?' in result.out


def test_a_field_of_a_flow_map_is_not_indented(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "flow.yaml"
    path.write_text(MISPLACED.partition("spec:")[0] + "spec: {modelName: opt}\n")
    before = path.read_text()
    assert 'did you mean "modelClaim.modelName"?' in command("validate", "--fix", str(path)).out
    assert path.read_text() == before


def test_quotes_are_kept_where_they_have_to_stay(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "quoted.yaml"
    path.write_text(TYPED.replace("model_ref", "'model_ref'").replace("operator: exists", 'operator: "exists"'))
    command("validate", "--fix", str(path))
    fixed = TYPED.replace("model_ref", "'modelRef'").replace("operator: exists", 'operator: "Exists"')
    assert path.read_text() == fixed.replace('replicas: "2"', "replicas: 2")


def test_json_stays_json(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "all.json"
    spec = {"model_ref": "m", "replicas": "2", "tolerations": [{"operator": "exists"}]}
    path.write_text(json.dumps({**service(), "spec": spec}, separators=(",", ":")))
    assert command("validate", "--fix", str(path)).status == 0
    assert json.loads(path.read_text())["spec"] == {
        "modelRef": "m",
        "replicas": 2,
        "tolerations": [{"operator": "Exists"}],
    }


@pytest.mark.parametrize(
    "lines",
    [
        '  replicas: &two "2"\n  parallelSlots: *two\n',
        "  replicas: &two 2\n  env: [{name: A, value: *two}]\n",
        "  replicas: !!str 2\n",
        "  extraArgs: >-\n    --a\n    --b\n  replicas: 1\n",
    ],
    ids=["an anchor and its alias", "an alias", "a tag", "a block"],
)
def test_what_is_more_than_a_value_stays(command: Command, tmp_path: Path, lines: str) -> None:
    path = tmp_path / "more.yaml"
    path.write_text(f"{TYPED.partition('spec:')[0]}spec:\n  modelRef: m\n{lines}")
    before = path.read_text()
    assert command("validate", "--fix", str(path)).status == 1
    assert path.read_text() == before


def test_the_byte_order_mark_stays(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "marked.yaml"
    path.write_bytes(TYPED.encode("utf-8-sig"))
    command("validate", "--fix", str(path))
    assert path.read_bytes().startswith(b"\xef\xbb\xbf# kept\n")


def test_a_version_keeps_its_digits(command: Command, tmp_path: Path) -> None:
    """YAML reads 3.10 as the number 3.1."""
    path = tmp_path / "version.yaml"
    path.write_text(
        "apiVersion: inference.llmaz.io/v1alpha1\nkind: BackendRuntime\nmetadata: {name: own}\n"
        "spec:\n  image: registry.example.com/own\n  version: 3.10\n"
    )
    command("validate", "--fix", str(path))
    assert '  version: "3.10"\n' in path.read_text()
