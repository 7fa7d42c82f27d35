"""Pods as JSON."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def containers(spec: Json) -> list[Json]:
    """Init containers and containers of a pod."""
    return [*spec.get("initContainers", ()), *spec.get("containers", ())]
