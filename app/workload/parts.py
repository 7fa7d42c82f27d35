"""Parts that every family builds pods and autoscalers of: GPUs, probes (LK-3.8, LK-T-51), metrics, the account.

Metacontroller replaces an autoscaler's list of metrics as a whole, so each one is complete and its quantities are
canonical (MC-3.2).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from app.kube.base import Json
from app.kube.merge import find
from app.kube.objects import ObservedObject, last_applied
from app.kube.quantity import canonical


@dataclass(frozen=True, slots=True)
class GPURequest:
    """GPUs of one pod: how many, and of which extended resource."""

    count: int
    resource: str

    def __str__(self) -> str:
        return f"{self.resource}: {self.count}"


def toleration(request: GPURequest) -> dict[str, Any]:
    """Lets the pod onto nodes that are tainted with their GPU's resource name."""
    return {"key": request.resource, "operator": "Equal", "value": "present", "effect": "NoSchedule"}


def missing(message: str, resources: Iterable[str]) -> str:
    """The first of the resources that the scheduler's message says is insufficient; an empty text when none is."""
    return next((resource for resource in resources if f"Insufficient {resource}" in message), "")


LAST_WORDS = "FallbackToLogsOnError"
"""``terminationMessagePolicy``: a container that fails leaves the end of its log where ``Ready`` can quote it."""

STARTUP_PERIOD = 2
"""Seconds between startup probes: a server that is up is soon found."""

LOAD_ATTEMPTS = 900
"""Half an hour of startup probes: how long a model may take to load before its pod is given up."""


@dataclass(frozen=True, slots=True)
class Probes:
    startup: Json
    liveness: Json
    readiness: Json


def probes(handler: Json) -> Probes:
    """The three probes with one handler, such as ``http_get("/health", 8080)``."""
    return Probes(
        startup={
            **handler,
            "periodSeconds": STARTUP_PERIOD,
            "timeoutSeconds": STARTUP_PERIOD,  # longer, and a server that hangs would be given more than half an hour
            "failureThreshold": LOAD_ATTEMPTS,
        },
        liveness={**handler, "periodSeconds": 15, "timeoutSeconds": 5, "failureThreshold": 3},
        readiness={**handler, "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 3},
    )


def http_get(path: str, port: int) -> Json:
    """Asks for a path."""
    return {"httpGet": {"path": path, "port": port}}


def tcp_socket(port: int) -> Json:
    """Only connects."""
    return {"tcpSocket": {"port": port}}


def pods_metric(name: str, average: str) -> Json:
    """A metric of the pods that an adapter offers, and its wanted average."""
    target = {"type": "AverageValue", "averageValue": canonical(average)}
    return {"type": "Pods", "pods": {"metric": {"name": name}, "target": target}}


def resource_metric(name: str, utilization: int) -> Json:
    """CPU or memory, and its wanted average in percent of the request."""
    target = {"type": "Utilization", "averageUtilization": utilization}
    return {"type": "Resource", "resource": {"name": name, "target": target}}


DEFAULT = "default"
"""The account of pods that name none."""

_NAME = ("spec", "template", "spec", "serviceAccountName")


def account_in_place(observed: ObservedObject | None, running: str) -> str:
    """What to send as ``serviceAccountName`` of a Deployment whose pods should name none; empty to leave it out.

    A name that was sent once cannot be taken away: the API server brings it back from the old field ``serviceAccount``,
    which it writes beside it, and pods go on under an account that may be gone. So the one that no name means is named,
    from then on. ``running`` is the observed name; one that another operator gave is left alone.
    """
    if observed is None or not running or not find(last_applied(observed), _NAME):
        return ""
    return DEFAULT
