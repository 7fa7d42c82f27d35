"""The findings of ``modelhooks validate`` about the editor's documents, with ranges and corrections."""

from __future__ import annotations

from collections.abc import Sequence

import yaml

from app.cli import findings as found
from app.cli.offline import served
from app.cli.validate import all_findings, nothing_served
from app.kube.field import Path
from app.studio.documents import Entry, entries, read, settings
from app.studio.fixes import fixes
from app.studio.models import Finding, Level, Manifests


def check(asked: Manifests) -> list[Finding]:
    """Every finding, in the order of the documents."""
    reading = read(asked.documents)
    places: dict[str, dict[tuple[int, int], Entry]] = {}
    for manifest in reading.manifests:
        places.setdefault(manifest.file, {}).update(entries(manifest))
    findings = all_findings(reading, [], asked.namespace, settings=settings(asked.settings))
    if reading.manifests and not findings and not any(map(served, reading.manifests)):
        first = reading.manifests[0]
        place = first.position(Path("kind"))
        findings = [found.Finding(first.file, *place, "warning", "kind", nothing_served(reading), "unknown-kind")]
    return [
        _finding(one, places.get(one.file, {}).get((one.line, one.column)), reading.lines.get(one.file, ()))
        for one in findings
    ]


def _finding(one: found.Finding, entry: Entry | None, lines: Sequence[str]) -> Finding:
    end_line, end_column = _end(one, entry, lines)
    level: Level = "error" if one.level == "error" else "advice" if one.id == "advice" else "warning"
    return Finding(
        document=one.file,
        line=one.line,
        column=one.column,
        end_line=end_line,
        end_column=end_column,
        level=level,
        id=one.id,
        path=one.path,
        message=one.message,
        fixes=fixes(one, entry, lines),
    )


def _end(one: found.Finding, entry: Entry | None, lines: Sequence[str]) -> tuple[int, int]:
    """The end of a field with its value where that is short, else that of the field's name, else of the line."""
    if entry is not None:
        key, value = entry
        for node in (value, key):
            if node is not None and node.end_mark.line + 1 == one.line and isinstance(node, yaml.ScalarNode):
                return one.line, node.end_mark.column + 1
    line = lines[one.line - 1] if one.line <= len(lines) else ""
    return one.line, max(len(line.rstrip()), one.column) + 1
