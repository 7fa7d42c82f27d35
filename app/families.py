"""Every kind the service answers for: what the routes, the generator and the command go through."""

from __future__ import annotations

from typing import Any

from app.conversion import Convert
from app.hooks.decorator import Decorator
from app.hooks.kind import Kind
from app.kserve.conversion import convert
from app.kserve.kinds import KINDS as KSERVE
from app.kube.resource import CustomResource
from app.llmaz.kinds import KINDS as LLMAZ
from app.llmaz.labels import LABELS
from app.llmkube.kinds import KINDS as LLMKUBE

KINDS: tuple[Kind[Any, Any], ...] = (*LLMKUBE, *LLMAZ, *KSERVE)

RESOURCES: tuple[CustomResource, ...] = tuple(kind.resource for kind in KINDS)

DECORATORS: tuple[Decorator, ...] = (LABELS,)
"""Those that write labels on objects of ours, each a component that not everybody wants."""


CONVERT: Convert = convert
"""Between the versions of the kinds that have several."""


def find(api_version: str, kind: str) -> Kind[Any, Any] | None:
    """The kind of that name and version, if it is one of ours: for hooks, in the version that they work with."""
    return next((k for k in KINDS if any(_is(one, api_version, kind) for one in (k, *k.older))), None)


def _is(kind: Kind[Any, Any], api_version: str, name: str) -> bool:
    return (kind.resource.kind, kind.resource.api_version) == (name, api_version)
