"""Every kind the service answers for: what the routes, the generator and the command go through."""

from __future__ import annotations

from typing import Any

from app.hooks.kind import Kind
from app.kserve.kinds import KINDS as KSERVE
from app.kube.resource import CustomResource
from app.llmaz.kinds import KINDS as LLMAZ
from app.llmkube.kinds import KINDS as LLMKUBE

KINDS: tuple[Kind[Any, Any], ...] = (*LLMKUBE, *LLMAZ, *KSERVE)

RESOURCES: tuple[CustomResource, ...] = tuple(kind.resource for kind in KINDS)


def find(api_version: str, kind: str) -> Kind[Any, Any] | None:
    """The kind of that name and version, if it is served here."""
    return next((k for k in KINDS if k.resource.kind == kind and k.resource.api_version == api_version), None)
