"""Verdicts on what was observed: one finding for each condition. Source: kserve spec 4.7, 6.2 and 6.4."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from app.kserve.llminferenceservice.conditions import PROGRESS_DEADLINE_EXCEEDED, PROGRESSING
from app.kserve.llminferenceservice.objects import ObservedPool, ObservedRoute, ParentReference
from app.kserve.names import GATEWAY_GROUP
from app.kube.conditions import Condition, find, is_true
from app.kube.objects import ObservedDeployment, ObservedLeaderWorkerSet
from app.workload.cause import Cause, Stage, one_line
from app.workload.rollout import Rollout, group_rollout, rolling_out, rollout


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether one condition holds and, when not, why. A true one says nothing."""

    ok: bool
    reason: str = ""
    message: str = ""
    stage: Stage = Stage.STARTING
    """Where its message stands among the causes in ``Ready``."""

    @property
    def cause(self) -> Cause | None:
        return None if self.ok or not self.message else Cause(self.stage, self.message, self.reason)


READY = Finding(True)


# Workloads.


def deployment_finding(deployment: ObservedDeployment | None) -> Finding:
    """Of a main or prefill Deployment, which must have seen its latest change (6.2)."""
    available = find(deployment.status.conditions, "Available") if deployment is not None else None
    if deployment is None or available is None:
        return Finding(False, PROGRESSING)
    if available.status != "True":
        return _by_condition(available)
    if (deployment.status.observed_generation or 0) < (deployment.metadata.generation or 0):
        return Finding(
            False, PROGRESSING, f"Deployment {deployment.metadata.name}: the latest change is not rolled out"
        )
    return _rolled_out("Deployment", deployment.metadata.name, rollout(deployment))


def leader_worker_set_finding(workload: ObservedLeaderWorkerSet | None) -> Finding:
    """Of a main or prefill LeaderWorkerSet."""
    available = find(workload.status.conditions, "Available") if workload is not None else None
    if workload is None or available is None:
        return Finding(False, PROGRESSING, "the LeaderWorkerSet is not available yet")
    if available.status != "True":
        return _by_condition(available)
    return _rolled_out("LeaderWorkerSet", workload.metadata.name, group_rollout(workload))


def _rolled_out(kind: str, name: str, progress: Rollout) -> Finding:
    """Of a workload that is available, which it also is while an update that cannot work is being tried.

    One that counts no pods at all is believed by its condition.
    """
    if progress.current or (progress.seen and not progress.counts):
        return READY
    cause = rolling_out(kind, name, progress)
    return Finding(False, cause.reason, cause.text, Stage.PROBE)


def scheduler_finding(deployment: ObservedDeployment | None) -> Finding:
    """Of the endpoint picker: one available pod is enough, because standbys are never ready (6.4).

    It has to be one of the present template, so none of an earlier one may be left.
    """
    status = deployment.status if deployment is not None else None
    if deployment is not None and deployment.status.available_replicas > 0:
        progress = rollout(deployment)
        if not progress.replacing:
            return READY
        cause = rolling_out("Deployment", deployment.metadata.name, progress)
        return Finding(False, cause.reason, cause.text, Stage.PROBE)
    conditions = status.conditions if status is not None else None
    progressing = find(conditions, "Progressing")
    if progressing is not None and progressing.status == "False" and progressing.reason == PROGRESS_DEADLINE_EXCEEDED:
        return _by_condition(progressing)
    available = find(conditions, "Available")
    if available is None:
        return Finding(False, PROGRESSING, "the endpoint picker is being rolled out")
    return READY if available.status == "True" else _by_condition(available)


def _by_condition(condition: Condition) -> Finding:
    return Finding(False, condition.reason, one_line(condition.message))


# Routes and pools.


def is_route_ready(route: ObservedRoute) -> bool:
    """Every parent named in the spec has accepted the route, and whoever judged it resolved its references.

    A parent status without ``Accepted`` is some policy controller's and counts for nothing.
    """
    references = route.spec.parent_refs or []
    judged = [parent for parent in route.status.parents or () if find(parent.conditions, "Accepted") is not None]
    accepted = {_identity(parent.parent_ref, route.metadata.namespace) for parent in judged}
    if not references or any(_identity(ref, route.metadata.namespace) not in accepted for ref in references):
        return False
    generation = route.metadata.generation
    return all(
        _holds(parent.conditions, "Accepted", generation) and _holds(parent.conditions, "ResolvedRefs", generation)
        for parent in judged
    )


def is_pool_ready(pool: ObservedPool) -> bool:
    parents = pool.status.parents or []
    return bool(parents) and all(_holds(parent.conditions, "Accepted", pool.metadata.generation) for parent in parents)


def is_programmed(conditions: Iterable[Condition] | None) -> bool:
    """Whether a Gateway takes requests."""
    return is_true(conditions, "Programmed")


def _identity(reference: ParentReference, namespace: str) -> tuple[str, str, str, str, str, int]:
    return (
        reference.name,
        reference.group if reference.group is not None else GATEWAY_GROUP,
        reference.kind if reference.kind is not None else "Gateway",
        reference.namespace if reference.namespace is not None else namespace,
        reference.section_name or "",
        reference.port or 0,
    )


def _holds(conditions: Iterable[Condition] | None, type_: str, generation: int | None) -> bool:
    """Whether the condition is true of the object as it is now, not of an earlier generation."""
    found = find(conditions, type_)
    if found is None or found.status != "True":
        return False
    observed = found.observed_generation or 0
    return observed <= 0 or observed >= (generation or 0)
