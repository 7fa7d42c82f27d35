"""Facts of a model that one of its files tells."""

import msgspec

from app.hooks.fit import Asked
from app.workload.fit.models import Shape


class ModelFacts(msgspec.Struct, frozen=True):
    """Facts about a model, which override what names suggest; 0 and ``None`` are unknown."""

    shape: Shape | None = None
    size: int = 0
    """Bytes of the weights."""
    keeps_latent: bool = False
    """The file has what llama.cpp needs to keep the vector of latent attention alone."""


def facts_of(asked: Asked) -> ModelFacts | None:
    return asked.facts if isinstance(asked.facts, ModelFacts) else None
