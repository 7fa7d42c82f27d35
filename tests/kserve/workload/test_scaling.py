"""Autoscalers of a service's workloads, and the replicas that they control (KS-5)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.kube.base import Json
from tests.kserve.objects import AVAILABLE, OPTIONAL_KINDS, Cluster, fields, service

ALL = OPTIONAL_KINDS | {"ScaledObject", "VariantAutoscaling"}
LABELS = {
    "app.kubernetes.io/component": "llminferenceservice-workload",
    "app.kubernetes.io/name": "demo",
    "app.kubernetes.io/part-of": "llminferenceservice",
}
HPA = {"wva": {"hpa": {}}, "maxReplicas": 5}
KEDA = {"wva": {"keda": {}}, "maxReplicas": 5}
PROMETHEUS = {"url": "https://prometheus:9090"}


def settings(**prometheus: Any) -> Json:
    """Return the operator's settings."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "inferenceservice-config", "namespace": "kserve"},
        "data": {"autoscaling-wva-controller-config": json.dumps({"prometheus": prometheus})},
    }


def synced(parent: Json, *related: Json, optional: frozenset[str] = ALL) -> Cluster:
    cluster = Cluster(parent, *related, optional=optional)
    cluster.sync()
    return cluster


def test_a_service_without_scaling_has_none_of_it() -> None:
    cluster = synced(service(replicas=2))
    kinds = {kind for kind, _ in cluster.names}
    assert not kinds & {"HorizontalPodAutoscaler", "ScaledObject", "VariantAutoscaling"}
    assert cluster.condition("ScalingReady") is None


def test_a_horizontal_pod_autoscaler_follows_the_metric_of_its_variant() -> None:
    """Every field is as KServe's operator writes it."""
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 60}}
    scaling = {"minReplicas": 2, "maxReplicas": 5, "wva": {"hpa": {"behavior": behavior}, "variantCost": "7.5"}}
    cluster = synced(service(scaling=scaling, labels={"inference.optimization/acceleratorName": "H100"}))
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "demo-kserve"}
    hpa = cluster.child("HorizontalPodAutoscaler", "demo-kserve-hpa")
    assert LABELS.items() <= hpa["metadata"]["labels"].items()
    metric = {"name": "wva_desired_replicas", "selector": {"matchLabels": {"variant_name": "demo-kserve-va"}}}
    assert hpa["spec"] == {
        "scaleTargetRef": target,
        "minReplicas": 2,
        "maxReplicas": 5,
        "metrics": [
            {
                "type": "External",
                "external": {"metric": metric, "target": {"type": "AverageValue", "averageValue": "1"}},
            }
        ],
        "behavior": behavior,
    }
    variant = cluster.child("VariantAutoscaling", "demo-kserve-va")
    assert variant["apiVersion"] == "llmd.ai/v1alpha1"
    labels = {**LABELS, "inference.optimization/acceleratorName": "H100"}
    assert labels.items() <= variant["metadata"]["labels"].items()
    assert variant["spec"] == {
        "scaleTargetRef": target,
        "modelID": "demo",
        "minReplicas": 2,
        "maxReplicas": 5,
        "variantCost": "7.5",
    }


