"""Check manifests against the schema and every rule, all findings at once.

Errors make the exit status 1. An unknown field is an error here, as it is for kubectl; warnings are fields without
effect and the like. Objects of other kinds are passed over. With nothing to check, the exit status is 2.

A comment silences a finding, on its line or alone on the line above; an annotation, all of that id in its object:

  # modelhooks: ignore ID

  modelhooks.dev/ignore: ID
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from app.cli import options
from app.desk.check import all_errors, all_findings
from app.desk.cluster.offline import World, assumptions, served
from app.desk.cluster.sets import related_to
from app.desk.files import fixes, printing
from app.desk.files.findings import PRINTERS, Finding, Lines, as_json, as_screen
from app.desk.files.folders import collect, listed, nothing_served
from app.desk.files.manifests import Manifest, ManifestFiles
from app.desk.files.printing import counted
from app.errors import CommandError

MAX_ROUNDS = 10
"""Rounds of corrections: one may bring another mistake of the same object to light."""
_BYTE_ORDER_MARK = "\ufeff"


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


def read_and_warn(
    command: str, files: Sequence[str], world: World
) -> tuple[ManifestFiles, list[Manifest], list[Finding]]:
    """Return files, their related objects, and the printed errors in both: no answer has the objects with errors."""
    reading = collect(files, world.exclude)
    others = related_to(reading.manifests, world)
    errors = all_errors(reading, others, world)
    printing.warn(command, errors)
    return reading, others, errors
