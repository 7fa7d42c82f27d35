"""Show whether models fit into the memory of their GPUs, with the arithmetic.

Adds up the weights (by the size of the file or, before the download, by the name of the model), the key-value cache for
the context, and what a server needs besides. An unknown amount is a range, and the answer holds for all of it: fits,
does not fit, or cannot know. The memory of a GPU is hardware.gpu.memory of the Model, or --gpu-memory. With the status
of a Model among the files, its numbers count:

  kubectl get models.inference.llmkube.dev,inferenceservices.inference.llmkube.dev -o yaml | modelhooks fit -

The exit status is 1 when something does not fit, 2 when there is nothing to judge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import click

from app.cli import options, printing
from app.cli.files import collect
from app.cli.manifests import Manifest, ManifestError
from app.cli.offline import holding, in_cluster, served
from app.cli.sets import split
from app.cli.simulate import Cluster
from app.hooks.kind import AnyKind
from app.kube.base import Json
from app.kube.field import go_quote
from app.kube.fit import Answer, Fit
from app.kube.quantity import is_quantity
from app.settings import Settings


@click.command(help=options.doc(__doc__))
@options.files
@options.output("text", "json")
@options.offline
@click.option("--gpu-memory", metavar="QUANTITY", default="", help="Memory of one GPU, such as 24Gi.")
def command(
    *,
    files: tuple[str, ...],
    output: str,
    world: options.World,
    gpu_memory: str,
) -> int:
    """Print an answer for each object that names a model."""
    if gpu_memory and not is_quantity(gpu_memory):
        return options.fail("fit", f"--gpu-memory: {go_quote(gpu_memory)} is not a valid quantity, such as 24Gi")
    try:
        reading, others = collect(files, world.exclude), collect(world.related, world.exclude)
        options.warn("fit", reading.findings)
        answers = list(_answers(reading.manifests, others.manifests, world, gpu_memory))
    except ManifestError as error:
        return options.fail("fit", error)
    if not answers:
        return options.fail("fit", "no object that names a model, such as an InferenceService")
    if output == "json":
        click.echo(printing.as_json([{**head, **asdict(fit)} for head, fit in answers]), nl=False)
    else:
        printing.echo(line for head, fit in answers for line in _text(head, fit))
    return 1 if any(fit.answer is Answer.DOES_NOT_FIT for _, fit in answers) else 0


def _answers(
    manifests: list[Manifest], others: list[Manifest], world: options.World, gpu_memory: str
) -> Iterator[tuple[Json, Fit]]:
    selected, settings = set(manifests), Settings()
    for members in split([*manifests, *others], world.namespace).sets:
        cluster = holding(members, world.namespace, world.without, settings)
        for manifest in members:
            kind = served(manifest)
            if kind is None or manifest not in selected:
                continue
            document = in_cluster(manifest, world.namespace)
            fit = answer(kind, document, cluster, settings, gpu_memory)
            if fit is not None:
                head = {
                    "object": f"{kind.resource.kind}/{manifest.name}",
                    "namespace": document["metadata"]["namespace"],
                }
                yield head, fit


def answer(kind: AnyKind, document: Json, cluster: Cluster, settings: Settings, gpu_memory: str = "") -> Fit | None:
    """Return whether an object's model fits; ``None`` for an object without a model, or with errors."""
    if kind.offline.fit is None:
        return None
    request = kind.request(cluster.request(kind, document))
    resource, errors = kind.decode(request.parent)
    return None if resource is None or errors else kind.offline.fit(resource, request, settings, gpu_memory)


def _text(head: Json, fit: Fit) -> list[str]:
    lines = [f"{head['object']} in namespace {head['namespace']}: {fit.answer}: {fit.why}"]
    wide = [max((len(row[column]) for row in fit.rows), default=0) for column in (0, 1)]
    lines += [f"  {name:{wide[0]}}  {amount:{wide[1]}}  {how}".rstrip() for name, amount, how in fit.rows]
    return lines
