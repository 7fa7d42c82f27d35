"""What Argo CD and Flux have to know in order to tell when one of our kinds is healthy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.kube.resource import CustomResource

Json = dict[str, Any]

_ANSWERED = (
    "has(status.conditions) && has(status.observedGeneration) && status.observedGeneration == metadata.generation"
)
_READY = "status.conditions.exists(c, c.type == 'Ready' && c.status == {})"


def argocd(resources: Sequence[CustomResource], lua: str) -> Json:
    """A patch for Argo CD's ConfigMap: the same check under each kind's key."""
    checks = {f"resource.customizations.health.{one.group}_{one.kind}": lua for one in resources}
    metadata = {"name": "argocd-cm", "namespace": "argocd", "labels": {"app.kubernetes.io/part-of": "argocd"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": checks}


def flux(resources: Sequence[CustomResource]) -> Json:
    """A patch for a Flux Kustomization. Without it, Flux takes an object that nobody has answered for healthy."""
    expressions = [
        {
            "apiVersion": one.api_version,
            "kind": one.kind,
            "inProgress": f"!({_ANSWERED}) || {_READY.format(repr('Unknown'))}",
            "current": f"{_ANSWERED} && {_READY.format(repr('True'))}",
        }
        for one in resources
    ]
    return {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {"name": "models"},
        "spec": {"wait": True, "healthCheckExprs": expressions},
    }
