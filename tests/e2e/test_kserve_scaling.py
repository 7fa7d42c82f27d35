"""Autoscalers, priorities and addresses of LLMInferenceServices on a real API server, with CRDs such as KEDA's."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.e2e.controlplane import ControlPlane
from tests.e2e.installation import Installation, settle
from tests.e2e.processes import wait_until
from tests.e2e.test_kserve import EXAMPLES, NOW, SERVICES, apply, names_of, play_controllers, ready, wait_ready

pytestmark = pytest.mark.e2e

SCALERS = "horizontalpodautoscalers,scaledobjects,variantautoscalings"
SYSTEM = EXAMPLES / "cluster"


@pytest.fixture(scope="module")
def cluster(installation: Installation) -> Iterator[ControlPlane]:
    """The control plane with a gateway that has no address yet, and the settings for KEDA."""
    cluster = installation.cluster
    cluster.create_namespace("kserve")
    cluster.kubectl("apply", "-f", str(SYSTEM))
    yield cluster
    cluster.kubectl("delete", "-f", str(SYSTEM))


def condition(cluster: ControlPlane, namespace: str, name: str, type_: str) -> dict[str, Any]:
    status = cluster.get(SERVICES, name, "-n", namespace).get("status", {})
    return next((c for c in status.get("conditions", []) if c["type"] == type_), {})


def report(cluster: ControlPlane, namespace: str, kind: str, name: str, *types: str) -> None:
    """Write conditions of an object's status, as its controller would."""
    conditions = [
        {"type": t, "status": "True", "reason": "Played", "message": "", "lastTransitionTime": NOW} for t in types
    ]
    patch = json.dumps({"status": {"conditions": conditions}})
    cluster.kubectl("patch", kind, name, "-n", namespace, "--subresource=status", "--type=merge", "-p", patch)


def replicas(cluster: ControlPlane, namespace: str, name: str) -> int:
    return int(cluster.get("deployment", name, "-n", namespace)["spec"]["replicas"])