def test_a_scaled_object_asks_prometheus() -> None:
    """KEDA's settings come from the spec, Prometheus' from the operator's settings."""
    keda = {
        "pollingInterval": 10,
        "idleReplicaCount": 1,
        "fallback": {"failureThreshold": 3, "replicas": 2},
        "advanced": {
            "scalingModifiers": {},
            "restoreToOriginalReplicaCount": True,
            "horizontalPodAutoscalerConfig": {
                "behavior": {"scaleDown": {"selectPolicy": "Disabled", "tolerance": "0.1"}},
            },
        },
    }
    parent = service(scaling={"minReplicas": 2, "maxReplicas": 5, "wva": {"keda": keda}})
    auth = {"authModes": "bearer", "triggerAuthName": "prometheus", "triggerAuthKind": "ClusterTriggerAuthentication"}
    cluster = synced(parent, settings(**PROMETHEUS, tlsInsecureSkipVerify=True, **auth))
    assert cluster.child("ScaledObject", "demo-kserve-keda")["spec"] == {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "demo-kserve"},
        "minReplicaCount": 2,
        "maxReplicaCount": 5,
        "pollingInterval": 10,
        "idleReplicaCount": 1,
        "fallback": {"failureThreshold": 3, "replicas": 2},
        "advanced": {
            "restoreToOriginalReplicaCount": True,
            "horizontalPodAutoscalerConfig": {"behavior": {"scaleDown": {"selectPolicy": "Disabled"}}},
        },
        "triggers": [
            {
                "type": "prometheus",
                "name": "wva-desired-replicas",
                "metadata": {
                    "serverAddress": "https://prometheus:9090",
                    "query": query("unknown"),
                    "threshold": "1",
                    "unsafeSsl": "true",
                    "authModes": "bearer",
                },
                "authenticationRef": {"name": "prometheus", "kind": "ClusterTriggerAuthentication"},
            }
        ],
    }
    assert ("HorizontalPodAutoscaler", "demo-kserve-hpa") not in cluster.names


def query(accelerator: str) -> str:
    """Return the query of KEDA: that of the present accelerator, or of any."""
    labels = 'variant_name="demo-kserve-va",exported_namespace="default"'
    present = f'{labels},accelerator_type="{accelerator}"'
    return f"max(wva_desired_replicas{{{present}}}) or max(wva_desired_replicas{{{labels}}})"


@pytest.mark.parametrize(
    ("labels", "selector", "counted"),
    [
        ({}, {}, "unknown"),
        ({"inference.optimization/acceleratorName": "H100"}, {}, "H100"),
        ({"inference.optimization/acceleratorName": "H100"}, {"zone": "a"}, "H100"),
        ({"inference.optimization/acceleratorName": "H100"}, {"nvidia.com/gpu.product": "NVIDIA-H200"}, "NVIDIA-H200"),
        ({}, {"cloud.google.com/gke-accelerator": "nvidia-l4"}, "nvidia-l4"),
        ({}, {"amd.com/gpu.product-name": "MI300X"}, "MI300X"),
    ],
)
def test_the_number_of_the_present_accelerator_counts(
    labels: dict[str, str], selector: dict[str, str], counted: str
) -> None:
    """The workload variant autoscaler keeps the numbers of former names."""
    template = {"nodeSelector": selector, "containers": [{"name": "main"}]}
    keda: Json = {"maxReplicas": 5, "wva": {"keda": {}}}
    cluster = synced(service(scaling=keda, labels=labels, template=template), settings(**PROMETHEUS))
    (trigger,) = cluster.child("ScaledObject", "demo-kserve-keda")["spec"]["triggers"]
    assert trigger["metadata"]["query"] == query(counted)


def test_groups_and_prefill_have_their_own() -> None:
    """Each workload has an autoscaler, which targets its Deployment or LeaderWorkerSet."""
    prefill = {"scaling": {"maxReplicas": 3, "wva": {"hpa": {}}}}
    parent = service(scaling=HPA, worker={}, parallelism={"data": 2, "dataLocal": 1}, prefill=prefill)
    cluster = synced(parent)
    main = cluster.child("HorizontalPodAutoscaler", "demo-kserve-hpa")["spec"]
    assert main["scaleTargetRef"] == {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "name": "demo-kserve-mn",
    }
    other = cluster.child("HorizontalPodAutoscaler", "demo-kserve-prefill-hpa")["spec"]
    assert other["scaleTargetRef"]["name"] == "demo-kserve-prefill"
    assert (other["minReplicas"], other["maxReplicas"]) == (1, 3)
    assert other["metrics"][0]["external"]["metric"]["selector"]["matchLabels"] == {
        "variant_name": "demo-kserve-prefill-va"
    }


# Replicas.


