"""What the kustomize of kubectl makes of our kinds: both sides of each reference change, and nothing is lost.

docs/howto/ci.md has the same as a table.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.families import RESOURCES
from app.kube.base import Json
from app.kube.merge import find as value_at
from tests.e2e import binaries
from tests.e2e.installation import ROOT, Installation

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(binaries.missing() is not None, reason="needs Go")]

REFERENCES = "namereference.yaml"
SERVED = {resource.kind for resource in RESOURCES}
OBJECTS = """
apiVersion: v1
kind: Secret
metadata: {name: hub}
stringData: {token: t, HF_TOKEN: t}
---
apiVersion: inference.llmkube.dev/v1alpha1
kind: Model
metadata: {name: small}
spec: {source: "https://example.com/m.gguf"}
---
apiVersion: inference.llmkube.dev/v1alpha1
kind: InferenceService
metadata: {name: of-llmkube}
spec:
  modelRef: small
  image: registry.example.com/llama:1
  env: [{name: T, valueFrom: {secretKeyRef: {name: hub, key: token}}}]
---
apiVersion: llmaz.io/v1alpha1
kind: OpenModel
metadata: {name: open}
spec: {familyName: q, source: {modelHub: {modelID: Qwen/Qwen2.5-0.5B-Instruct}}}
---
apiVersion: inference.llmaz.io/v1alpha1
kind: BackendRuntime
metadata: {name: engine}
spec:
  image: registry.example.com/engine
  version: v1
  recommendedConfigs: [{name: default, args: [--model, "{{ .ModelPath }}"]}]
---
apiVersion: inference.llmaz.io/v1alpha1
kind: Playground
metadata: {name: of-llmaz}
spec:
  modelClaim: {modelName: open}
  backendRuntimeConfig: {backendName: engine}
---
apiVersion: inference.llmaz.io/v1alpha1
kind: Service
metadata: {name: own}
spec:
  modelClaims: {models: [{name: open, role: main}]}
  workloadTemplate:
    size: 1
    workerTemplate: {spec: {containers: [{name: model-runner, image: "registry.example.com/engine:v1"}]}}
---
apiVersion: serving.kserve.io/v1alpha2
kind: LLMInferenceServiceConfig
metadata: {name: shared}
spec: {template: {containers: [{name: main, image: "registry.example.com/vllm:1"}]}}
---
apiVersion: serving.kserve.io/v1alpha2
kind: LLMInferenceService
metadata: {name: of-kserve}
spec:
  baseRefs: [{name: shared}]
  model: {uri: "hf://Qwen/Qwen3-8B", name: q}
  template:
    containers:
      - name: main
        image: registry.example.com/vllm:1
        env: [{name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hub, key: HF_TOKEN}}}]
