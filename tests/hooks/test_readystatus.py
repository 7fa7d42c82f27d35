"""Stalled and Stopped, for programs that read a false Ready as something to wait for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from app.hooks.readystatus import KEEPS_NO_NOTE, LASTING, WAITS_NOTE, judged, noted, ready_of, unnoted
from app.kube.conditions import Condition, rfc3339

NOW = datetime(2030, 1, 1, tzinfo=UTC)
EARLIER = rfc3339(NOW - timedelta(hours=1))


class Status(msgspec.Struct):
    conditions: list[Condition] = []


def condition(type_: str, status: str, reason: str = "R", message: str = "m") -> Condition:
    return Condition(type_, status, reason, message, EARLIER, 3)


def types(status: Status) -> dict[str, tuple[str, str]]:
    return {c.type: (c.status, c.reason) for c in status.conditions}


@pytest.mark.parametrize("reason", ["CrashLoopBackOff", "InvalidSpec", "FailedCreate"])
def test_a_cause_that_a_person_has_to_correct_is_stalled(reason: str) -> None:
    status = judged(Status([condition("Ready", "False", reason, "why")]), NOW)
    assert types(status) == {"Ready": ("False", reason), "Stalled": ("True", reason)}
    assert (status.conditions[1].message, status.conditions[1].observed_generation) == ("why", 3)
    assert status.conditions[1].last_transition_time == rfc3339(NOW)


def test_the_time_of_stalled_changes_only_with_its_status() -> None:
    before = [condition("Stalled", "True", "InvalidSpec"), condition("Ready", "False", "ImagePullBackOff", "why")]
    status = judged(Status(before), NOW)
    assert types(status)["Stalled"] == ("True", "ImagePullBackOff")
    assert status.conditions[-1].last_transition_time == EARLIER
    assert judged(status, NOW) is status


@pytest.mark.parametrize("type_", ["PodsReady", "ChildrenCreated"])
def test_kserves_reason_hides_no_cause(type_: str) -> None:
    ready = condition("Ready", "False", "MinimumReplicasUnavailable", "why")
    status = judged(Status([ready, condition(type_, "False", "QuotaExceeded")]), NOW)
    assert types(status)["Stalled"] == ("True", "QuotaExceeded")


@pytest.mark.parametrize("ready", [("True", "InferenceReady"), ("False", "Creating"), ("Unknown", "R")])
def test_a_service_that_waits_or_serves_is_not_stalled(ready: tuple[str, str]) -> None:
    """A service that serves while a rollout fails is ready."""
    pods = [condition("PodsReady", "False", "CrashLoopBackOff")] if ready[0] == "True" else []
    status = judged(Status([condition("Stalled", "True"), *pods, condition("Ready", *ready)]), NOW)
    assert "Stalled" not in types(status)
    assert types(status)["Ready"] == ready


@pytest.mark.parametrize("reason", ["Stopped", "Suspended", "ManuallyScaledToZero"])
def test_a_stopped_object_has_stopped_in_place_of_ready(reason: str) -> None:
    stopped = judged(Status([condition("Ready", "False", reason, "why"), condition("Available", "False")]), NOW)
    assert types(stopped) == {"Available": ("False", "R"), "Stopped": ("True", reason)}
    again = judged(Status([*stopped.conditions, condition("Ready", "False", reason, "why")]), NOW + timedelta(hours=1))
    assert again == stopped
    started = judged(Status([*stopped.conditions, condition("Ready", "False", "Creating")]), NOW)
    assert types(started) == {"Available": ("False", "R"), "Ready": ("False", "Creating")}


def test_what_reads_ready_finds_stopped() -> None:
    stopped = {"type": "Stopped", "status": "True", "reason": "Suspended", "message": "why"}
    assert ready_of([stopped]) == {**stopped, "type": "Ready", "status": "False"}
    assert ready_of([]) == {}


def test_nothing_that_may_appear_a_moment_later_is_stalled() -> None:
    """Tools apply the manifests of a folder in any order."""
    assert [reason for reason in LASTING if reason.endswith(("NotFound", "NotReady", "NotBound"))] == ["PresetNotFound"]


@pytest.mark.parametrize("note", [f"{WAITS_NOTE} (spec.a)", f"{KEEPS_NO_NOTE} spec.b"])
@pytest.mark.parametrize("message", ["why", ""])
def test_notes_are_at_the_end_and_do_not_grow(note: str, message: str) -> None:
    """They are taken off what was written before, so that it compares with the next status."""
    plain = Status([condition("Ready", "False", message=message), condition("Available", "False", message="as it was")])
    (ready, other) = noted(plain, [note])["conditions"]
    assert ready["message"] == "; ".join(filter(None, [message, note]))
    assert other["message"] == "as it was"
    written = Status([condition("Ready", "False", message=ready["message"]), plain.conditions[1]])
    assert unnoted(written) == plain
    assert noted(written, [note])["conditions"] == [ready, other]
