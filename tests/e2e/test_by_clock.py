"""Services that KEDA scales by the clock: its object is accepted, and what it writes does what the page says."""

from __future__ import annotations

import json

import pytest
import yaml

from app.kube.base import Json
from tests.e2e.controlplane import ControlPlane
from tests.e2e.installation import ROOT, Installation
from tests.e2e.processes import wait_until

pytestmark = pytest.mark.e2e

RUNTIMES = ROOT / "manifests" / "llmaz-runtimes"
NIGHT = {
    "llmkube": {"Stopped": "True"},
    "llmaz": {"Ready": "True"},
    "kserve": {"Ready": "True"},
}
"""What the conditions of each family say while nothing runs."""


def manifests(family: str) -> list[Json]:
    return list(yaml.safe_load_all((ROOT / "examples" / family / "by-clock.yaml").read_text()))


def scaled_object(family: str) -> Json:
    (scaler,) = (manifest for manifest in manifests(family) if manifest["kind"] == "ScaledObject")
    return scaler


def target(family: str) -> tuple[str, str]:
    """Return the resource, with its group, and its name."""
    reference = scaled_object(family)["spec"]["scaleTargetRef"]
    group = reference["apiVersion"].partition("/")[0]
    return f"{reference['kind'].lower()}s.{group}", reference["name"]


def conditions(cluster: ControlPlane, namespace: str, family: str) -> dict[str, str]:
    kind, name = target(family)
    conditions = cluster.get(kind, name, "-n", namespace).get("status", {}).get("conditions", ())
    return {condition["type"]: condition["status"] for condition in conditions}


def pods(cluster: ControlPlane, namespace: str) -> int:
    deployments = cluster.get("deployments", "-n", namespace)["items"]
    return sum(deployment["spec"]["replicas"] for deployment in deployments)


def written(cluster: ControlPlane, namespace: str, family: str, number: int) -> None:
    """Write the number of replicas as KEDA and its autoscaler do."""
    kind, name = target(family)
    cluster.kubectl("scale", kind, name, "-n", namespace, f"--replicas={number}")
    wait_until(lambda: pods(cluster, namespace) == number, f"{number} replicas")


@pytest.mark.parametrize("family", NIGHT)
def test_a_service_is_off_at_night_and_has_four_pods_in_the_morning(
    installation: Installation, namespace: str, family: str
) -> None:
    cluster = installation.cluster
    if family == "llmaz":
        cluster.kubectl("apply", "-k", RUNTIMES)
    for manifest in manifests(family):
        strict = ("apply", "-n", namespace, "--server-side", "--validate=strict", "-f", "-")
        assert "Warning" not in cluster.kubectl(*strict, input=json.dumps(manifest)).stderr
    wait_until(lambda: conditions(cluster, namespace, family).get("Ready") == "True", "one pod is ready")
    written(cluster, namespace, family, 0)
    wait_until(lambda: NIGHT[family].items() <= conditions(cluster, namespace, family).items(), "nothing runs")
    assert family != "llmkube" or "Ready" not in conditions(cluster, namespace, family)
    written(cluster, namespace, family, 4)
    wait_until(lambda: conditions(cluster, namespace, family).get("Ready") == "True", "four pods are ready")


def test_llmkube_has_at_most_ten_pods(installation: Installation, namespace: str) -> None:
    """So does its ScaledObject: an autoscaler that writes more is refused again and again."""
    cluster = installation.cluster
    for manifest in manifests("llmkube"):
        cluster.kubectl("apply", "-n", namespace, "-f", "-", input=json.dumps(manifest))
    kind, name = target("llmkube")
    refused = cluster.kubectl("scale", kind, name, "-n", namespace, "--replicas=11", check=False)
    assert "should be less than or equal to 10" in refused.stderr
    assert scaled_object("llmkube")["spec"]["maxReplicaCount"] == 10


@pytest.mark.parametrize("family", NIGHT)
def test_the_clocks_of_an_example_overlap_as_its_comment_says(family: str) -> None:
    """KEDA takes the highest number of all triggers; zero is none of cron's, but the minimum."""
    spec = scaled_object(family)["spec"]
    clocks = {trigger["name"]: trigger["metadata"] for trigger in spec["triggers"] if trigger["type"] == "cron"}
    assert spec["minReplicaCount"] == 0
    assert {name: clock["desiredReplicas"] for name, clock in clocks.items()} == {"day": "1", "morning": "4"}
    assert clocks["day"]["start"] == clocks["morning"]["start"]
    assert len({clock["timezone"] for clock in clocks.values()}) == 1
    (load,) = (trigger["metadata"]["query"] for trigger in spec["triggers"] if trigger["type"] == "prometheus")
    assert f'service="{spec["scaleTargetRef"]["name"]}"' in load
