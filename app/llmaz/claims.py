"""The claim of models that Playground and Service share: its shape and its rules.

What a Playground claims is decided in ``playground/children.py``. Source: LZ-2.8, LZ-PG04, LZ-SV03, LZ-SV04, LZ-N01,
LZ-N02.
"""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from app.kube import field
from app.kube.base import KubeModel
from app.kube.schema.fieldclass import DEFAULTED, HONOURED, honoured
from app.llmaz.checks import claim_warnings

Role = Literal["main", "draft"]


class ModelReference(KubeModel):
    """One model of several."""

    name: Annotated[str, HONOURED]
    """Name of the OpenModel."""
    role: Annotated[Role, DEFAULTED] = "main"
    """Role of the model: main answers requests, draft is the draft model of speculative decoding."""


class ModelClaims(KubeModel):
    """Several models, served together."""

    models: list[ModelReference] | None = Field(default=None, min_length=1)
    """Exactly one main model, and at most one draft model for speculative decoding."""
    inference_flavors: Annotated[
        list[str] | None, honoured("the first decides resources and params, all of them the nodes and an annotation")
    ] = None
    """Names of the main model's flavors, in order of preference. The first sets the resources, and pods run on nodes of
    any of them. Defaults to all flavors of the model."""

    @property
    def names(self) -> list[str]:
        return [model.name for model in main_first(self.models or [])]


def main_first(models: list[ModelReference]) -> list[ModelReference]:
    """Return the main model, then the drafts as listed. This order decides everything else."""
    mains = [model for model in reversed(models) if model.role == "main"]
    return mains + [model for model in models if model.role != "main"]


def speculative(models: list[ModelReference]) -> bool:
    return any(model.role == "draft" for model in models)


def check(claims: ModelClaims, path: field.Path) -> Iterator[field.Error]:
    """Require one main model, and with a draft exactly two models (LZ-PG04, LZ-SV03, LZ-SV04, LZ-N01, LZ-N02)."""
    models, where = claims.models, path.child("models")
    if not models:
        yield field.required(where, "name at least the main model")
        return
    mains = sum(model.role == "main" for model in models)
    if speculative(models) and len(models) != 2:
        message = f"speculative decoding takes one main and one draft model, got {len(models)} models"
        yield field.forbidden(where, message)
    if mains != 1:
        yield field.forbidden(where, f"exactly one model must have the role main, got {mains}")
    for model_path, model in where.each(models):
        if not model.name:
            yield field.required(model_path.child("name"), "name an OpenModel")


def warnings(claims: ModelClaims, path: field.Path) -> Iterator[field.Advice]:
    for model_path, model in path.child("models").each(claims.models or ()):
        yield from claim_warnings(model.name, model_path.child("name"))
