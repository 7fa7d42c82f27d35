"""Reading manifests with the place of every value, so that a finding can say ``file:line:column``."""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from pathlib import Path
from typing import Any

import yaml

from app.cli.files import LOADER, below
from app.cli.findings import MUTING, Finding, ids_in
from app.cli.yamlproblems import explain
from app.kube import field

MAX_VALUES = 500_000
"""More values than this in one document come from aliases that refer to each other."""


MAX_DEPTH = 200
"""Nesting within what the JSON library writes; rules of ours that are stricter name the field."""


class ManifestError(Exception):
    """A file or document that cannot be read as manifests; the text says where and why."""

    def __init__(self, problem: str, file: str = "", line: int = 1, column: int = 1) -> None:
        super().__init__(f"{file}:{line}:{column}: {problem}" if file else problem)
        self.problem = problem
        self.place = (file, line, column)

    def finding(self, file: str) -> Finding:
        """The error as what there is to say of ``file``."""
        return Finding(file, *self.place[1:], "error", "", self.problem, "yaml")


class NotAnObject(ManifestError):
    """Readable, and no object of Kubernetes, such as a list."""


@dataclass(frozen=True, eq=False)
class Manifest:
    """One object of a file, unlike any other. ``node`` is its YAML, for :meth:`position`."""

    file: str
    document: dict[str, Any]
    node: yaml.Node

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
    def ignored(self) -> tuple[str, ...]:
        """The ids of findings that the object's annotation takes back."""
        metadata = self.document.get("metadata")
        annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
        text = annotations.get(MUTING) if isinstance(annotations, dict) else None
        return tuple(ids_in(text)) if isinstance(text, str) else ()

    def position(self, path: field.Path) -> tuple[int, int]:
        """Line and column, from 1, of the value at ``path``, or of the nearest one above it."""
        node: yaml.Node = self.node
        place = node
        for segment in path.segments:
            entry = _entry(node, segment)
            if entry is None:
                break
            place, node = entry
        return place.start_mark.line + 1, place.start_mark.column + 1


def _entry(node: yaml.Node, segment: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """The key (or item) to point at, and the value to descend into."""
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == str(segment)), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(segment, int) and segment < len(node.value):
        return node.value[segment], node.value[segment]
    return None


@dataclass
class Reading:
    """What files hold: objects, what is wrong with the files, and how many documents or files were passed over."""

    manifests: list[Manifest] = dataclass_field(default_factory=list)
    findings: list[Finding] = dataclass_field(default_factory=list)
    lines: dict[str, list[str]] = dataclass_field(default_factory=dict)
    passed_over: Counter[str] = dataclass_field(default_factory=Counter)

    def add(self, text: str, file: str, *, named: bool) -> None:
        """The objects of one text. In a file that nobody named, what is no manifest is passed over."""
        self.lines[file] = lines = text.splitlines()
        documents = _documents(text, file)
        if not named and not _LOOKS_LIKE_ONE.search(text):
            self.passed_over["not Kubernetes objects"] += 1
            del self.lines[file]
            return
        for one in documents:
            if isinstance(one, NotAnObject) and not named:
                self.passed_over["not Kubernetes objects"] += 1
            elif isinstance(one, ManifestError):
                self.findings.append(one.finding(file))
            elif one.kind or one.api_version or (named and Path(file).stem.lower() != "kustomization"):
                self.manifests.append(one)
            else:
                self.passed_over["not Kubernetes objects"] += 1
        if not lines:
            self.passed_over["empty files"] += 1


_LOOKS_LIKE_ONE = re.compile(r"""^["'{\s]*(apiVersion|kind)["']?\s*:""", re.MULTILINE)
"""Whoever writes one of these at the beginning of a line means an object of Kubernetes."""


def collect(arguments: Iterable[str], exclude: Sequence[str] = ()) -> Reading:
    """Everything in files, directories (recursively) and ``-`` (standard input). A bad file is a finding.

    Raises :class:`ManifestError` for an argument that does not exist.
    """
    reading = Reading()
    for argument in arguments:
        if argument == "-":
            _load(reading, sys.stdin.buffer.read(), "<stdin>", named=True)
            continue
        path = Path(argument)
        if not path.exists():
            raise ManifestError("no such file or directory", argument)
        named = not path.is_dir()
        for file in [path] if named else below(path, exclude, reading.passed_over):
            try:
                content = file.read_bytes()
            except OSError as error:
                reading.findings.append(ManifestError(error.strerror or "cannot be read").finding(str(file)))
                continue
            _load(reading, content, str(file), named=named)
    return reading


def read(arguments: Iterable[str]) -> list[Manifest]:
    """As :func:`collect`, where nothing may be wrong: raises :class:`ManifestError` for the first bad file."""
    reading = collect(arguments)
    if reading.findings:
        first = reading.findings[0]
        raise ManifestError(first.message, first.file, first.line, first.column)
    return reading.manifests


