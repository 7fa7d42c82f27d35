"""How far a Service is, from its observed workload. Source: llmaz spec 5.3 and 9."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.hooks.protocol import every
from app.kube import field
from app.kube.conditions import Conditions, is_true
from app.kube.objects import ObservedDeployment, ObservedPod
from app.llmaz.judgement import stopped, with_notes
from app.llmaz.service.related import ObservedLeaderWorkerSet
from app.llmaz.service.types import ConditionType, Reason, ServiceStatus
from app.workload.cause import Cause, Stage
from app.workload.ready import deployment_causes, pod_causes, ready_message, ready_reason


@dataclass(frozen=True, slots=True)
class Observed:
    """A workload of either kind, as far as the status is concerned."""

    kind: str
    replicas: int
    ready: int
    wanted: int
    available: bool
    selector: str
    causes: list[Cause]
    """What the workload says of itself."""


def of_deployment(deployment: ObservedDeployment | None, selector: dict[str, str]) -> Observed:
    """Its own ``Available`` stays true during a rollout, so the numbers are judged: all pods there, new and ready."""
    text = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    if deployment is None:
        return Observed("Deployment", 0, 0, 0, available=False, selector=text, causes=[])
    status = deployment.status
    wanted = 1 if deployment.spec.replicas is None else deployment.spec.replicas
    current = (status.observed_generation or 0) >= (deployment.metadata.generation or 0)
    complete = status.updated_replicas == status.ready_replicas == status.replicas == wanted
    return Observed(
        kind="Deployment",
        replicas=status.replicas,
        ready=status.ready_replicas,
        wanted=wanted,
        available=current and (complete or wanted == 0),
        selector=text,
        causes=deployment_causes(deployment),
    )


def of_group(group: ObservedLeaderWorkerSet | None) -> Observed:
    """LeaderWorkerSet's own ``Available``, which turns false during a rollout; replicas are groups."""
    if group is None:
        return Observed("LeaderWorkerSet", 0, 0, 0, available=False, selector="", causes=[])
    status = group.status
    return Observed(
        kind="LeaderWorkerSet",
        replicas=status.replicas,
        ready=status.ready_replicas,
        wanted=1 if group.spec.replicas is None else group.spec.replicas,
        available=is_true(status.conditions, ConditionType.AVAILABLE),
        selector=status.hpa_pod_selector,
        causes=[],
    )


def judged(
    previous: ServiceStatus,
    observed: Observed,
    pods: Mapping[str, ObservedPod] | None,
    outstanding: list[Cause],
    notes: list[str],
    now: datetime,
) -> ServiceStatus:
    """Upstream's two conditions, and ours. ``outstanding``: children that are not there or not as they should be."""
    conditions = Conditions(previous.conditions, None, now)
    if observed.available:
        conditions.set(ConditionType.AVAILABLE, True, Reason.SERVICE_READY, f"the {observed.kind} is available")
    else:
        waiting = f"waits for the {observed.kind} to be available"
        conditions.set(ConditionType.PROGRESSING, True, Reason.SERVICE_IN_PROGRESS, waiting)
        if conditions.get(ConditionType.AVAILABLE) is not None:
            conditions.set(ConditionType.AVAILABLE, False, Reason.SERVICE_NOT_READY, waiting)
    _ready(conditions, observed, pods, outstanding, notes)
    return ServiceStatus(conditions=conditions.list(), replicas=observed.replicas, selector=observed.selector)


def _ready(
    conditions: Conditions,
    observed: Observed,
    pods: Mapping[str, ObservedPod] | None,
    outstanding: list[Cause],
    notes: list[str],
) -> None:
    progress = f"{observed.ready} of {observed.wanted} replicas are ready"
    if observed.available and not outstanding:
        conditions.set(ConditionType.READY, True, Reason.SERVICE_READY, with_notes(progress, notes))
        return
    causes = outstanding or [*observed.causes, *pod_causes(every(pods))]
    if not causes:
        causes = [Cause(Stage.STARTING, f"{observed.kind} is rolling out: {progress}", Reason.ROLLING_OUT)]
    conditions.set(ConditionType.READY, False, ready_reason(causes), with_notes(ready_message(causes), notes))


def aborted(previous: ServiceStatus, cause: Cause, now: datetime) -> ServiceStatus:
    """Nothing is touched, neither children nor what was mirrored from them."""
    return _stopped(previous, cause.reason, f"{cause.text}; what runs is left as it is", now)


def invalid(previous: ServiceStatus, errors: Sequence[field.Error], now: datetime) -> ServiceStatus:
    """A rule is broken."""
    return _stopped(previous, Reason.INVALID_SPEC, field.aggregate(errors), now)


def _stopped(previous: ServiceStatus, reason: str, message: str, now: datetime) -> ServiceStatus:
    conditions = stopped(previous.conditions, reason, message, now)
    return ServiceStatus(conditions=conditions, replicas=previous.replicas, selector=previous.selector)
