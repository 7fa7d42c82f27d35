"""The status of a service reports what happens to its pods."""

from __future__ import annotations

import json
import os
import signal

import pytest

from tests.node.samples import model, service
from tests.node.world import SERVICES, World

pytestmark = pytest.mark.node


@pytest.fixture(scope="module", autouse=True)
def services(installed: World, namespace: str, tiny: str) -> None:
    """Create all services at once, because each takes some seconds."""
    token = {"name": "hub-token", "key": "HF_TOKEN"}
    installed.apply(
        namespace,
        service("steady", tiny),
        service("unknown-image", tiny, image="node.test/nobody-has-this:1", imagePullSecrets=[{"name": "no-pull"}]),
        service("no-token", tiny, env=[{"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": token}}]),
        service(
            "no-volume",
            tiny,
            extraVolumes=[{"name": "certs", "secret": {"secretName": "no-certs"}}],
            extraVolumeMounts=[{"name": "certs", "mountPath": "/certs"}],
        ),
    )


def test_reports_a_missing_image(installed: World, namespace: str) -> None:
    installed.wait_not_ready(SERVICES, "unknown-image", namespace, "node.test/nobody-has-this:1")


def test_reports_a_missing_secret(installed: World, namespace: str) -> None:
    """The kubelet names the Secret of a variable in the pod's status, and that of a volume or a pull in an event."""
    installed.wait_not_ready(SERVICES, "no-token", namespace, 'secret "hub-token" not found')
    installed.wait_not_ready(SERVICES, "no-volume", namespace, "its events say which volume cannot be")
    told = ("get", "events", "-n", namespace, "-o", "jsonpath={.items[*].message}", "--field-selector")
    for reason, words in (
        ("FailedMount", 'secret "no-certs" not found'),
        ("FailedToRetrieveImagePullSecret", "no-pull"),
    ):
        messages = installed.cluster.kubectl(*told, f"reason={reason}").stdout
        assert words in messages


def test_reports_a_server_without_memory(installed: World, namespace: str) -> None:
    """The namespace sets the memory limit, because an InferenceService has only requests."""
    limit = {"type": "Container", "default": {"memory": "16Mi"}, "defaultRequest": {"memory": "8Mi"}}
    limits = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "little"},
        "spec": {"limits": [limit]},
    }
    crowded = installed.cluster.create_namespace()
    hungry = {"resources": {"cpu": "10m", "memory": "8Mi"}, "contextSize": 131072}
    installed.apply(
        crowded, limits, model("tiny", f"{installed.files.url}/tiny.gguf"), service("starved", "tiny", **hungry)
    )
    installed.wait_not_ready(SERVICES, "starved", crowded, "memory")
    installed.cluster.kubectl("delete", "namespace", crowded, "--wait=false")


def test_a_killed_server_comes_back(installed: World, namespace: str) -> None:
    installed.wait_true(SERVICES, "steady", namespace)
    (pod,) = installed.pods(namespace, "app=steady")
    (process,) = installed.processes(pod, "llama-server")
    os.kill(process, signal.SIGKILL)
    installed.wait_for(
        "killed server restarted",
        lambda: installed.restarts(namespace, "app=steady"),
        lambda restarts: restarts == {pod["metadata"]["uid"]: 1},
    )
    installed.wait_true(SERVICES, "steady", namespace)
    assert installed.ask(f"http://steady.{namespace}:8080")["choices"]


def test_a_service_is_scaled_and_stopped(installed: World, namespace: str) -> None:
    """Scaling up keeps the first pod; scaling to 0 removes all pods."""
    installed.wait_true(SERVICES, "steady", namespace)
    (first,) = installed.pods(namespace, "app=steady")
    _scale(installed, namespace, 2)
    assert first["metadata"]["uid"] in installed.restarts(namespace, "app=steady")
    _scale(installed, namespace, 0)


def _scale(world: World, namespace: str, replicas: int) -> None:
    """Scale the service, and wait until the pods and the status have the number."""
    patch = json.dumps({"spec": {"replicas": replicas}})
    world.cluster.kubectl("patch", SERVICES, "steady", "-n", namespace, "--type=merge", "-p", patch)
    world.wait_for(
        f"steady has {replicas} ready pods",
        lambda: (_ready_replicas(world, namespace), len(world.pods(namespace, "app=steady"))),
        lambda seen: seen == (replicas, replicas),
    )


def _ready_replicas(world: World, namespace: str) -> int:
    document = world.find(SERVICES, "steady", namespace)
    assert document is not None
    ready: int = document["status"].get("readyReplicas", 0)
    return ready
