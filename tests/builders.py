"""Builders of observed objects as the API server reports them, for all tests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from app.kube.base import Json
from app.kube.objects import ObservedClaim, ObservedDeployment, ObservedJob, ObservedLeaderWorkerSet, ObservedPod

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)

ObservedT = TypeVar("ObservedT")


def _observed(document: Json, type_: type[ObservedT]) -> ObservedT:
    return msgspec.json.decode(msgspec.json.encode(document), type=type_)


def condition(type_: str, status: str, reason: str = "", message: str = "", **more: Any) -> Json:
    return {"type": type_, "status": status, "reason": reason, "message": message, **more}


def pod(
    name: str = "chat-1",
    phase: str = "Pending",
    *,
    spec: Json | None = None,
    labels: Json | None = None,
    created: str = "2030-01-01T00:00:00Z",
    **status: Any,
) -> ObservedPod:
    """Return a pod; ``status`` is as in the API (``containerStatuses=[...]``)."""
    metadata = {"name": name, "labels": labels, "creationTimestamp": created}
    document = {"metadata": metadata, "spec": spec or {}, "status": {"phase": phase, **status}}
    return _observed(document, ObservedPod)


def scheduled(*more: Json) -> list[Json]:
    """Return the conditions of a pod that is scheduled and not ready."""
    return [condition("PodScheduled", "True"), condition("Ready", "False", "ContainersNotReady"), *more]


def unscheduled(message: str, reason: str = "Unschedulable") -> list[Json]:
    return [condition("PodScheduled", "False", reason, message)]


def container(name: str = "server", state: Json | None = None, last: Json | None = None, **fields: Any) -> Json:
    return {"name": name, "state": state or {}, "lastState": last or {}, **fields}


def waiting(reason: str, message: str = "") -> Json:
    return {"waiting": {"reason": reason, "message": message}}


def terminated(code: int, reason: str = "Error", message: str = "") -> Json:
    return {"terminated": {"exitCode": code, "reason": reason, "message": message}}


RUNNING: Json = {"running": {"startedAt": "2030-01-01T00:00:00Z"}}


def deployment(*conditions: Json, desired: int | None = 1, **status: Any) -> ObservedDeployment:
    return _observed(_workload("apps/v1", "Deployment", desired, conditions, status), ObservedDeployment)


def groups(*conditions: Json, desired: int | None = 2, **status: Any) -> ObservedLeaderWorkerSet:
    """Return a LeaderWorkerSet, with two desired groups where nothing else is said."""
    version = "leaderworkerset.x-k8s.io/v1"
    return _observed(_workload(version, "LeaderWorkerSet", desired, conditions, status), ObservedLeaderWorkerSet)


def _workload(api_version: str, kind: str, replicas: int | None, conditions: Sequence[Json], status: Json) -> Json:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "chat", "namespace": "ns1", "generation": 2},
        "spec": {"replicas": replicas},
        "status": {"conditions": list(conditions), **status},
    }


def job(*conditions: Json) -> ObservedJob:
    return _observed(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "m-dl-1", "namespace": "ns1"},
            "status": {"conditions": list(conditions)},
        },
        ObservedJob,
    )


def claim(phase: str) -> ObservedClaim:
    return _observed(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "models", "namespace": "ns1"},
            "status": {"phase": phase},
        },
        ObservedClaim,
    )
