"""Why pods find no node, and the queue of the services that wait for a GPU. Source: llmkube spec 5.4 and 5.9."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from app.kube.conditions import find
from app.kube.objects import ObjectMeta, ObservedPod
from app.llmkube.inferenceservice.observed import Neighbour
from app.llmkube.inferenceservice.types import Phase, SchedulingStatus
from app.workload.parts import GPURequest, missing


@dataclass(frozen=True, slots=True)
class Scheduling:
    """The status fields of the same names."""

    status: str = ""
    message: str = ""
    waiting_for: str = ""


NOT_WAITING = Scheduling()


def scan(pods: Iterable[ObservedPod], gpus: GPURequest, known: tuple[str, ...]) -> Scheduling:
    """What the scheduler says of the first pod, by name, that it could not place. ``known``: what counts as a GPU."""
    for pod in sorted(pods, key=lambda pod: pod.metadata.name):
        scheduled = find(pod.status.conditions, "PodScheduled") if pod.status.phase == "Pending" else None
        if scheduled is None or scheduled.status != "False":
            continue
        resource = missing(scheduled.message, known)
        if resource:
            waiting = str(GPURequest(gpus.count, resource))
            return Scheduling(SchedulingStatus.INSUFFICIENT_GPU, scheduled.message, waiting)
        if "Insufficient" in scheduled.message:
            return Scheduling(SchedulingStatus.INSUFFICIENT_RESOURCES, scheduled.message)
        return Scheduling(scheduled.reason, scheduled.message)
    return NOT_WAITING


def queue_position(own: ObjectMeta, neighbours: Iterable[Neighbour]) -> int:
    """The place of a service that waits for a GPU among all that do: the oldest first, then by namespace and name.

    It counts itself even before its own status says that it waits (T-33). ``neighbours`` may be empty when nobody asked
    for them; it is the first of those it knows then.
    """
    waiting = {_place(n.metadata) for n in neighbours if n.status.phase == Phase.WAITING_FOR_GPU}
    return sorted({*waiting, _place(own)}).index(_place(own)) + 1


def _place(metadata: ObjectMeta) -> tuple[str, str, str]:
    return metadata.creation_timestamp or "", metadata.namespace, metadata.name
