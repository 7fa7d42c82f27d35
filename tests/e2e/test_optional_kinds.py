"""A cluster without any of the optional kinds: conditions say what to install, and the rest works."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.e2e import test_kserve as kserve
from tests.e2e import test_llmaz as llmaz
from tests.e2e.controlplane import TIMEOUT, ControlPlane
from tests.e2e.installation import Installation
from tests.e2e.processes import wait_until
from tests.e2e.test_kserve_scaling import condition
from tests.e2e.test_surroundings import labels

pytestmark = pytest.mark.e2e


@pytest.fixture
def cluster(bare_installation: Installation) -> ControlPlane:
    return bare_installation.cluster


@pytest.fixture
def namespace(cluster: ControlPlane) -> str:
    return cluster.create_namespace()


def test_kserve(cluster: ControlPlane, namespace: str) -> None:
    """Services that do not need the kinds work."""
    files = (kserve.EXAMPLES / f"{name}.yaml" for name in ("quickstart", "routed", "multi-node"))
    kserve.apply(cluster, namespace, *files)
    cluster.kubectl("wait", "-n", namespace, "--for=condition=Ready", f"{kserve.SERVICES}/tiny-chat", TIMEOUT)

    def says(name: str, kind: str) -> bool:
        ready = kserve.ready(cluster, namespace, name)
        return ready.get("status") == "False" and kind in ready.get("message", "")

    wait_until(lambda: says("routed-chat", "HTTPRoute"), "the missing HTTPRoute kind in Ready")
    wait_until(lambda: says("experts", "LeaderWorkerSet"), "the missing LeaderWorkerSet kind in Ready")
    assert "Deployment/routed-chat-kserve" in kserve.names_of(cluster, namespace, kserve.WORKLOADS)


def test_scaling_of_kserve(cluster: ControlPlane, namespace: str) -> None:
    """A criticality without effect does not prevent serving."""
    critical = yaml.safe_load((kserve.EXAMPLES / "critical.yaml").read_text())
    critical["spec"]["router"] = {"scheduler": {}}
    cluster.kubectl("apply", "-n", namespace, "-f", "-", input=json.dumps(critical))
    kserve.apply(cluster, namespace, kserve.EXAMPLES / "scaled-keda.yaml")

    def says(name: str, type_: str, text: str) -> bool:
        said = condition(cluster, namespace, name, type_)
        return said.get("reason") == "KindNotInstalled" and text in said.get("message", "")

    wait_until(lambda: says("keda-chat", "ScalingReady", "component keda"), "the missing ScaledObject")
    wait_until(lambda: says("critical-chat", "CriticalityApplied", "no effect"), "no InferenceObjective")
    assert condition(cluster, namespace, "keda-chat", "Ready")["status"] == "False"


def test_services_of_llmaz(cluster: ControlPlane, namespace: str) -> None:
    """Ready of a service of several pods names what to install, and nothing is created; one of a single pod works.

    Its message does not mention the gateway.
    """
    for name in ("multi-node", "service"):
        cluster.kubectl("apply", "-n", namespace, "-f", llmaz.EXAMPLES / f"{name}.yaml")
    llmaz.wait_ready(cluster, namespace, f"{llmaz.SERVICES}/phi-by-hand")
    assert "gateway" not in llmaz.ready(cluster, namespace, llmaz.SERVICES, "phi-by-hand")["message"]
    reason = "LeaderWorkerSetRequired"
    wait_until(lambda: llmaz.ready(cluster, namespace, llmaz.SERVICES, "llama-large").get("reason") == reason, reason)
    names = [i["metadata"]["name"] for i in cluster.get("deployments,services", "-n", namespace)["items"]]
    assert sorted(names) == ["phi-by-hand", "phi-by-hand-lb"]


def test_models_of_llmaz(cluster: ControlPlane, namespace: str) -> None:
    """No labels are written on objects."""
    llmaz.apply(cluster, namespace, llmaz.model("plain"))
    cluster.kubectl("wait", "--for=condition=Ready", "openmodel/plain", TIMEOUT)
    assert labels(cluster, namespace, "openmodel", "plain") == {}
