"""Reading manifests with the place of every value, so that a finding can say ``file:line:column``."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from app.kube import field

SUFFIXES = (".yaml", ".yml", ".json")
MAX_VALUES = 500_000
"""More values than this in one document come from aliases that refer to each other."""


MAX_DEPTH = 200
"""Nesting within what the JSON library writes; rules of ours that are stricter name the field."""


class ManifestError(Exception):
    """A file that cannot be read as manifests; the text says where and why."""


@dataclass(frozen=True)
class Manifest:
    """One object of a file. ``node`` is its YAML, for :meth:`position`."""

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
        return next(((key, value) for key, value in node.value if key.value == segment), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(segment, int) and segment < len(node.value):
        return node.value[segment], node.value[segment]
    return None


def read(arguments: Iterable[str]) -> list[Manifest]:
    """Every object in files, directories (recursively) and ``-`` (standard input). Raises :class:`ManifestError`."""
    found: list[Manifest] = []
    for argument in arguments:
        if argument == "-":
            found += parse(_decoded(sys.stdin.buffer.read(), "<stdin>"), "<stdin>")
            continue
        for file in _files(Path(argument)):
            try:
                content = file.read_bytes()
            except OSError as error:
                raise ManifestError(f"{file}: {error}") from None
            found += parse(_decoded(content, str(file)), str(file))
    return found


def _decoded(content: bytes, file: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ManifestError(f"{file}: {error}") from None


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())
    if not path.exists():
        raise ManifestError(f"{path}: no such file or directory")
    return [path]


def parse(text: str, file: str) -> list[Manifest]:
    """The objects of one YAML (or JSON) text; the items of a ``List`` count as objects of their own."""
    manifests: list[Manifest] = []
    try:
        for node in yaml.compose_all(text, Loader=_LOADER):
            if not (isinstance(node, yaml.ScalarNode) and node.value in ("", "~", "null")):
                manifests += _objects(node, file)
    except yaml.YAMLError as error:
        raise ManifestError(_yaml_problem(error, file)) from None
    except RecursionError:
        raise ManifestError(f"{file}: nested too deeply") from None
    return manifests


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _objects(node: yaml.Node, file: str) -> Iterator[Manifest]:
    document = _Builder(file).value(node)
    if not isinstance(document, dict):
        raise ManifestError(f"{file}:{node.start_mark.line + 1}:1: not a Kubernetes object")
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
            raise ManifestError(f"{_place(node, file)}: {key} must be a text")
    return document


_CONTAINERS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


def _place(node: yaml.Node, file: str) -> str:
    return f"{file}:{node.start_mark.line + 1}:{node.start_mark.column + 1}"


class _Builder:
    """JSON from YAML nodes, by the rules of the JSON schema: no dates, no sets, no language-specific objects."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._values = 0

    def value(self, node: yaml.Node, depth: int = 0) -> Any:
        """The decoded value. ``depth`` is how many maps and lists are around it."""
        self._values += 1
        if depth > MAX_DEPTH:
            raise ManifestError(f"{_place(node, self._file)}: nested too deeply")
        if self._values > MAX_VALUES:
            raise ManifestError(f"{self._file}: too many values (aliases that multiply)")
        if not isinstance(node, yaml.ScalarNode) and node.tag not in _CONTAINERS:
            raise ManifestError(f"{_place(node, self._file)}: unsupported tag {node.tag}")
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
            name = str(key.value)
            if name in own:
                raise ManifestError(f"{_place(key, self._file)}: duplicate key {field.go_quote(name)}")
            own[name] = self.value(value, depth)
        return {**merged, **own}


def _scalar(node: yaml.ScalarNode, file: str) -> Any:
    tag = node.tag.removeprefix("tag:yaml.org,2002:")
    text: str = node.value
    if tag == "null":
        return None
    if tag == "bool":
        return text.lower() in ("true", "yes", "on")
    where = _place(node, file)
    if tag in ("int", "float"):
        return _number(node, tag, where)
    if tag in ("str", "timestamp", "binary", "value"):
        return text
    raise ManifestError(f"{where}: unsupported tag {node.tag}")


def _number(node: yaml.ScalarNode, tag: str, where: str) -> int | float | str:
    """A number as JSON has it: integers beyond 64 bits lose digits, and there is no infinity."""
    constructor = yaml.constructor.SafeConstructor()
    try:
        value = constructor.construct_yaml_int(node) if tag == "int" else constructor.construct_yaml_float(node)
        value = float(value) if tag == "float" or not -(2**63) <= value < 2**64 else int(value)
    except (ValueError, OverflowError):
        return str(node.value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ManifestError(f"{where}: {node.value} is not a number that JSON has")
    return value


def _yaml_problem(error: yaml.YAMLError, file: str) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return f"{file}:{mark.line + 1}:{mark.column + 1}: {problem}" if mark else f"{file}: {problem}"
