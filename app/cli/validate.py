"""Check manifests against the schema and every rule, all findings at once.

Errors make the exit status 1. An unknown field is an error here, as it is for kubectl; warnings are fields without
effect and the like. Objects of other kinds are passed over.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec
import orjson

from app.admission.metadata import decode_metadata
from app.admission.protocol import ReviewedObject
from app.admission.review import judge
from app.cli.manifests import Manifest, ManifestError, read
from app.cli.offline import DEFAULT_NAMESPACE, holding, in_cluster, served
from app.families import KINDS, find
from app.hooks.kind import Kind
from app.kube import field
from app.kube.bounds import METADATA
from app.kube.names import is_dns1123_subdomain
from app.settings import Settings

OUTPUTS = ("text", "json", "sarif", "github")


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

    def __str__(self) -> str:
        path = f"{self.path}: " if self.path else ""
        return f"{self.file}:{self.line}:{self.column}: {self.level}: {path}{self.message}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="a file, a directory, or - for standard input")
    parser.add_argument("--output", choices=OUTPUTS, default="text", help="how to print the findings (default: text)")


def run(args: argparse.Namespace) -> int:
    """Print the findings; 1 when there is an error, 2 when a file cannot be read."""
    try:
        manifests = read(args.files)
    except ManifestError as error:
        print(f"modelhooks validate: {error}", file=sys.stderr)
        return 2
    settings = Settings()
    findings = [finding for manifest in manifests for finding in check(manifest, settings)]
    findings += check_together(manifests, settings)
    sys.stdout.write(_PRINTERS[args.output](findings))
    errors = sum(finding.level == "error" for finding in findings)
    checked = sum(find(m.api_version, m.kind) is not None for m in manifests)
    print(f"{checked} objects checked, {errors} errors, {len(findings) - errors} warnings", file=sys.stderr)
    return 1 if errors else 0


def check(manifest: Manifest, settings: Settings) -> list[Finding]:
    """The findings of one object; none for kinds that are not ours."""
    kind = find(manifest.api_version, manifest.kind)
    if kind is None:
        return _unserved(manifest)
    errors, warnings = findings_of(kind, manifest.document, settings)
    found = [_finding(manifest, "error", error.path, error.body) for error in errors]
    for text in warnings:
        level = "error" if text.startswith("unknown field") else "warning"
        path = _path_of(text)
        found.append(_finding(manifest, level, path, text))
    return found


def check_together(manifests: list[Manifest], settings: Settings) -> list[Finding]:
    """What objects say that does not fit together, as far as they are among the files."""
    manifests = [manifest for manifest in manifests if _fits_a_cluster(manifest)]
    judged = [(manifest, kind) for manifest in manifests if (kind := served(manifest)) and kind.across]
    if not judged:
        return []
    cluster, found = holding(manifests, DEFAULT_NAMESPACE, settings=settings), []
    for manifest, kind in judged:
        document = in_cluster(manifest, DEFAULT_NAMESPACE)
        try:
            request = kind.decoder.decode(cluster.request(kind, document))
        except msgspec.DecodeError:
            continue  # its metadata is of a wrong type, which is a finding already
        resource, errors = kind.decode(request.parent)
        if resource is not None and not errors and kind.across is not None:
            texts = kind.across(resource, request, settings)
            found += [_finding(manifest, "warning", _path_of(text), text) for text in texts]
    return found


def _fits_a_cluster(manifest: Manifest) -> bool:
    """Whether there is a name and no wrong type in its metadata: with one, it is a finding already."""
    try:
        in_cluster(manifest, DEFAULT_NAMESPACE)
    except ManifestError:
        return False
    return True


def findings_of(
    kind: Kind[Any, Any], document: dict[str, Any], settings: Settings
) -> tuple[list[field.Error], list[str]]:
    """Errors and warnings of one object, by the functions that answer admission."""
    metadata, errors = decode_metadata(orjson.dumps(document.get("metadata")))
    if metadata.name and not is_dns1123_subdomain(metadata.name):
        errors.append(field.invalid(METADATA.child("name"), metadata.name, _NAME))
    reviewed = ReviewedObject(spec=msgspec.Raw(orjson.dumps(document.get("spec"))))
    verdict = judge(kind, metadata, reviewed, None, settings)
    return [*errors, *verdict.errors], verdict.warnings


_NAME = "must be lower case letters, digits, '-' and '.', with a letter or digit at both ends, at most 253 characters"
"""What the API server asks of an object's name before it asks us."""


def _unserved(manifest: Manifest) -> list[Finding]:
    """A version of one of our kinds that we do not serve is a mistake; a foreign kind is none of ours."""
    group = manifest.api_version.partition("/")[0]
    served = [k.resource for k in KINDS if k.resource.group == group and k.resource.kind == manifest.kind]
    if not served:
        return []
    message = f"{manifest.kind} is served as {served[0].api_version} only"
    return [_finding(manifest, "error", field.Path("apiVersion"), message)]


def _finding(manifest: Manifest, level: str, path: field.Path, message: str) -> Finding:
    line, column = manifest.position(path)
    return Finding(manifest.file, line, column, level, str(path), message)


_SEGMENT = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")
_WARNED_PATH = re.compile(r'^(?:unknown field ")?((?:spec|metadata)(?:\.[A-Za-z0-9]+|\[[^\]]*\])*)')


def _path_of(warning: str) -> field.Path:
    """The path a warning begins with: warnings travel as plain text."""
    match = _WARNED_PATH.match(warning)
    path = field.Path()
    for name, key in _SEGMENT.findall(match[1]) if match else ():
        path = path.child(name) if name else path.index(int(key)) if key.isdigit() else path.key(key)
    return path


def _text(findings: Iterable[Finding]) -> str:
    return "".join(f"{finding}\n" for finding in findings)


def _json(findings: Iterable[Finding]) -> str:
    return orjson.dumps([vars(finding) for finding in findings], option=orjson.OPT_INDENT_2).decode() + "\n"


def _github(findings: Iterable[Finding]) -> str:
    lines = [f"::{f.level} file={f.file},line={f.line},col={f.column}::{_escape(_described(f))}" for f in findings]
    return "".join(f"{line}\n" for line in lines)


def _described(finding: Finding) -> str:
    return f"{finding.path}: {finding.message}" if finding.path else finding.message


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _sarif(findings: Iterable[Finding]) -> str:
    results = [
        {
            "ruleId": f.level,
            "level": f.level,
            "message": {"text": _described(f)},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": f.file},
                        "region": {"startLine": f.line, "startColumn": f.column},
                    }
                }
            ],
        }
        for f in findings
    ]
    tool = {"driver": {"name": "modelhooks", "rules": [{"id": "error"}, {"id": "warning"}]}}
    document = {"version": "2.1.0", "runs": [{"tool": tool, "results": results}]}
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n"


_PRINTERS = {"text": _text, "json": _json, "sarif": _sarif, "github": _github}
