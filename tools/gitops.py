"""Health checks of the kinds for Argo CD and Flux."""

from __future__ import annotations

from collections.abc import Sequence

from app.kube.base import Json
from app.kube.resource import CustomResource

_ANSWERED = (
    "has(status.conditions) && has(status.observedGeneration) && status.observedGeneration == metadata.generation"
)
_READY = "status.conditions.exists(c, c.type == 'Ready' && c.status == {})"


def argocd(resources: Sequence[CustomResource], lua: str) -> Json:
    """Build a patch for Argo CD's ConfigMap: the same check under each kind's key."""
    checks = {f"resource.customizations.health.{resource.group}_{resource.kind}": lua for resource in resources}
    metadata = {"name": "argocd-cm", "namespace": "argocd", "labels": {"app.kubernetes.io/part-of": "argocd"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": checks}


def flux(resources: Sequence[CustomResource]) -> Json:
    """Build a patch for a Flux Kustomization; without it, an object without a status counts as healthy."""
    expressions = [
        {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "inProgress": f"!({_ANSWERED}) || {_READY.format(repr('Unknown'))}",
            "current": f"{_ANSWERED} && {_READY.format(repr('True'))}",
        }
        for resource in resources
    ]
    return {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {"name": "models"},
        "spec": {"wait": True, "healthCheckExprs": expressions},
    }
