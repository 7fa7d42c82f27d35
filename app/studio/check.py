"""The findings of ``modelhooks validate`` about the editor's documents, with ranges and corrections."""

from collections.abc import Sequence

import msgspec
import yaml

from app.desk.check import all_findings
from app.desk.cluster import offline
from app.desk.files import findings
from app.desk.files.folders import nothing_served
from app.kube.field import Path
from app.studio.documents import read, world
from app.studio.models import Correction, Level, Manifests, PlacedFinding


def check(request: Manifests) -> list[PlacedFinding]:
    """Every finding, in the order of the documents."""
    reading = read(request.documents)
    reported = all_findings(reading, [], world(request))
    if reading.manifests and not reported and not any(map(offline.served, reading.manifests)):
        reported = [reading.manifests[0].finding("warning", Path("kind"), nothing_served(reading), "unknown-kind")]
    return [_finding(finding, reading.lines.get(finding.file, ())) for finding in reported]


def assumptions(request: Manifests) -> list[str]:
    """Return what the commands print beside findings: what is taken as given, and what is not among the files."""
    return list(offline.assumptions(read(request.documents).manifests, offline.World(request.namespace)))


def _finding(finding: findings.Finding, lines: Sequence[str]) -> PlacedFinding:
    end_line, end_column = _end(finding, lines)
    level: Level = "error" if finding.level == "error" else "advice" if finding.id == "advice" else "warning"
    return PlacedFinding(
        document=finding.file,
        line=finding.line,
        column=finding.column,
        end_line=end_line,
        end_column=end_column,
        level=level,
        id=finding.id,
        help=finding.help,
        path=finding.path,
        message=finding.message,
        fixes=[Correction.model_validate(msgspec.to_builtins(fix)) for fix in finding.fixes],
    )


def _end(finding: findings.Finding, lines: Sequence[str]) -> tuple[int, int]:
    """Return the end of a field with its value if that is short, else of the field's name, else of the line."""
    if finding.entry is not None:
        key, value = finding.entry
        for node in (value, key):
            if node is not None and node.end_mark.line + 1 == finding.line and isinstance(node, yaml.ScalarNode):
                return finding.line, node.end_mark.column + 1
    line = lines[finding.line - 1] if finding.line <= len(lines) else ""
    return finding.line, max(len(line.rstrip()), finding.column) + 1
