"""``modelhooks validate`` on whole trees: this repository, and an operator's. The tests list all findings."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from app.desk.cluster.kinds import SERVED
from app.kube.base import Json
from tests.cli.files import Command

ROOT = Path(__file__).parents[2]
NAMES = ROOT / "manifests" / "kustomize" / "namereference.yaml"


def findings(command: Command, *arguments: str) -> tuple[int, set[tuple[str, int, str, str]]]:
    """Return the exit status, and file, line, id and path of each finding."""
    result = command("validate", "--output", "json", *arguments)
    return result.status, {(row["file"], row["line"], row["id"], row["path"]) for row in result.findings}


def ours(file: Path) -> list[Json]:
    documents = [
        document for document in yaml.load_all(file.read_text(), yaml.CSafeLoader) if isinstance(document, dict)
    ]
    return [
        document
        for document in documents
        if document["kind"] in SERVED.get(document["apiVersion"].partition("/")[0], ())
    ]


@pytest.mark.no_cover
def test_this_repository(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rejected examples are refused; of the others one needs a setting, and some have warnings on purpose."""
    monkeypatch.chdir(ROOT)
    status, rows = findings(command, ".")
    assert status == 1
    rejected = {str(file.relative_to(ROOT)) for file in (ROOT / "examples").rglob("rejected/*.yaml") if ours(file)}
    assert len(rejected) > 5
    assert {file for file, *_ in rows if file in rejected} == rejected
    others = {row for row in rows if row[0] not in rejected and row[2] not in ("no-effect", "advice")}
    assert others == {
        ("examples/llmkube/node-file.yaml", 8, "forbidden", "spec.source"),
        *(
            (f"examples/kserve/{name}.yaml", line, "combination", "spec.model.name")  # applied one at a time
            for name, line in {"critical": 12, "prefill-decode": 9, "routed": 9, "scaled": 10, "tracing": 10}.items()
        ),
        ("examples/llmkube/too-large.yaml", 20, "combination", "spec.modelRef"),
    }
    monkeypatch.setenv("MODELHOOKS_LLMKUBE_ALLOWED_HOST_PATHS", "/var/lib/models")
    assert command("validate", ".", "--exclude", "rejected").status == 0


