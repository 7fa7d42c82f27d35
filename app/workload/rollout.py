"""How far a Deployment or a LeaderWorkerSet is, as its controller reports it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.kube.conditions import is_true
from app.kube.objects import ObservedDeployment, ObservedLeaderWorkerSet
from app.workload.cause import Cause, Stage

ROLLING_OUT = "RollingOut"
"""Reason of ``Ready`` while replicas are being replaced, or the last change is about to be rolled out."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """What a workload's status says. Numbers are pods, or groups of a LeaderWorkerSet."""

    desired: int | None
    """``spec.replicas``, whoever wrote it; ``None`` where nobody did, or without a workload."""
    wanted: int
    """The same with the API server's default; 0 without a workload."""
    replicas: int
    """All of them, whatever their template; those that are being deleted do not count."""
    ready: int
    updated: int
    """Those made from the present template."""
    available: int
    seen: bool
    """Whether the numbers are about the present spec, not an earlier one."""

    @property
    def counts(self) -> bool:
        """Whether it says anything of replicas."""
        return bool(self.replicas or self.ready or self.updated or self.available)

    @property
    def replacing(self) -> bool:
        """Whether the present template has yet to take the place of an earlier one."""
        return self.replicas > (self.updated if self.seen else 0)

    @property
    def current(self) -> bool:
        """Whether all wanted replicas have the present template and are available, and none has an earlier one."""
        return self.seen and not self.replacing and min(self.updated, self.available) >= self.wanted

    @property
    def progress(self) -> str:
        """For people: how many of the wanted replicas are new, and how many are not."""
        text = f"{min(self.updated, self.available)} of {self.wanted} replicas are updated and available"
        old = self.replicas - self.updated
        return f"{text}, {old} of an earlier revision still there" if old > 0 else text


NOTHING = Rollout(desired=None, wanted=0, replicas=0, ready=0, updated=0, available=0, seen=True)


def rollout(deployment: ObservedDeployment | None, *, was_ready: bool = False) -> Rollout:
    """Reads a Deployment; one that does not exist has nothing.

    An annotation is enough to make a new generation of a Deployment, and every answer that changes a child also changes
    Metacontroller's record of it. So where the parent ``was_ready``, a generation that its controller has yet to see
    takes nothing away while the numbers are those of a ready one: an answer that asks for other pods says so itself
    (:func:`app.workload.waiting.outstanding`).
    """
    if deployment is None:
        return NOTHING
    status = deployment.status
    found = Rollout(
        desired=deployment.spec.replicas,
        wanted=_wanted(deployment.spec.replicas),
        replicas=status.replicas,
        ready=status.ready_replicas,
        updated=status.updated_replicas,
        available=status.available_replicas,
        seen=True,
    )
    behind = (status.observed_generation or 0) < (deployment.metadata.generation or 0)
    settled = found.current and found.replicas == found.wanted
    return replace(found, seen=False) if behind and not (was_ready and settled) else found


def group_rollout(groups: ObservedLeaderWorkerSet | None) -> Rollout:
    """Reads a LeaderWorkerSet, whose ready groups count as available once it calls itself so.

    ``Available`` of a LeaderWorkerSet turns false during a rollout. One that counts no updated group is believed by it
    alone, and one without ``observedGeneration`` is never behind: older versions have neither.
    """
    if groups is None:
        return NOTHING
    status, wanted = groups.status, _wanted(groups.spec.replicas)
    available = is_true(status.conditions, "Available") and not is_true(status.conditions, "UpdateInProgress")
    believed = available and not status.updated_replicas
    ready = max(wanted, status.ready_replicas) if believed else status.ready_replicas
    return Rollout(
        desired=groups.spec.replicas,
        wanted=wanted,
        replicas=status.replicas,
        ready=ready,
        updated=max(wanted, status.replicas) if believed else status.updated_replicas,
        available=ready if available else 0,
        seen=(status.observed_generation or groups.metadata.generation or 0) >= (groups.metadata.generation or 0),
    )


def _wanted(replicas: int | None) -> int:
    """The API server's default."""
    return 1 if replicas is None else replicas


def rolling_out(kind: str, name: str, progress: Rollout) -> Cause:
    """Said of a workload that is not current, and of which nothing else is known."""
    text = progress.progress if progress.seen else "its last change has not begun yet"
    return Cause(Stage.STARTING, f"{kind} {name} is rolling out: {text}", ROLLING_OUT)
