"""The specs that take part in a merge, and the failure to merge them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.kube.base import Json
from app.kube.merge import find

Keyed = Sequence[str | tuple[str, Any]]
"""A path whose list items are named by their merge key (:func:`app.kube.merge.find`)."""


class CombineError(Exception):
    """The effective spec cannot be computed; ``reasons`` are sentences for people."""

    def __init__(self, *reasons: str) -> None:
        super().__init__("; ".join(reasons))


class MissingConfigMapError(CombineError):
    """A ConfigMap that the spec refers to does not exist."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One spec that takes part in the merge, and what it is called in messages."""

    source: str
    spec: Json
    directives: bool = False
    """Whether ``$patch`` stands in it."""
    size: int = 0
    """Bytes of what a user wrote; a preset's count nothing."""


def source_of(layers: Sequence[Layer], path: Keyed) -> str:
    """The last layer that has something at ``path``."""
    return next((layer.source for layer in reversed(layers) if find(layer.spec, path) is not None), "")
