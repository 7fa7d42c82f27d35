"""The progress of a Deployment, and children that do not exist."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from app.workload.autoscaler import pods_metric, resource_metric
from app.workload.parts import LOAD_ATTEMPTS, STARTUP_PERIOD, GPURequest, insufficient_resource
from app.workload.readiness.cause import Cause, Stage
from app.workload.readiness.ready import ready_message
from app.workload.readiness.rollout import NOTHING, group_rollout, rolling_out, rollout
from app.workload.readiness.waiting import absent_causes
from tests.builders import condition, deployment, groups

NOW = datetime(2030, 1, 1, 0, 2, tzinfo=UTC)
COUNTS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")


def counts(number: int) -> dict[str, int]:
    return dict.fromkeys(COUNTS, number)


def test_absent_deployment_has_nothing() -> None:
    """A missing Deployment has no pods, and counts as current."""
    assert rollout(None) == NOTHING
    assert NOTHING.current


def test_status_behind_the_spec_is_not_current() -> None:
    """A status is ignored until its controller has observed the last change."""
    assert not rollout(deployment(observedGeneration=1, **counts(1))).current
    assert rollout(deployment(observedGeneration=2, **counts(1))).current
    assert not rollout(deployment(**counts(1))).current


def test_what_was_ready_stays_so_until_the_numbers_say_otherwise() -> None:
    """A generation that is not observed yet may only have another annotation."""
    assert rollout(deployment(observedGeneration=1, **counts(1)), was_ready=True).current
    assert not rollout(deployment(observedGeneration=1, **counts(0)), was_ready=True).current
    replacing = {**counts(1), "replicas": 2}
    assert rollout(deployment(observedGeneration=1, **replacing), was_ready=True).replacing


@pytest.mark.parametrize(("written", "wanted", "desired"), [(3, None, 3), (None, None, 1), (3, 2, 2), (3, 0, 0)])
def test_a_number_that_an_autoscaler_writes_is_desired_where_the_answer_has_none(
    written: int | None, wanted: int | None, desired: int
) -> None:
    status = {"observedGeneration": 2, **counts(3)}
    for seen in (
        rollout(deployment(desired=written, **status), wanted),
        group_rollout(groups(desired=written, **status), wanted),
    ):
        assert (seen.spec_replicas, seen.desired) == (written, desired)


STATES: dict[str, tuple[dict[str, int], bool, bool]] = {
    "complete": ({}, True, False),
    "the new pod does not start beside the old one": ({"replicas": 2, "unavailableReplicas": 1}, False, True),
    "the new pods are refused": ({"updatedReplicas": 0}, False, True),
    "the old pod went first": ({"readyReplicas": 0, "availableReplicas": 0}, False, False),
    "ready, and not for long enough yet": ({"availableReplicas": 0}, False, False),
    "available and not ready, which no controller says": ({"readyReplicas": 0}, False, False),
    "nothing is there yet": (dict.fromkeys(COUNTS, 0), False, False),
}


@pytest.mark.parametrize(("numbers", "current", "replacing"), STATES.values(), ids=STATES)
def test_a_deployment_is_current_when_all_its_pods_are_new_and_available(
    numbers: dict[str, int], current: bool, replacing: bool
) -> None:
    """Otherwise a failing update would look successful while the old pods serve."""
    seen = rollout(deployment(observedGeneration=2, **{**counts(1), **numbers}))
    assert (seen.current, seen.replacing) == (current, replacing)


GROUPS: dict[str, tuple[dict[str, int], str, bool]] = {
    "complete": ({"replicas": 2, "updatedReplicas": 2, "readyReplicas": 2}, "True", True),
    "one group is of the earlier template": ({"replicas": 2, "updatedReplicas": 1, "readyReplicas": 2}, "True", False),
    "one group is missing": ({"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1}, "True", False),
    "it says that it is not available": ({"replicas": 2, "updatedReplicas": 2, "readyReplicas": 2}, "False", False),
    "it does not count the new ones": ({"replicas": 2, "readyReplicas": 2}, "True", True),
    "it only says that it is available": ({"replicas": 2}, "True", True),
    "it has not seen the change": (
        {"replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "observedGeneration": 1},
        "True",
        False,
    ),
}


@pytest.mark.parametrize(("numbers", "available", "current"), GROUPS.values(), ids=GROUPS)
def test_a_leader_worker_set_is_current_by_its_groups(numbers: dict[str, int], available: str, current: bool) -> None:
    """The condition counts too: older versions have it, but no number of updated groups."""
    assert group_rollout(groups(condition("Available", available), **numbers)).current is current
    updating = groups(condition("Available", available), condition("UpdateInProgress", "True"), **numbers)
    assert not group_rollout(updating).current


def test_absent_child_is_refused_only_after_a_minute() -> None:
    """A child that was just requested is being created."""
    for since, reason in (
        (None, "Creating"),
        ("2030-01-01T00:01:30Z", "Creating"),
        ("2030-01-01T00:00:30Z", "CreateRefused"),
    ):
        assert [cause.reason for cause in absent_causes(["Service chat"], since, NOW)] == [reason]
    assert absent_causes([], "2030-01-01T00:00:30Z", NOW) == []


def test_the_resource_that_is_missing_is_named() -> None:
    """The string has resource and number; the scheduler names the resource that is missing."""
    request = GPURequest(2, "amd.com/gpu")
    assert str(request) == "amd.com/gpu: 2"
    assert (
        insufficient_resource("1 Insufficient cpu, 2 Insufficient amd.com/gpu.", ["nvidia.com/gpu", "amd.com/gpu"])
        == "amd.com/gpu"
    )
    assert insufficient_resource("1 Insufficient cpu.", ["nvidia.com/gpu"]) == ""


def test_metrics_have_canonical_quantities() -> None:
    """Otherwise every sync would see a difference from what the API server stores."""
    assert pods_metric("queue", "1500m")["pods"]["target"] == {"type": "AverageValue", "averageValue": "1500m"}
    assert pods_metric("queue", "2000m")["pods"]["target"]["averageValue"] == "2"
    assert resource_metric("cpu", 80)["resource"]["target"] == {"type": "Utilization", "averageUtilization": 80}


def test_loading_may_take_half_an_hour() -> None:
    """The startup probe allows it."""
    assert STARTUP_PERIOD * LOAD_ATTEMPTS == 1800


@pytest.mark.parametrize(
    ("words", "replicas", "is_held"),
    [
        ("1 Insufficient nvidia.com/gpu", 2, True),
        ("1 Insufficient gpu.intel.com/xe", 2, True),
        ("1 Insufficient memory", 2, False),
        ("1 Insufficient nvidia.com/gpu", 1, False),
    ],
)
def test_a_rollout_that_waits_for_its_own_devices_says_so(words: str, replicas: int, *, is_held: bool) -> None:
    """The old pod has the only GPU, and goes once the new one is ready."""
    status = {"replicas": replicas, "updatedReplicas": 1, "readyReplicas": replicas - 1}
    progress = rollout(deployment(observedGeneration=2, **status))
    waiting = Cause(Stage.SCHEDULING, f"pod a: cannot be scheduled: 0/3 nodes are available: {words}", "Unschedulable")
    message = ready_message([waiting, rolling_out("Deployment", "a", progress)])
    assert ("hold the devices that the new ones wait for" in message) is is_held


def test_groups_that_are_not_there_are_the_wanted_number_behind() -> None:
    assert group_rollout(None, wanted=2) == replace(NOTHING, desired=2)
    assert group_rollout(None, wanted=0) == group_rollout(None) == NOTHING