def test_replicas_are_the_autoscalers() -> None:
    """Replicas start at the minimum and are then kept as observed; a stopped workload restarts at the minimum."""
    cluster = synced(service(scaling={**HPA, "minReplicas": 2}))
    deployment = cluster.child("Deployment", "demo-kserve")
    assert deployment["spec"]["replicas"] == 2
    deployment["spec"]["replicas"] = 4
    cluster.sync()
    assert cluster.child("Deployment", "demo-kserve")["spec"]["replicas"] == 4
    cluster.child("Deployment", "demo-kserve")["spec"]["replicas"] = 0
    cluster.sync()
    assert cluster.child("Deployment", "demo-kserve")["spec"]["replicas"] == 2


def test_what_keda_scaled_to_zero_stays_there() -> None:
    """A merged change of KServe allows 0, KEDA's only value; nothing says that the idle service is not ready."""
    parent = service(scaling={"minReplicas": 2, "maxReplicas": 5, "wva": {"keda": {"idleReplicaCount": 0}}})
    cluster = synced(parent, settings(**PROMETHEUS))
    assert cluster.child("ScaledObject", "demo-kserve-keda")["spec"]["idleReplicaCount"] == 0
    deployment = cluster.child("Deployment", "demo-kserve")
    assert deployment["spec"]["replicas"] == 2
    deployment["spec"]["replicas"] = 0
    deployment["status"] = AVAILABLE | {"replicas": 0}
    cluster.sync()
    cluster.sync()
    assert cluster.child("Deployment", "demo-kserve")["spec"]["replicas"] == 0
    conditions = {item["type"]: item for item in cluster.answer["status"]["conditions"]}
    assert conditions["MainWorkloadReady"]["status"] == "True"
    assert "replicas is 0" in conditions["MainWorkloadReady"]["message"]


def test_from_a_number_to_scaling() -> None:
    """Adding scaling does not reduce the replicas."""
    cluster = synced(service(replicas=3))
    cluster.parent = {**cluster.parent, "spec": {**service(scaling=HPA)["spec"]}}
    cluster.sync()
    assert cluster.child("Deployment", "demo-kserve")["spec"]["replicas"] == 3


def test_a_number_that_others_wrote_is_left_to_them() -> None:
    """A workload created without replicas never gets them, as a field that was never sent cannot be removed."""
    cluster = synced(service())
    deployment = cluster.child("Deployment", "demo-kserve")
    assert "replicas" not in deployment["spec"]
    deployment["spec"]["replicas"] = 4
    cluster.parent = {**cluster.parent, "spec": {**service(scaling=HPA)["spec"]}}
    cluster.sync()
    assert "replicas" not in next(c for c in cluster.answer["children"] if c["kind"] == "Deployment")["spec"]


# Conditions.


def says(cluster: Cluster, kind: str, name: str, *conditions: Json) -> str | None:
    """Return ``ScalingReady`` after the object reports these conditions."""
    cluster.report("Deployment", "demo-kserve", **AVAILABLE)
    cluster.report(kind, name, conditions=list(conditions))
    cluster.sync()
    return cluster.says("ScalingReady")


def condition(type_: str, status: str, reason: str = "R", message: str = "why") -> Json:
    return {"type": type_, "status": status, "reason": reason, "message": message}


def test_what_a_horizontal_pod_autoscaler_says() -> None:
    """The first false condition decides; its message is in ``Ready``, with the missing component."""
    cluster = synced(service(scaling=HPA), optional=OPTIONAL_KINDS)
    assert cluster.says("ScalingReady") == "HPAProgressing"
    name = ("HorizontalPodAutoscaler", "demo-kserve-hpa")
    able, limited = condition("AbleToScale", "True"), condition("ScalingLimited", "False")
    assert says(cluster, *name, limited) == "HPAProgressing"
    assert says(cluster, *name, able, limited) == "True"
    assert cluster.says("Ready") == "True"
    assert says(cluster, *name, able, condition("ScalingActive", "False", "FailedGetExternalMetric")) == (
        "FailedGetExternalMetric"
    )
    assert cluster.says("WorkloadsReady") == cluster.says("Ready") == "FailedGetExternalMetric"
    message = (cluster.condition("Ready") or {})["message"]
    assert message.startswith("HorizontalPodAutoscaler demo-kserve-hpa: why; VariantAutoscalings are not declared")


