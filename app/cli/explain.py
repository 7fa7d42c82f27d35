"""Explain objects: why they are not ready, which children they have, and what set each value of their pods.

Reads manifests, or what is on a cluster:

  kubectl get llminferenceservices,deployments,pods -o yaml | modelhooks explain -

With Pods, Jobs, claims and Deployments among the files, the causes are read from them as the service reads them.
"""

import itertools
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from shutil import get_terminal_size
from typing import Any, NamedTuple

import click
import orjson

from app.cli import options
from app.desk.cluster import live as on_cluster
from app.desk.cluster.live import ObjectSource
from app.desk.cluster.offline import World, assumptions
from app.desk.cluster.pods import descendants, next_command, pod_line, pods_of, warnings_of
from app.desk.cluster.rows import Row, row_with_cause
from app.desk.cluster.sets import related_to
from app.desk.cluster.store import Store, key_of
from app.desk.explanation import INVALID, NOT_KNOWN, RANKS, explain, explained, rank_of
from app.desk.files import printing
from app.desk.files.folders import collect, nothing_served
from app.desk.files.manifests import Manifest, ManifestError, ManifestFiles, parse
from app.desk.files.printing import counted
from app.desk.origins import tracer
from app.errors import CommandError
from app.kube.base import Json
from app.kube.field import go_quote
from app.kube.resource import CustomResource
from app.kube.spelling import closest_name


@click.command(help=options.doc(__doc__))
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path(allow_dash=True))
@options.output("text", "json")
@options.offline
@click.option("--all", "everything", is_flag=True, help="Also print default values.")
@click.option("--live", is_flag=True, help="Explain KIND NAME of the kubeconfig's cluster instead of files; read-only.")
@click.option("--context", metavar="NAME", help="With --live: the kubeconfig's context.")
@click.option("--path", "paths", multiple=True, metavar="TEXT", help="Only values whose path contains TEXT.")
def command(
    *,
    files: tuple[str, ...],
    output: str,
    world: World,
    everything: bool,
    live: bool,
    context: str | None,
    paths: tuple[str, ...],
) -> int:
    """Print one explanation per served object; 1 for errors in a file or an object, 2 if there is no such object."""

    def shown(explanation: Json) -> _Explained:
        values = [row for row in explanation["values"] if not paths or any(part in row["path"] for part in paths)]
        selected = {**explanation, "values": values}
        text = selected if output == "json" else _text(selected, everything=everything or bool(paths))
        return _Explained(text, explanation["state"] == INVALID)

    if live:
        reading, others = ManifestFiles(), []
        explanations = [shown(from_cluster(on_cluster.LiveCluster(context), files, world))]
    else:
        reading = collect(files or ("-",), world.exclude)
        others = related_to(reading.manifests, world)
        printing.warn("explain", reading.findings)
        explanations = explained(reading.manifests, world, others, shown)
    if not explanations:
        raise CommandError(nothing_served(reading))
    printing.warn("explain", assumptions([*reading.manifests, *others], world))
    texts = [explanation.text for explanation in explanations]
    click.echo(printing.as_json(texts) if output == "json" else "\n".join(texts), nl=False)
    return 1 if reading.findings or any(explanation.is_invalid for explanation in explanations) else 0


class _Explained(NamedTuple):
    """The printed output for one object."""

    text: Any
    """The explanation itself for JSON."""
    is_invalid: bool


def from_cluster(source: ObjectSource, names: Sequence[str], world: World) -> Json:
    """Explain an object of a cluster, named as ``KIND NAME``, with its pods, their events and the next command."""
    if len(names) != 2:
        raise ManifestError("--live takes KIND NAME, for example: modelhooks explain --live inferenceservices chat")
    resources = [r for r in on_cluster.served() if names[0].lower() in r.names]
    if not resources:
        words = {word for resource in on_cluster.served() for word in resource.names}
        plurals = ", ".join(f"{r.plural}.{r.group}" for r in on_cluster.served())
        near = closest_name(names[0], sorted(words))
        hint = f"did you mean {go_quote(near)}?" if near else f"known: {plurals}"
        raise ManifestError(f"unknown resource {go_quote(names[0])}; {hint}")
    for resource in resources:
        objects = source.objects(resource.api_version, resource.kind, world.namespace) or []
        for item in objects:
            if item["metadata"]["name"] == names[1]:
                explanation = _from_cluster(source, resource, item, world)
                return {**explanation, **_unanswered(row_with_cause(source, resource, item, objects))}
    raise ManifestError(f"{names[0]} {go_quote(names[1])} not found in namespace {world.namespace}")


def _unanswered(row: Row) -> Json:
    """Return the state of an object whose status is not of its present spec; empty for one whose status is."""
    return {"state": NOT_KNOWN, "why": [row.cause], "conditions": []} if row.cause and row.ready == "Unknown" else {}


def _from_cluster(source: ObjectSource, resource: CustomResource, document: Json, world: World) -> Json:
    readable = on_cluster.readable_objects(source, resource, document, world.namespace)
    objects = Store({key_of(item): item for item in [*readable, document]})
    everything = {key: _manifest(item) for key, item in objects.items()}
    target = everything.pop(key_of(document))
    owned = descendants(objects, document)
    pods = pods_of(objects, owned)
    events = source.objects("v1", "Event", world.namespace) or []
    reference = f"{resource.qualified_name}/{target.name}"
    (explanation,) = explain([target], world, list(everything.values()))
    return {
        **explanation,
        "pods": [pod_line(pod) for pod in pods],
        "events": warnings_of(events, [document, *owned, *pods]),
        "next": next_command(reference, document["metadata"].get("namespace", ""), pods),
    }


