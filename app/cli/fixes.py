"""Corrections that can be applied as they are, read from the words of a finding.

The words are written for people, in few forms: ``did you mean "x"?``, ``write 2 without quotes``, ``write x: ["y"]``.
What a person would type upon them is what an edit does here; where the words leave a choice, there is one fix for each.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import yaml

from app.cli.findings import Entry, Finding


@dataclass(frozen=True, slots=True)
class Edit:
    """Put ``text`` in place of a range of a document. Lines and columns count from 1; the end is exclusive."""

    document: str
    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A correction; its edits do not overlap and are applied together."""

    title: str
    edits: tuple[Edit, ...]


_MEANT = re.compile(r'did you mean "([^"]+)"\?$')
_MEANT_BARE = re.compile(r"did you mean (\S+?)(?: or (\S+?))?\?$")
_IN_QUOTES = re.compile(r'write ("(?:[^"\\]|\\.)*") in quotes')
_BARE = re.compile(r"write (\S+) without quotes$")
_NUMBERS = re.compile(r"write ([0-9]+) or ([0-9]+)$")
_FIELD = re.compile(r"write ([A-Za-z][\w.-]*): (.+?)(?:, (?:without a list|the name alone))?$")
_NONE = re.compile(r"write \[\] for none$")
_VALUES = (_MEANT, _IN_QUOTES, _BARE, _MEANT_BARE, _NUMBERS)
"""Forms whose groups are the values to write."""
_ADDRESS = re.compile(r"; write ([^\s<>]*[:/][^\s<>]*)$")


def fixes(finding: Finding, lines: Sequence[str]) -> list[Fix]:
    """Return corrections for a finding; ``lines`` are its document's."""
    if finding.id == "yaml":
        return list(_of_text(finding, lines))
    if finding.entry is None:
        return []
    if finding.id == "unknown-field":
        return list(_of_key(finding, finding.entry))
    return [_replace(finding, finding.entry[1], text) for text in _texts(finding.message, finding.entry)]


def applied(text: str, edits: Iterable[Edit]) -> str:
    """Return a document after edits; of two that overlap, only the first is made."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    ranges = sorted(
        {(starts[e.line - 1] + e.column - 1, starts[e.end_line - 1] + e.end_column - 1, e.text) for e in edits}
    )
    parts, position = [], 0
    for start, end, new in ranges:
        if start >= position:
            parts += [text[position:start], new]
            position = end
    return "".join([*parts, text[position:]])


def _of_key(finding: Finding, entry: Entry) -> Iterator[Fix]:
    """The field's right name; ``limits.memory`` is one that has to stand a level deeper."""
    suggestion, key = _MEANT.search(finding.message), entry[0]
    if suggestion is None or key is None:
        return
    outer, _, inner = suggestion[1].rpartition(".")
    if not outer:
        yield _replace(finding, key, suggestion[1])
    elif isinstance(entry[1], yaml.ScalarNode) and "." not in outer:
        indented = f"{outer}:\n{' ' * (key.start_mark.column + 2)}{inner}"
        yield Fix(title=f"Write {suggestion[1]}", edits=(_edit(finding, key, indented),))


def _texts(message: str, entry: Entry) -> Iterator[str]:
    if not isinstance(entry[1], yaml.ScalarNode) and not (_FIELD.search(message) or _NONE.search(message)):
        return
    if match := next(filter(None, (form.search(message) for form in _VALUES)), None):
        yield from filter(None, match.groups())
    elif (match := _FIELD.search(message)) and entry[0] is not None and match[1] == entry[0].value:
        yield match[2]
    elif _NONE.search(message):
        yield "[]"
    elif match := _ADDRESS.search(message):
        yield match[1]


def _of_text(finding: Finding, lines: Sequence[str]) -> Iterator[Fix]:
    """Return corrections for a document that is not valid YAML: missing quotes, tabs."""
    line = lines[finding.line - 1] if finding.line <= len(lines) else ""
    key, colon, value = line.partition(": ")
    value = value.rstrip()
    if "quote that is not closed" in finding.message and (mark := value[:1]) in ("'", '"') and value:
        yield _line(finding, line, f"{line.rstrip()}{mark}", f"Close the quote: {value}{mark}")
    elif "in quotes" in finding.message and colon and value:
        quoted = "'" + value.strip().strip("'\"").replace("'", "''") + "'"
        yield _line(finding, line, f"{key}: {quoted}", f"Write {quoted}")
    elif finding.message.startswith("a tab"):
        yield _line(finding, line, line.replace("\t", "  "), "Write blanks for tabs")


def _line(finding: Finding, old: str, new: str, title: str) -> Fix:
    return Fix(title, (Edit(finding.file, finding.line, 1, finding.line, len(old) + 1, new),))


def _replace(finding: Finding, node: yaml.Node, text: str) -> Fix:
    return Fix(f"Write {text}", (_edit(finding, node, text),))


def _edit(finding: Finding, node: yaml.Node, text: str) -> Edit:
    start, end = node.start_mark, node.end_mark
    return Edit(finding.file, start.line + 1, start.column + 1, end.line + 1, end.column + 1, text)
