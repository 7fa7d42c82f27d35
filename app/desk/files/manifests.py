"""Read manifests as kubectl does, with the place of every value, so that a finding has ``file:line:column``."""

import base64
import binascii
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from typing import Any

import yaml

from app.desk.files import fixes, printing, scalars, yamlproblems
from app.desk.files.findings import MUTING, Finding, ids_in
from app.desk.files.fixes import Entry, Fix
from app.errors import CommandError
from app.kube import field, origin
from app.kube.base import Json
from app.kube.merge import find as value_at
from app.kube.reading.boundedyaml import LOADER, TOO_DEEP, TOO_MANY, ExcessError, check_bounds
from app.kube.regex import regex
from app.limits import MAX_DOCUMENT_DEPTH, MAX_DOCUMENT_VALUES

NOT_AN_OBJECT = "other document"
_MANIFEST = regex(r"""^(?:["'{]|[^\S\n])*+(apiVersion|kind|metadata)["']?\s*:""", re.MULTILINE | re.IGNORECASE)
_CONTAINERS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
_PAIRS = regex(r"\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|\\.", re.IGNORECASE | re.DOTALL)
"""Two escapes of JSON that are one character (such as Python's json module writes), or any other escape."""


class _KubectlLoader(LOADER):  # type: ignore[misc]  # chosen when it is imported
    """Takes a plain scalar for what kubectl takes it for."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode and implicit[0]:
            return scalars.TAG + scalars.resolve(value)[0]
        tag: str = super().resolve(kind, value, implicit)
        return tag


class ManifestError(CommandError):
    """A file or document that cannot be read as manifests; the message has the place and the reason."""

    def __init__(
        self, problem: str, file: str = "", line: int = 1, column: int = 1, corrections: tuple[Fix, ...] = ()
    ) -> None:
        super().__init__(printing.escaped(f"{file}:{line}:{column}: {problem}" if file else problem))
        self.problem = problem
        self.place = (file, line, column)
        self._corrections = corrections

    def finding(self, file: str) -> Finding:
        return Finding(file, *self.place[1:], "error", "", self.problem, "yaml", fixes=self._corrections)


class NotAnObject(ManifestError):
    """Readable, and no object of Kubernetes, such as a list."""


class NotYaml(ManifestError):
    """A syntax error."""


@dataclass(frozen=True, eq=False)
class Manifest:
    """One object of a file, unlike any other. ``node`` is its YAML, for :meth:`position`."""

    file: str
    document: Json
    node: yaml.Node
    lines: Sequence[str] = ()
    """Those of the file, in which comments silence findings."""

    @property
    def kind(self) -> str:
        return str(self.document.get("kind", ""))

    @property
    def api_version(self) -> str:
        return str(self.document.get("apiVersion", ""))

    @property
    def name(self) -> str:
        metadata = self.document.get("metadata")
        return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""

    @property
    def looks_complete(self) -> bool:
        """Report whether this is intended as an object: it has a type, or at least metadata and a spec."""
        return bool(self.kind or self.api_version) or {"metadata", "spec"} <= self.document.keys()

    @property
    def ignored(self) -> tuple[str, ...]:
        """Return the ids of findings that the object's annotation silences."""
        text = value_at(self.document, ("metadata", "annotations", MUTING))
        return tuple(ids_in(text)) if isinstance(text, str) else ()

    def position(self, path: field.Path) -> tuple[int, int]:
        """Return line and column, from 1, of the value at ``path``, or of the nearest one above it."""
        key, value = self._entries(path)[-1]
        mark = (key or value).start_mark
        return mark.line + 1, mark.column + 1

    def finding(self, level: str, path: field.Path, message: str, id_: str) -> Finding:
        """Return a finding about the value at ``path``; ``message`` may be a :class:`~app.kube.field.Hint`."""
        line, column = self.position(path)
        parent, entry = ((None, self.node), *self._entries(path))[-2:]
        message = _as_written(message, entry[1]) if id_ == "wrong-type" else message
        suggested = field.suggested(message)
        if id_ == "unknown-field":
            corrections = tuple(fixes.of_key(self.file, entry, parent[1], path, suggested))
        else:
            corrections = tuple(fixes.of_value(self.file, entry, path, suggested))
        return Finding(self.file, line, column, level, str(path), str(message), id_, self.ignored, entry, corrections)

    def _entries(self, path: field.Path) -> list[Entry]:
        """Return the entries on the way to a path, as far as there are any."""
        entries: list[Entry] = [(None, self.node)]
        for segment in path.segments:
            below = _entry(entries[-1][1], segment)
            if below is None:
                break
            entries.append(below)
        return entries


