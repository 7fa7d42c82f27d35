"""Be a KRM function for kustomize and kpt: a ResourceList in, the same with the children of its objects out.

  kpt fn eval --exec "modelhooks krm" --allow-exec

Objects with errors change no children. Every finding is one of the list's results, and an error makes the exit status
1. Children have the annotation modelhooks.dev/child-of: run on its own output, the function writes them anew.
"""

import sys

import click
import orjson

from app.cli import options, render
from app.desk.check import all_findings
from app.desk.cluster import offline, sets
from app.desk.cluster.single import errors_of
from app.desk.cluster.store import outer_key, stored
from app.desk.files import manifests
from app.desk.files.findings import Finding
from app.desk.files.yaml import dump
from app.errors import CommandError
from app.kube import field
from app.kube.base import Json


@click.command(help=options.doc(__doc__))
@options.offline
def command(*, world: offline.World) -> int:
    reading = manifests.ManifestFiles()
    try:
        text = sys.stdin.buffer.read().decode()
        reading.add(text, "<stdin>", whole=True)
        earlier = {_key(m.document): m.document for m in reading.manifests if _parent(m.document)}
        reading.manifests = [manifest for manifest in reading.manifests if not _parent(manifest.document)]
        others = sets.related_to(reading.manifests, world)
        findings = all_findings(reading, others, world)
        ours = [manifest for manifest in reading.manifests if offline.served(manifest)]
        settled = list(render.settled_parents([*reading.manifests, *others], ours, world))
    except UnicodeDecodeError as error:
        raise CommandError(str(error)) from None
    items = [manifest.document for manifest in reading.manifests]
    wrong = {_name(manifest, world) for manifest in ours if errors_of(manifest, world.settings)}
    children = {key: item for key, item in earlier.items() if (_namespace(item, world), _parent(item)) in wrong}
    for manifest, cluster, parent in settled:
        rendered = map(offline.desired, render.below(cluster, parent))
        children |= {_key(child): _marked(child, f"{manifest.kind}/{manifest.name}") for child in rendered}
    child_keys = {
        _key(stored(child, _namespace(parent, world)))
        for _, cluster, parent in settled
        for child in cluster.last_answer(parent)["children"]
    }
    foreign = child_keys & {_key(item) for item in items}
    findings += [_foreign(manifest) for manifest in reading.manifests if _key(manifest.document) in foreign]
    items += [_placed(child, earlier.get(key, {})) for key, child in children.items() if key not in foreign]
    result: Json = {"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": items}
    if findings:
        result["results"] = [_result(finding) for finding in findings]
    click.echo(dump(result), nl=False)
    return 1 if any(finding.level == "error" for finding in findings) else 0


CHILD_OF = "modelhooks.dev/child-of"
"""The annotation of a child in the output: the kind and name of its parent."""
_PLACES = ("config.kubernetes.io/", "internal.config.kubernetes.io/")
"""Annotations with which kpt and kustomize remember the file of an item."""


def _annotations(item: Json) -> Json:
    metadata = item.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return annotations if isinstance(annotations, dict) else {}


def _parent(item: Json) -> str:
    """Return the parent of a child that this function wrote; empty for every other item."""
    return str(_annotations(item).get(CHILD_OF, ""))


def _namespace(item: Json, world: offline.World) -> str:
    metadata = item.get("metadata")
    return str(metadata.get("namespace") or world.namespace) if isinstance(metadata, dict) else world.namespace


def _name(manifest: manifests.Manifest, world: offline.World) -> tuple[str, str]:
    return _namespace(manifest.document, world), f"{manifest.kind}/{manifest.name}"


def _marked(child: Json, parent: str) -> Json:
    return {**child, "metadata": {**child["metadata"], "annotations": {**_annotations(child), CHILD_OF: parent}}}


def _placed(child: Json, earlier: Json) -> Json:
    """Return a child with the place of the earlier one, which it replaces in its file."""
    places = {name: value for name, value in _annotations(earlier).items() if name.startswith(_PLACES)}
    return {**child, "metadata": {**child["metadata"], "annotations": {**_annotations(child), **places}}}


def _foreign(manifest: manifests.Manifest) -> Finding:
    words = f"kept as it is: the list has this {manifest.kind} already, and without the annotation {CHILD_OF}"
    return manifest.finding("warning", field.METADATA.child("name"), words, "duplicate-object")


def _key(item: Json) -> bytes:
    metadata = item.get("metadata")
    names = [metadata.get("namespace"), metadata.get("name")] if isinstance(metadata, dict) else []
    return orjson.dumps([outer_key(item) if item.get("kind") and item.get("apiVersion") else "", names])


def _result(finding: Finding) -> Json:
    result: Json = {"message": finding.message, "severity": finding.level, "tags": {"id": finding.id}}
    return {**result, "field": {"path": finding.path}} if finding.path else result
