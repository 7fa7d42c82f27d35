"""Rules and warnings of an OpenModel (LZ-2.7, LZ-OM01 to LZ-OM08, LZ-N10 to LZ-N16)."""

import re
from collections.abc import Iterable, Iterator
from math import prod

from app.kube import conditions, field
from app.kube.field import SPEC, Advice, advice, did_you_mean, name_meant, with_hint, without_user
from app.kube.names import is_label_value
from app.llmaz import checks, flavors, quantities, source
from app.llmaz.arguments import DEGREES, OF_MODELS, is_word
from app.llmaz.openmodel.types import Flavor, ModelHub, ModelSource, OpenModel
from app.settings import Settings
from app.workload import ggufparts
from app.workload.address import Address, hub_repository, linked, spaces, untagged
from app.workload.advice.advise import advise
from app.workload.advice.podview import ContainerView, PodView
from app.workload.engines.commandline import CommandLine
from app.workload.rules import fieldrules

_SOURCE = SPEC.child("source")
_HUB = _SOURCE.child("modelHub")
_REPOSITORY = re.compile(r"([\w.-]+/)?[\w.-]+", re.ASCII)
_FAMILY = fieldrules.matching(
    is_label_value,
    "must be a label value: at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends",
)


def validate(model: OpenModel, old: OpenModel | None, settings: Settings) -> Iterator[field.Error]:
    """Reject a family that is not a label value, and invalid flavors; the name is judged on creation only (LZ-N13)."""
    yield from () if old is not None else checks.model_name(model.metadata)
    created, offered = model.spec.created_at, flavors.of(model.spec)
    if created is not None and conditions.parse_rfc3339(created) is None:
        detail = "must be a date and time as in RFC 3339, for example 2025-01-31T12:00:00Z"
        yield field.invalid(SPEC.child("createdAt"), created, detail)
    yield from _FAMILY(model.spec.family_name, SPEC.child("familyName"))
    yield from _source(model.spec.source)
    for path, flavor in flavors.FLAVORS.each(offered):
        yield from quantities.check_amounts(flavor.limits, path.child("limits"))
    yield from flavors.unusable(offered)


def _source(spec: ModelSource) -> Iterator[field.Error]:
    """Require a hub or an address, and an address that can be read (LZ-OM02 to LZ-OM05)."""
    if spec.model_hub is None and spec.uri is None:
        yield field.forbidden(_SOURCE, "set modelHub or uri to say where the weights come from")
    if spec.model_hub is not None:
        yield from _hub(spec.model_hub)
    if spec.uri is not None:
        try:
            source.parse_uri(spec.uri)
        except source.SourceError as error:
            detail: str = error.args[0]  # of which str() would lose the suggestion
            yield field.invalid(_SOURCE.child("uri"), without_user(spec.uri), detail)


def _hub(hub: ModelHub) -> Iterator[field.Error]:
    """Require a repository, and the path of one file without patterns beside it (LZ-OM06 to LZ-OM08, LZ-N11)."""
    if not hub.model_id:
        yield field.required(_HUB.child("modelID"), "the repository, for example facebook/opt-125m")
    if hub.filename is None:
        return
    if hub.name == "ModelScope":
        detail = "one file can only be fetched from Huggingface; use allowPatterns instead"
        yield field.invalid(_HUB.child("filename"), hub.filename, detail)
    if not hub.filename or fieldrules.leaves_its_root(hub.filename):
        detail = "must be the path of a file in the repository, without '..', for example model-q4.gguf"
        yield field.invalid(_HUB.child("filename"), hub.filename, detail)
    elif set(hub.filename) & set("*?["):
        detail = "must be the path of one file: patterns match nothing here; use allowPatterns for several"
        yield field.invalid(_HUB.child("filename"), hub.filename, detail)
    for name, patterns in hub.patterns.items():
        if patterns is not None:
            yield field.invalid(_HUB.child(name), patterns, "cannot be combined with filename; remove one of the two")


def warnings(model: OpenModel) -> list[Advice]:
    return [*_source_warnings(model.spec.source), *_flavors_warnings(flavors.of(model.spec))]


