"""How far a Deployment is, as its controller reports it."""

from __future__ import annotations

from dataclasses import dataclass

from app.kube.objects import ObservedDeployment


@dataclass(frozen=True, slots=True)
class Rollout:
    """What a Deployment's status says. Numbers are pods; ``current`` tells whether they are about the present spec."""

    desired: int | None
    """``spec.replicas``, whoever wrote it; ``None`` without a Deployment."""
    replicas: int
    ready: int
    current: bool


NOTHING = Rollout(desired=None, replicas=0, ready=0, current=True)


def rollout(deployment: ObservedDeployment | None) -> Rollout:
    """Reads a Deployment; one that does not exist has nothing.

    A status is distrusted while its ``observedGeneration`` is behind: the controller has not seen the last change yet.
    """
    if deployment is None:
        return NOTHING
    status = deployment.status
    return Rollout(
        desired=deployment.spec.replicas,
        replicas=status.replicas,
        ready=status.ready_replicas,
        current=(status.observed_generation or 0) >= (deployment.metadata.generation or 0)
        or status.observed_generation is None,
    )
