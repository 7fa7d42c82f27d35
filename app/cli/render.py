"""Print the children that manifests lead to, without a cluster and without the service.

The files are put into a cluster in memory, where Jobs complete and pods start at once; what is printed is the state in
which nothing changes any more. Related objects (a Model, a BackendRuntime, a ConfigMap) are taken from the same files,
or from --with. The children of a child of a served kind are printed too. The stream is what kubectl apply, kubectl diff
and checkers of manifests read; --status adds the status of each object, as a comment. On a terminal, long texts such as
scripts are cut after a few lines; --full prints them.

The exit status is 1 when an object has errors (it changes no child) or can have no child, 2 when there is nothing to
render.
"""

import sys
from collections.abc import Iterator
from typing import Any

import click

from app.cli import options, validate
from app.desk.cluster import live, sets, simulate
from app.desk.cluster.kinds import kind_of
from app.desk.cluster.offline import World, assumptions, desired, identity, served, settled
from app.desk.cluster.rows import first_cause
from app.desk.files import printing
from app.desk.files.manifests import Manifest
from app.desk.files.trees import nothing_served
from app.desk.files.yaml import dump
from app.desk.progress import counted
from app.errors import CommandError
from app.kube.base import Json


@click.command(help=options.doc(__doc__))
@options.files
@options.output("yaml", "json")
@options.offline
@click.option("--status", is_flag=True, help="Also print the status of each object once everything runs.")
@click.option("--full", is_flag=True, help="Cut no text on a terminal either.")
def command(*, files: tuple[str, ...], output: str, world: World, status: bool, full: bool) -> int:
    reading, others, errors = validate.read_and_warn("render", files, world)
    selected = [manifest for manifest in reading.manifests if served(manifest)]
    if not selected:
        raise CommandError(nothing_served(reading))
    everything = [*reading.manifests, *others]
    answers = answers_of(everything, selected, world)
    printing.warn("render", assumptions(everything, world))
    unmade = [] if errors else list(_without_children(answers))
    printing.warn("render", unmade)
    if output == "yaml" and not full and sys.stdout.isatty():
        answers = [{**answer, "children": _folded(answer["children"])} for answer in answers]
    click.echo(_printed(answers, output, status=status), nl=False)
    return 1 if errors or unmade else 0


MAX_LINES = 12
"""Lines of one text on a terminal."""


def _folded(value: Any) -> Any:
    """Return a value whose long texts end with the number of lines that are left out."""
    if isinstance(value, dict):
        return {key: _folded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_folded(item) for item in value]
    if not isinstance(value, str) or value.count("\n") < MAX_LINES:
        return value
    lines = value.splitlines()
    return "\n".join([*lines[: MAX_LINES - 1], f"… {len(lines) - MAX_LINES + 1} more lines; --full prints them", ""])


def _without_children(answers: list[Json]) -> Iterator[str]:
    """Yield why objects have no children: the first cause in Ready. Stopped objects need none."""
    for answer in answers:
        condition = live.ready(answer)
        if not answer["children"] and condition.get("status") == "False" and condition.get("reason") != "Stopped":
            yield f"{answer['file']}: {answer['parent']} has no children: {first_cause(condition)}"


def answers_of(manifests: list[Manifest], selected: list[Manifest], world: World) -> list[Json]:
    """Return an answer for each object, in every version of it among the files."""
    answers = []
    for manifest, cluster, parent in settled_parents(manifests, selected, world):
        head = {"parent": f"{manifest.kind}/{manifest.name}", "file": manifest.file}
        children = [desired(child) for child in below(cluster, parent)]
        answers.append({**head, "children": children, "status": parent["status"]})
    return answers


def settled_parents(
    manifests: list[Manifest], selected: list[Manifest], world: World
) -> Iterator[tuple[Manifest, simulate.Cluster, Json]]:
    """Yield each selected object as it is once everything runs, with the cluster of its set."""
    waiting, namespace = set(selected), world.namespace
    for members in sets.split(manifests, namespace).sets:
        present = [manifest for manifest in members if manifest in waiting]
        if not present:
            continue
        cluster = settled([m for m in members if identity(m, namespace) is not None or not served(m)], world)
        for manifest in present:
            waiting.remove(manifest)
            if (key := identity(manifest, namespace)) is not None:
                yield manifest, cluster, cluster.objects[key]


def below(cluster: simulate.Cluster, parent: Json) -> Iterator[Json]:
    """Yield the children, and those of children of served kinds."""
    for child in cluster.children(parent):
        yield child
        if kind_of(child) is not None:
            yield from below(cluster, child)


def _printed(answers: list[Json], output: str, *, status: bool) -> str:
    if output == "json":
        return printing.as_json(answers)
    parts = []
    for answer in counted(answers, "objects printed"):
        parent = printing.escaped(answer["parent"])
        parts += [f"# child of {parent}\n{dump(child)}" for child in answer["children"]]
        if status:
            lines = [f"status of {parent} once everything runs", *dump({"status": answer["status"]}).splitlines()]
            parts.append(printing.lines(f"# {line}" for line in lines))
    return "---\n".join(parts)
