"""What holds up a Job that has neither completed nor given up: its claim, its pods, or that it has none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from app.kube.conditions import is_true, seconds_since
from app.kube.objects import ObservedClaim, ObservedJob, ObservedPod
from app.workload.cause import Cause, Stage
from app.workload.pods import failures
from app.workload.ready import claim_cause, job_causes
from app.workload.waiting import waited_in_vain

MOUNT_SECONDS = 120
"""A pod that has a node for this long and still waits for its volumes: the file to copy is not there."""


def holdups(job: ObservedJob, pods: Sequence[ObservedPod], claim: ObservedClaim | None, now: datetime) -> list[Cause]:
    """The causes that the cluster shows. A claim that is absent is for the caller, who knows since when."""
    unbound = claim_cause(claim.metadata.name, claim) if claim is not None else None
    return [*([unbound] if unbound else ()), *_without_pods(job, now), *job_causes(job, pods)]


def _without_pods(job: ObservedJob, now: datetime) -> Iterator[Cause]:
    """A Job whose pods are refused says so in its events only; that it never had one shows in its counts."""
    name, status = job.metadata.name, job.status
    if is_true(status.conditions, "Suspended"):
        yield Cause(Stage.QUOTA, f"Job {name} is suspended: whoever queues it has not let it start", "JobSuspended")
    elif not (status.active or status.failed or status.succeeded) and waited_in_vain(
        job.metadata.creation_timestamp, now
    ):
        text = (
            f"Job {name} has no pod: a quota or a policy of the API server refuses it (the Job's events have its words)"
        )
        yield Cause(Stage.QUOTA, text, "JobWithoutPods")


def last_failure(pods: Sequence[ObservedPod]) -> Iterator[Cause]:
    """How the latest pod of a Job ended, while the Job tries again."""
    ended = [pod for pod in pods if pod.status.phase == "Failed"]
    latest = max(ended, key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name), default=None)
    words = "; ".join(failures(latest)) if latest else ""
    if words:
        yield Cause(Stage.MODEL, f"the last attempt failed: {words}", "AttemptFailed")


def cannot_mount(pods: Sequence[ObservedPod], now: datetime) -> bool:
    """A pod has a node, and its containers are not made for long: a missing hostPath file is never an exit."""
    for pod in pods:
        scheduled = next(
            (c for c in pod.status.conditions or () if c.type == "PodScheduled" and c.status == "True"), None
        )
        age = seconds_since(scheduled.last_transition_time, now) if scheduled else None
        waits = [s.state.waiting for s in pod.status.container_statuses or ()]
        if age is not None and age >= MOUNT_SECONDS and any(w and w.reason == "ContainerCreating" for w in waits):
            return True
    return False
