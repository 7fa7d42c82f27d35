"""Which sources can be had in which way, and what to know of them. Source: LZ-2.4, LZ-2.6, LZ-T03, LZ-T17 and LZ-T18."""

from __future__ import annotations

from collections.abc import Iterator

from app.llmaz.lookup import Model
from app.llmaz.names import SKIP_LOADER
from app.llmaz.reasons import Obstacle
from app.llmaz.source import Hub, ObjectStore
from app.workload.cause import Cause, Stage


def unloadable(models: list[Model], *, skip: bool) -> Cause | None:
    """A model that the loader cannot fetch, so that a pod would never start."""
    for model in models:
        found = model.source
        if not skip and isinstance(found, ObjectStore) and found.protocol != "oss":
            text = (
                f"OpenModel {model.name}: the loader cannot fetch from {found.protocol}; let the engine do it with the "
                f'annotation {SKIP_LOADER}: "true"'
            )
            return Cause(Stage.MODEL, text, Obstacle.MODEL_NOT_LOADABLE)
    return None


def notes(models: list[Model], *, skip: bool) -> Iterator[str]:
    """What may go wrong with models that engines fetch themselves."""
    for model in models if skip else ():
        found = model.source
        if isinstance(found, ObjectStore) and found.protocol == "gcs":
            yield f"OpenModel {model.name}: the engine gets a gcs:// address, most engines expect gs://"
        if isinstance(found, Hub) and found.hub == "ModelScope":
            yield f"OpenModel {model.name}: the engine gets a bare name, which most look for on Hugging Face"
