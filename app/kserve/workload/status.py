"""What Deployments and LeaderWorkerSets say of themselves. Source: KS-6.2."""

from __future__ import annotations

from app.kserve.llminferenceservice.types import Reason
from app.kserve.results import CONDITION_TRUE, ConditionState, by_condition, fails
from app.kube.conditions import find
from app.kube.objects import ObservedDeployment, ObservedLeaderWorkerSet
from app.workload.cause import Stage
from app.workload.rollout import Rollout, group_rollout, rolling_out, rollout


def deployment_state(deployment: ObservedDeployment | None, *, was_ready: bool = False) -> ConditionState:
    """Of a main or prefill Deployment, which must have seen its latest change (KS-6.2)."""
    available = find(deployment.status.conditions, "Available") if deployment is not None else None
    if deployment is None or available is None:
        return fails(Reason.PROGRESSING)
    if available.status != "True":
        return by_condition(available)
    progress = rollout(deployment, was_ready=was_ready)
    if not progress.seen:
        return fails(Reason.PROGRESSING, f"Deployment {deployment.metadata.name}: the latest change is not rolled out")
    return _rolled_out("Deployment", deployment.metadata.name, progress)


def leader_worker_set_state(workload: ObservedLeaderWorkerSet | None) -> ConditionState:
    """Of a main or prefill LeaderWorkerSet."""
    available = find(workload.status.conditions, "Available") if workload is not None else None
    if workload is None or available is None:
        return fails(Reason.PROGRESSING, "the LeaderWorkerSet is not available yet")
    if available.status != "True":
        return by_condition(available)
    return _rolled_out("LeaderWorkerSet", workload.metadata.name, group_rollout(workload))


def _rolled_out(kind: str, name: str, progress: Rollout) -> ConditionState:
    """Of a workload that is available, which it also is while an update that cannot work is being tried.

    One that counts no pods at all is believed by its condition.
    """
    if progress.current or (progress.seen and not progress.counts):
        return CONDITION_TRUE
    cause = rolling_out(kind, name, progress)
    return fails(cause.reason, cause.text, Stage.PROBE)
