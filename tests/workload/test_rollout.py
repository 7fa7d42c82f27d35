"""How far a Deployment is, and children that are not there."""

from __future__ import annotations

from datetime import UTC, datetime

from app.workload.absent import absent_causes
from app.workload.gpu import GPURequest, missing, toleration
from app.workload.hpa import pods_metric, resource_metric
from app.workload.probes import http_get, probes
from app.workload.rollout import NOTHING, rollout
from tests.workload.objects import deployment

NOW = datetime(2030, 1, 1, 0, 2, tzinfo=UTC)


def test_absent_deployment_has_nothing() -> None:
    """Without a Deployment there are no pods, and nothing to distrust."""
    assert rollout(None) == NOTHING
    assert NOTHING.current


def test_status_behind_the_spec_is_not_current() -> None:
    """A status is distrusted while its controller has not seen the last change."""
    assert not rollout(deployment(observedGeneration=1, readyReplicas=1)).current
    assert rollout(deployment(observedGeneration=2, readyReplicas=1)).current
    assert rollout(deployment(readyReplicas=1)).current


def test_absent_child_is_a_conflict_only_after_a_minute() -> None:
    """A child that was only just asked for is on its way; one that does not come has a name that is taken."""
    for since, reason in (
        (None, "Creating"),
        ("2030-01-01T00:01:30Z", "Creating"),
        ("2030-01-01T00:00:30Z", "NameConflict"),
    ):
        assert [cause.reason for cause in absent_causes(["Service chat"], since, NOW)] == [reason]
    assert absent_causes([], "2030-01-01T00:00:30Z", NOW) == []


def test_gpu() -> None:
    """GPUs tolerate their own taint, and the scheduler's message names what is short."""
    request = GPURequest(2, "amd.com/gpu")
    assert str(request) == "amd.com/gpu: 2"
    assert toleration(request) == {
        "key": "amd.com/gpu",
        "operator": "Equal",
        "value": "present",
        "effect": "NoSchedule",
    }
    assert (
        missing("1 Insufficient cpu, 2 Insufficient amd.com/gpu.", ["nvidia.com/gpu", "amd.com/gpu"]) == "amd.com/gpu"
    )
    assert missing("1 Insufficient cpu.", ["nvidia.com/gpu"]) == ""


def test_metrics_have_canonical_quantities() -> None:
    """A quantity leaves as the API server stores it, or every sync would see a change."""
    assert pods_metric("queue", "1500m")["pods"]["target"] == {"type": "AverageValue", "averageValue": "1500m"}
    assert pods_metric("queue", "2000m")["pods"]["target"]["averageValue"] == "2"
    assert resource_metric("cpu", 80)["resource"]["target"] == {"type": "Utilization", "averageUtilization": 80}


def test_loading_may_take_half_an_hour() -> None:
    """The startup probe is the patient one."""
    three = probes(http_get("/health", 80))
    assert three.startup["periodSeconds"] * three.startup["failureThreshold"] == 1800
    assert {probe["httpGet"]["port"] for probe in (three.startup, three.liveness, three.readiness)} == {80}
