"""The commands of docs/migration.md, run unchanged on objects such as the Go operators leave behind."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from app.kube.base import Json
from tests.e2e import binaries
from tests.e2e.controlplane import ControlPlane

pytestmark = pytest.mark.e2e

PAGE = Path(__file__).parents[2] / "docs" / "migration.md"
NAMESPACE = "models"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane without controllers, so that only the page's commands change objects."""
    workdir = tmp_path_factory.mktemp("migration")
    with ControlPlane(workdir, controllers=False, scheduler=False, kwok=False) as cluster:
        files = binaries.optional_crds("leaderworkersets", "httproutes", "inferencepools")
        kinds = {
            "inference.llmkube.dev": ["InferenceService"],
            "inference.llmaz.io": ["Playground", "Service"],
            "serving.kserve.io": ["LLMInferenceService"],
        }
        for group, names in kinds.items():
            for name in names:
                files.append(workdir / f"{name}.{group}.yaml")
                files[-1].write_text(yaml.safe_dump(_crd(group, name)))
        cluster.install_crds(*files)
        cluster.kubectl("create", "namespace", NAMESPACE)
        yield cluster


def test_llmkubes_children_get_their_parents_uid(cluster: ControlPlane) -> None:
    parent = _create(cluster, "inference.llmkube.dev/v1alpha1", "InferenceService", "chat")
    for child in (_deployment("chat"), _service("chat"), _autoscaler("chat")):
        _create_child(cluster, child, parent)
    _apply(cluster, _service("somebody-elses"))

    _run_printed(cluster, _commands("LLMKube", "kubectl get deployments,services"))

    for kind in ("deployment", "service", "horizontalpodautoscaler"):
        assert _labels(cluster, f"{kind}/chat")["controller-uid"] == parent["metadata"]["uid"]
    assert "controller-uid" not in _labels(cluster, "service/somebody-elses")
    listed = cluster.kubectl(*_arguments(_commands("Afterwards", "kubectl get deployments")), "-o", "name").stdout
    assert listed.split() == ["deployment.apps/chat", "service/chat", "horizontalpodautoscaler.autoscaling/chat"]


def test_llmazs_children_get_their_parents_uid(cluster: ControlPlane) -> None:
    playground = _create(cluster, "inference.llmaz.io/v1alpha1", "Playground", "qwen")
    service = {"apiVersion": "inference.llmaz.io/v1alpha1", "kind": "Service", "metadata": {"name": "qwen"}}
    inference = _create_child(cluster, service, playground)
    _create_child(cluster, _autoscaler("qwen"), playground)
    _create_child(cluster, _service("qwen-lb"), inference)
    _create_child(cluster, _leaderworkerset("qwen"), inference)

    _run_printed(cluster, _commands("llmaz", "kubectl get services.inference.llmaz.io"))

    uid, service_uid = playground["metadata"]["uid"], inference["metadata"]["uid"]
    assert _labels(cluster, "services.inference.llmaz.io/qwen")["controller-uid"] == uid
    assert _labels(cluster, "hpa/qwen")["controller-uid"] == uid
    assert _labels(cluster, "service/qwen-lb")["controller-uid"] == service_uid
    assert _labels(cluster, "leaderworkerset/qwen")["controller-uid"] == service_uid


def test_kserves_children_get_their_parents_uid_and_keep_their_owner(cluster: ControlPlane) -> None:
    parent = _create(cluster, "serving.kserve.io/v1alpha2", "LLMInferenceService", "llama")
    finalizer = {"metadata": {"finalizers": ["serving.kserve.io/llmisvc-finalizer"]}}
    cluster.kubectl("patch", "llmisvc/llama", "-n", NAMESPACE, "--type=merge", "-p", json.dumps(finalizer))
    child = _deployment("llama-kserve")
    _create_child(cluster, child, parent)

    printing = [c for c in _commands("KServe") if "printf" in c]
    _run_printed(cluster, printing)

    assert "finalizers" not in cluster.get("llmisvc/llama", "-n", NAMESPACE)["metadata"]
    metadata = cluster.get("deployment/llama-kserve", "-n", NAMESPACE)["metadata"]
    assert [owner["apiVersion"] for owner in metadata["ownerReferences"]] == ["serving.kserve.io/v1alpha2"]
    assert metadata["labels"]["controller-uid"] == parent["metadata"]["uid"]


