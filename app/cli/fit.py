"""Show whether models fit into the memory of their GPUs, with the arithmetic.

Adds up the weights (by the size of the file or, before the download, by the name of the model), the key-value cache for
the context, and what a server needs besides. An unknown amount is a range, and the answer holds for all of it: fits,
does not fit, or cannot know. The memory of a GPU is --gpu or --gpu-memory, else hardware.gpu.memory of the Model, else
known from the node selector. With the status of a Model among the files, its numbers count. Of llmaz and KServe, the
command line of the pods' server is judged. With --config, files of the model tell its shape, format and size, so that a
model of any name can be asked about:

  modelhooks init kserve org/model --gpu L4 | modelhooks fit - --config config.json

  kubectl get models.inference.llmkube.dev,inferenceservices.inference.llmkube.dev -o yaml | modelhooks fit -

The exit status is 1 when something does not fit or has errors, 2 when there is nothing to judge.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import click
from msgspec.structs import asdict

from app.cli import options, validate
from app.cli.init import REPOSITORY
from app.desk.cluster import sets
from app.desk.cluster.offline import World, assumptions, holding, in_cluster, served
from app.desk.files import printing
from app.desk.files.folders import SUFFIXES, nothing_served
from app.desk.files.manifests import Manifest, ManifestError
from app.desk.fitting import answer
from app.errors import CommandError
from app.hooks.fit import Asked, Fit, FitAnswer
from app.kube.base import Json
from app.kube.field import go_quote
from app.kube.quantity import is_quantity, parse
from app.workload.fit.gpumodels import GPU_MODELS, gpu_model
from app.workload.fit.modelfacts import ModelFacts

_NOTHING = "no valid object that names a model, such as an InferenceService"
_GIGABYTE = 10**9
_GIGABYTES = re.compile(r"([0-9.]+) ?([KMGT]i?)B", re.IGNORECASE)


@click.command(help=options.doc(__doc__))
@options.files
@options.output("text", "json")
@options.offline
@click.option(
    "--gpu-memory",
    metavar="QUANTITY",
    default="",
    help="Memory of one GPU, such as 24Gi or 24GB; overrides the files'.",
)
@options.model_files
@click.option("--gpu", metavar="NAME", default="", help="Name of the GPU, such as L4 or H100, instead of its memory.")
def command(
    *, files: tuple[str, ...], output: str, world: World, gpu_memory: str, facts: ModelFacts | None, gpu: str
) -> int:
    inputs = Asked(_memory_of(gpu, gpu_memory), facts)
    _not_a_model(files, gpu)
    reading, others, errors = validate.read_and_warn("fit", files, world)
    answers = list(_answers(reading.manifests, others, world, inputs))
    printing.warn("fit", assumptions([*reading.manifests, *others], world, of_children=False))
    if not answers:
        has_served = any(served(manifest) for manifest in reading.manifests)
        raise CommandError(_NOTHING if has_served else nothing_served(reading))
    if output == "json":
        click.echo(printing.as_json([{**head, **asdict(fit)} for head, fit in answers]), nl=False)
    else:
        printing.echo(line for head, fit in answers for line in _text(head, fit))
    return 1 if errors or any(fit.answer is FitAnswer.DOES_NOT_FIT for _, fit in answers) else 0


def _not_a_model(files: tuple[str, ...], gpu: str) -> None:
    """Raise :class:`ManifestError` for a repository in place of a file, with the commands that judge it."""
    for file in files:
        path = Path(file)
        if REPOSITORY.fullmatch(file) and path.suffix not in SUFFIXES and not path.exists():
            commands = f"modelhooks init kserve {file} --gpu {go_quote(gpu or 'L4')} | modelhooks fit -"
            raise ManifestError(f"no such file or directory; for a model of the Hugging Face Hub: {commands}", file)


def _memory_of(gpu: str, quantity: str) -> str:
    """Return the name of a GPU, or its memory as a quantity; ``24GB`` is 24G.

    Raises :class:`ManifestError` for an invalid one.
    """
    if gpu:
        model = gpu_model(gpu)
        if model is None:
            names = ", ".join(other.name for other in GPU_MODELS)
            raise ManifestError(f"--gpu: unknown GPU {go_quote(gpu)}; known: {names}; or use --gpu-memory")
        return model.name
    written = _GIGABYTES.fullmatch(quantity)
    plain = f"{written[1]}{written[2][0].upper()}{written[2][1:].lower()}" if written else quantity
    if plain and not is_quantity(plain):
        raise ManifestError(f"--gpu-memory: {go_quote(quantity)} is not a valid quantity, such as 24Gi")
    if plain and parse(plain) < _GIGABYTE:
        raise ManifestError(f"--gpu-memory: {go_quote(quantity)} must be at least 1G, such as 24Gi or 24GB")
    return plain


def _answers(
    manifests: list[Manifest], others: list[Manifest], world: World, asked: Asked
) -> Iterator[tuple[Json, Fit]]:
    selected = set(manifests)
    for members in sets.split([*manifests, *others], world.namespace).sets:
        cluster = holding(members, world)
        for manifest in members:
            kind = served(manifest)
            if kind is None or manifest not in selected:
                continue
            document = in_cluster(manifest, world.namespace)
            fit = answer(kind, document, cluster, world.settings, asked)
            if fit is not None:
                name, namespace = f"{kind.resource.kind}/{manifest.name}", document["metadata"]["namespace"]
                yield {"object": name, "namespace": namespace}, fit


def _text(head: Json, fit: Fit) -> list[str]:
    lines = [f"{head['object']} in namespace {head['namespace']}: {fit.answer}: {fit.why}"]
    wide = [max((len(row[column]) for row in fit.rows), default=0) for column in (0, 1)]
    lines += [f"  {name:{wide[0]}}  {amount:{wide[1]}}  {how}".rstrip() for name, amount, how in fit.rows]
    return [*lines, f"  Enough: {' or '.join(fit.enough)}"] if fit.enough else lines
