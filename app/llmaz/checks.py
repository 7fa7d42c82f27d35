"""Rules that the family's kinds share (LZ-OM01, LZ-PG01, LZ-SV01, LZ-N04, LZ-N05, LZ-N32)."""

from collections.abc import Iterator
from dataclasses import replace

from app.kube import field
from app.kube.field import METADATA, Advice, Hint, advice, name_meant, with_hint
from app.kube.names import is_dns1035_label, is_dns1123_label
from app.kube.objects import ObservedMeta
from app.llmaz.names import NAME_ADVISED, NAME_MAX, PORT, SKIP_LOADER, load_balancer, skips_loader
from app.llmaz.quantities import Resources
from app.llmaz.source import Hub, Source
from app.workload.advice import podadvice
from app.workload.advice.podview import Quantities, RequestPort, Weights
from app.workload.engines.commandline import CommandLine

NAME = METADATA.child("name")


def model_name(metadata: ObservedMeta) -> Iterator[field.Error]:
    """Require a DNS label as the name of an OpenModel, which becomes a label value and part of paths (LZ-OM01)."""
    if metadata.name and not is_dns1123_label(metadata.name):
        message = "must be at most 63 lower case letters, digits and dashes, and start and end with a letter or digit"
        yield field.invalid(NAME, metadata.name, message)


def workload_name(metadata: ObservedMeta) -> Iterator[field.Error]:
    """Require a name of a Playground or Service that core Services can have too (LZ-PG01, LZ-SV01, LZ-N04, LZ-N05)."""
    name, created = metadata.name, f"a Service named {load_balancer('<name>')} is created"
    if not is_dns1123_label(name):
        yield from model_name(metadata)
    elif not is_dns1035_label(name):
        yield field.invalid(NAME, name, "must start with a letter, because Services with this name are created")
    elif len(name) > NAME_MAX:
        yield field.invalid(NAME, name, f"must be no more than {NAME_MAX} characters, because {created}")


def workload_warnings(metadata: ObservedMeta) -> Iterator[Advice]:
    """Warn of names too long for controllers' suffixes, and of unknown values of the annotation (LZ-N05, LZ-N32)."""
    if NAME_ADVISED < len(metadata.name) <= NAME_MAX:
        yield advice(
            NAME,
            f"longer than {NAME_ADVISED} characters; choose a shorter name, because controllers append hashes to it",
        )
    yield from podadvice.annotation_warnings(metadata, {SKIP_LOADER: ("true", "false")})


def claim_warnings(name: str, path: field.Path) -> Iterator[Advice]:
    """Warn of a claimed name that no OpenModel can have, often the repository's; another rule refuses an empty one."""
    if name and not is_dns1123_label(name):
        respelled = name.lower().replace("_", "-")
        hint = name_meant(respelled) if is_dns1123_label(respelled) else Hint("; use its name, not its repository's")
        message = f"no OpenModel can be named {field.go_quote(name)}, so nothing is created: names are lower case"
        yield advice(path, with_hint(message, hint))


def resource_warnings(resources: Resources | None, path: field.Path) -> Iterator[Advice]:
    """Warn of accelerators outside of a model's flavors, which override them (LZ-N30)."""
    for kind, amounts in (("limits", resources.limits), ("requests", resources.requests)) if resources else ():
        for name in amounts or ():
            if "/" in name:
                where = path.child(kind).key(name)
                message = "a model's flavor that lists this resource overrides it; request accelerators in the flavor"
                yield advice(where, message)


REQUESTS = RequestPort(PORT, f"no effect on the probes and the Service, which always use port {PORT}", is_fixed=True)
"""Warn of other ports of the pods of Playgrounds (LZ-N31)."""


def sizes(resources: Resources | None, shared_memory: object, path: field.Path) -> Quantities:
    """Return the quantities of a preset or a Playground, with their places."""
    parts = {"limits": resources.limits, "requests": resources.requests} if resources is not None else {}
    amounts = [(path.child("resources", kind), amounts or {}) for kind, amounts in parts.items()]
    return [*amounts, (path, {"sharedMemorySize": shared_memory})]


def weights(source: Source, metadata: ObservedMeta, line: CommandLine, path: field.Path) -> Weights | None:
    """Return the repository that the loader fetches for an engine, as a whole; ``path``: where the model is named."""
    if not isinstance(source, Hub) or source.repository.filename is not None or skips_loader(metadata):
        return None
    return Weights(source.repository.model_id, path, line.parsed.value("--quantization"))


def fetches(source: Source) -> bool:
    """Report whether the engine, or the loader with the same variables, gets the model from the hub."""
    return isinstance(source, Hub) and source.repository.name == "Huggingface"


def under_upstreams_path(path: str, error: field.Error) -> field.Error:
    """Return the error under the path of upstream's webhook, while ``place`` still points at the field."""
    return replace(error, path=field.Path(path), place=error.path)
