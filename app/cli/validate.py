"""Check manifests against the schema and every rule, all findings at once.

Errors make the exit status 1. An unknown field is an error here, as it is for kubectl; warnings are fields without
effect and the like. Objects of other kinds are passed over. With nothing to check, the exit status is 2.

A comment silences a finding, on its line or alone on the line above; an annotation, all of that id in its object:

  # modelhooks: ignore ID

  modelhooks.dev/ignore: ID
"""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import click

from app.cli import CommandError, fixes, options, origins, podfit, printing, references, simulate
from app.cli.files import collect, listed, nothing_served
from app.cli.findings import PRINTERS, Finding, Lines, as_json, as_screen, unmuted
from app.cli.kinds import find_version, not_served, type_problem
from app.cli.manifests import Manifest, ManifestError, ManifestFiles
from app.cli.offline import World, assumptions, findings_of, holding, identity, in_cluster, request_of, served
from app.cli.printing import counted
from app.cli.sets import related_to, split
from app.hooks.kind import AnyKind
from app.kube import correction, embedded, field, modelfields, unknown
from app.kube.base import Json
from app.kube.fit import FitAnswer
from app.kube.merge import find as value_at
from app.kube.objects import ObservedMeta
from app.settings import Settings

MAX_ROUNDS = 10
"""Rounds of corrections: one may bring another mistake of the same object to light."""
_BYTE_ORDER_MARK = "\ufeff"
_TOP = ("apiVersion", "kind", "metadata", "spec", "status")
_MODEL_FIELDS = (("model", "uri"), ("modelClaim", "modelName"), ("modelClaims", "models"))
"""The fields that name the model of a service whose kind does not judge its size."""


@click.command(help=options.doc(__doc__))
@options.files
@options.output(*PRINTERS, "json")
@options.offline
@click.option("--strict", is_flag=True, help="Treat dangling references as errors.")
@click.option(
    "--fail-on", type=click.Choice(["error", "warning"]), default="error", help="Lowest level for exit status 1."
)
@click.option("--fix", is_flag=True, help="Apply unambiguous corrections to the files, and check again.")
@click.option("--allow-empty", is_flag=True, help="Succeed when there is nothing to check.")
def command(
    *,
    files: tuple[str, ...],
    output: str,
    world: World,
    strict: bool,
    fail_on: str,
    allow_empty: bool,
    fix: bool,
) -> int:
    if fix and "-" in files:
        raise CommandError("--fix writes files, and cannot write standard input")
    reading = collect(files, world.exclude)
    others = related_to(reading.manifests, world)
    if fix:
        reading = _corrected(files, others, world)
    result = all_findings(reading, others, world)
    if strict:
        result = [replace(f, level="error") if f.id == "dangling-reference" else f for f in result]
    errors = sum(finding.level == "error" for finding in result)
    checked = sum(served(manifest) is not None for manifest in reading.manifests)
    print_findings(result, reading.lines, output, checked)
    printing.warn("validate", assumptions([*reading.manifests, *others], world))
    click.echo(_summary(checked, errors, len(result) - errors, reading), err=True)
    if errors or (result and fail_on == "warning"):
        return 1
    if not checked and not allow_empty:
        raise CommandError(nothing_served(reading))
    return 0


def _corrected(files: Sequence[str], related: list[Manifest], world: World) -> ManifestFiles:
    """Write the corrections of errors into the files until none leaves no choice; return the files as they are then."""
    reading = collect(files, world.exclude)
    previous: dict[Finding, fixes.Fix] = {}
    for _ in range(MAX_ROUNDS):
        findings = all_findings(reading, related, world)
        corrections = {f: f.fixes[0] for f in findings if f.level == "error" and len(f.fixes) == 1}
        if not corrections or corrections == previous:
            break
        for file in dict.fromkeys(finding.file for finding in corrections):
            edits = [edit for finding, fix in corrections.items() if finding.file == file for edit in fix.edits]
            path = Path(file)
            text = path.read_bytes().decode()
            mark = _BYTE_ORDER_MARK if text.startswith(_BYTE_ORDER_MARK) else ""
            path.write_bytes((mark + fixes.applied(text.removeprefix(mark), edits)).encode())
        printing.warn("validate", [f"{f.file}:{f.line}: {f.path}: {fix.title}" for f, fix in corrections.items()])
        reading, previous = collect(files, world.exclude), corrections
    return reading


