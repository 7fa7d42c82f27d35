"""Volumes of single nodes, which a claim gets with its first pod, on the real scheduler and volume binder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from app.kube.base import Json
from tests.e2e.controlplane import TIMEOUT, ControlPlane
from tests.e2e.installation import Installation
from tests.e2e.processes import wait_until
from tests.e2e.test_llmkube import condition, wait_ready

pytestmark = pytest.mark.e2e

LATE = "local-late"
NODES = ("cpu-1", "gpu-1")
MODEL: Json = {
    "apiVersion": "inference.llmkube.dev/v1alpha1",
    "kind": "Model",
    "metadata": {"name": "chat"},
    "spec": {
        "source": "https://models.example.com/chat.gguf",
        "hardware": {"accelerator": "cuda", "gpu": {"count": 1}},
    },
}
SERVICE: Json = {
    "apiVersion": "inference.llmkube.dev/v1alpha1",
    "kind": "InferenceService",
    "metadata": {"name": "chat"},
    "spec": {"modelRef": "chat", "nodeSelector": {"gpu": "yes"}},
}
CLAIM = ("persistentvolumeclaim", "chat-cache")


def node(name: str) -> Json:
    resources = {"cpu": "8", "memory": "64Gi", "pods": "10", "ephemeral-storage": "1Ti"}
    labels, spec = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}, {}
    if name == "gpu-1":
        resources["nvidia.com/gpu"] = "1"
        labels["gpu"] = "yes"
        spec = {"taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]}
    meta = {"name": name, "labels": labels}
    status = {"capacity": resources, "allocatable": resources}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": status}


def volume(name: str) -> Json:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [name]}]}
    spec = {
        "capacity": {"storage": "200Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": LATE,
        "persistentVolumeReclaimPolicy": "Retain",
        "local": {"path": f"/disks/{name}"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"pv-{name}"}, "spec": spec}


@pytest.fixture
def local(installation: Installation, namespace: str) -> Iterator[ControlPlane]:
    """A node with a GPU and a taint, one without, a volume on each, and their class as the newest default."""
    cluster = installation.cluster
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    late = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": LATE, "annotations": annotations},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    objects = [late, *map(node, NODES), *map(volume, NODES)]
    text = yaml.safe_dump_all(objects)
    cluster.kubectl("apply", "-f", "-", input=text)
    nodes = [f"node/{name}" for name in NODES]
    cluster.kubectl("wait", "--for=condition=Ready", *nodes, TIMEOUT)
    yield cluster
    cluster.kubectl("delete", "-n", namespace, "inferenceservices.inference.llmkube.dev,models", "--all")
    cluster.kubectl("delete", "-n", namespace, "pods,persistentvolumeclaims", "--all", "--force", check=False)
    cluster.kubectl("delete", "-f", "-", input=text)


def apply(cluster: ControlPlane, namespace: str, *documents: Json) -> None:
    cluster.kubectl("apply", "-n", namespace, "-f", "-", input=yaml.safe_dump_all(documents))


def is_served_on_the_gpu(cluster: ControlPlane, namespace: str) -> None:
    wait_ready(cluster, namespace, "inferenceservice.inference.llmkube.dev/chat")
    assert cluster.get(*CLAIM, "-n", namespace)["spec"]["volumeName"] == "pv-gpu-1"
    (pod,) = cluster.get("pods", "-l", "app=chat", "-n", namespace)["items"]
    assert pod["spec"]["nodeName"] == "gpu-1"


def test_the_claim_gets_its_volume_where_the_gpu_is(local: ControlPlane, namespace: str) -> None:
    """A Job, which needs no GPU, would run on the other node, whose volume no serving pod can reach."""
    apply(local, namespace, MODEL)
    wait_ready(local, namespace, "model/chat")
    assert "volumeName" not in local.get(*CLAIM, "-n", namespace)["spec"]
    apply(local, namespace, SERVICE)
    is_served_on_the_gpu(local, namespace)
    assert local.get("jobs", "-n", namespace)["items"] == []


def test_a_claim_on_the_wrong_node_is_moved_as_the_page_says(local: ControlPlane, namespace: str) -> None:
    """What a Job of an earlier release left: its claim stays, ``Ready`` says so, and the page's commands move it."""
    annotated = {**MODEL["metadata"], "annotations": {"modelhooks.dev/download": "Job"}}
    apply(local, namespace, {**MODEL, "metadata": annotated})
    wait_ready(local, namespace, "model/chat")
    assert local.get(*CLAIM, "-n", namespace)["spec"]["volumeName"] == "pv-cpu-1"
    local.kubectl("annotate", "model/chat", "-n", namespace, "modelhooks.dev/download-")
    apply(local, namespace, SERVICE)
    service = ("inferenceservice.inference.llmkube.dev", "chat", "-n", namespace)
    wait_until(
        lambda: "no fitting node reaches its volume" in condition(local.get(*service), "Ready").get("message", ""),
        "the reason in Ready",
    )
    assert len(local.get("jobs", "-n", namespace)["items"]) == 1
    local.kubectl("delete", "job,persistentvolumeclaim", "-n", namespace, "-l", "inference.llmkube.dev/model=chat")
    is_served_on_the_gpu(local, namespace)