def _as_written(message: str, node: yaml.Node) -> str:
    """Suggest a number or a boolean in quotes as the file has it: YAML reads the version 0.20 as 0.2, and y as true."""
    is_read = isinstance(node, yaml.ScalarNode) and node.tag.endswith((":int", ":float", ":bool"))
    for read in field.suggested(message) if is_read else ():
        if read[:1] == read[-1:] == '"':
            return field.Hint(message.replace(read, written := f'"{node.value}"'), written)
    return message


def _entry(node: yaml.Node, segment: str | int) -> Entry | None:
    if isinstance(node, yaml.MappingNode):
        name = str(segment)
        return next(((key, value) for key, value in node.value if _key(key) == name), None)
    if isinstance(node, yaml.SequenceNode):
        for position, item in enumerate(node.value):
            fields = item.value if isinstance(item, yaml.MappingNode) else ()
            if segment == position or any(key.value in origin.KEYS and value.value == segment for key, value in fields):
                return None, item
    return None


@dataclass
class ManifestFiles:
    """The contents of files: objects, findings about the files, and counts of skipped documents and files."""

    manifests: list[Manifest] = dataclass_field(default_factory=list)
    findings: list[Finding] = dataclass_field(default_factory=list)
    lines: dict[str, list[str]] = dataclass_field(default_factory=dict)
    passed_over: Counter[str] = dataclass_field(default_factory=Counter)
    others: dict[str, None] = dataclass_field(default_factory=dict)
    """The files with documents that are not manifests, in order."""

    def add(self, text: str, file: str, *, whole: bool = False, named: bool = False) -> None:
        """Add the objects of a file's text, and pass over what is not a manifest.

        ``whole``: every document is meant as an object, such as in an editor, and what is not one is a finding.
        ``named``: the user named the file, so a syntax error is a finding even if the content is not like a manifest.
        """
        lines = text.splitlines()
        if not (whole or looks_like_manifest(text) or (named and _is_broken(text, file))):
            self.pass_over(file, NOT_AN_OBJECT if lines else "empty file")
            return
        self.lines[file] = lines
        for document in _documents(text, file):
            if isinstance(document, Manifest) and (whole or document.looks_complete):
                self.manifests.append(replace(document, lines=lines))
            elif isinstance(document, ManifestError) and (whole or not isinstance(document, NotAnObject)):
                self.findings.append(document.finding(file))
            else:
                self.pass_over(file, NOT_AN_OBJECT)

    def pass_over(self, file: str, reason: str) -> None:
        self.passed_over[reason] += 1
        if reason == NOT_AN_OBJECT:
            self.others[file] = None


def looks_like_manifest(text: str) -> bool:
    """Report whether a line begins with a field that every Kubernetes object has."""
    return _MANIFEST.search(text) is not None


def parse(text: str, file: str) -> list[Manifest]:
    """Return the objects of a YAML (or JSON) document; the items of a ``List`` count as separate objects.

    Raises :class:`ManifestError` for the first error.
    """
    manifests = []
    for document in _documents(text, file):
        if isinstance(document, ManifestError):
            raise document
        manifests.append(document)
    return manifests


