"""GPUs as Kubernetes counts them: extended resources, the taint that guards them, what the scheduler says of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


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
