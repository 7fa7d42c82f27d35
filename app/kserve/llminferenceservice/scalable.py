"""What a workload keeps from the cluster: replicas that somebody else may set."""

from __future__ import annotations

from app.kserve.llminferenceservice.objects import ObservedLeaderWorkerSet, ObservedWorkload
from app.kube.objects import last_applied


def replicas(wanted: int | None, observed: ObservedWorkload | ObservedLeaderWorkerSet | None) -> int | None:
    """What to send as ``spec.replicas``: the user's number, else whatever is there, ``None`` to leave the field out.

    A number that was sent once and is no longer wanted must be sent on as observed: left out, it would be deleted, and
    the API server would fall back to 1 (9.1).
    """
    if wanted is not None or observed is None:
        return wanted
    spec = (last_applied(observed) or {}).get("spec")
    return observed.spec.replicas if isinstance(spec, dict) and "replicas" in spec else None
