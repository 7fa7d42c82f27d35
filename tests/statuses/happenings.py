"""What happens to the objects of a cluster: what controllers report, what is lost, and what somebody else writes.

Each function returns the object as it is then; nothing is changed in place, because clusters share their objects.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any

from app.kube.base import Json
from app.kube.conditions import rfc3339
from tests.statuses.worlds import CLOCK

COUNTS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
ATTACHED = ("HTTPRoute", "InferencePool")
AUTOSCALERS = {"HorizontalPodAutoscaler": ("AbleToScale", "ScalingActive"), "ScaledObject": ("Ready", "Active")}


def at(seconds: float) -> str:
    return rfc3339(CLOCK.now + timedelta(seconds=seconds))


def condition(type_: str, status: str, reason: str = "R", message: str = "m", seconds: float = -600) -> Json:
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": at(seconds)}


def _maybe(draw: Random, type_: str, reasons: tuple[str, ...]) -> list[Json]:
    if draw.random() < 0.2:
        return []
    seconds = draw.choice((-3600, -600, -5, 3600))
    return [condition(type_, draw.choice(("True", "False")), draw.choice(reasons), draw.choice(("m", "")), seconds)]


def workload_status(document: Json, draw: Random) -> Json:
    """Return a status of a Deployment or LeaderWorkerSet: complete, natural during a rollout, or any numbers."""
    wanted, generation = document["spec"].get("replicas", 1), document["metadata"].get("generation", 1)
    way = draw.random()
    new, old = (wanted, 0) if way < 0.4 else (draw.randint(0, wanted), draw.choice((0, 0, 1)))
    ready = new if way < 0.4 else draw.randint(0, new)
    status: Json = dict(zip(COUNTS, (new + old, new, ready + old, draw.randint(0, ready) + old), strict=True))
    if way < 0.4:
        status = dict.fromkeys(COUNTS, wanted)
    elif way > 0.7:
        status = {name: draw.choice((0, max(wanted - 1, 0), wanted, wanted, wanted + 1)) for name in COUNTS}
    status = {name: number for name, number in status.items() if number}
    if draw.random() < 0.95:
        status["observedGeneration"] = draw.choice((generation, generation, generation, max(generation - 1, 0)))
    reasons = ("MinimumReplicasAvailable", "MinimumReplicasUnavailable", "AllGroupsReady")
    conditions = _maybe(draw, "Available", reasons) if way > 0.3 else [condition("Available", "True")]
    conditions += _maybe(draw, "Progressing", ("NewReplicaSetAvailable", "ProgressDeadlineExceeded"))
    if draw.random() < 0.1:
        conditions.append(condition("ReplicaFailure", "True", "FailedCreate", "exceeded quota"))
    if document["kind"] == "LeaderWorkerSet" and draw.random() < 0.2:
        conditions.append(condition("UpdateInProgress", "True"))
    return {**status, "conditions": conditions}


def _state(draw: Random) -> Json:
    words = ("CrashLoopBackOff", "ImagePullBackOff", "ContainerCreating", "PodInitializing", "")
    ended = {"exitCode": draw.choice((0, 1, 137)), "reason": draw.choice(("OOMKilled", "Error", "")), "message": "x"}
    waiting = {"reason": draw.choice(words), "message": draw.choice(("x", ""))}
    return draw.choice(({"running": {}}, {"waiting": waiting}, {"terminated": ended}, {}))


def pod_status(draw: Random) -> Json:
    status: Json = {"phase": draw.choice(("Running", "Running", "Pending", "Failed", "Succeeded", "Unknown", ""))}
    reasons = ("Unschedulable", "ContainersNotReady", "")
    status["conditions"] = [c for type_ in ("PodScheduled", "Ready") for c in _maybe(draw, type_, reasons)]
    for key in ("initContainerStatuses", "containerStatuses"):
        if draw.random() < 0.7:
            flags = {"ready": draw.random() < 0.4, "started": draw.random() < 0.5}
            status[key] = [{"name": "c", **flags, "state": _state(draw), "lastState": _state(draw)}]
    if draw.random() < 0.1:
        status |= {"reason": "Evicted", "message": "The node was low on resource: memory."}
    return status


def _attached(draw: Random) -> Json:
    reported = [condition("Accepted", draw.choice(("True", "False"))), *_maybe(draw, "ResolvedRefs", ("R",))]
    return draw.choice(({}, {"parents": [{"parentRef": {"name": "x"}, "conditions": reported}]}))


def reported(document: Json, draw: Random) -> Json:
    """Return the status that the controller of an object's kind may write."""
    kind = document["kind"]
    if kind in ("Deployment", "LeaderWorkerSet"):
        return workload_status(document, draw)
    if kind == "Pod":
        return pod_status(draw)
    if kind in ATTACHED:
        return _attached(draw)
    if kind in AUTOSCALERS:
        reasons = ("FailedGetPodsMetric", "ScalingDisabled", "")
        return {"conditions": [c for type_ in AUTOSCALERS[kind] for c in _maybe(draw, type_, reasons)]}
    if kind == "Job":
        failed = {"failed": 1, "conditions": [condition("Failed", "True", "BackoffLimitExceeded")]}
        return draw.choice(({}, {"active": 1}, failed, {"succeeded": 1, "conditions": [condition("Complete", "True")]}))
    if kind == "PersistentVolumeClaim":
        return {"phase": draw.choice(("Pending", "Bound", "Lost", ""))}
    return {"conditions": [condition(type_, draw.choice(("True", "False"))) for type_ in ("Programmed", "Accepted")]}


def changed(document: Json, **spec: Any) -> Json:
    """Return an object with another spec, which makes another generation."""
    metadata = document["metadata"]
    generation = {**metadata, "generation": (metadata.get("generation") or 1) + 1}
    return {**document, "metadata": generation, "spec": {**document["spec"], **spec}}


def scaled(document: Json, draw: Random) -> Json:
    """Return an object with another number of replicas."""
    return changed(document, replicas=draw.choice((0, 1, 2, 3, 5)))


def touched(document: Json, _: Random) -> Json:
    """Return an object whose annotation somebody changed, which counts as a change of a Deployment."""
    return changed(document)


def deleted(document: Json, _: Random) -> Json:
    """Return an object that is being deleted and waits for a finalizer."""
    going = {"deletionTimestamp": at(-20), "finalizers": ["foregroundDeletion"]}
    return {**document, "metadata": {**document["metadata"], **going}}


def with_status(document: Json, draw: Random) -> Json:
    return {**document, "status": reported(document, draw)}


def forged(document: Json, draw: Random) -> Json:
    """Return a parent whose status somebody else wrote, or removed."""
    status = document.get("status") or {}
    if draw.random() < 0.2:
        return {key: value for key, value in document.items() if key != "status"}
    conditions = [
        {**c, **condition(c["type"], draw.choice(("True", "False", "Unknown")), seconds=draw.choice((-7200, -30)))}
        if draw.random() < 0.6
        else c
        for c in status.get("conditions") or ()
    ]
    return {**document, "status": {**status, "conditions": conditions}}


Happening = Callable[[Json, Random], Json]
TO_CHILDREN: tuple[Happening, ...] = (with_status, with_status, with_status, scaled, touched, deleted)
TO_PARENTS: tuple[Happening, ...] = (scaled, touched, deleted, forged, forged)
