"""Be a KRM function for kustomize and kpt: a ResourceList in, the same with the children of its objects out.

  kpt fn eval --exec "modelhooks krm" --allow-exec

Objects with errors add no children; every finding is one of the list's results, and an error makes the exit status 1.
"""

import sys

import click
import orjson

from app.cli import options, render
from app.desk.check import all_findings
from app.desk.cluster import offline, sets
from app.desk.cluster.store import outer_key
from app.desk.files import manifests
from app.desk.files.findings import Finding
from app.desk.files.yaml import dump
from app.errors import CommandError
from app.kube.base import Json


@click.command(help=options.doc(__doc__))
@options.offline
def command(*, world: offline.World) -> int:
    reading = manifests.ManifestFiles()
    try:
        text = sys.stdin.buffer.read().decode()
        reading.add(text, "<stdin>", whole=True)
        others = sets.related_to(reading.manifests, world)
        findings = all_findings(reading, others, world)
        ours = [manifest for manifest in reading.manifests if offline.served(manifest)]
        answers = render.answers_of([*reading.manifests, *others], ours, world)
    except UnicodeDecodeError as error:
        raise CommandError(str(error)) from None
    items = [manifest.document for manifest in reading.manifests]
    children = {_key(child): child for answer in answers for child in answer["children"]}
    present = {_key(item) for item in items}
    items += [child for key, child in children.items() if key not in present]
    result: Json = {"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": items}
    if findings:
        result["results"] = [_result(finding) for finding in findings]
    click.echo(dump(result), nl=False)
    return 1 if any(finding.level == "error" for finding in findings) else 0


def _key(item: Json) -> bytes:
    metadata = item.get("metadata")
    names = [metadata.get("namespace"), metadata.get("name")] if isinstance(metadata, dict) else []
    return orjson.dumps([outer_key(item) if item.get("kind") and item.get("apiVersion") else "", names])


def _result(finding: Finding) -> Json:
    result: Json = {"message": finding.message, "severity": finding.level, "tags": {"id": finding.id}}
    return {**result, "field": {"path": finding.path}} if finding.path else result
