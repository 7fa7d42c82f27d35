"""`helm install --wait` and `helm upgrade --wait` of services, with the real Helm: howto/gitops.md."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from app.kube.base import Json
from tests.e2e import binaries
from tests.e2e.controlplane import ControlPlane
from tests.e2e.installation import Installation
from tests.e2e.test_llmaz import RUNTIMES

pytestmark = pytest.mark.e2e

SERVICES: list[Json] = [
    {
        "apiVersion": "inference.llmkube.dev/v1alpha1",
        "kind": "Model",
        "metadata": {"name": "small"},
        "spec": {"source": "https://example.com/m.gguf"},
    },
    {
        "apiVersion": "inference.llmkube.dev/v1alpha1",
        "kind": "InferenceService",
        "metadata": {"name": "of-llmkube"},
        "spec": {"modelRef": "small", "replicas": "REPLICAS", "podLabels": {"e2e.modelhooks.dev/fail": "FAIL"}},
    },
    {
        "apiVersion": "llmaz.io/v1alpha1",
        "kind": "OpenModel",
        "metadata": {"name": "NAMESPACE"},
        "spec": {"familyName": "q", "source": {"modelHub": {"modelID": "Qwen/Qwen2.5-0.5B-Instruct"}}},
    },
    {
        "apiVersion": "inference.llmaz.io/v1alpha1",
        "kind": "Playground",
        "metadata": {"name": "of-llmaz"},
        "spec": {"replicas": "REPLICAS", "modelClaim": {"modelName": "NAMESPACE"}},
    },
    {
        "apiVersion": "serving.kserve.io/v1alpha2",
        "kind": "LLMInferenceService",
        "metadata": {"name": "of-kserve"},
        "spec": {"model": {"uri": "hf://Qwen/Qwen2.5-0.5B-Instruct", "name": "q"}, "replicas": "REPLICAS"},
    },
]
KINDS = "inferenceservices.inference.llmkube.dev,playgrounds,llminferenceservices"
WORDS = {
    "REPLICAS": "{{ .Values.replicas }}",
    "FAIL": "{{ .Values.fail }}",
    "NAMESPACE": "{{ .Release.Namespace }}",
}


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    folder = tmp_path / "chart"
    (folder / "templates").mkdir(parents=True)
    text = yaml.safe_dump_all(SERVICES)
    for word, template in WORDS.items():
        text = text.replace(word, template if word == "REPLICAS" else f'"{template}"')
    (folder / "templates" / "services.yaml").write_text(text)
    (folder / "Chart.yaml").write_text(yaml.safe_dump({"apiVersion": "v2", "name": "models", "version": "0.1.0"}))
    (folder / "values.yaml").write_text(yaml.safe_dump({"replicas": 1, "fail": "none"}))
    return folder


def helm(cluster: ControlPlane, namespace: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "HOME": str(cluster.workdir / "home")}
    command = [str(binaries.tool("helm")), *map(str, arguments), "--namespace", namespace]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def waits(cluster: ControlPlane, namespace: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return helm(cluster, namespace, *arguments, "--wait", "--timeout", "280s")


@pytest.fixture
def cluster(installation: Installation) -> Iterator[ControlPlane]:
    installation.cluster.kubectl("apply", "-k", str(RUNTIMES))
    yield installation.cluster
    installation.cluster.kubectl("delete", "-k", str(RUNTIMES))


def test_an_installation_waits_until_all_are_ready_and_an_upgrade_stops_them(
    cluster: ControlPlane, namespace: str, chart: Path
) -> None:
    """The API server answers before the first sync, and Helm takes an object without status for finished."""
    installed = waits(cluster, namespace, "install", "models", chart)
    assert installed.returncode == 0, installed.stderr
    cluster.kubectl("wait", KINDS, "--all", "-n", namespace, "--for=condition=Ready", "--timeout=1s")
    stopped = waits(cluster, namespace, "upgrade", "models", chart, "--set", "replicas=0")
    assert stopped.returncode == 0, stopped.stderr
    assert {item["spec"]["replicas"] for item in cluster.get("deployments", "-n", namespace)["items"]} == {0}


def test_what_never_starts_ends_the_installation_with_its_reason(
    cluster: ControlPlane, namespace: str, chart: Path
) -> None:
    """Long before the timeout: Helm waits for the others, and then tells of what has failed."""
    done = waits(cluster, namespace, "install", "models", chart, "--set", "fail=InvalidImageName")
    assert done.returncode != 0
    assert "of-llmkube not ready. status: Failed" in done.stderr
    assert "InvalidImageName" in done.stderr
    assert "deadline exceeded" not in done.stderr


@pytest.mark.parametrize("kind", ["LLMInferenceService", "LLMInferenceServiceConfig"])
@pytest.mark.parametrize("version", ["v1alpha1", "v1alpha2"])
def test_an_unanswered_object_says_so_in_both_versions(
    installation: Installation, namespace: str, kind: str, version: str
) -> None:
    """Programs that wait ask in the version of their manifest, so the conversion keeps the default of the status."""
    head = {"apiVersion": f"serving.kserve.io/{version}", "kind": kind, "metadata": {"name": "new"}}
    text = json.dumps({**head, "spec": {"model": SERVICES[-1]["spec"]["model"]}})
    created = installation.cluster.kubectl(
        "create", "--dry-run=server", "--validate=false", "-n", namespace, "-o", "json", "-f", "-", input=text
    )
    answered = json.loads(created.stdout)
    assert answered["apiVersion"] == head["apiVersion"]
    assert answered["status"] == {"observedGeneration": -1}
