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