def values(text: str, file: str) -> list[object]:
    """Return each document of a YAML text as JSON. Raise :class:`ManifestError` for the first that is not."""
    return [_Builder(file).value(node) for node in _compose(text, file)]


def _documents(text: str, file: str) -> Iterator[Manifest | ManifestError]:
    """Return every object of a YAML stream, and an error for each document that cannot be read."""
    try:
        nodes = _compose(text, file)
    except ManifestError:
        yield from _one_by_one(text, file)
        return
    for node in nodes:
        yield from _checked(node, file)


def _values_of_json(text: str) -> list[str]:
    """Return each JSON value as text, below as many blank lines as precede it; an empty list if it is not JSON."""
    if not text.lstrip().startswith("{"):
        return []
    decoder, parts, end = json.JSONDecoder(), [], 0
    try:
        while (start := end + len(text[end:]) - len(text[end:].lstrip())) < len(text):
            end = decoder.raw_decode(text, start)[1]
            before = text[:start]
            column = start - (before.rfind("\n") + 1)
            parts.append("\n" * before.count("\n") + " " * column + _PAIRS.sub(_one_character, text[start:end]))
    except (ValueError, RecursionError):
        return []
    return parts


def _one_character(match: re.Match[str]) -> str:
    """Return an escape of YAML for two of JSON that are one character; other escapes as they are."""
    if match[1] is None:
        return match[0]
    return f"\\U{0x10000 + ((int(match[1], 16) - 0xD800) << 10) + int(match[2], 16) - 0xDC00:08x}"


def _compose(text: str, file: str) -> list[yaml.Node]:
    """Parse the documents of a YAML stream.

    Raise :class:`NotYaml` for a syntax error, and :class:`ManifestError` for a document that is too deep or too large.
    """
    try:
        return [node for part in _values_of_json(text) or [text] for node in _nodes(part)]
    except ExcessError as error:
        raise _wrong(error.event, file, error.reason) from None
    except yaml.YAMLError as error:
        line, column, message, corrections = yamlproblems.explain(error, file, text.splitlines())
        raise NotYaml(message, file, line, column, corrections) from None


def _nodes(text: str) -> Iterator[yaml.Node]:
    check_bounds(text)
    yield from yaml.compose_all(text, Loader=_KubectlLoader)


def _is_broken(text: str, file: str) -> bool:
    try:
        _compose(text, file)
    except ManifestError as error:
        return isinstance(error, NotYaml)
    return False


def _one_by_one(text: str, file: str) -> Iterator[Manifest | ManifestError]:
    """Parse each document separately, so that a broken one does not hide the others.

    Lines before a document are blank, so that line numbers are those of the file.
    """
    lines = text.splitlines()
    marks = [number for number, line in enumerate(lines) if line[:4].rstrip() == "---"]
    starts = marks if marks[:1] == [0] else [0, *marks]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        try:
            nodes = _compose("\n" * start + "\n".join(lines[start:end]) + "\n", file)
        except ManifestError as error:
            yield error
        else:
            for node in nodes:
                yield from _checked(node, file)


def _checked(node: yaml.Node | None, file: str) -> Iterator[Manifest | ManifestError]:
    if node is None or (isinstance(node, yaml.ScalarNode) and node.value in ("", "~", "null")):
        return
    try:
        yield from _objects(node, file)
    except ManifestError as error:
        yield error


def _objects(node: yaml.Node, file: str) -> Iterator[Manifest]:
    document = _Builder(file).value(node)
    if not isinstance(document, dict):
        problem = "not a Kubernetes object, which begins with apiVersion and kind"
        raise NotAnObject(problem, file, node.start_mark.line + 1, node.start_mark.column + 1)
    items = document.get("items")
    if str(document.get("kind", "")).endswith("List") and isinstance(items, list):
        entry = _entry(node, "items")
        nodes = entry[1].value if entry is not None else [node] * len(items)  # they came by a merge key
        for item, item_node in zip(items, nodes, strict=True):
            if isinstance(item, dict):
                yield Manifest(file, _typed(item, item_node, file), item_node)
    else:
        yield Manifest(file, _typed(document, node, file), node)


