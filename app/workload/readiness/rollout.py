"""The rollout state of a Deployment or LeaderWorkerSet, as its controller reports it."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from app.hooks.protocol import AnyRequest
from app.kube.conditions import is_true
from app.kube.objects import ObservedDeployment, ObservedLeaderWorkerSet
from app.workload.readiness.cause import Cause, Stage

ROLLING_OUT = "RollingOut"
"""Reason of ``Ready`` while replicas are being replaced, or the last change is about to be rolled out."""
EARLIER = "of an earlier revision still there"
"""The end of the progress of a rollout that has not removed all earlier replicas."""


class Rollout(msgspec.Struct, frozen=True):
    """The rollout state of a workload. Numbers are pods, or groups of a LeaderWorkerSet."""

    spec_replicas: int | None
    """``spec.replicas``; ``None`` if it is not set, or without a workload."""
    desired: int
    """The number that the answer asks for, else the same with the API server's default; 0 without a workload."""
    replicas: int
    """Replicas of every template, without those that are being deleted."""
    ready: int
    updated: int
    """Replicas of the current template."""
    available: int
    up_to_date: bool
    """True if the status is about the current generation."""

    @property
    def replacing(self) -> bool:
        """True while replicas of an earlier template exist."""
        return self.replicas > (self.updated if self.up_to_date else 0)

    @property
    def current(self) -> bool:
        """True if all desired replicas have the current template and are available, and none has an earlier one.

        What is available is ready, too, but a status is only as true as who wrote it.
        """
        enough = min(self.updated, self.available, self.ready) >= self.desired
        return self.up_to_date and not self.replacing and enough

    def counted(self, kind: str) -> str:
        """Return how many replicas are ready, of a workload that should have several."""
        return ready_count(self.ready, self.desired, "groups" if kind == "LeaderWorkerSet" else "replicas")

    @property
    def progress(self) -> str:
        if self.current:
            return f"{self.replicas} replicas are there, {self.desired} of them are to stay"
        if (old := self.replicas - self.updated) <= 0:
            return f"{min(self.updated, self.available)} of {self.desired} replicas are updated and available"
        text = f"{self.updated} of {self.desired} replicas are updated, {self.ready} of {self.replicas} are ready"
        return f"{text}, {old} {EARLIER}"


NOTHING = Rollout(spec_replicas=None, desired=0, replicas=0, ready=0, updated=0, available=0, up_to_date=True)


def rollout(deployment: ObservedDeployment | None, wanted: int | None = None, *, was_ready: bool = False) -> Rollout:
    """Read the rollout state of a Deployment, empty if it does not exist.

    It is judged by the ``wanted`` number of replicas, which the answer has; ``None`` where others write the number.

    Every change of a child also changes Metacontroller's record, an annotation, and with it the generation. So if the
    parent ``was_ready``, a generation that the controller has not observed yet is ignored while the numbers are those
    of a ready Deployment; changed pods are reported by :func:`app.workload.readiness.waiting.outstanding`.
    """
    if deployment is None:
        return NOTHING if not wanted else replace(NOTHING, desired=wanted)
    status = deployment.status
    state = Rollout(
        spec_replicas=deployment.spec.replicas,
        desired=_desired(deployment.spec.replicas) if wanted is None else wanted,
        replicas=status.replicas,
        ready=status.ready_replicas,
        updated=status.updated_replicas,
        available=status.available_replicas,
        up_to_date=True,
    )
    behind = (status.observed_generation or 0) < (deployment.metadata.generation or 0)
    settled = state.current and state.replicas == state.desired
    return replace(state, up_to_date=False) if behind and not (was_ready and settled) else state


def group_rollout(groups: ObservedLeaderWorkerSet | None, wanted: int | None = None) -> Rollout:
    """Read the rollout state of a LeaderWorkerSet, whose ready groups are available if its condition is true.

    ``Available`` is false during a rollout. It decides about all groups if the status has no updated ones, and a status
    without ``observedGeneration`` is never behind: older versions have neither. ``wanted`` as for a Deployment.
    """
    if groups is None:
        return NOTHING if not wanted else replace(NOTHING, desired=wanted)
    status, desired = groups.status, _desired(groups.spec.replicas) if wanted is None else wanted
    available = is_true(status.conditions, "Available") and not is_true(status.conditions, "UpdateInProgress")
    trusted = available and not status.updated_replicas
    ready = max(status.replicas, status.ready_replicas) if trusted else status.ready_replicas
    return Rollout(
        spec_replicas=groups.spec.replicas,
        desired=desired,
        replicas=status.replicas,
        ready=ready,
        updated=status.replicas if trusted else status.updated_replicas,
        available=ready if available else 0,
        up_to_date=(status.observed_generation or groups.metadata.generation or 0) >= (groups.metadata.generation or 0),
    )


def ready_count(ready: int, desired: int, what: str = "replicas") -> str:
    """Say how many replicas are ready; empty for a workload that should have one or none."""
    return f"{min(ready, desired)} of {desired} {what} are ready" if desired > 1 else ""


def replica_counts(request: AnyRequest, without: str = "") -> list[str]:
    """Say how many replicas of the observed workloads, which stay as they are, are ready.

    ``without`` is the name of a workload whose replicas are not counted. Several workloads are named.
    """
    counts = dict[str, str]()
    for (kind, name), child in request.observed.items():
        if isinstance(child, ObservedDeployment) and name != without:
            counts[f"{kind} {name}"] = rollout(child).counted(kind)
        elif isinstance(child, ObservedLeaderWorkerSet) and name != without:
            counts[f"{kind} {name}"] = group_rollout(child).counted(kind)
    messages = {name: count for name, count in counts.items() if count}
    return [*messages.values()] if len(counts) == 1 else [f"{name}: {count}" for name, count in messages.items()]


def _desired(replicas: int | None) -> int:
    return 1 if replicas is None else replicas


def with_progress(causes: Sequence[Cause], kind: str, name: str, progress: Rollout) -> list[Cause]:
    """Return the causes, with the numbers of replicas where no cause is known or earlier replicas may serve."""
    explained = any(cause.stage is Stage.SPEC for cause in causes) if progress.replacing else causes
    return [*causes] if explained else [*causes, rolling_out(kind, name, progress)]


def rolling_out(kind: str, name: str, progress: Rollout) -> Cause:
    """Build the cause of a workload that is not current and has no other cause."""
    text = progress.progress if progress.up_to_date else "its last change has not begun yet"
    return Cause(Stage.STARTING, f"{kind} {name} is rolling out: {text}", ROLLING_OUT)