def _source_warnings(spec: ModelSource) -> Iterator[Advice]:
    """Warn of names that no repository has, and of values that the loader ignores or splits (LZ-N10)."""
    if spec.model_hub is None:
        yield from _uri(spec.uri or "")
        return
    if spec.uri is not None:
        yield advice(_SOURCE.child("uri"), "ignored, because modelHub is set; remove one of the two")
    if hub := hub_repository(Address(spec.model_hub.model_id)):
        yield advice(_HUB.child("modelID"), with_hint("an address, not a repository", did_you_mean(hub.name)))
    elif spec.model_hub.model_id and not _REPOSITORY.fullmatch(spec.model_hub.model_id):
        yield advice(_HUB.child("modelID"), "no repository has this name: write <owner>/<name>")
    elif "/" not in spec.model_hub.model_id and spec.model_hub.model_id != spec.model_hub.model_id.lower():
        yield advice(_HUB.child("modelID"), "only old repositories in lower case have no owner: write <owner>/<name>")
    if part := ggufparts.problem((spec.model_hub.filename or "",)):
        yield advice(_HUB.child("filename"), part)
    for name, patterns in spec.model_hub.patterns.items():
        for path, pattern in _HUB.child(name).each(patterns or ()):
            if "," in pattern:
                yield advice(path, "the loader splits patterns at commas; list the parts separately")


def _uri(uri: str) -> Iterator[Advice]:
    """Warn of names with dots in an object store, where the loader's path differs from the engine's (LZ-T23)."""
    try:
        store = source.parse_uri(uri)
    except source.SourceError:
        return
    path = _SOURCE.child("uri")
    if doubt := spaces(uri):
        yield advice(path, doubt)
    if isinstance(store, source.Host) and (doubt := linked(store.directory)):
        yield advice(path, doubt)
    if isinstance(store, source.Image) and (doubt := untagged(store.reference)):
        yield advice(path, doubt)
    if not isinstance(store, source.ObjectStore) or store.protocol != "oss":
        return
    last = store.key.rpartition("/")[2]
    if not last:
        yield advice(path, "ends with a slash, so the loader finds no name in it; remove the slash")
    elif ("." in last) != (".gguf" in store.key):
        message = "the loader takes a name with a dot for a file, others for a directory; the engine will not find it"
        yield advice(path, message)


def _flavors_warnings(offered: Iterable[Flavor]) -> Iterator[Advice]:
    """Warn of flavors without a name, and of two of one name (LZ-N12)."""
    names: set[str] = set()
    for path, flavor in flavors.FLAVORS.each(offered):
        where = path.child("name")
        if not flavor.name:
            yield advice(where, "empty, so no claim can choose this flavor")
        elif flavor.name in names:
            yield advice(where, f'"{flavor.name}" is listed twice; only the first is used')
        names.add(flavor.name)
        yield from advise([pod_view(flavor, path)])
        yield from _params(flavor, path.child("params"))


def pod_view(flavor: Flavor, path: field.Path) -> PodView:
    """Return the part of pods that a flavor adds."""
    line = CommandLine((), path)
    container = ContainerView({}, path, line=line, amounts=[(path.child("limits"), flavor.limits or {})])
    return PodView({"nodeSelector": flavor.node_selector}, path, containers=[container], is_whole=False)


def _params(flavor: Flavor, path: field.Path) -> Iterator[Advice]:
    """Warn of params that no placeholder can use, and of degrees that do not fit the devices (LZ-N34)."""
    params = flavor.params or {}
    for name, value in params.items():
        if name in OF_MODELS:
            yield advice(path.key(name), "ignored: this placeholder always has the model's own value")
        elif not is_word(name):
            yield advice(path.key(name), "no placeholder can have this name; use letters, digits, '-' and '_'")
        elif name not in DEGREES and name.upper() in DEGREES:
            yield advice(
                path.key(name), with_hint("the size of a parallelism is in capitals", name_meant(name.upper()))
            )
        elif name in DEGREES and not flavors.degree(value):
            message = f"must be a whole number, 1 or more; {field.go_quote(value)} stops Playgrounds that use it"
            yield advice(path.key(name), message)
    instance_type = params.get(flavors.INSTANCE_TYPE, "")
    if instance_type and not flavor.node_selector and not flavors.is_instance_type(instance_type):
        yield advice(path.key(flavors.INSTANCE_TYPE), "not a valid label value, so it selects no nodes")
    words, devices = flavors.words(flavor), flavors.devices(flavor)
    degrees = [words[name] for name in DEGREES]
    if devices and params.keys() & set(DEGREES) and all(degrees) and prod(map(int, degrees)) != devices:
        yield advice(path, f"TP {words['TP']} times PP {words['PP']} is not the number of devices in limits, {devices}")