def print_findings(findings: list[Finding], lines: Lines, output: str, checked: int) -> None:
    if output == "json":
        text = as_json(findings, checked)
    else:
        printer = as_screen if output == "text" and sys.stdout.isatty() else PRINTERS[output]
        text = printer(findings, lines)
    click.echo(text, nl=False, color=False if os.environ.get("NO_COLOR") else None)


def _summary(checked: int, errors: int, warnings: int, reading: ManifestFiles) -> str:
    passed = [counted(count, noun) for noun, count in sorted(reading.passed_over.items()) if count]
    others = f"; no manifest in {listed([*reading.others])}" if reading.others else ""
    left_out = f" (passed over: {', '.join(passed)}{others})" if passed else ""
    return f"{counted(checked, 'object')} checked, {counted(errors, 'error')}, {counted(warnings, 'warning')}{left_out}"


def all_findings(reading: ManifestFiles, related: list[Manifest], world: World) -> list[Finding]:
    """Return every finding about the files once, in the order of the files, without muted ones."""
    single = (finding for manifest in reading.manifests for finding in check(manifest, world.settings))
    sets = split([*reading.manifests, *related], world.namespace)
    result = [*reading.findings, *single, *sets.findings]
    for manifests in sets.sets:
        result += check_together(manifests, world)
    ours = {file: place for place, file in enumerate(reading.lines)}
    unique = (finding for finding in dict.fromkeys(result) if finding.file in ours or finding in reading.findings)
    ordered = sorted(unique, key=lambda finding: (ours.get(finding.file, -1), finding.line))
    return unmuted(ordered, reading.lines)


def read_and_warn(
    command: str, files: Sequence[str], world: World
) -> tuple[ManifestFiles, list[Manifest], list[Finding]]:
    """Return files, their related objects, and the printed errors in both: no answer has the objects with errors."""
    reading = collect(files, world.exclude)
    others = related_to(reading.manifests, world)
    errors = [finding for finding in all_findings(reading, others, world) if finding.level == "error"]
    printing.warn(command, errors)
    return reading, others, errors


def check(manifest: Manifest, settings: Settings) -> list[Finding]:
    """Return the findings of one object; empty for kinds that are not served."""
    kind = find_version(manifest.api_version, manifest.kind)
    if kind is None:
        if words := not_served(manifest.api_version, manifest.kind):
            return [manifest.finding("warning", field.Path("kind"), words, "unknown-kind")]
        name, words = type_problem(manifest.api_version, manifest.kind)
        id_ = "unknown-kind" if manifest.api_version and manifest.kind else "untyped"
        if not manifest.api_version and not manifest.kind:
            name, words = "apiVersion", "Required value: must have apiVersion and kind"
        return [manifest.finding("error", field.Path(name), words, id_)] if name else []
    errors, warnings = findings_of(kind, manifest.document, settings)
    result = [
        manifest.finding("error", e.place or e.path, field.Hint(e.body, *e.suggested), ERROR_IDS[e.type])
        for e in errors
    ]
    result += [_unknown(manifest, kind, key) for key in manifest.document if key not in _TOP]
    warnings += _unknown_metadata(manifest.document.get("metadata"))
    return result + [_warning(manifest, advice, advice.id) for advice in warnings]


