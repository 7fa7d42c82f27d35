"""Status of a Service, from its observed workload. Source: LZ-5.3, LZ-9."""

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from app.hooks.protocol import sorted_values
from app.kube.conditions import Conditions
from app.kube.objects import ObservedDeployment, ObservedLeaderWorkerSet, ObservedPod
from app.llmaz.service.types import ServiceReason
from app.llmaz.status import LlmazCondition, ServiceStatus, with_notes
from app.workload.readiness.cause import Cause
from app.workload.readiness.pods import Remedies
from app.workload.readiness.ready import (
    deployment_causes,
    group_causes,
    missing_pods,
    pod_causes,
    ready_message,
    ready_reason,
)
from app.workload.readiness.rollout import Rollout, group_rollout, rollout, with_progress
from app.workload.readiness.waiting import note_children


class WorkloadState(msgspec.Struct, frozen=True):
    """The part of an observed workload, of either kind, that the status needs."""

    kind: str
    name: str
    exists: bool
    rollout: Rollout
    selector: str
    causes: Iterable[Cause]

    @property
    def available(self) -> bool:
        """True if the workload exists and has exactly the desired replicas, all of them current and available."""
        return self.exists and self.rollout.current and self.rollout.desired in (0, self.rollout.replicas)


def of_deployment(
    name: str, deployment: ObservedDeployment | None, selector: dict[str, str], wanted: int, *, was_ready: bool
) -> WorkloadState:
    """Read the numbers of replicas, because the Deployment's ``Available`` stays true during a rollout.

    ``wanted``: the number that the answer asks for.
    """
    text = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    causes = [] if deployment is None else deployment_causes(deployment)
    progress = rollout(deployment, wanted, was_ready=was_ready)
    return WorkloadState("Deployment", name, deployment is not None, progress, text, causes)


def of_group(
    name: str, group: ObservedLeaderWorkerSet | None, pods: Mapping[str, ObservedPod] | None, wanted: int
) -> WorkloadState:
    selector = "" if group is None else group.status.hpa_pod_selector
    watched = None if pods is None else pods.values()
    causes = [] if group is None else [*group_causes(group), *missing_pods(group, watched)]
    return WorkloadState("LeaderWorkerSet", name, group is not None, group_rollout(group, wanted), selector, causes)


OF_SERVICE = Remedies(probe="raise {probe}Probe.failureThreshold of container {container} in spec.workloadTemplate")
OF_PLAYGROUND = Remedies(probe="raise spec.{probe}Probe.failureThreshold of the BackendRuntime")


def build_status(
    previous: ServiceStatus,
    observed: WorkloadState,
    pods: Mapping[str, ObservedPod] | None,
    outstanding: list[Cause],
    notes: list[str],
    now: datetime,
    *,
    remedies: Remedies = OF_SERVICE,
) -> ServiceStatus:
    """Build upstream's two conditions and ``Ready``. ``outstanding``: children that are missing or not as requested."""
    conditions = Conditions(previous.conditions, None, now)
    note_children(conditions, outstanding)
    if observed.available:
        available = f"the {observed.kind} is available"
        conditions.set(LlmazCondition.AVAILABLE, True, ServiceReason.SERVICE_READY, available)
        conditions.update(LlmazCondition.PROGRESSING, False, ServiceReason.SERVICE_READY, available)
    else:
        waiting = f"waiting for the {observed.kind} to become available"
        conditions.set(LlmazCondition.PROGRESSING, True, ServiceReason.SERVICE_IN_PROGRESS, waiting)
        conditions.update(LlmazCondition.AVAILABLE, False, ServiceReason.SERVICE_NOT_READY, waiting)
    if observed.available and not outstanding:
        progress = f"{observed.rollout.ready} of {observed.rollout.desired} replicas are ready"
        conditions.set(LlmazCondition.READY, True, ServiceReason.SERVICE_READY, with_notes(progress, notes))
    else:
        causes = outstanding or with_progress(
            [*observed.causes, *pod_causes(sorted_values(pods), terminating=True, remedies=remedies)],
            observed.kind,
            observed.name,
            observed.rollout,
        )
        reason = ready_reason(causes, replacing=observed.rollout.replacing and not outstanding)
        conditions.set(
            LlmazCondition.READY,
            False,
            reason,
            with_notes(ready_message(causes, [observed.rollout.counted(observed.kind)]), notes),
        )
    return ServiceStatus(
        conditions=conditions.list(),
        replicas=observed.rollout.replicas,
        selector=observed.selector,
        ready_replicas=observed.rollout.ready,
    )