_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def _load(reading: Reading, content: bytes, file: str, *, named: bool) -> None:
    if content.startswith(_UTF16):
        problem = "is UTF-16; save it as UTF-8 (PowerShell: Out-File -Encoding utf8)"
        reading.findings.append(ManifestError(problem).finding(file))
        return
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if named or content[: error.start].count(b"apiVersion"):
            line = content[: error.start].count(b"\n") + 1
            problem = f"is not UTF-8: byte 0x{content[error.start]:02x}; save the file as UTF-8"
            reading.findings.append(ManifestError(problem, line=line).finding(file))
        else:
            reading.passed_over["not Kubernetes objects"] += 1
        return
    reading.add(text, file, named=named)


def parse(text: str, file: str) -> list[Manifest]:
    """The objects of one YAML (or JSON) text; the items of a ``List`` count as objects of their own.

    Raises :class:`ManifestError` for the first thing that is wrong.
    """
    found = []
    for one in _documents(text, file):
        if isinstance(one, ManifestError):
            raise one
        found.append(one)
    return found


def _documents(text: str, file: str) -> Iterator[Manifest | ManifestError]:
    """Every object of a text, and an error for each document that cannot be read."""
    try:
        nodes = list(yaml.compose_all(text, Loader=LOADER))
    except (yaml.YAMLError, RecursionError):
        yield from _one_by_one(text, file)
        return
    for node in nodes:
        yield from _checked(node, file)


def _one_by_one(text: str, file: str) -> Iterator[Manifest | ManifestError]:
    """The documents of a text each on its own, so that a broken one does not hide the others.

    Lines before a document are blank, which keeps every place where it is in the file.
    """
    lines = text.splitlines()
    marks = [number for number, line in enumerate(lines) if line[:4].rstrip() == "---"]
    starts = marks if marks[:1] == [0] else [0, *marks]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        try:
            node = yaml.compose("\n" * start + "\n".join(lines[start:end]) + "\n", Loader=LOADER)
        except yaml.YAMLError as error:
            line, column, message = explain(error, lines[:end])
            yield ManifestError(message, file, line, column)
        except RecursionError:
            yield ManifestError("nested too deeply", file, start + 1)
        else:
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


def _typed(document: dict[str, Any], node: yaml.Node, file: str) -> dict[str, Any]:
    """The object, if its type is readable: without one it is nobody's to judge."""
    for key in ("apiVersion", "kind"):
        if not isinstance(document.get(key, ""), str):
            raise _wrong(node, file, f"{key} must be a string")
    return document


_CONTAINERS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


def _wrong(node: yaml.Node, file: str, problem: str) -> ManifestError:
    return ManifestError(problem, file, node.start_mark.line + 1, node.start_mark.column + 1)


class _Builder:
    """JSON from YAML nodes, by the rules of the JSON schema: no dates, no sets, no language-specific objects."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._values = 0

    def value(self, node: yaml.Node, depth: int = 0) -> Any:
        """The decoded value. ``depth`` is how many maps and lists are around it."""
        self._values += 1
        if depth > MAX_DEPTH:
            raise _wrong(node, self._file, "nested too deeply")
        if self._values > MAX_VALUES:
            raise _wrong(node, self._file, "too many values (aliases that multiply)")
        if not isinstance(node, yaml.ScalarNode) and node.tag not in _CONTAINERS:
            raise _wrong(node, self._file, f"unsupported tag {node.tag}")
        if isinstance(node, yaml.MappingNode):
            return self._map(node, depth + 1)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, depth + 1) for item in node.value]
        assert isinstance(node, yaml.ScalarNode)
        return _scalar(node, self._file)

    def _map(self, node: yaml.MappingNode, depth: int) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for key, value in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                parts = value.value if isinstance(value, yaml.SequenceNode) else [value]
                for part in parts:
                    inner = self.value(part, depth)
                    merged = {**(inner if isinstance(inner, dict) else {}), **merged}
        own: dict[str, Any] = {}
        for key, value in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                continue
            if not isinstance(key, yaml.ScalarNode):
                raise _wrong(key, self._file, "no name of a field; {{ }} is a template that nothing has rendered yet")
            name = str(key.value)
            if name in own:
                problem = f"duplicate key {field.go_quote(name)}: it stands above already; keep one of them"
                raise _wrong(key, self._file, problem)
            own[name] = self.value(value, depth)
        return {**merged, **own}


def _scalar(node: yaml.ScalarNode, file: str) -> Any:
    tag = node.tag.removeprefix("tag:yaml.org,2002:")
    text: str = node.value
    if tag == "null":
        return None
    if tag == "bool":
        return text.lower() in ("true", "yes", "on")
    if tag in ("int", "float"):
        return _number(node, tag, file)
    if tag in ("str", "timestamp", "binary", "value"):
        return text
    raise _wrong(node, file, f"unsupported tag {node.tag}")


def _number(node: yaml.ScalarNode, tag: str, file: str) -> int | float | str:
    """A number as JSON has it: integers beyond 64 bits lose digits, and there is no infinity."""
    constructor = yaml.constructor.SafeConstructor()
    try:
        value = constructor.construct_yaml_int(node) if tag == "int" else constructor.construct_yaml_float(node)
        value = float(value) if tag == "float" or not -(2**63) <= value < 2**64 else int(value)
    except (ValueError, OverflowError):
        return str(node.value)
    if isinstance(value, float) and not math.isfinite(value):
        raise _wrong(node, file, f"{node.value} is not a number that JSON has")
    return value
