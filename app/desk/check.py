"""The findings of `modelhooks validate`: each object is judged by its kind's rules, then what belongs together."""

from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Any

from app.desk.cluster import references, simulate
from app.desk.cluster.offline import World, holding, identity, in_cluster, request_of, served
from app.desk.cluster.sets import split
from app.desk.cluster.single import check, findings_of, warning
from app.desk.files.findings import Finding, unmuted
from app.desk.files.manifests import Manifest, ManifestError, ManifestFiles
from app.desk.origins import podfit, tracer
from app.hooks.kind import AnyKind
from app.hooks.protocol import AnyRequest
from app.kube import field
from app.kube.base import Json
from app.kube.embedded.checks import NewerField, TypeCheck, concerning
from app.kube.fit import FitAnswer
from app.kube.merge import find as value_at
from app.kube.podspec import pod_templates
from app.kube.resource import Resource

Owners = Mapping[field.Owner, Manifest]
_MODEL_FIELDS = (("model", "uri"), ("modelClaim", "modelName"), ("modelClaims", "models"))
"""The fields that name the model of a service whose kind does not judge its size."""


def all_findings(reading: ManifestFiles, related: list[Manifest], world: World) -> list[Finding]:
    """Return every finding about the files once, in the order of the files, without muted ones."""
    single = (finding for manifest in reading.manifests for finding in check(manifest, world.settings))
    sets = split([*reading.manifests, *related], world.namespace)
    result = [*reading.findings, *single, *sets.findings]
    for manifests in sets.sets:
        result += check_together(manifests, world, reading.lines)
    ours = {file: place for place, file in enumerate(reading.lines)}
    unique = (finding for finding in dict.fromkeys(result) if finding.file in ours or finding in reading.findings)
    ordered = sorted(unique, key=lambda finding: (ours.get(finding.file, -1), finding.line))
    return unmuted(ordered, reading.lines)


def check_together(manifests: list[Manifest], world: World, files: Collection[str]) -> list[Finding]:
    """Return the conflicts between objects of one set, and their references to missing objects, in the files."""
    held = [manifest for manifest in manifests if identity(manifest, world.namespace) is not None]
    objects = [(manifest, kind) for manifest in held if (kind := served(manifest)) is not None]
    if not objects:
        return []
    cluster = holding(held, world)
    owners = {_owner(manifest, world): manifest for manifest in held if manifest.file in files}
    found = [finding for manifest, kind in objects for finding in _together(manifest, kind, cluster, world, owners)]
    return [*found, *_beside(objects, cluster, world)]


def _beside(objects: list[tuple[Manifest, AnyKind]], cluster: simulate.Cluster, world: World) -> Iterator[Finding]:
    """Yield the conflicts between objects of one kind."""
    read = [(manifest, kind, _read(manifest, kind, cluster, world)) for manifest, kind in objects]
    for together in dict.fromkeys(kind.offline.together for _, kind in objects if kind.offline.together is not None):
        of_kind = [
            (manifest, decoded[1])
            for manifest, kind, decoded in read
            if decoded is not None and kind.offline.together is together
        ]
        for resource, advice in together([resource for _, resource in of_kind]):
            manifest = next(manifest for manifest, other in of_kind if other is resource)
            yield warning(manifest, advice, "combination")


def _read(
    manifest: Manifest, kind: AnyKind, cluster: simulate.Cluster, world: World
) -> tuple[AnyRequest, Resource[Any, Any]] | None:
    try:
        request = request_of(kind, in_cluster(manifest, world.namespace), cluster)
    except ManifestError:
        return None  # its metadata is of a wrong type, which is a finding already, or that of an object it reads
    resource, errors = kind.decode(request.parent)
    return None if resource is None or errors else (request, resource)


def _owner(manifest: Manifest, world: World) -> field.Owner:
    metadata = in_cluster(manifest, world.namespace)["metadata"]
    return manifest.kind, metadata.get("namespace", ""), metadata["name"]


def _together(
    manifest: Manifest, kind: AnyKind, cluster: simulate.Cluster, world: World, owners: Owners
) -> Iterator[Finding]:
    document, read = in_cluster(manifest, world.namespace), _read(manifest, kind, cluster, world)
    if read is None:
        return
    request, resource = read
    absent = references.absent_keys(resource.spec, document["metadata"].get("namespace", ""), cluster)
    for path, words in chain(references.dangling(kind, document, cluster, world.settings), absent):
        yield manifest.finding("warning", path, words, "dangling-reference")
    if findings_of(kind, document, world.settings)[0]:
        return  # an object with errors has no plan
    if cluster.objects.of_kind("Secret.v1"):
        pods = tracer.pod_templates(cluster, kind, document).values()
        for path, words in references.unread_secrets(chain.from_iterable(map(pods_of, pods)), document, cluster):
            yield manifest.finding("warning", path, words, "dangling-reference")
    if world.settings.kubernetes_release:
        yield from _dropped(manifest, kind, cluster, document, world)
    if kind.offline.fit is None:
        yield from _too_large(manifest, kind, cluster, document)
    if kind.offline.cross_object_warnings is None:
        return
    for advice in kind.offline.cross_object_warnings(resource, request, world.settings):
        yield _combination(manifest, advice, owners)


def _dropped(
    manifest: Manifest, kind: AnyKind, cluster: simulate.Cluster, document: Json, world: World
) -> Iterator[Finding]:
    """Yield the fields that its pods get from elsewhere, such as volumes of images, and that the API server drops."""
    release = world.settings.kubernetes_release
    own = {
        advice.declared for advice in findings_of(kind, document, world.settings)[1] if isinstance(advice, NewerField)
    }
    for template in tracer.pod_templates(cluster, kind, document).values():
        pods = TypeCheck()
        for pod in pods_of(template):
            pods.check(pod, "PodSpec", field.Path("pods"))
        newer = [advice for advice in pods.warnings if isinstance(advice, NewerField) and advice.declared not in own]
        for advice in concerning(newer, release):
            yield manifest.finding("warning", field.SPEC, str(advice), advice.id)


def pods_of(template: Json) -> Iterator[Json]:
    """Yield the specs of the pods of a template, or of the templates of a LeaderWorkerSet."""
    yield from (pod["spec"] for pod in pod_templates(template))


def _combination(manifest: Manifest, advice: field.Advice, owners: Owners) -> Finding:
    """Return the finding about a combination, in the object that has the path, if that is among the files."""
    if advice.owner is None:
        return warning(manifest, advice, "combination")
    if advice.owner in owners:
        return warning(owners[advice.owner], advice, advice.id)
    kind, namespace, name = advice.owner
    message = f"{kind} {namespace}/{name}: {advice}"
    return manifest.finding("warning", field.SPEC.child("baseRefs"), message, advice.id)


def _too_large(manifest: Manifest, kind: AnyKind, cluster: simulate.Cluster, document: Json) -> Iterator[Finding]:
    fit = podfit.pods_fit(kind, document, tracer.pod_templates(cluster, kind, document))
    if fit is None or fit.answer is not FitAnswer.DOES_NOT_FIT:
        return
    path = next((p for p in _MODEL_FIELDS if value_at(document["spec"], p) is not None), ())
    yield manifest.finding("warning", field.Path("spec").child(*path), fit.warning, "combination")
