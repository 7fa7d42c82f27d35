"""What an OpenModel's author should know, although the object is accepted. Source: LZ-2.7, LZ-N10 and LZ-N12."""

from __future__ import annotations

from collections.abc import Iterator

from app.kube import field
from app.kube.decode import SPEC
from app.llmaz import source
from app.llmaz.names import SKIP_LOADER
from app.llmaz.openmodel.types import Flavor, ModelHub, ModelSource
from app.llmaz.openmodel.validation import OpenModel

_SOURCE = SPEC.child("source")


def warnings(model: OpenModel) -> list[str]:
    config = model.spec.inference_config
    return [*_source(model.spec.source), *_flavors((config.flavors if config else None) or [])]


def _source(given: ModelSource) -> Iterator[str]:
    if given.model_hub is not None:
        if given.uri is not None:
            yield f"{_SOURCE.child('uri')}: not used, because modelHub is set; remove one of the two"
        yield from _patterns(given.model_hub)
    elif given.uri is not None:
        yield from _uri(given.uri)


def _patterns(hub: ModelHub) -> Iterator[str]:
    path = _SOURCE.child("modelHub")
    for name, patterns in (("allowPatterns", hub.allow_patterns), ("ignorePatterns", hub.ignore_patterns)):
        for position, pattern in enumerate(patterns or ()):
            if "," in pattern:
                yield f"{path.child(name).index(position)}: the loader splits patterns at commas"


def _uri(uri: str) -> Iterator[str]:
    """Object stores: the loader and the path that engines are given disagree on names with dots (LZ-T23)."""
    try:
        found = source.parse_uri(uri)
    except source.SourceError:
        return
    path = _SOURCE.child("uri")
    if not isinstance(found, source.ObjectStore):
        return
    if found.protocol != "oss":
        yield f'{path}: the loader cannot fetch from {found.protocol}; workloads have to say {SKIP_LOADER}: "true"'
        return
    last = found.key.rpartition("/")[2]
    if not last:
        yield f"{path}: ends in a slash, so the loader finds no name in it; remove the slash"
    elif ("." in last) != (".gguf" in found.key):
        yield f"{path}: the loader takes a name with a dot for a file, others for a directory; engines look elsewhere"


def _flavors(flavors: list[Flavor]) -> Iterator[str]:
    path: field.Path = SPEC.child("inferenceConfig", "flavors")
    seen: set[str] = set()
    for position, flavor in enumerate(flavors):
        where = path.index(position).child("name")
        if not flavor.name:
            yield f"{where}: empty, so no claim can choose the flavor"
        elif flavor.name in seen:
            yield f'{where}: "{flavor.name}" is there twice; the first one counts'
        seen.add(flavor.name)