def test_horizontal_pod_autoscalers(cluster: ControlPlane, namespace: str) -> None:
    """Kubernetes' controller lacks the metric and Ready reports it; replicas set by other clients are kept."""
    apply(cluster, namespace, EXAMPLES / "scaled.yaml")
    expected = {
        "Deployment/scaled-chat-kserve",
        "Deployment/scaled-chat-kserve-prefill",
        "HorizontalPodAutoscaler/scaled-chat-kserve-hpa",
        "HorizontalPodAutoscaler/scaled-chat-kserve-prefill-hpa",
        "VariantAutoscaling/scaled-chat-kserve-va",
        "VariantAutoscaling/scaled-chat-kserve-prefill-va",
    }
    wait_until(lambda: expected <= names_of(cluster, namespace, f"{SCALERS},deployments"), "children of both sides")
    assert len(names_of(cluster, namespace, SCALERS)) == 4
    hpa = cluster.get("hpa", "scaled-chat-kserve-hpa", "-n", namespace)
    assert hpa["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 600
    assert (hpa["spec"]["minReplicas"], replicas(cluster, namespace, "scaled-chat-kserve")) == (2, 2)

    def lacks_the_metric() -> bool:
        play_controllers(cluster, namespace)
        said = [condition(cluster, namespace, "scaled-chat", type_) for type_ in ("ScalingReady", "WorkloadsReady")]
        return [each.get("reason") for each in said] == ["FailedGetExternalMetric"] * 2

    wait_until(lacks_the_metric, "the autoscaler's own words in both conditions")
    cluster.kubectl("scale", "deployment", "scaled-chat-kserve", "-n", namespace, "--replicas=4")
    cluster.kubectl("annotate", SERVICES, "scaled-chat", "-n", namespace, "example.dev/touched=yes")
    workloads = "deployments,horizontalpodautoscalers,variantautoscalings"

    def all_ready() -> bool:
        for side in ("", "prefill-"):
            report(cluster, namespace, "hpa", f"scaled-chat-kserve-{side}hpa", "AbleToScale", "ScalingActive")
        play_controllers(cluster, namespace)
        return ready(cluster, namespace, "scaled-chat").get("status") == "True"

    wait_until(all_ready, "scaled-chat is ready")
    assert replicas(cluster, namespace, "scaled-chat-kserve") == 4
    specs = _generations(cluster, namespace, workloads)
    time.sleep(10)
    assert _generations(cluster, namespace, workloads) == specs


def _generations(cluster: ControlPlane, namespace: str, kinds: str) -> dict[str, Any]:
    items = cluster.get(kinds, "-n", namespace)["items"]
    return {f"{i['kind']}/{i['metadata']['name']}": i["spec"] for i in items}


def test_a_scaled_object(cluster: ControlPlane, namespace: str) -> None:
    """KEDA's CRD accepts it; switching between fixed replicas and KEDA stops no pods."""
    apply(cluster, namespace, EXAMPLES / "scaled-keda.yaml")
    wait_until(lambda: "ScaledObject/keda-chat-kserve-keda" in names_of(cluster, namespace, SCALERS), "it")
    report(cluster, namespace, "scaledobject", "keda-chat-kserve-keda", "Ready")
    wait_ready(cluster, namespace, "keda-chat")
    spec = cluster.get("scaledobject", "keda-chat-kserve-keda", "-n", namespace)["spec"]
    (trigger,) = spec["triggers"]
    assert trigger["metadata"]["serverAddress"] == "https://prometheus.monitoring:9090"
    assert f'exported_namespace="{namespace}"' in trigger["metadata"]["query"]
    assert spec["fallback"] == {"failureThreshold": 3, "replicas": 2, "behavior": "static"}
    settle(cluster, namespace, f"{SERVICES},deployments,scaledobjects,variantautoscalings", 10)
    patch = json.dumps({"spec": {"scaling": None, "replicas": 3}})
    cluster.kubectl("patch", SERVICES, "keda-chat", "-n", namespace, "--type=merge", "-p", patch)
    wait_until(lambda: names_of(cluster, namespace, SCALERS) == set(), "no autoscaler")
    wait_until(lambda: replicas(cluster, namespace, "keda-chat-kserve") == 3, "three replicas")
    back = json.dumps({"spec": {"scaling": {"maxReplicas": 4, "wva": {"hpa": {}}}, "replicas": None}})
    cluster.kubectl("patch", SERVICES, "keda-chat", "-n", namespace, "--type=merge", "-p", back)
    wait_until(lambda: len(names_of(cluster, namespace, SCALERS)) == 2, "an autoscaler and its variant")
    assert replicas(cluster, namespace, "keda-chat-kserve") == 3


def test_every_setting_reaches_keda(cluster: ControlPlane, namespace: str) -> None:
    """KEDA's CRD accepts and stores each setting, for prefill too."""
    policy = {"type": "Pods", "value": 1, "periodSeconds": 1800}
    keda = {
        "pollingInterval": 1,
        "cooldownPeriod": 0,
        "initialCooldownPeriod": 0,
        "idleReplicaCount": 1,
        "fallback": {"failureThreshold": 0, "replicas": 0, "behavior": "currentReplicasIfHigher"},
        "advanced": {
            "restoreToOriginalReplicaCount": True,
            "horizontalPodAutoscalerConfig": {
                "behavior": {"scaleDown": {"stabilizationWindowSeconds": 3600, "policies": [policy]}}
            },
        },
    }
    scaling = {"minReplicas": 2, "maxReplicas": 4, "wva": {"keda": keda}}
    service = yaml.safe_load((EXAMPLES / "scaled-keda.yaml").read_text())
    prefill = {"scaling": scaling, "template": service["spec"]["template"]}
    service["spec"] |= {"scaling": scaling, "prefill": prefill, "router": {"route": {}, "scheduler": {}}}
    cluster.kubectl("apply", "-n", namespace, "-f", "-", input=yaml.safe_dump(service))

    def stored() -> dict[str, Any]:
        items = cluster.get("scaledobjects", "-n", namespace)["items"]
        return {item["metadata"]["name"]: {key: item["spec"].get(key) for key in keda} for item in items}

    expected = {"keda-chat-kserve-keda": keda, "keda-chat-kserve-prefill-keda": keda}
    wait_until(lambda: stored() == expected, "both ScaledObjects with every setting")


def test_priorities(cluster: ControlPlane, namespace: str) -> None:
    """In v1alpha1, criticality creates objectives of the inference extension, and the route refers to them."""
    apply(cluster, namespace, EXAMPLES / "critical.yaml")
    wait_ready(cluster, namespace, "critical-chat")
    name = "critical-chat-inference-objective"
    objectives = cluster.get("inferenceobjectives", "-n", namespace)["items"]
    assert {i["metadata"]["name"]: i["spec"]["priority"] for i in objectives} == {name: 100, f"{name}-draft": -1}
    applied = condition(cluster, namespace, "critical-chat", "CriticalityApplied")
    assert (applied["status"], applied["reason"]) == ("False", "NotRouted")  # the preset's route has no free rules
    assert f"{name}-draft" in applied["message"]
    rules = cluster.get("httproute", "critical-chat-kserve-route", "-n", namespace)["spec"]["rules"]
    named = [
        [h["value"] for f in rule.get("filters", []) for h in f.get("requestHeaderModifier", {}).get("set", [])]
        for rule in rules
    ]
    assert named == [[name]] * 9 + [[]] * 3
    settle(cluster, namespace, "httproutes,inferenceobjectives", 10)
    patch = json.dumps([{"op": "remove", "path": "/metadata/annotations"}])
    cluster.kubectl("patch", SERVICES, "critical-chat", "-n", namespace, "--type=json", "-p", patch)
    wait_until(lambda: cluster.get("inferenceobjectives", "-n", namespace)["items"] == [], "no objective")


def test_the_first_column_of_a_ready_service(cluster: ControlPlane, namespace: str) -> None:
    """Without a route, or with a gateway that has no address, the URL is the one inside the cluster."""
    apply(cluster, namespace, EXAMPLES / "quickstart.yaml", EXAMPLES / "routed.yaml")
    for name in ("tiny-chat", "routed-chat"):
        wait_ready(cluster, namespace, name)
        url = f"http://{name}-kserve-workload-svc.{namespace}.svc.cluster.local:8000"
        assert cluster.get(SERVICES, name, "-n", namespace)["status"]["url"] == url
        row = cluster.kubectl("get", SERVICES, name, "-n", namespace, "--no-headers").stdout.split()
        assert row[:3] == [name, url, "True"]