TREE = {
    "README.md": """\
# Our models

```yaml
apiVersion: inference.llmkube.dev/v1alpha1
kind: InferenceService
spec: {a snippet that nobody applies}
```
""",
    ".github/workflows/ci.yaml": "on: [push]\njobs: {a: [1]}\n",
    "docker-compose.yaml": "services: {db: {image: 'postgres:17'}}\n",
    ".gitignore": "rendered/\n",
    "rendered/old.yaml": "apiVersion: inference.llmkube.dev/v1alpha1\nkind: Modle\n",
    "chart/Chart.yaml": "apiVersion: v2\nname: chat\nversion: 1.0.0\n",
    "chart/values.yaml": "replicas: 2\nmodel: {source: org/model}\n",
    "chart/templates/service.yaml": """\
apiVersion: inference.llmkube.dev/v1alpha1
kind: InferenceService
metadata:
  name: {{ .Release.Name }}
spec:
  modelRef: {{ .Values.model.name }}
  {{- with .Values.extra }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
""",
    "base/kustomization.yaml": "resources: [model.yaml, chat.yaml]\n",
    "base/model.yaml": """\
apiVersion: inference.llmkube.dev/v1alpha1
kind: Model
metadata:
  name: chat
spec:
  source: https://models.example.com/chat.gguf
""",
    "base/chat.yaml": """\
apiVersion: inference.llmkube.dev/v1alpha1
kind: InferenceService
metadata:
  name: chat
spec:
  modelRef: chatt
  maxTokens: 5
""",
    "overlays/dev/kustomization.yaml": """\
resources: [../../base, extra.yaml]
patches:
  - path: few.yaml
    target: {kind: InferenceService}
  - patch: |-
      - {op: remove, path: /spec/maxTokens}
    target: {kind: InferenceService}
""",
    "overlays/dev/few.yaml": """\
apiVersion: inference.llmkube.dev/v1alpha1
kind: InferenceService
metadata:
  name: chat
spec:
  replicas: 1
""",
    "overlays/dev/extra.yaml": """\
apiVersion: inference.llmaz.io/v1alpha1
kind: Playground
metadata:
  name: trial
spec:
  modelClaim: {modelName: chat}
  replicas: "2"
""",
    "overlays/prod/kustomization.yaml": """\
resources: [../../base, extra.yaml]
patchesStrategicMerge: [../patches/many.yaml]
""",
    "overlays/patches/many.yaml": """\
apiVersion: inference.llmkube.dev/v1alpha1
kind: InferenceService
metadata: {name: chat}
spec: {replicas: 9}
""",
    "overlays/prod/extra.yaml": """\
apiVersion: inference.llmaz.io/v1alpha1
kind: Playground
metadata:
  name: trial
  annotations:
    modelhooks.dev/ignore: unknown-field
spec:
  modelClaim: {modelName: chat}
  replicas: 2
  tokens: 4
""",
    "broken.yaml": "apiVersion: v1\nkind: ConfigMap\ndata: [a\n",
}
EXPECTED = {
    ("base/chat.yaml", 6, "dangling-reference", "spec.modelRef"),
    ("base/chat.yaml", 7, "unknown-field", "spec.maxTokens"),
    ("overlays/dev/extra.yaml", 7, "wrong-type", "spec.replicas"),
    ("broken.yaml", 3, "yaml", ""),
}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a repository with a Helm chart, kustomize base and overlays, documentation, CRDs and other files."""
    for name, text in TREE.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    shutil.copytree(ROOT / "crds", tmp_path / "chart" / "crds")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_operators_tree(command: Command, tree: Path) -> None:
    """Findings are in files that a user can fix; files that are not manifests by themselves are skipped and counted."""
    assert findings(command, ".") == (1, EXPECTED)
    counted = command("validate", ".").err
    assert "1 Helm template," in counted
    assert "2 kustomize patches" in counted
    assert "1 excluded file," in counted
    assert "4 objects checked, 3 errors, 1 warning " in counted


def test_files_by_their_names_get_the_findings_of_the_tree(command: Command, tree: Path) -> None:
    """pre-commit passes the names of files that git tracks."""
    files = [str(file.relative_to(tree)) for file in sorted(tree.rglob("*.yaml")) if file.parent.name != "rendered"]
    assert findings(command, *files) == (1, EXPECTED)
    for passed_over in ("chart/templates/service.yaml", "overlays/dev/few.yaml", ".github/workflows/ci.yaml"):
        assert findings(command, passed_over, "--allow-empty") == (0, set())


def test_an_operators_tree_once_it_is_mended(command: Command, tree: Path) -> None:
    """The exit status is 0; a warning fails only with --fail-on."""
    for name, wrong, right in (
        ("base/chat.yaml", "  maxTokens: 5\n", ""),
        ("overlays/dev/extra.yaml", '"2"', "2"),
        ("broken.yaml", "[a", "{}"),
    ):
        file = tree / name
        file.write_text(file.read_text().replace(wrong, right))
    assert findings(command, ".") == (0, {("base/chat.yaml", 6, "dangling-reference", "spec.modelRef")})
    assert command("validate", ".", "--fail-on", "warning").status == 1
    assert command("validate", ".", "--strict").status == 1
    (tree / "base/chat.yaml").write_text((tree / "base/chat.yaml").read_text().replace("chatt", "chat"))
    assert findings(command, ".", "--fail-on", "warning", "--strict") == (0, set())


# kustomize.


def kustomized(command: Command, directory: Path, **fields: object) -> str:
    """Return a file with the kustomized examples of every family."""
    for file in ("llmkube/quickstart.yaml", "llmaz/speculative.yaml", "kserve/shared-config.yaml"):
        shutil.copy(ROOT / "examples" / file, directory / Path(file).name)
    resources = sorted(file.name for file in directory.glob("*.yaml"))
    shutil.copy(NAMES, directory / "names")
    (directory / "kustomization.yaml").write_text(yaml.safe_dump({"resources": resources, **fields}))
    done = subprocess.run(["kubectl", "kustomize", str(directory)], capture_output=True, text=True, check=True)
    (directory / "built").mkdir()
    (directory / "built" / "all.yaml").write_text(done.stdout)
    return str(directory / "built" / "all.yaml")


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl, for its kustomize")
@pytest.mark.parametrize("shipped", [True, False])
def test_a_name_prefix_changes_both_sides(command: Command, tmp_path: Path, shipped: bool) -> None:
    """The shipped configuration changes references too; without it they are dangling, which is a finding."""
    fields = {"configurations": ["names"]} if shipped else {}
    file = kustomized(command, tmp_path, namePrefix="team-a-", **fields)
    _, rows = findings(command, file)
    assert {row[2] for row in rows} == (set() if shipped else {"dangling-reference"})


def test_the_shipped_name_references_are_fields() -> None:
    """Each path is a field of its kind; kustomize silently skips wrong ones."""
    from app.desk.schemas import json_schema
    from app.families import RESOURCES

    schemas = {(entry.group, entry.kind): json_schema(entry) for entry in RESOURCES}
    listed = yaml.safe_load(NAMES.read_text())["nameReference"]
    specs = [spec for entry in listed for spec in entry["fieldSpecs"]]
    assert len(specs) > 50
    for spec in specs:
        root = schemas[spec["group"], spec["kind"]]
        node = root
        for name in spec["path"].split("/"):
            while "allOf" in node or "items" in node:
                node = node.get("items") or root["definitions"][node["allOf"][0]["$ref"].rpartition("/")[2]]
            if "$ref" in node:
                node = root["definitions"][node["$ref"].rpartition("/")[2]]
            assert name in node["properties"], spec
            node = node["properties"][name]
