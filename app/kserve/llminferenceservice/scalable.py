"""What a workload keeps from the cluster: replicas that somebody else may set, an account that cannot be taken away."""

from __future__ import annotations

from app.hooks.kept import kept_replicas
from app.kube.base import Json
from app.kube.objects import ObservedDeployment, ObservedLeaderWorkerSet
from app.workload.parts import account_in_place


def replicas(wanted: int | None, observed: ObservedDeployment | ObservedLeaderWorkerSet | None) -> int | None:
    """What to send as ``spec.replicas``: the user's number, else whatever is there, ``None`` to leave the field out.

    A number that was sent once and is no longer wanted must be sent on as observed: left out, it would be deleted, and
    the API server would fall back to 1 (9.1).
    """
    if wanted is not None or observed is None:
        return wanted
    return kept_replicas(observed)


def with_account(pod: Json, observed: ObservedDeployment | None, kept: str) -> Json:
    """The pod of a Deployment, naming an account where it names none and the observed one has ours.

    ``kept``: the managed account where accounts are not declared. One of that name was made by another operator, or by
    us before, is not taken away, and holds the rights that the pods need.
    """
    running = observed.spec.template.spec.service_account_name if observed is not None else ""
    if pod.get("serviceAccountName") or running in ("", kept):
        return pod
    name = account_in_place(observed, running)
    return {**pod, "serviceAccountName": name} if name else pod
