"""Findings about files: values with a place, and the formats in which they are printed."""

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path

import click

from app.desk.files import printing
from app.desk.files.fixes import Entry, Fix
from app.desk.files.printing import escaped

DOCS = "https://github.com/modelhooks/modelhooks/blob/main/docs/"
"""The address of the documentation."""
PAGE = f"{DOCS}findings.md"
Lines = Mapping[str, Sequence[str]]
"""The lines of every file that was read."""
MUTING = "modelhooks.dev/ignore"
"""The annotation of an object that silences findings about it: ids, separated by commas or blanks."""


@dataclass(frozen=True)
class Finding:
    """One mistake or warning and its place in a file; ``line`` and ``column`` count from 1."""

    file: str
    line: int
    column: int
    level: str
    """``error`` or ``warning``."""
    path: str
    message: str
    id: str = "advice"
    ignored: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """Ids that the object of the finding silences."""
    entry: Entry | None = field(default=None, repr=False, compare=False)
    """The field or item that it is about, if the file can be read."""
    fixes: tuple[Fix, ...] = field(default=(), repr=False, compare=False)

    @property
    def text(self) -> str:
        """Path and message as one printable line."""
        return escaped(f"{self.path}: {self.message}" if self.path else self.message)

    def __str__(self) -> str:
        return f"{escaped(self.file)}:{self.line}:{self.column}: {self.level}: {self.text} [{self.id}]"

    @property
    def help(self) -> str:
        return f"{PAGE}#{self.id}"


@cache
def rules() -> dict[str, dict[str, str]]:
    """Return what each id means, and advice; a section of the page each."""
    import tomllib  # most commands print no help on findings

    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def unmuted(findings: Iterable[Finding], lines: Lines) -> list[Finding]:
    """Those that nothing silences.

    A comment ``# modelhooks: ignore ID``, on the line or alone on the one above, or the annotation of the object. What
    keeps an object from being read, such as a YAML error, has no object to carry an annotation.
    """
    return [f for f in findings if f.id not in [*f.ignored, *_ignored(f, lines.get(f.file, ()))]]


def _ignored(finding: Finding, lines: Sequence[str]) -> Iterator[str]:
    above = lines[max(finding.line - 2, 0) : finding.line - 1]
    comments = [line for line in above if line.lstrip().startswith("#")]
    for line in [*lines[finding.line - 1 : finding.line], *comments]:
        yield from ids_in(line.partition("# modelhooks: ignore ")[2])


def ids_in(text: str) -> list[str]:
    return text.replace(",", " ").split()


def as_text(findings: Sequence[Finding], _: Lines) -> str:
    return "".join(f"{finding}\n" for finding in findings)


def as_screen(findings: Sequence[Finding], lines: Lines) -> str:
    """For people at a terminal: grouped by file, in colour, each with its line and a mark below it."""
    parts, file = [], None
    for finding in sorted(findings, key=lambda one: (one.file, one.line, one.column)):
        if finding.file != file:
            file = finding.file
            parts.append(click.style(escaped(file), bold=True))
        colour = "red" if finding.level == "error" else "yellow"
        head = f"  {finding.line}:{finding.column} {click.style(finding.level, fg=colour)} {finding.text}"
        parts.append(f"{head} {click.style('[' + finding.id + ']', dim=True)}")
        source = "".join(lines.get(finding.file, ())[finding.line - 1 : finding.line])
        if source.strip():
            width = max(20, shutil.get_terminal_size().columns - 8)
            shown = escaped(source.replace("\t", " "))[:width]
            parts.append(f"      {click.style(shown, dim=True)}")
            if finding.column <= width:
                parts.append(f"      {' ' * (finding.column - 1)}{click.style('^', fg=colour)}")
    return "".join(f"{part}\n" for part in parts)


def as_json(findings: Sequence[Finding], checked: int) -> str:
    """Return a summary and the findings; ``checked`` is the number of objects."""
    printed = [*(part.name for part in fields(Finding) if part.compare), "help"]
    rows = [{name: getattr(finding, name) for name in printed} for finding in findings]
    errors = sum(finding.level == "error" for finding in findings)
    summary = {"objects": checked, "errors": errors, "warnings": len(findings) - errors}
    return printing.as_json({"summary": summary, "findings": rows})


def as_github(findings: Sequence[Finding], _: Lines) -> str:
    """Annotations of a pull request, in GitHub's own form."""
    lines = []
    for finding in findings:
        file = escaped(finding.file).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
        place = f"file={file},line={finding.line},col={finding.column},title={finding.id}"
        lines.append(f"::{finding.level} {place}::{finding.text.replace('%', '%25')}\n")
    return "".join(lines)


def as_sarif(findings: Sequence[Finding], _: Lines) -> str:
    """For code scanning; the help of each rule names its section of the documentation."""
    results = []
    for f in findings:
        region = {"startLine": f.line, "startColumn": f.column}
        place = {"physicalLocation": {"artifactLocation": {"uri": f.file}, "region": region}}
        results.append({"ruleId": f.id, "level": f.level, "message": {"text": f.text}, "locations": [place]})
    described = [
        {
            "id": id_,
            "shortDescription": {"text": rule["means"]},
            "help": {"text": f"{rule['means']} {rule['advice']}"},
            "helpUri": f"{PAGE}#{id_}",
        }
        for id_, rule in rules().items()
    ]
    run = {"tool": {"driver": {"name": "modelhooks", "rules": described}}, "results": results}
    document = {"version": "2.1.0", "$schema": "https://json.schemastore.org/sarif-2.1.0.json", "runs": [run]}
    return printing.as_json(document)


def as_junit(findings: Sequence[Finding], lines: Lines) -> str:
    """One test per file: errors fail it, warnings are its output."""
    from html import escape

    cases = []
    for file in dict.fromkeys([*lines, *(f.file for f in findings)]):
        selected = [f for f in findings if f.file == file]
        failures = [
            f'<failure type="{escape(f.id)}" message="{escape(f.text)}">{escape(str(f))}</failure>'
            for f in selected
            if f.level == "error"
        ]
        warned = "".join(f"{f}\n" for f in selected if f.level == "warning")
        outputs = [f"<system-out>{escape(warned)}</system-out>"] if warned else []
        head = f'<testcase classname="modelhooks" name="{escape(escaped(file))}">'
        cases.append(f"{head}{''.join([*failures, *outputs])}</testcase>")
    failed = len({f.file for f in findings if f.level == "error"})
    head = f'<testsuite name="modelhooks validate" tests="{len(cases)}" failures="{failed}">'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}{"".join(cases)}</testsuite>\n'


PRINTERS: dict[str, Callable[[Sequence[Finding], Lines], str]] = {
    "text": as_text,
    "sarif": as_sarif,
    "github": as_github,
    "junit": as_junit,
}