def _manifest(document: Json) -> Manifest:
    """Return an object of a cluster as if it were in a file, without what only the API server writes."""
    metadata = {key: value for key, value in document["metadata"].items() if key != "managedFields"}
    (manifest,) = parse(orjson.dumps({**document, "metadata": metadata}).decode(), "<cluster>")
    return manifest


# Output.


def _text(explained: Json, *, everything: bool = False) -> str:
    place = f" in namespace {explained['namespace']}" if explained["namespace"] else ""
    lines = [f"{explained['object']}{place}: {explained['state']}"]
    lines += [f"  why: {line}" for cause in explained["why"] for line in cause.split("\n")]
    lines += [f"  {_condition(condition)}" for condition in explained["conditions"]]
    if explained.get("fit"):
        lines.append(f"  memory: {explained['fit']}")
    if explained["children"]:
        lines.append("  children:")
        lines += [f"    {child['kind']}/{child['name']}{_mark(child, explained)}" for child in explained["children"]]
    for title in ("pods", "events"):
        if explained.get(title):
            lines += [f"  {title}:", *(f"    {line}" for line in explained[title])]
    if explained.get("next"):
        lines.append(f"  next: {explained['next']}")
    for place, rows in itertools.groupby(explained["values"], key=_place):
        kind = place.partition("/")[0]
        lines.append(f"  {'pods of ' if kind in tracer.TEMPLATES else ''}{place}:")
        lines += _values_text(place, list(rows), everything=everything)
    if sys.stdout.isatty():
        columns = get_terminal_size().columns
        lines = [part for line in lines for part in _wrapped(line, columns)]
    return printing.lines(lines)


def _values_text(place: str, rows: list[Json], *, everything: bool) -> list[str]:
    """Format the values that users set; count those of presets, settings and defaults unless all are printed."""
    selected = [row for row in rows if everything or not rank_of(row["source"])]
    shown = sorted(selected, key=lambda row: rank_of(row["source"]))
    one_per_probe = list(_folded_probes(shown))
    lines = _table([(row["path"].removeprefix(f"{place}."), row["value"], row["source"]) for row in one_per_probe])
    folded = Counter(rank_of(row["source"]) for row in rows if not everything)
    counts = [f"{counted(folded[rank], 'value')} {RANKS[rank]}" for rank in (1, 2, 3) if folded[rank]]
    return [*lines, f"    {', '.join(counts)}; --all shows them"] if counts else lines


_PROBE = re.compile(r"(.*\.(?:startup|liveness|readiness)Probe)\.(.+)")


def _folded_probes(rows: Iterable[Json]) -> Iterator[Json]:
    """Yield one row for the fields of a probe that have the same source, or are copies of one probe."""
    for (path, source), group in itertools.groupby(rows, key=_probe):
        members = list(group)
        if path == members[0]["path"]:
            yield from members
        else:
            fields = [f"{row['path'].removeprefix(f'{path}.')}={tracer.one_line(row['value'])}" for row in members]
            yield {"path": path, "value": " ".join(fields), "source": source}


def _probe(row: Json) -> tuple[str, str]:
    """Return the path and the source of the probe that a value belongs to, or those of the value."""
    path, source = row["path"], row["source"]
    match = _PROBE.fullmatch(path)
    return (match[1], source.removesuffix(f".{match[2]}")) if match else (path, source)


def _place(row: Json) -> str:
    """``Deployment/chat spec.template``: the part of a path that the values of one pod share."""
    child = row["path"].partition(" ")[0]
    return f"{child} {'.'.join(tracer.EXPLAINED[child.partition('/')[0]])}"


def _condition(condition: Json) -> str:
    words = [condition.get("reason", ""), condition.get("message", "")]
    return f"{condition.get('type')}={condition.get('status')} {': '.join(word for word in words if word)}".rstrip()


def _mark(child: Json, explained: Json) -> str:
    any_exists = any(other["exists"] for other in explained["children"])
    return "" if child["exists"] or not any_exists else " (not among the files)"


MAX_VALUE = 60
"""Characters of a value where the output is not a terminal."""
_MARGIN = 4


def _table(rows: list[tuple[str, object, str]]) -> list[str]:
    """Return path, value and source in columns. On a terminal a source that does not fit goes on the next line."""
    texts = [(path, tracer.one_line(value), source) for path, value, source in rows]
    widest = [max((len(row[column]) for row in texts), default=0) for column in range(3)]
    path_width, value_width, source_width = widest[0], min(widest[1], MAX_VALUE), widest[2]
    if sys.stdout.isatty():
        available = get_terminal_size().columns - 2 * _MARGIN
        path_width = min(path_width, available // 2)
        source_width = min(source_width, (available - path_width) // 2)
        value_width = min(value_width, available - path_width - source_width)
    lines = []
    for path, value, source in texts:
        line = f"    {_tail(path, path_width):{path_width}}  {_head(value, value_width):{value_width}}  "
        fits = len(source) <= source_width
        lines += [line + source] if fits else [line.rstrip(), f"      from {source}"]
    return lines


def _head(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _tail(text: str, width: int) -> str:
    return text if len(text) <= width else "…" + text[1 - width :]


def _wrapped(line: str, columns: int) -> list[str]:
    """Return a line in parts that fit a terminal, indented below its beginning."""
    if len(line) <= columns:
        return [line]
    indent = len(line) - len(line.lstrip()) + _MARGIN
    return textwrap.wrap(line, columns, subsequent_indent=" " * indent)
