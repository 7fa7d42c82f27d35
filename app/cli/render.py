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
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import click

from app.cli import options, validate
from app.desk.cluster import live, parts, sets, simulate
from app.desk.cluster.kinds import kind_of
from app.desk.cluster.offline import World, assumptions, desired, holding, identity, served, settle
from app.desk.cluster.rows import first_cause
from app.desk.cluster.store import Key
from app.desk.files import printing
from app.desk.files.folders import nothing_served
from app.desk.files.manifests import Manifest
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
    is_folded = output == "yaml" and not full and sys.stdout.isatty()

    def shown(answer: Json) -> _Shown:
        shorter = {**answer, "children": _folded(answer["children"])} if is_folded else answer
        texts = [answer] if output == "json" else [*_documents(shorter, status=status)]
        return _Shown(_without_children(answer), texts)

    answers = answers_of(everything, selected, world, shown)
    printing.warn("render", assumptions(everything, world))
    unmade = [] if errors else [answer.unmade for answer in answers if answer.unmade]
    printing.warn("render", unmade)
    texts = [*chain.from_iterable(answer.texts for answer in answers)]
    click.echo(printing.as_json(texts) if output == "json" else "---\n".join(texts), nl=False)
    return 1 if errors or unmade else 0


class _Shown(NamedTuple):
    """The printed output for one object."""

    unmade: str
    """Why it has no children; empty for others."""
    texts: list[Any]
    """Its documents, or the answer for JSON."""


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


def _without_children(answer: Json) -> str:
    """Return why an object has no children: the first cause in Ready. A stopped object needs none."""
    condition = live.ready(answer)
    if answer["children"] or condition.get("status") != "False" or condition.get("reason") == "Stopped":
        return ""
    return f"{answer['file']}: {answer['parent']} has no children: {first_cause(condition)}"


def answers_of(
    manifests: list[Manifest], selected: list[Manifest], world: World, shown: Callable[[Json], _Shown]
) -> list[_Shown]:
    """Return what is shown of the answer for each object, in every version of it among the files."""

    def answers(clusters: Sequence[simulate.Cluster], share: Sequence[Manifest], watch: parts.Watch) -> list[_Shown]:
        cluster = settle(clusters[0])
        watch(cluster)
        return [
            shown(_answer(manifest, cluster, cluster.objects[keys[manifest]]))
            for manifest in counted(share, "objects printed")
        ]

    results: list[_Shown] = []
    for present, keys in _sets(manifests, selected, world):
        results += chain.from_iterable(parts.results([present], keys, answers))
    return results


def _answer(manifest: Manifest, cluster: simulate.Cluster, parent: Json) -> Json:
    head = {"parent": f"{manifest.kind}/{manifest.name}", "file": manifest.file}
    children = [desired(child) for child in below(cluster, parent)]
    return {**head, "children": children, "status": parent["status"]}


def settled_parents(
    manifests: list[Manifest], selected: list[Manifest], world: World
) -> Iterator[tuple[Manifest, simulate.Cluster, Json]]:
    """Yield each selected object as it is once everything runs, with the cluster of its set."""
    for present, keys in _sets(manifests, selected, world):
        cluster = settle(present)
        yield from ((manifest, cluster, cluster.objects[key]) for manifest, key in keys.items())


def _sets(
    manifests: list[Manifest], selected: list[Manifest], world: World
) -> Iterator[tuple[simulate.Cluster, dict[Manifest, Key]]]:
    """Yield the cluster of each set with selected objects, and their keys in it. An object is selected once."""
    waiting, namespace = set(selected), world.namespace
    for members in sets.split(manifests, namespace).sets:
        if present := [manifest for manifest in members if manifest in waiting]:
            waiting -= {*present}
            cluster = holding([m for m in members if identity(m, namespace) is not None or not served(m)], world)
            yield cluster, {m: key for m in present if (key := identity(m, namespace)) is not None}


def below(cluster: simulate.Cluster, parent: Json) -> Iterator[Json]:
    """Yield the children, and those of children of served kinds."""
    for child in cluster.children(parent):
        yield child
        if kind_of(child) is not None:
            yield from below(cluster, child)


def _documents(answer: Json, *, status: bool) -> Iterator[str]:
    parent = printing.escaped(answer["parent"])
    yield from (f"# child of {parent}\n{dump(child)}" for child in answer["children"])
    if status:
        lines = [f"status of {parent} once everything runs", *dump({"status": answer["status"]}).splitlines()]
        yield printing.lines(f"# {line}" for line in lines)
