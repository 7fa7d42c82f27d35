"""An update whose new pods cannot start, or that is paused, in every family: Ready reports it, and recovers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from app.kube.base import Json
from tests.e2e.controlplane import ControlPlane
from tests.e2e.installation import Installation
from tests.e2e.processes import wait_until

pytestmark = pytest.mark.e2e


BROKEN, FIXED = "ImagePullBackOff", "v3"
"""Tags of the server's image; pods with the first one fail (``stages/pod-fails.yaml``)."""


@dataclass(frozen=True)
class Update:
    """A running service, and the change of its image's tag."""

    documents: list[Json]
    kind: str
    spec: dict[str, Any]
    """The change, with ``TAG`` in place of the tag."""
    available: str
    """The condition that stays true while the old pods serve."""


LLMKUBE, LLMAZ = "inference.llmkube.dev/v1alpha1", "inference.llmaz.io/v1alpha1"
MAIN = {"name": "main", "image": "registry.example/server:v1"}
RUNTIME: Json = {
    "command": ["serve"],
    "image": "registry.example/server",
    "version": "v1",
    "recommendedConfigs": [{"name": "default", "args": ["--model", "{{ .ModelPath }}"]}],
}


def document(api_version: str, kind: str, name: str, spec: Json) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


UPDATES = {
    "llmkube": Update(
        [
            document(LLMKUBE, "Model", "small", {"source": "example-org/small"}),
            document(
                LLMKUBE,
                "InferenceService",
                "chat",
                {"modelRef": "small", "runtime": "vllm", "skipModelInit": True, "image": MAIN["image"]},
            ),
        ],
        "inferenceservices.inference.llmkube.dev",
        {"image": "registry.example/server:TAG"},
        "Available",
    ),
    "llmaz": Update(
        [
            document(
                "llmaz.io/v1alpha1",
                "OpenModel",
                "updated",
                {"familyName": "test", "source": {"modelHub": {"modelID": "example-org/updated"}}},
            ),
            document(LLMAZ, "BackendRuntime", "updated", RUNTIME),
            document(
                LLMAZ,
                "Playground",
                "chat",
                {
                    "replicas": 2,
                    "modelClaim": {"modelName": "updated"},
                    "backendRuntimeConfig": {"backendName": "updated"},
                },
            ),
        ],
        "playgrounds.inference.llmaz.io",
        {"backendRuntimeConfig": {"version": "TAG"}},
        "",
    ),
    "kserve": Update(
        [
            document(
                "serving.kserve.io/v1alpha2",
                "LLMInferenceService",
                "chat",
                {"model": {"uri": "hf://example-org/small"}, "template": {"containers": [MAIN]}},
            ),
        ],
        "llminferenceservices.serving.kserve.io",
        {"template": {"containers": [{**MAIN, "image": "registry.example/server:TAG"}]}},
        "",
    ),
}


@pytest.fixture
def cluster(installation: Installation) -> Iterator[ControlPlane]:
    """The control plane; cluster-scoped objects are deleted afterwards."""
    yield installation.cluster
    installation.cluster.kubectl("delete", "openmodels,backendruntimes", "updated", "--ignore-not-found")


def condition(cluster: ControlPlane, namespace: str, update: Update, type_: str) -> Json:
    """Return a condition of the service; empty without one."""
    conditions = cluster.get(update.kind, "chat", "-n", namespace).get("status", {}).get("conditions", [])
    return next((dict(c) for c in conditions if c["type"] == type_), {})


def change(cluster: ControlPlane, namespace: str, update: Update, tag: str) -> None:
    spec = json.dumps({"spec": update.spec}).replace("TAG", tag)
    cluster.kubectl("patch", update.kind, "chat", "-n", namespace, "--type=merge", "-p", spec)


@pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES)
def test_a_broken_update_is_not_ready_until_it_is_mended(cluster: ControlPlane, namespace: str, update: Update) -> None:
    """Ready's reason is the rollout, and its message names the new pod's problem."""

    def is_ready() -> bool:
        return condition(cluster, namespace, update, "Ready").get("status") == "True"

    def available() -> list[int]:
        deployments = cluster.get("deployments", "-n", namespace)["items"]
        return [deployment["status"].get("availableReplicas", 0) for deployment in deployments]

    def is_broken() -> bool:
        ready = condition(cluster, namespace, update, "Ready")
        return ready.get("reason") == "RollingOut" and BROKEN in ready.get("message", "")

    try:
        cluster.kubectl("apply", "-n", namespace, "-f", "-", input=yaml.safe_dump_all(update.documents))
        wait_until(is_ready, "the first pods serve")
        change(cluster, namespace, update, BROKEN)
        wait_until(is_broken, "Ready tells what is wrong with the new pod")
        wait_until(lambda: available() == [1], "one pod serves")
        assert not is_ready()
        assert not update.available or condition(cluster, namespace, update, update.available)["status"] == "True"
        change(cluster, namespace, update, FIXED)
        wait_until(is_ready, "the mended update is through")
    except TimeoutError:
        raise AssertionError(
            json.dumps(cluster.get(update.kind, "chat", "-n", namespace)["status"], indent=1)
        ) from None
    images = {
        container["image"]
        for pod in cluster.get("pods", "-n", namespace)["items"]
        if "deletionTimestamp" not in pod["metadata"]
        for container in pod["spec"]["containers"]
    }
    assert images == {f"registry.example/server:{FIXED}"}


@pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES)
def test_a_paused_deployment_is_named_until_it_is_resumed(
    cluster: ControlPlane, namespace: str, update: Update
) -> None:
    """A change waits for a Deployment that was paused by hand; the command in Ready's message resumes it."""

    def is_ready() -> bool:
        return condition(cluster, namespace, update, "Ready").get("status") == "True"

    def is_paused() -> bool:
        ready = condition(cluster, namespace, update, "Ready")
        return ready.get("status") == "False" and f"kubectl {' '.join(resume)}" in ready.get("message", "")

    cluster.kubectl("apply", "-n", namespace, "-f", "-", input=yaml.safe_dump_all(update.documents))
    wait_until(is_ready, "the first pods serve")
    (deployment,) = cluster.get("deployments", "-n", namespace)["items"]
    name = f"deployment/{deployment['metadata']['name']}"
    resume = ("rollout", "resume", name)
    cluster.kubectl("rollout", "pause", name, "-n", namespace)
    change(cluster, namespace, update, FIXED)
    wait_until(is_paused, "Ready says that the Deployment is paused")
    cluster.kubectl(*resume, "-n", namespace)
    wait_until(is_ready, "the change is rolled out")
    (after,) = cluster.get("deployments", "-n", namespace)["items"]
    images = [container["image"] for container in after["spec"]["template"]["spec"]["containers"]]
    assert images == [f"registry.example/server:{FIXED}"]
