"""The models and runtimes of a workload, and their problems. Source: LZ-2.4, LZ-2.6, LZ-T03, LZ-T17, LZ-T18."""

from collections.abc import Iterator, Mapping
from enum import StrEnum

import msgspec

from app.hooks.protocol import RelatedResource, get
from app.hooks.reader import read_related
from app.kube import conditions, field
from app.kube.names import is_label_value
from app.llmaz import flavors, source
from app.llmaz.backendruntime.checks import unusable
from app.llmaz.backendruntime.types import BackendRuntimeSpec
from app.llmaz.names import SKIP_LOADER
from app.llmaz.openmodel.types import Flavor, OpenModelSpec
from app.llmaz.source import Host, Hub, Image, ObjectStore, Source
from app.settings import Settings
from app.workload.readiness.cause import Cause, Stage


class Obstacle(StrEnum):
    """Reasons why a workload is left unchanged."""

    MODEL_NOT_FOUND = "ModelNotFound"
    MODEL_INVALID = "ModelInvalid"
    MODEL_NOT_LOADABLE = "ModelNotLoadable"
    BACKEND_RUNTIME_NOT_FOUND = "BackendRuntimeNotFound"
    BACKEND_RUNTIME_INVALID = "BackendRuntimeInvalid"
    GLOBAL_CONFIG_INVALID = "GlobalConfigInvalid"


class ClaimedModel(msgspec.Struct, frozen=True):
    name: str
    family: str
    source: Source
    flavors: tuple[Flavor, ...]
    owned_by: str
    created_at: str | None
    """RFC 3339 in UTC: ``createdAt``, or the creation time of the object if known."""

    @property
    def served_name(self) -> str:
        return self.source.name if isinstance(self.source, source.Ollama) else self.name


def loadable_models(
    group: Mapping[str, RelatedResource] | None, names: list[str], settings: Settings, *, skip: bool
) -> list[ClaimedModel] | Cause:
    """Return the claimed models, or a cause if no loader can fetch one of them, so that its pods would never start."""
    claimed = models(group, names)
    if skip or isinstance(claimed, Cause):
        return claimed
    for model in claimed:
        if problem := _unloadable(model.source, claimed, settings):
            return Cause(Stage.MODEL, f"OpenModel {model.name}: {problem}", Obstacle.MODEL_NOT_LOADABLE)
    return claimed


def models(group: Mapping[str, RelatedResource] | None, names: list[str]) -> list[ClaimedModel] | Cause:
    claimed = []
    for name in names:
        resource = get(group, name)
        if resource is None:
            return Cause(Stage.MODEL, f"OpenModel {name} does not exist", Obstacle.MODEL_NOT_FOUND)
        model = _model(resource)
        if isinstance(model, str):
            return Cause(Stage.MODEL, f"OpenModel {name} cannot be used: {model}", Obstacle.MODEL_INVALID)
        claimed.append(model)
    return claimed


def runtime(group: Mapping[str, RelatedResource] | None, name: str) -> BackendRuntimeSpec | Cause:
    resource = get(group, name)
    if resource is None:
        return Cause(Stage.SPEC, f"BackendRuntime {name} does not exist", Obstacle.BACKEND_RUNTIME_NOT_FOUND)
    reading = read_related(resource.spec, BackendRuntimeSpec)
    spec, errors = reading.spec, reading.errors
    if spec is not None and not errors:
        errors = list(unusable(spec))
    if spec is None or errors:
        problem = field.aggregate(errors)
        return Cause(Stage.SPEC, f"BackendRuntime {name} cannot be used: {problem}", Obstacle.BACKEND_RUNTIME_INVALID)
    return spec


def _model(resource: RelatedResource) -> ClaimedModel | str:
    name, reading = resource.metadata.name, read_related(resource.spec, OpenModelSpec)
    spec, errors = reading.spec, reading.errors
    if spec is None or errors:
        return field.aggregate(errors)
    for path, value in ((field.METADATA.child("name"), name), (field.SPEC.child("familyName"), spec.family_name)):
        if not is_label_value(value):
            return f"{path}: not a valid label value"
    try:
        weights = source.read(spec.source)
    except source.SourceError as error:
        return f"{field.SPEC.child('source')}: {error}"
    offered = flavors.of(spec)
    bad = list(flavors.unusable(offered))
    if bad:
        return field.aggregate(bad)
    created = conditions.parse_rfc3339(spec.created_at or resource.metadata.creation_timestamp or "")
    created_at = conditions.rfc3339(created) if created is not None else None
    return ClaimedModel(name, spec.family_name, weights, offered, owned_by=spec.owned_by, created_at=created_at)


def _unloadable(weights: Source, models: list[ClaimedModel], settings: Settings) -> str:
    if isinstance(weights, ObjectStore) and weights.protocol != "oss" and not settings.llmaz_object_loader_image:
        return (
            f"the loader cannot fetch from {weights.protocol}; let the engine do it, with the annotation "
            f'{SKIP_LOADER}: "true"'
        )
    if not isinstance(weights, Image):
        return ""
    if weights.is_whole and not mounts_images(models, settings):
        return "an image as a whole can be mounted, but not copied; name a directory of it"
    place = weights.path(skip=False)
    others = (model.name for model in models if model.source != weights and model.source.path(skip=False) == place)
    other = next(others, "")
    return f"its files would be in one directory with those of OpenModel {other}" if other else ""


def mounts_images(models: list[ClaimedModel], settings: Settings) -> bool:
    """True if models in images are mounted; with a loaded model beside them they are copied.

    Engines mount the directory of loaded models read-only, so nothing can be mounted inside it.
    """
    return settings.llmaz_image_volumes and all(isinstance(model.source, Host | Image) for model in models)


def notes(models: list[ClaimedModel], *, skip: bool) -> Iterator[str]:
    for model in models if skip else ():
        weights = model.source
        if isinstance(weights, ObjectStore) and weights.uri.lower().startswith("gcs:"):
            yield f"OpenModel {model.name}: the engine gets a gcs:// address, but most engines expect gs://"
        if isinstance(weights, Image):
            yield f"OpenModel {model.name}: the engine gets an oci:// address, which few can fetch"
        if isinstance(weights, Hub) and weights.repository.name == "ModelScope":
            yield f"OpenModel {model.name}: the engine gets a bare model ID, which most look up on Hugging Face"
