"""`Ready` with the real Metacontroller: `kubectl wait` does not end before what was asked for is there."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import partial

import pytest
import yaml

from app.kube.base import Json
from tests.e2e.controlplane import ControlPlane, KubectlError
from tests.e2e.installation import Installation, clear
from tests.e2e.processes import wait_until
from tests.e2e.test_broken_update import UPDATES
from tests.e2e.test_llmkube import QUICKSTART, apply, condition, wait_ready

pytestmark = pytest.mark.e2e

FROZEN: Json = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": "frozen-replicas"},
    "spec": {
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["deployments"]}
            ]
        },
        "validations": [{"expression": "object.spec.replicas == oldObject.spec.replicas", "message": "it is frozen"}],
    },
}
BINDING: Json = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicyBinding",
    "metadata": {"name": "frozen-replicas"},
    "spec": {
        "policyName": "frozen-replicas",
        "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": {"matchLabels": {"frozen": "true"}}},
    },
}


@pytest.fixture
def cluster(installation: Installation) -> Iterator[ControlPlane]:
    """The control plane, without the cluster-scoped objects of these tests afterwards."""
    yield installation.cluster
    for kind in ("validatingadmissionpolicies", "validatingadmissionpolicybindings"):
        installation.cluster.kubectl("delete", kind, "frozen-replicas", "--ignore-not-found")
    installation.cluster.kubectl("delete", "openmodels,backendruntimes", "updated", "--ignore-not-found")


@pytest.fixture
def services(cluster: ControlPlane) -> Iterator[dict[str, tuple[str, str]]]:
    """A running service of each family: its namespace and its name with the kind."""
    running = {}
    for family, update in UPDATES.items():
        namespace = cluster.create_namespace()
        cluster.kubectl("apply", "-n", namespace, "-f", "-", input=yaml.safe_dump_all(update.documents))
        running[family] = namespace, f"{update.kind}/chat"
    for namespace, name in running.values():
        scale(cluster, namespace, name, 1)
        wait(cluster, namespace, name)
    yield running
    for namespace, _ in running.values():
        clear(cluster, namespace)


def scale(cluster: ControlPlane, namespace: str, name: str, replicas: int) -> None:
    patch = json.dumps({"spec": {"replicas": replicas}})
    cluster.kubectl("patch", "-n", namespace, name, "--type=merge", f"--patch={patch}")


def wait(cluster: ControlPlane, namespace: str, name: str, timeout: str = "90s") -> None:
    cluster.kubectl("wait", "-n", namespace, name, "--for=condition=Ready", f"--timeout={timeout}")


def ready(cluster: ControlPlane, namespace: str, name: str) -> Json:
    kind, _, object_name = name.partition("/")
    answer: Json = condition(cluster.get(kind, object_name, "-n", namespace), "Ready")
    return answer


def wait_told(cluster: ControlPlane, namespace: str, name: str, field: str, value: str, timeout: float) -> None:
    wait_until(lambda: ready(cluster, namespace, name)[field] == value, f"{name} {value}", timeout)


def test_a_wait_ends_when_the_pods_are_there(cluster: ControlPlane, services: dict[str, tuple[str, str]]) -> None:
    """After each change of the number of replicas, from 1 to 3, to 0 and back."""
    for namespace, name in services.values():
        for replicas in (3, 0, 1):
            scale(cluster, namespace, name, replicas)
            if not replicas:
                wait_until(partial(stopped, cluster, namespace), f"{name} to be stopped")
                continue
            wait(cluster, namespace, name)
            (deployment,) = cluster.get("deployments", "-n", namespace)["items"]
            assert deployment["spec"]["replicas"] == replicas
            assert deployment["status"].get("availableReplicas") == replicas, name


def quota(resource: str) -> Json:
    """Return a quota against new objects of a kind."""
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": {resource: 0}}}


def stopped(cluster: ControlPlane, namespace: str) -> bool:
    (deployment,) = cluster.get("deployments", "-n", namespace)["items"]
    return deployment["spec"]["replicas"] == 0 and not deployment["status"].get("replicas")


def test_replicas_that_are_refused_are_never_ready(cluster: ControlPlane, services: dict[str, tuple[str, str]]) -> None:
    """The API server refuses the change: the old pods serve, and Ready says why there are no more."""
    for document in (FROZEN, BINDING):
        cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump(document))
    for namespace, _ in services.values():
        cluster.kubectl("label", "namespace", namespace, "frozen=true")
    time.sleep(3)  # until the API server knows the policy
    for namespace, name in services.values():
        scale(cluster, namespace, name, 2)
        with pytest.raises(KubectlError):
            wait(cluster, namespace, name, "5s")
    for namespace, name in services.values():
        wait_told(cluster, namespace, name, "reason", "ChangeRefused", 100)
        assert "1 of 2 replicas are ready" in ready(cluster, namespace, name)["message"]
    for namespace, _ in services.values():
        cluster.kubectl("label", "namespace", namespace, "frozen-")
    for namespace, name in services.values():
        wait(cluster, namespace, name, "120s")


def test_what_cannot_be_made_again_is_not_ready(cluster: ControlPlane, services: dict[str, tuple[str, str]]) -> None:
    """Services that are gone, and a quota against new ones: at once, and it stays told whatever makes a sync."""
    for namespace, _ in services.values():
        cluster.kubectl("apply", "-n", namespace, "-f", "-", input=yaml.safe_dump(quota("services")))
    for namespace, name in services.values():
        cluster.kubectl("delete", "-n", namespace, "services", "--all")
        wait_told(cluster, namespace, name, "status", "False", 10)
    for namespace, name in services.values():
        wait_told(cluster, namespace, name, "reason", "CreateRefused", 100)
    for number in range(3):
        for namespace, name in services.values():
            cluster.kubectl("annotate", "-n", namespace, name, f"touched={number}", "--overwrite")
            time.sleep(1)
            assert ready(cluster, namespace, name)["reason"] == "CreateRefused"


def test_a_model_without_its_claim_is_not_ready(installation: Installation, namespace: str) -> None:
    """A quota keeps the claim from being made again."""
    cluster = installation.cluster
    apply(cluster, namespace, QUICKSTART)
    wait_ready(cluster, namespace, "model/smollm", "inferenceservice/smollm-chat")
    cluster.kubectl("apply", "-n", namespace, "-f", "-", input=yaml.safe_dump(quota("persistentvolumeclaims")))
    (claim,) = cluster.get("persistentvolumeclaims", "-n", namespace)["items"]
    where = ("persistentvolumeclaim", claim["metadata"]["name"], "-n", namespace)
    cluster.kubectl("delete", *where, "--wait=false")
    cluster.kubectl("patch", *where, "--type=merge", '--patch={"metadata":{"finalizers":null}}')
    model = ("model.inference.llmkube.dev", "smollm", "-n", namespace)
    wait_until(lambda: condition(cluster.get(*model), "Ready")["status"] == "False", "the Model without its claim", 10)
    assert claim["metadata"]["name"] in condition(cluster.get(*model), "Ready")["message"]
