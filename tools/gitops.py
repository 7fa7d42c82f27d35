"""Health checks of the kinds for Argo CD and Flux."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from app.hooks.readystatus import LASTING, RESTING
from app.kube.base import Json
from app.kube.resource import CustomResource

_ANSWERED = (
    "has(status.conditions) && has(status.observedGeneration) && status.observedGeneration == metadata.generation"
)
_IS = "status.conditions.exists(c, c.type == '{}' && c.status == '{}')"


def with_reasons(lua: str) -> str:
    """Return the script with the reasons of :mod:`app.hooks.readystatus` in its tables."""
    return _with_table(_with_table(lua, "broken", LASTING), "stopped", RESTING)


def _with_table(lua: str, name: str, reasons: Iterable[str]) -> str:
    lines = "".join(f"  {reason} = true,\n" for reason in sorted(reasons))
    return re.sub(rf"(local {name} = {{\n)[^}}]*(}}\n)", rf"\g<1>{lines}\g<2>", lua)


def argocd(resources: Sequence[CustomResource], lua: str) -> Json:
    """Build a patch for Argo CD's ConfigMap: the same check under each kind's key."""
    checks = {f"resource.customizations.health.{resource.group}_{resource.kind}": lua for resource in resources}
    metadata = {"name": "argocd-cm", "namespace": "argocd", "labels": {"app.kubernetes.io/part-of": "argocd"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": checks}


def flux(resources: Sequence[CustomResource]) -> Json:
    """Build a patch for a Flux Kustomization, where the CRDs of an earlier release are installed.

    It judges as kstatus does with ours: an object without an answer is not ready, and one that is stopped is.
    """
    expressions = [
        {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "inProgress": f"!({_ANSWERED})",
            "failed": f"{_ANSWERED} && {_IS.format('Stalled', 'True')}",
            "current": f"{_ANSWERED} && ({_IS.format('Ready', 'True')} || {_IS.format('Stopped', 'True')})",
        }
        for resource in resources
    ]
    return {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {"name": "models"},
        "spec": {"wait": True, "healthCheckExprs": expressions},
    }