def test_a_metric_that_nobody_serves() -> None:
    """If the workload variant autoscaler is installed, the message names the missing adapter."""
    cluster = synced(service(scaling=HPA))
    says(
        cluster,
        "HorizontalPodAutoscaler",
        "demo-kserve-hpa",
        condition("ScalingActive", "False", "FailedGetExternalMetric"),
    )
    message = (cluster.condition("ScalingReady") or {})["message"]
    assert message.endswith("why; the metric needs Prometheus and the kustomize component prometheus-adapter")


def test_what_a_scaled_object_says() -> None:
    """``ScalingReady`` follows KEDA's condition ``Ready``, which starts as unknown."""
    cluster = synced(service(scaling=KEDA), settings(**PROMETHEUS))
    name = ("ScaledObject", "demo-kserve-keda")
    assert cluster.says("ScalingReady") == "ScaledObjectProgressing"
    assert says(cluster, *name, condition("Ready", "Unknown")) == "ScaledObjectProgressing"
    assert says(cluster, *name, condition("Ready", "False", "TriggerError")) == "TriggerError"
    assert (cluster.condition("ScalingReady") or {})["message"] == "ScaledObject demo-kserve-keda: why"
    assert says(cluster, *name, condition("Ready", "True")) == "True"


def test_without_keda() -> None:
    """Nothing replaces KEDA, and the condition names what to install."""
    cluster = synced(service(scaling=KEDA), settings(**PROMETHEUS), optional=OPTIONAL_KINDS)
    assert {kind for kind, _ in cluster.names} == {"Deployment", "Service"}
    assert cluster.says("ScalingReady") == "KindNotInstalled"
    assert "component keda" in (cluster.condition("Ready") or {})["message"]


@pytest.mark.parametrize(
    ("prometheus", "problem"),
    [
        ({}, "prometheus.url is not set"),
        ({**PROMETHEUS, "authModes": "bearer"}, "need each other"),
        ({**PROMETHEUS, "triggerAuthName": "x"}, "need each other"),
    ],
)
def test_settings_that_a_scaled_object_lacks(prometheus: Json, problem: str) -> None:
    """No ScaledObject is created; an existing one is unchanged."""
    cluster = synced(service(scaling=KEDA), settings(**prometheus))
    assert cluster.says("ScalingReady") == "ReconcileScalingError"
    assert problem in (cluster.condition("ScalingReady") or {})["message"]
    assert "ScaledObject" not in {kind for kind, _ in cluster.names}
    running = synced(service(scaling=KEDA), settings(**PROMETHEUS))
    before = running.child("ScaledObject", "demo-kserve-keda")["spec"]
    running.related = [settings(**prometheus)]
    running.sync()
    assert running.child("ScaledObject", "demo-kserve-keda")["spec"] == before


def test_a_service_that_is_stopped_has_no_such_condition() -> None:
    cluster = synced(service(scaling=HPA))
    cluster.parent["metadata"]["annotations"] = {"serving.kserve.io/stop": "true"}
    cluster.sync()
    assert cluster.children == []
    assert cluster.condition("ScalingReady") is None


# Rules.


@pytest.mark.parametrize(
    ("wva", "path"),
    [
        ({"hpa": {"behavior": {"scaleUp": {"stabilizationWindowSeconds": 3601}}}}, "hpa.behavior"),
        (
            {"keda": {"advanced": {"horizontalPodAutoscalerConfig": {"behavior": {"scaleUp": {"selectPolicy": "x"}}}}}},
            "keda.advanced.horizontalPodAutoscalerConfig.behavior",
        ),
    ],
)
def test_behavior_is_within_the_bounds_of_kubernetes(wva: Json, path: str) -> None:
    """Behavior that the API server would refuse is already refused at apply (KS-A12)."""
    ((refused, _),) = fields(service(prefill={"scaling": {"maxReplicas": 2, "wva": wva}}))
    assert refused.startswith(f"spec.prefill.scaling.wva.{path}.scaleUp.")
