"""Every kind that the service answers for."""

from app.conversion import Convert
from app.hooks.kind import AnyKind
from app.hooks.labels import Decorator
from app.kserve.conversion import convert
from app.kserve.kinds import KINDS as KSERVE
from app.kube.resource import CustomResource
from app.llmaz.kinds import KINDS as LLMAZ
from app.llmaz.kinds import LABELS
from app.llmkube.kinds import KINDS as LLMKUBE

KINDS: tuple[AnyKind, ...] = (*LLMKUBE, *LLMAZ, *KSERVE)

RESOURCES: tuple[CustomResource, ...] = tuple(kind.resource for kind in KINDS)

DECORATORS: tuple[Decorator, ...] = (LABELS,)
"""Decorators that label our objects, each in an optional component."""

CONVERT: Convert = convert
"""Converts between the versions of the kinds that have several."""