# Commands of the page


def _commands(section: str, *starts: str) -> list[str]:
    """Return the commands of a section that begin with one of `starts`, without comments."""
    text = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)
    body = next(part for part in text if part.startswith(section))
    blocks = re.findall(r"^```sh\n(.*?)^```", body, re.MULTILINE | re.DOTALL)
    found = [
        c.strip()
        for block in blocks
        for c in re.split(r"^(?=kubectl )", re.sub(r"^#.*\n", "", block, flags=re.MULTILINE), flags=re.MULTILINE)
    ]
    wanted = [command for command in found if command.startswith(starts or "kubectl")]
    assert wanted, f"{section} has no command {starts}"
    return wanted


def _arguments(commands: list[str]) -> list[str]:
    (command,) = commands
    return command.split()[1:]


def _run_printed(cluster: ControlPlane, commands: list[str]) -> None:
    """Run commands as documented, and then the commands that they print."""
    for command in commands:
        printed = _shell(cluster, command)
        assert printed.strip(), f"nothing printed by\n{command}"
        _shell(cluster, printed)


def _shell(cluster: ControlPlane, script: str) -> str:
    path = f"{binaries.program('kubectl').parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "KUBECONFIG": str(cluster.kubeconfig), "HOME": str(cluster.workdir)}
    done = subprocess.run(["sh", "-eu", "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{script}\n{done.stderr}{done.stdout}"
    return done.stdout


# Objects


def _crd(group: str, kind: str) -> Json:
    plural = f"{kind.lower()}s"
    names: dict[str, object] = {"kind": kind, "plural": plural, "singular": kind.lower()}
    versions = ["v1alpha1"]
    if group == "serving.kserve.io":
        names["shortNames"] = ["llmisvc"]
        versions = ["v1alpha1", "v1alpha2"]
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": names,
            "versions": [
                {"name": name, "served": True, "storage": name == versions[-1], "schema": schema} for name in versions
            ],
        },
    }


def _create(cluster: ControlPlane, api_version: str, kind: str, name: str) -> Json:
    return _apply(cluster, {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}})


def _create_child(cluster: ControlPlane, child: Json, parent: Json) -> Json:
    owner = {key: parent[key] for key in ("apiVersion", "kind")} | {
        "name": parent["metadata"]["name"],
        "uid": parent["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": False,
    }
    return _apply(cluster, child | {"metadata": child["metadata"] | {"ownerReferences": [owner]}})


def _apply(cluster: ControlPlane, manifest: Json) -> Json:
    done = cluster.kubectl("create", "-n", NAMESPACE, "-o", "json", "-f", "-", input=json.dumps(manifest))
    found: Json = json.loads(done.stdout)
    return found


def _labels(cluster: ControlPlane, name: str) -> dict[str, str]:
    labels: dict[str, str] = cluster.get(name, "-n", NAMESPACE)["metadata"].get("labels", {})
    return labels


def _template() -> Json:
    return {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "x", "image": "x"}]}}


def _deployment(name: str) -> Json:
    spec = {"selector": {"matchLabels": {"app": "x"}}, "template": _template()}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def _service(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}}


def _autoscaler(name: str) -> Json:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    spec = {"scaleTargetRef": target, "maxReplicas": 2}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name}, "spec": spec}


def _leaderworkerset(name: str) -> Json:
    spec = {"leaderWorkerTemplate": {"workerTemplate": _template()}}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name},
        "spec": spec,
    }
