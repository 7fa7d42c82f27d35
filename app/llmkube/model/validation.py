"""Every rule of a Model that its types cannot say. Rule numbers are those of LK-6.1."""

from __future__ import annotations

from app.kube import field, quantity
from app.kube.decode import SPEC
from app.kube.field import without_user
from app.kube.hosts import FORBIDDEN, allowed, is_metadata_host
from app.kube.names import LABEL_MAX, is_dns1123_subdomain
from app.kube.resource import Resource
from app.llmkube.hostpaths import refusal
from app.llmkube.model.types import GPU, SOURCE_FORM, Hardware, ModelResources, ModelSpec, ModelStatus
from app.llmkube.source import FILE_SCHEME, PVC_SCHEME, Source, SourceClass, host, parse, url_problem
from app.settings import Settings

Model = Resource[ModelSpec, ModelStatus]
Errors = list[field.Error]

SOURCE = SPEC.child("source")


def validate(model: Model, _: Model | None, settings: Settings) -> Errors:
    """Every mistake, each with what to write instead."""
    spec = model.spec
    source = parse(spec.source)
    errors = _name(model.metadata.name)
    errors += _SOURCES[source.kind](source) or _forbidden(source, settings)
    if spec.hardware:
        errors += _hardware(spec.hardware, SPEC.child("hardware"))
    if spec.resources:
        errors += _resources(spec.resources, SPEC.child("resources"))
    return errors


def _name(name: str) -> Errors:
    """LK-V-M35: pods carry the name as a label."""
    if len(name) <= LABEL_MAX:
        return []
    return [field.too_long(field.Path("metadata").child("name"), LABEL_MAX, "pods carry the name as a label")]


def _claim_source(source: Source) -> Errors:
    """LK-V-M03 and LK-V-M04: both parts, and what a claim and a path inside a volume can be."""
    text, form = source.text, f"write {PVC_SCHEME}<claim>/<path of the file in the volume>"
    if not source.claim or not source.path:
        missing = "the path inside the claim" if source.claim else "the claim's name"
        return [field.invalid(SOURCE, text, f"{missing} is missing; {form}")]
    errors = []
    if not is_dns1123_subdomain(source.claim):
        detail = (
            f"{field.go_quote(source.claim)} cannot be the name of a claim: lower case letters, digits, '-' and '.'"
        )
        errors.append(field.invalid(SOURCE, text, f"{detail}; {form}"))
    if source.path.startswith("/"):
        errors.append(field.invalid(SOURCE, text, f"the path inside the claim must not begin with '/'; {form}"))
    if ".." in source.path.split("/"):
        errors.append(field.invalid(SOURCE, text, f"the path inside the claim must not contain '..'; {form}"))
    return errors


def _http_source(source: Source) -> Errors:
    """LK-V-M07."""
    problem = url_problem(source.text)
    if not problem:
        return []
    detail = f"{problem}; write https://<host>/<path of one file>"
    return [field.invalid(SOURCE, without_user(source.text), detail)]


def _local_source(source: Source) -> Errors:
    """LK-V-M06. Kubernetes itself takes no '..' in the path of a node's file."""
    if not source.path.startswith("/"):
        detail = f"a path on the node must be absolute; write {FILE_SCHEME}/<path> or /<path>"
        return [field.invalid(SOURCE, source.text, detail)]
    if ".." in source.path.split("/"):
        return [field.invalid(SOURCE, source.text, "a path on the node must not contain '..'; write it out")]
    return []


def _invalid_source(source: Source) -> Errors:
    """LK-V-M05."""
    return [field.invalid(SOURCE, source.text, SOURCE_FORM)]


def _repository_source(_: Source) -> Errors:
    """A repository may have any name; whether it exists is the Hub's to say."""
    return []


_SOURCES = {
    SourceClass.PVC: _claim_source,
    SourceClass.HTTP: _http_source,
    SourceClass.LOCAL: _local_source,
    SourceClass.INVALID: _invalid_source,
    SourceClass.REPOSITORY: _repository_source,
}


def _forbidden(source: Source, settings: Settings) -> Errors:
    """LK-V-M09 and LK-T-23: what no Model may read, and what this cluster's operator lets them read."""
    if source.text.startswith(("http://", "https://")):
        name = host(source.text)
        if is_metadata_host(name):
            return [field.forbidden(SOURCE, f"{name} {FORBIDDEN}")]
        if not allowed(name, settings.llmkube_allowed_source_hosts):
            listed = ", ".join(settings.llmkube_allowed_source_hosts or ()) or "none"
            detail = f"host {name} is not among those that the operator of this cluster allows: {listed}"
            return [field.forbidden(SOURCE, detail)]
    return []


def admit(model: Model, settings: Settings) -> Errors:
    """Rules for what is created or changed: a Model from before them goes on, and its status says so."""
    refused = refusal(model.spec, settings)
    return [field.forbidden(SOURCE, refused)] if refused else []


def _hardware(hardware: Hardware, path: field.Path) -> Errors:
    errors = _quantity(hardware.memory_budget, path.child("memoryBudget"), positive=True)
    fraction = hardware.memory_fraction
    if fraction is not None and not 0 < fraction <= 1:  # LK-V-M31
        detail = "must be above 0 and at most 1, for example 0.75"
        errors.append(field.invalid(path.child("memoryFraction"), fraction, detail))
    if hardware.gpu:
        errors += _gpu(hardware.gpu, path.child("gpu"))
    return errors


def _gpu(gpu: GPU, path: field.Path) -> Errors:
    return _quantity(gpu.memory, path.child("memory"))


def _resources(resources: ModelResources, path: field.Path) -> Errors:
    return [
        *_quantity(resources.cpu, path.child("cpu"), example="500m"),
        *_quantity(resources.memory, path.child("memory")),
    ]


def _quantity(text: str, path: field.Path, *, positive: bool = False, example: str = "16Gi") -> Errors:
    """LK-V-M27, LK-V-M30 and LK-V-M34; an empty text is an absent field."""
    return [] if not text else quantity.quantity_errors(text, path, positive=positive, example=example)
