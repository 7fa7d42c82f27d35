"""LLMInferenceServiceConfigs used by services, with the component ``config-protection``, used with kubectl."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from app.kube.base import Json
from tests.e2e.controlplane import ControlPlane
from tests.e2e.installation import Installation
from tests.e2e.processes import wait_until

pytestmark = pytest.mark.e2e

CONFIG = "llminferenceserviceconfigs/base"
SERVICE = "llminferenceservices/demo"


def write(cluster: ControlPlane, namespace: str, kind: str, name: str, **spec: object) -> None:
    document = {
        "apiVersion": "serving.kserve.io/v1alpha2",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }
    cluster.kubectl("apply", "-f", "-", input=json.dumps(document))


def in_use(cluster: ControlPlane, namespace: str) -> Json:
    """Return the condition ConfigInUse, or an empty object."""
    status = cluster.get(CONFIG, "-n", namespace).get("status") or {}
    return next((c for c in status.get("conditions") or () if c["type"] == "ConfigInUse"), {})


def reaches(cluster: ControlPlane, namespace: str, reason: str) -> Callable[[], bool]:
    return lambda: in_use(cluster, namespace).get("reason") == reason


def exists(cluster: ControlPlane, namespace: str) -> bool:
    return bool(cluster.get("llminferenceserviceconfigs", "-n", namespace)["items"])


def test_deletion_of_a_config_waits_for_its_services(installation: Installation, namespace: str) -> None:
    """The condition names the services; the config is deleted once no service refers to it."""
    cluster = installation.cluster
    write(cluster, namespace, "LLMInferenceServiceConfig", "base", replicas=1)
    wait_until(reaches(cluster, namespace, "NotInUse"), "the config is not in use")
    model = {"uri": "hf://facebook/opt-125m"}
    write(cluster, namespace, "LLMInferenceService", "demo", model=model, baseRefs=[{"name": "base"}])
    wait_until(reaches(cluster, namespace, "InUse"), "the config is in use")
    assert cluster.get(CONFIG, "-n", namespace)["status"]["referencedBy"] == [{"name": "demo", "namespace": namespace}]
    cluster.kubectl("delete", CONFIG, "-n", namespace, "--wait=false")
    wait_until(reaches(cluster, namespace, "DeletionBlocked"), "the condition says why the deletion waits")
    assert f"deletion waits for {namespace}/demo" in in_use(cluster, namespace)["message"]

    def combined() -> bool:
        conditions = cluster.get(SERVICE, "-n", namespace).get("status", {}).get("conditions", [])
        return [c["status"] for c in conditions if c["type"] == "PresetsCombined"] == ["True"]

    wait_until(combined, "the service has the config")
    without = json.dumps([{"op": "remove", "path": "/spec/baseRefs"}])
    cluster.kubectl("patch", SERVICE, "-n", namespace, "--type=json", "-p", without)
    wait_until(lambda: not exists(cluster, namespace), "the config is gone")