def _typed(document: Json, node: yaml.Node, file: str) -> Json:
    """Return the object if its type can be read; without one, no rule applies."""
    for key in ("apiVersion", "kind"):
        if not isinstance(document.get(key, ""), str):
            raise _wrong(node, file, f"{key} must be a string")
    return document


def _wrong(node: yaml.Node | yaml.Event, file: str, problem: str) -> ManifestError:
    mark = node.start_mark
    assert mark is not None, "the parser marks every node and event"
    return ManifestError(problem, file, mark.line + 1, mark.column + 1)


class _Builder:
    """JSON from YAML nodes, by the rules of the JSON schema: no dates, no sets, no language-specific objects."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._values = 0

    def value(self, node: yaml.Node, depth: int = 0) -> object:
        """Return the decoded value. ``depth`` is the number of maps and lists around it."""
        self._values += 1
        if depth > MAX_DOCUMENT_DEPTH:
            raise _wrong(node, self._file, TOO_DEEP)
        if self._values > MAX_DOCUMENT_VALUES:
            raise _wrong(node, self._file, TOO_MANY)
        if not isinstance(node, yaml.ScalarNode) and node.tag not in _CONTAINERS:
            raise _wrong(node, self._file, f"unsupported tag {node.tag}")
        if isinstance(node, yaml.MappingNode):
            return self._map(node, depth + 1)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, depth + 1) for item in node.value]
        assert isinstance(node, yaml.ScalarNode)
        return _scalar(node, self._file)

    def _map(self, node: yaml.MappingNode, depth: int) -> Json:
        entries: Json = {}
        written: set[str] = set()
        for key, value in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                parts = value.value[::-1] if isinstance(value, yaml.SequenceNode) else [value]
                for inner in (self.value(part, depth) for part in parts):
                    entries |= inner if isinstance(inner, dict) else {}
                continue
            if not isinstance(key, yaml.ScalarNode):
                in_braces = isinstance(key, yaml.MappingNode) and key.flow_style
                raise _wrong(key, self._file, yamlproblems.UNRENDERED if in_braces else "a field name must be a string")
            name = _key(key)
            if name is None:
                raise _wrong(key, self._file, "a field name must be a string; quote it")
            if name in written:
                remedy = (
                    'begin another object with "---"'
                    if name in ("apiVersion", "kind") and depth == 1
                    else "keep one of them"
                )
                problem = f"duplicate key {field.go_quote(name)}: it is set above; {remedy}"
                raise _wrong(key, self._file, problem)
            written.add(name)
            entries[name] = self.value(value, depth)
        return entries


def _key(node: yaml.Node) -> str | None:
    """Return the field name of a key; None for one that cannot be a name."""
    text = str(node.value)
    return text if node.tag == f"{scalars.TAG}str" else scalars.key(text)


def _scalar(node: yaml.ScalarNode, file: str) -> object:
    """Return the JSON of a scalar; infinity has none."""
    tag, text = node.tag.removeprefix(scalars.TAG), str(node.value)
    if tag in ("str", "timestamp", "value", "merge"):
        return text
    if tag == "binary":
        return _decoded(node, file)
    if tag not in ("null", "bool", "int", "float"):
        raise _wrong(node, file, f"unsupported tag {node.tag}")
    read, value = scalars.resolve(text)
    if read != tag and (tag, read) != ("float", "int"):
        raise _wrong(node, file, f"{text} is not a value of {node.tag}")
    if isinstance(value, float) and not math.isfinite(value):
        raise _wrong(node, file, f"{text} is not a number that JSON has")
    return value


def _decoded(node: yaml.ScalarNode, file: str) -> str:
    try:
        return base64.b64decode(str(node.value)).decode(errors="replace")
    except binascii.Error:
        raise _wrong(node, file, "not valid base64") from None
