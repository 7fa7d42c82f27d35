"""Show which children change between two versions of manifests, and whether pods restart.

OLD and NEW are files or directories of manifests. NEW is applied to a cluster in memory on which OLD has settled, so
that what is kept on a cluster is kept here. Or both are recorded answers: JSON with `children`, as a sync hook
returned it, or what `modelhooks render --output json` printed with another release. The exit status is 0 when nothing
changes, 1 when something does, 2 when the two cannot be compared.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import click
import orjson

from app.cli import options
from app.desk.cluster.offline import World, served
from app.desk.cluster.store import key_of
from app.desk.differences import ChildDifference, Children, Effect, applied, differences, summary
from app.desk.files import folders, printing
from app.desk.files.manifests import ManifestFiles
from app.errors import CommandError
from app.kube.base import Json


@click.command(help=options.doc(__doc__))
@click.argument("old", type=click.Path())
@click.argument("new", type=click.Path())
@options.output("text", "json", "markdown")
@options.offline
def command(*, old: str, new: str, output: str, world: World) -> int:
    result = differences(*_sides(old, new, world))
    click.echo(_PRINTERS[output](result), nl=False)
    return 1 if result else 0


def _sides(old: str, new: str, world: World) -> tuple[Children, Children]:
    """Return the children on both sides, from recorded answers or from manifests."""
    before, after = _recorded(old, world.namespace), _recorded(new, world.namespace)
    if before is not None and after is not None:
        return before, after
    if before is not None or after is not None:
        raise CommandError("one is a recorded answer and the other is not")
    others = _readable(world.related, world.exclude).manifests
    sides = [(path, _readable([path], world.exclude)) for path in (old, new)]
    for path, reading in sides:
        if not any(served(manifest) for manifest in [*reading.manifests, *others]):
            raise CommandError(f"{path}: {folders.nothing_served(reading)}")
    first, second = ([*reading.manifests, *others] for _, reading in sides)
    return applied(first, second, world, world.settings)


def _readable(paths: Sequence[str], exclude: Sequence[str]) -> ManifestFiles:
    reading = folders.collect(paths, exclude)
    if reading.findings:
        raise CommandError("\n".join(["a file that cannot be read:", *map(str, reading.findings)]))
    return reading


def _recorded(path: str, namespace: str) -> Children | None:
    file = Path(path)
    if file.suffix != ".json" or not file.is_file():
        return None
    try:
        document = orjson.loads(file.read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        raise CommandError(f"{path}: {error}") from None
    answers = document if isinstance(document, list) else [document]
    if not answers or not all(isinstance(a, dict) and isinstance(a.get("children"), list) for a in answers):
        return None
    try:
        return {key_of(child, namespace): child for answer in answers for child in answer["children"]}
    except (KeyError, TypeError, AttributeError):
        raise CommandError(f"{path}: a child without apiVersion, kind or name") from None


def _text(result: list[ChildDifference]) -> str:
    lines = []
    for difference in result:
        kind = difference.kind.partition(".")[0]
        lines.append(f"{difference.action} {kind} {difference.name}: {difference.effect.value}")
        lines += [f"  {change}" for change in difference.fields]
        lines += [f"  note: {difference.note}"] if difference.note else []
    return printing.lines([*lines, summary(result)])


def _json(result: list[ChildDifference]) -> str:
    rows: list[Json] = [
        {
            "kind": difference.kind,
            "name": difference.name,
            "action": difference.action,
            "effect": difference.effect.name.lower(),
            "restart": difference.effect in (Effect.RESTART, Effect.RECREATE),
            "note": difference.note,
            "fields": [{"path": str(change.path), **change.sides("old", "new")} for change in difference.fields],
        }
        for difference in result
    ]
    return printing.as_json({"changed": bool(rows), "children": rows})


def _markdown(result: list[ChildDifference]) -> str:
    """Return a table for the comment of a pull request; the fields are folded below it."""
    lines = [summary(result)]
    if result:
        lines += ["", "| Child | Action | Effect |", "|---|---|---|"]
    fields = []
    for difference in result:
        child = f"{difference.kind.partition('.')[0]} {difference.name}"
        lines.append(f"| {child} | {difference.action} | {difference.effect.value} |")
        fields += [f"{child}: {change}" for change in difference.fields]
    if fields:
        fence = "`" * max(3, 1 + max(len(run) for field in fields for run in re.findall(r"`*", field)))
        lines += ["", "<details><summary>Fields</summary>", "", fence, *fields, fence, "", "</details>"]
    return printing.lines(lines)


_PRINTERS = {"text": _text, "json": _json, "markdown": _markdown}
