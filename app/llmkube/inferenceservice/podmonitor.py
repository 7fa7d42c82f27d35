"""The PodMonitor, for clusters whose operator declares that kind. Source: llmkube spec 4.3."""

from __future__ import annotations

from typing import Any

from app.llmkube import names
from app.llmkube.inferenceservice.plan import PORT_NAME, Plan

Json = dict[str, Any]

_LABELS = {
    "service": names.LABEL_SERVICE,
    "model": names.LABEL_MODEL,
    "runtime": names.LABEL_RUNTIME,
}


def pod_monitor(plan: Plan) -> Json | None:
    """``None`` for a runtime that has no ``/metrics``."""
    if not plan.runtime.scraped:
        return None
    return {
        "apiVersion": names.POD_MONITOR_API,
        "kind": "PodMonitor",
        "metadata": {"name": plan.name, "namespace": plan.namespace, "labels": plan.selector},
        "spec": {
            "selector": {"matchLabels": plan.selector},
            "podMetricsEndpoints": [
                {"port": PORT_NAME, "path": "/metrics", "interval": "30s", "relabelings": _relabelings()}
            ],
        },
    }


def _relabelings() -> list[Json]:
    """Each series says whose it is. ``action`` is the API's default, as the list is replaced as a whole."""
    targets = {target: f"__meta_kubernetes_pod_label_{_meta(key)}" for target, key in _LABELS.items()}
    targets["namespace"] = "__meta_kubernetes_namespace"
    return [
        {"action": "replace", "sourceLabels": [source], "targetLabel": target}
        for target, source in sorted(targets.items())
    ]


def _meta(key: str) -> str:
    """A label key as Prometheus writes it."""
    return "".join(character if character.isalnum() else "_" for character in key)