"""
NAMED: dict[str, dict[tuple[str | int, ...], str]] = {
    "InferenceService": {("modelRef",): "small", ("env", 0, "valueFrom", "secretKeyRef", "name"): "hub"},
    "Playground": {("modelClaim", "modelName"): "open", ("backendRuntimeConfig", "backendName"): "engine"},
    "Service": {("modelClaims", "models", 0, "name"): "open"},
    "LLMInferenceService": {
        ("baseRefs", 0, "name"): "shared",
        ("template", "containers", 0, "env", 0, "valueFrom", "secretKeyRef", "name"): "hub",
    },
}
"""The references of the objects, by kind."""


def built(folder: Path, objects: str = OBJECTS, **kustomization: Any) -> dict[str, Json]:
    """Return what kustomize makes of the objects, by kind."""
    (folder / "objects.yaml").write_text(objects)
    (folder / REFERENCES).write_text((ROOT / "manifests" / "kustomize" / REFERENCES).read_text())
    whole = {"resources": ["objects.yaml"], "configurations": [REFERENCES], **kustomization}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(whole))
    command = [str(binaries.program("kubectl")), "kustomize", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    by_kind = {item["kind"]: item for item in yaml.safe_load_all(done.stdout)}
    assert by_kind.keys() >= SERVED
    return by_kind


def references(objects: dict[str, Json]) -> Iterator[tuple[str, str]]:
    """Yield each reference as it is now, and as it was."""
    for kind, places in NAMED.items():
        for path, before in places.items():
            value: Any = objects[kind]["spec"]
            for step in path:
                value = value[step]
            yield value, before


def dangling(folder: Path, objects: dict[str, Json]) -> str:
    file = folder / "built.yaml"
    file.write_text(yaml.safe_dump_all(objects.values()))
    command = [sys.executable, "-m", "app.cli", "validate", str(file)]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    return "\n".join(line for line in out.splitlines() if "error" in line or "dangling" in line)


@pytest.mark.parametrize("option", [{"namePrefix": "dev-"}, {"nameSuffix": "-dev"}])
@pytest.mark.parametrize("namespace", [{}, {"namespace": "team"}])
def test_names_change_on_both_sides(tmp_path: Path, option: dict[str, str], namespace: dict[str, str]) -> None:
    objects = built(tmp_path, **option, **namespace)
    prefix, suffix = option.get("namePrefix", ""), option.get("nameSuffix", "")
    assert all(now == f"{prefix}{before}{suffix}" for now, before in references(objects))
    assert dangling(tmp_path, objects) == ""


def test_a_namespace_in_the_file_leaves_names_of_cluster_scoped_kinds_behind(tmp_path: Path) -> None:
    """The limit that the finding names: kustomize takes each unknown kind for namespaced."""
    inside = OBJECTS.replace("{name: of-llmaz}", "{name: of-llmaz, namespace: team}")
    objects = built(tmp_path, inside, namePrefix="dev-")
    assert objects["OpenModel"]["metadata"]["name"] == "dev-open"
    assert objects["Playground"]["spec"]["modelClaim"]["modelName"] == "open"
    assert "dangling-reference" in dangling(tmp_path, objects)


def test_a_namespace_is_written_into_all_kinds_and_ignored_where_there_is_none(
    tmp_path: Path, installation: Installation, namespace: str
) -> None:
    objects = built(tmp_path, namespace=namespace)
    assert {kind: objects[kind]["metadata"].get("namespace") for kind in SERVED} == dict.fromkeys(SERVED, namespace)
    assert dangling(tmp_path, objects) == ""
    applied = ("apply", "--dry-run=server", "-o", "name", "-k", str(tmp_path))
    assert len(installation.cluster.kubectl(*applied).stdout.splitlines()) == len(objects)


def test_images_are_replaced_in_containers_and_nowhere_else(tmp_path: Path) -> None:
    names = ("vllm", "engine", "llama")
    images = [{"name": f"registry.example.com/{name}", "newName": f"mirror.example.com/{name}"} for name in names]
    objects = built(tmp_path, images=images)
    template = ("template", "containers")
    for kind in ("LLMInferenceService", "LLMInferenceServiceConfig"):
        assert value_at(objects[kind]["spec"], template)[0]["image"] == "mirror.example.com/vllm:1"
    runner = objects["Service"]["spec"]["workloadTemplate"]["workerTemplate"]["spec"]["containers"][0]
    assert runner["image"] == "mirror.example.com/engine:v1"
    assert objects["BackendRuntime"]["spec"]["image"] == "registry.example.com/engine"
    assert objects["InferenceService"]["spec"]["image"] == "registry.example.com/llama:1"


def test_replacements_reach_every_field(tmp_path: Path) -> None:
    """Images too, which `images` does not reach."""
    source = {"kind": "LLMInferenceServiceConfig", "fieldPath": "spec.template.containers.0.image"}
    targets = [
        {"select": {"kind": kind}, "fieldPaths": ["spec.image"]} for kind in ("BackendRuntime", "InferenceService")
    ]
    objects = built(tmp_path, replacements=[{"source": source, "targets": targets}])
    assert objects["BackendRuntime"]["spec"]["image"] == "registry.example.com/vllm:1"
    assert objects["InferenceService"]["spec"]["image"] == "registry.example.com/vllm:1"


def test_labels_reach_metadata_and_no_pod(tmp_path: Path) -> None:
    plain = built(tmp_path)
    labelled = built(tmp_path, labels=[{"pairs": {"team": "a"}, "includeSelectors": True, "includeTemplates": True}])
    for kind in SERVED:
        assert labelled[kind]["metadata"]["labels"] == {"team": "a"}
        assert labelled[kind]["spec"] == plain[kind]["spec"]


def test_a_component_replaces_a_list_that_it_patches(tmp_path: Path) -> None:
    """Without a schema a strategic merge patch is a JSON merge patch: a list is one value; a JSON patch adds to it."""
    component = tmp_path / "gpu"
    component.mkdir()
    merge = {
        "apiVersion": "serving.kserve.io/v1alpha2",
        "kind": "LLMInferenceService",
        "metadata": {"name": "of-kserve"},
        "spec": {"template": {"containers": [{"name": "main", "args": ["--max-model-len=4096"]}]}},
    }
    path = "/spec/template/containers/0/args"
    add = [{"op": "add", "path": path, "value": ["--max-model-len=4096"]}]
    target = {"kind": "LLMInferenceService"}
    images = []
    for patch in ({"patch": yaml.safe_dump(merge)}, {"patch": yaml.safe_dump(add), "target": target}):
        whole = {"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component", "patches": [patch]}
        (component / "kustomization.yaml").write_text(yaml.safe_dump(whole))
        (main,) = built(tmp_path, components=["gpu"])["LLMInferenceService"]["spec"]["template"]["containers"]
        assert main["args"] == ["--max-model-len=4096"]
        images.append(main.get("image"))
    assert images == [None, "registry.example.com/vllm:1"]
