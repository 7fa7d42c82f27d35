"""The findings of `modelhooks validate`: each object is judged by its kind's rules, then what belongs together."""

from collections.abc import Collection, Iterator, Mapping
from functools import cache, partial
from itertools import chain
from typing import Any

import msgspec

from app.desk import processes
from app.desk.cluster import references, simulate
from app.desk.cluster.offline import World, holding, in_cluster, request_of, served
from app.desk.cluster.sets import split
from app.desk.cluster.single import all_errors_of, check, findings_of, judge_all, judged
from app.desk.files.findings import Finding, unmuted
from app.desk.files.manifests import Manifest, ManifestError, ManifestFiles
from app.desk.origins import podfit, tracer
from app.hooks.kind import AnyKind
from app.hooks.protocol import AnyRequest
from app.kube import field
from app.kube.base import Json
from app.kube.embedded.checks import NewerField, TypeCheck, concerning
from app.kube.merge import find as value_at
from app.kube.podspec import pod_templates
from app.kube.resource import Resource

Owners = Mapping[field.Owner, Manifest]
_MODEL_FIELDS = (("model", "uri"), ("modelClaim", "modelName"), ("modelClaims", "models"))
"""The fields that name the model of a service whose kind does not judge its size."""


def all_findings(reading: ManifestFiles, related: list[Manifest], world: World) -> list[Finding]:
    """Return every finding about the files once, in the order of the files, without muted ones."""
    sets = split([*reading.manifests, *related], world.namespace)
    together = (finding for manifests in sets.sets for finding in check_together(manifests, world, reading.lines))
    judge_all(reading.manifests, world.settings, advise=True)
    single = (finding for manifest in reading.manifests for finding in check(manifest, world.settings))
    return _in_order([*reading.findings, *single, *sets.findings, *together], reading)


def all_errors(reading: ManifestFiles, related: list[Manifest], world: World) -> list[Finding]:
    """Return the errors among all findings, in less time: what objects are to each other is only warned of."""
    sets = split([*reading.manifests, *related], world.namespace)
    judge_all(reading.manifests, world.settings)
    single = (error for manifest in reading.manifests for error in all_errors_of(manifest, world.settings))
    findings = _in_order([*reading.findings, *single, *sets.findings], reading)
    return [finding for finding in findings if finding.level == "error"]


def _in_order(findings: list[Finding], reading: ManifestFiles) -> list[Finding]:
    ours = {file: place for place, file in enumerate(reading.lines)}
    unique = (finding for finding in dict.fromkeys(findings) if finding.file in ours or finding in reading.findings)
    ordered = sorted(unique, key=lambda finding: (ours.get(finding.file, -1), finding.line))
    return unmuted(ordered, reading.lines)


def check_together(manifests: list[Manifest], world: World, files: Collection[str]) -> list[Finding]:
    """Return the conflicts between objects of one set, and their references to missing objects, in the files."""
    held = {manifest: document for manifest in manifests if (document := _held(manifest, world)) is not None}
    kinds = {manifest: kind for manifest in held if (kind := served(manifest)) is not None}
    if not kinds:
        return []
    cluster = holding(held, world)
    objects = [_object(manifest, kind, held[manifest], cluster) for manifest, kind in kinds.items()]
    owners = {_owner(document): manifest for manifest, document in held.items() if manifest.file in files}
    findings = processes.each(
        objects, lambda entry: [*_together(entry, cluster, world, owners)], "objects checked with what they refer to"
    )
    return [*chain.from_iterable(findings), *_beside(objects)]


class _Judged(msgspec.Struct, frozen=True):
    """An object in a cluster with what is beside it."""

    manifest: Manifest
    kind: AnyKind
    document: Json
    """As the cluster holds it."""
    request: AnyRequest | None
    """``None`` if its metadata is of a wrong type, which is a finding already, or that of an object it reads."""
    resource: Resource[Any, Any] | None
    """``None`` if the types of its kind refuse it."""


def _held(manifest: Manifest, world: World) -> Json | None:
    try:
        return in_cluster(manifest, world.namespace)
    except ManifestError:
        return None


def _object(manifest: Manifest, kind: AnyKind, document: Json, cluster: simulate.Cluster) -> _Judged:
    try:
        request = request_of(kind, document, cluster)
    except ManifestError:
        return _Judged(manifest, kind, document, None, None)
    resource, errors = kind.decode(request.parent)
    return _Judged(manifest, kind, document, request, None if errors else resource)


