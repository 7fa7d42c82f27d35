"""Corrections that can be applied as they are; where a finding leaves a choice, there is one fix for each."""

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import TypeGuard

import msgspec
import yaml

from app.kube.field import Path

_QUOTES = ('"', "'")
Entry = tuple[yaml.Node | None, yaml.Node]
"""A field's key and its value; an item of a list has no key."""


class Edit(msgspec.Struct, frozen=True):
    """Put ``text`` in place of a range of a document. Lines and columns count from 1; the end is exclusive."""

    document: str
    line: int
    column: int
    end_line: int
    end_column: int
    text: str


class Fix(msgspec.Struct, frozen=True):
    """A correction; its edits do not overlap and are applied together."""

    title: str
    edits: tuple[Edit, ...]


def applied(text: str, edits: Iterable[Edit]) -> str:
    """Return a document after edits; of two that overlap, only the first is made."""
    starts = [0, *accumulate(map(len, text.splitlines(keepends=True)))]
    ranges = sorted(
        {(starts[e.line - 1] + e.column - 1, starts[e.end_line - 1] + e.end_column - 1, e.text) for e in edits}
    )
    parts, position = [], 0
    for start, end, new in ranges:
        if start >= position:
            parts += [text[position:start], new]
            position = end
    return "".join([*parts, text[position:]])


def of_value(document: str, entry: Entry, path: Path, suggested: Iterable[str]) -> Iterator[Fix]:
    """Yield a fix for each value that is suggested for a field; ``entry`` may be of what is around it."""
    value = entry[1]
    if _is_alone(value):
        for text in suggested:
            if text and text.isprintable():  # a name of the user's, which may be anything
                yield _replacement(document, value, text, _quoted(text, value.style))


def of_key(document: str, entry: Entry, around: yaml.Node, path: Path, suggested: tuple[str, ...]) -> Iterator[Fix]:
    """Yield the field's right name in the map ``around``; ``limits.memory`` is one that has to stand a level deeper."""
    key, value = entry
    if key is None or len(suggested) != 1 or not _is_named(entry, path) or not _is_alone(key):
        return
    outer, _, inner = suggested[0].rpartition(".")
    if not outer:
        yield _replacement(document, key, inner, _quoted(inner, key.style))
    elif isinstance(value, yaml.ScalarNode) and outer.isalnum() and not _is_in_flow(around):
        indented = f"{outer}:\n{' ' * (key.start_mark.column + 2)}{inner}"
        yield _replacement(document, key, suggested[0], indented)


def _is_alone(node: yaml.Node | None) -> TypeGuard[yaml.ScalarNode]:
    """Report whether a node is written as its value alone: without an anchor or a tag, and not as a block."""
    if not isinstance(node, yaml.ScalarNode) or not node.value:
        return False
    quotes, is_plain = 2 * (node.style in _QUOTES), not node.style
    start, end = node.start_mark, node.end_mark
    if start.line < end.line:
        return is_plain
    return bool((quotes or is_plain) and end.column - start.column == len(node.value) + quotes)


def _quoted(text: str, style: str | None) -> str:
    """Return a value in the quotes of the one before it; those of a number, a boolean and a list are left out."""
    value = yaml.safe_load(text)
    if style not in _QUOTES or not isinstance(value, str) or {style, "\\"} & set(value):
        return text
    return f"{style}{value}{style}"


def _is_in_flow(node: yaml.Node) -> bool:
    return isinstance(node, yaml.MappingNode) and bool(node.flow_style)


def _is_named(entry: Entry, path: Path) -> bool:
    return entry[0] is not None and path.segments[-1:] == (entry[0].value,)


def _replacement(document: str, node: yaml.Node, title: str, text: str) -> Fix:
    start, end = node.start_mark, node.end_mark
    edit = Edit(document, start.line + 1, start.column + 1, end.line + 1, end.column + 1, text)
    return Fix(f"Write {title}", (edit,))
