"""Convert objects of one family, or Deployments of your own, into a family's, with an account of what is lost.

Between Model and InferenceService (llmkube), OpenModel and Playground (llmaz), and LLMInferenceService (kserve). A
Deployment or StatefulSet of vLLM, SGLang, llama.cpp, Text Generation Inference or another server, with the Service and
the autoscaler beside it, becomes objects of the family under a new name; then: has the commands that move its clients.
So does a file with lines of docker run.

The new objects are printed on standard output, and they pass validate. What is lost is listed on standard error, each
value at its place with the reason: nothing is dropped silently. --output json prints objects and account together.

The exit status is 0 when everything was carried over, 1 when something is lost, 2 when there is nothing to convert.
"""

from itertools import chain

import click
import orjson

from app.cli import options
from app.desk.cluster import offline, sets
from app.desk.cluster.single import check
from app.desk.convert import counterparts, dockerrun
from app.desk.convert.own import translate_own
from app.desk.convert.translate import Entry, Translation, family_of, translate
from app.desk.convert.workloads import is_own
from app.desk.files import printing
from app.desk.files.folders import collect, nothing_served
from app.desk.files.yaml import dump_all
from app.errors import CommandError
from app.kube.base import Json


@click.command(help=options.doc(__doc__))
@options.files
@click.option("--to", required=True, type=click.Choice(list(counterparts.FAMILIES)), help="The family to convert to.")
@options.output("yaml", "json")
@options.offline
def command(*, files: tuple[str, ...], to: str, output: str, world: offline.World) -> int:
    manifests, runs = dockerrun.split(files)
    reading = collect(manifests, world.exclude)
    others = sets.related_to(reading.manifests, world)
    selected = [manifest for manifest in reading.manifests if family_of(manifest) not in ("", to)]
    findings = (finding for item in (*selected, *others) for finding in check(item, world.settings))
    problems = [*reading.findings, *(finding for finding in findings if finding.level == "error")]
    if problems:
        raise CommandError("\n".join(["objects with errors are not converted:", *map(str, problems)]))
    plain = [manifest for manifest in reading.manifests if not family_of(manifest)]
    if not selected and not runs and not any(map(is_own, plain)):
        is_any = any(map(offline.served, reading.manifests))
        nothing = f"{nothing_served(reading)}; convert also reads Deployments, StatefulSets and lines of docker run"
        raise CommandError(f"no object of a family other than {to}" if is_any else nothing)
    result = translate(selected, to, others)
    if any(map(is_own, plain)):
        translate_own(plain, to, result)
    for manifest, unread in chain.from_iterable(dockerrun.workloads(text, file) for text, file in runs):
        translate_own([manifest], to, result, renamed=False)
        result.lost += unread
    if output == "json":
        click.echo(printing.as_json(_json(result)), nl=False)
    else:
        click.echo(dump_all(result.documents) if result.documents else "", nl=False)
    printing.echo(_account(result), err=True)
    return 1 if result.lost else 0


def _account(result: Translation) -> list[str]:
    lines = []
    for item in result.lost:
        row = _row(item)
        value = "" if isinstance(item.value, (dict, list)) else f" ({orjson.dumps(item.value).decode()})"
        place = f"{row['file']}:{row['line']}:{row['column']}"
        lines.append(f"{place}: lost: {f'{item.object} {item.path}'.rstrip()}{value}: {item.reason}")
    lines += [f"added: {name} {path}: {orjson.dumps(value).decode()}" for name, path, value in result.added]
    lines += [f"then: {step}" for step in result.steps]
    counts = (
        f"{printing.counted(len(result.documents), 'object')} made, "
        f"{printing.counted(len(result.carried), 'value')} carried over, {len(result.lost)} lost"
    )
    return [*lines, counts]


def _json(result: Translation) -> Json:
    return {
        "objects": result.documents,
        "carried": [{**_row(item), "to": list(item.target)} for item in result.carried],
        "lost": [{**_row(item), "reason": item.reason} for item in result.lost],
        "added": [{"object": name, "path": str(path), "value": value} for name, path, value in result.added],
        "defaults": [{**_row(item), "reason": item.reason} for item in result.defaults],
        "steps": result.steps,
    }


def _row(item: Entry) -> Json:
    line, column = item.manifest.position(item.path)
    place = {"file": item.manifest.file, "line": line, "column": column}
    return {"object": item.object, "path": str(item.path), "value": item.value, **place}