def _beside(objects: list[_Judged]) -> Iterator[Finding]:
    """Yield the conflicts between objects of one kind."""
    rules = (entry.kind.offline.together for entry in objects)
    for together in dict.fromkeys(rule for rule in rules if rule is not None):
        of_kind = [
            (entry.manifest, entry.resource)
            for entry in objects
            if entry.resource is not None and entry.kind.offline.together is together
        ]
        for resource, advice in together([resource for _, resource in of_kind]):
            manifest = next(manifest for manifest, other in of_kind if other is resource)
            yield _warning(manifest, advice, "combination")


def _warning(manifest: Manifest, advice: field.Advice, id_: str) -> Finding:
    return manifest.finding("warning", advice.path, advice.message, id_)


def _owner(document: Json) -> field.Owner:
    metadata = document["metadata"]
    return document["kind"], metadata.get("namespace", ""), metadata["name"]


def _together(one: _Judged, cluster: simulate.Cluster, world: World, owners: Owners) -> Iterator[Finding]:
    manifest, kind, document = one.manifest, one.kind, one.document
    if one.request is None or one.resource is None:
        return
    absent = references.absent_keys(one.resource.spec, document["metadata"].get("namespace", ""), cluster)
    for path, words in chain(references.dangling(kind, document, cluster, world.settings), absent):
        yield manifest.finding("warning", path, words, "dangling-reference")
    if _is_refused(one, world):
        return  # an object with errors has no plan
    templates = cache(partial(tracer.pod_templates, cluster, kind, document))
    if cluster.objects.of_kind("Secret.v1"):
        pods = chain.from_iterable(map(pods_of, templates().values()))
        for path, words in references.unread_secrets(pods, document, cluster):
            yield manifest.finding("warning", path, words, "dangling-reference")
    if world.settings.kubernetes_release:
        yield from _dropped(one, templates(), world)
    if kind.offline.fit is None and (words := podfit.too_large(cluster, kind, document, templates)):
        named = next((names for names in _MODEL_FIELDS if value_at(document["spec"], names) is not None), ())
        yield manifest.finding("warning", field.SPEC.child(*named), words, "combination")
    if kind.offline.cross_object_warnings is None:
        return
    for advice in kind.offline.cross_object_warnings(one.resource, one.request, world.settings):
        yield _combination(manifest, advice, owners)


def _is_refused(one: _Judged, world: World) -> bool:
    """Report whether admission refuses an object, in the version that it is written in or the stored one."""
    if one.document["apiVersion"] == one.manifest.api_version:
        return judged(one.manifest, world.settings).is_refused
    return bool(findings_of(one.kind, one.document, world.settings, advise=False)[0])


def _dropped(entry: _Judged, templates: tracer.Pods, world: World) -> Iterator[Finding]:
    """Yield the fields that its pods get from elsewhere, such as volumes of images, and that the API server drops."""
    release = world.settings.kubernetes_release
    advices = findings_of(entry.kind, entry.document, world.settings)[1]
    direct = {advice.declared for advice in advices if isinstance(advice, NewerField)}
    for template in templates.values():
        pods = TypeCheck()
        for pod in pods_of(template):
            pods.check(pod, "PodSpec", field.Path("pods"))
        newer = [advice for advice in pods.warnings if isinstance(advice, NewerField) and advice.declared not in direct]
        for advice in concerning(newer, release):
            yield entry.manifest.finding("warning", field.SPEC, str(advice), advice.id)


def pods_of(template: Json) -> Iterator[Json]:
    """Yield the specs of the pods of a template, or of the templates of a LeaderWorkerSet."""
    yield from (pod["spec"] for pod in pod_templates(template))


def _combination(manifest: Manifest, advice: field.Advice, owners: Owners) -> Finding:
    """Return the finding about a combination, in the object that has the path, if that is among the files."""
    if advice.owner is None:
        return _warning(manifest, advice, "combination")
    if advice.owner in owners:
        return _warning(owners[advice.owner], advice, advice.id)
    kind, namespace, name = advice.owner
    message = f"{kind} {namespace}/{name}: {advice}"
    return manifest.finding("warning", field.SPEC.child("baseRefs"), message, advice.id)
