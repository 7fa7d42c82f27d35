"""Probes of a server that loads a large model: a patient startup probe, then ordinary ones (LK-3.8, LK-T-51)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

LOAD_ATTEMPTS = 180
"""Half an hour at ten seconds each: how long a model may take to load before its pod is given up."""


@dataclass(frozen=True, slots=True)
class Probes:
    """The three probes of one container."""

    startup: Json
    liveness: Json
    readiness: Json


def probes(handler: Json) -> Probes:
    """The three probes with one handler, such as ``http_get("/health", 8080)``."""
    return Probes(
        startup={**handler, "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": LOAD_ATTEMPTS},
        liveness={**handler, "periodSeconds": 15, "timeoutSeconds": 5, "failureThreshold": 3},
        readiness={**handler, "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 3},
    )


def http_get(path: str, port: int) -> Json:
    """Asks for a path."""
    return {"httpGet": {"path": path, "port": port}}


def tcp_socket(port: int) -> Json:
    """Only connects."""
    return {"tcpSocket": {"port": port}}