def _unknown_metadata(metadata: object) -> list[field.Advice]:
    """Warn of fields that no object's metadata has; those with wrong types are errors of the review."""
    findings = embedded.TypeCheck(lambda _: (unknown.Level(_TOP, tuple),))
    findings.check(metadata, "ObjectMeta", field.Path("metadata"))
    return findings.warnings


def _unknown(manifest: Manifest, kind: AnyKind, key: str) -> Finding:
    """Return the finding about a field beside the spec: a misspelt one, or one that is not indented."""
    name = key.strip()
    hint = field.name_meant(correction.closest_name(name, _TOP), ",")
    inner = {"spec": modelfields.fields(kind.resource.spec), "metadata": ObservedMeta.__struct_encode_fields__}
    for outer in (outer for outer, names in inner.items() if name in names):
        hint = field.Hint(f"; it is a field of {outer}: indent it below {outer}")
    message = field.with_hint(f"unknown field {field.go_quote(key)}", hint)
    return manifest.finding("error", field.Path(key), message, "unknown-field")


ERROR_IDS = {
    field.ErrorType.REQUIRED: "required",
    field.ErrorType.INVALID: "invalid-value",
    field.ErrorType.TYPE_INVALID: "wrong-type",
    field.ErrorType.NOT_SUPPORTED: "unsupported-value",
    field.ErrorType.DUPLICATE: "duplicate-value",
    field.ErrorType.FORBIDDEN: "forbidden",
    field.ErrorType.TOO_LONG: "too-long",
    field.ErrorType.TOO_MANY: "too-many",
}


def _warning(manifest: Manifest, advice: field.Advice, id_: str) -> Finding:
    """A warning at its place. An unknown field is an error here: a cluster would drop it."""
    level = "error" if advice.id == "unknown-field" else "warning"
    message = field.Hint(advice.removeprefix(f"{advice.path}: "), *advice.suggested)
    return manifest.finding(level, advice.path, message, id_)


def check_together(manifests: list[Manifest], world: World) -> list[Finding]:
    """Return the conflicts between objects of one set, and their references to missing objects."""
    held = [manifest for manifest in manifests if identity(manifest, world.namespace) is not None]
    objects = [(manifest, kind) for manifest in held if (kind := served(manifest)) is not None]
    if not objects:
        return []
    cluster = holding(held, world)
    return [finding for manifest, kind in objects for finding in _together(manifest, kind, cluster, world)]


def _together(manifest: Manifest, kind: AnyKind, cluster: simulate.Cluster, world: World) -> Iterator[Finding]:
    document = in_cluster(manifest, world.namespace)
    try:
        request = request_of(kind, document, cluster)
    except ManifestError:
        return  # its metadata is of a wrong type, which is a finding already, or that of an object it reads
    resource, errors = kind.decode(request.parent)
    if resource is None or errors:
        return
    absent = references.absent_keys(resource.spec, document["metadata"].get("namespace", ""), cluster)
    for path, words in chain(references.dangling(kind, document, cluster, world.settings), absent):
        yield manifest.finding("warning", path, words, "dangling-reference")
    if findings_of(kind, document, world.settings)[0]:
        return  # an object with errors has no plan
    if kind.offline.fit is None:
        yield from _too_large(manifest, kind, cluster, document)
    if kind.offline.cross_object_warnings is None:
        return
    for advice in kind.offline.cross_object_warnings(resource, request, world.settings):
        yield _warning(manifest, advice, "combination")


def _too_large(manifest: Manifest, kind: AnyKind, cluster: simulate.Cluster, document: Json) -> Iterator[Finding]:
    fit = podfit.pods_fit(kind, document, origins.pod_templates(cluster, kind, document))
    if fit is None or fit.answer is not FitAnswer.DOES_NOT_FIT:
        return
    path = next((p for p in _MODEL_FIELDS if value_at(document["spec"], p) is not None), ())
    yield manifest.finding("warning", field.Path("spec").child(*path), fit.warning, "combination")
