"""YAML's own complaints in the words of people, with the line they are about."""

import re
from collections.abc import Sequence

import yaml

_CONFLICT = re.compile(r"(<{7}|={7}|>{7})( |$)")
MAX_LINE = 80


def explain(error: yaml.YAMLError, lines: Sequence[str]) -> tuple[int, int, str]:
    """Line and column, from 1, and what is wrong there."""
    for number, text in enumerate(lines, 1):
        if _CONFLICT.match(text) and text.startswith("<"):
            return (
                number,
                1,
                f"a merge conflict that is not resolved: {_shown(text)}; keep one side, remove the marks",
            )
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return 1, 1, "has a character that YAML does not allow; save the file as UTF-8 text"
    context = getattr(error, "context_mark", None)
    problem = str(getattr(error, "problem", ""))
    line, column = mark.line, mark.column
    if context is not None and any(words in problem for words in _BEGUN_EARLIER):
        line, column = context.line, context.column
    line = min(line, max(len(lines) - 1, 0))
    if "mapping values" in problem and line and not re.search(r":(\s|$)", lines[line - 1]) and lines[line - 1].strip():
        return line, 1, f"{_TABLE[_NO_COLON]}: {_shown(lines[line - 1])}"
    text = lines[line] if lines else ""
    return line + 1, column + 1, f"{_words(problem, text, column, lines[:line], context)}: {_shown(text)}"


_BEGUN_EARLIER = ("end of stream", "could not find expected ':'", "expected ',' or")
"""Complaints that come late: what they are about began where the context is."""


def _words(problem: str, text: str, column: int, before: Sequence[str], context: yaml.Mark | None) -> str:
    if "{{" in text or text.lstrip().startswith("{%"):
        return "an unrendered template; render it first, or leave the file out with --exclude"
    if "tab" in problem or text[: len(text) - len(text.lstrip())].count("\t"):
        return "a tab where spaces belong; YAML is indented with spaces only"
    if "mapping values are not allowed" in problem:
        return _second_colon(text, column, before)
    for part, words in _TABLE.items():
        if part in problem:
            return words
    return "cannot be read as YAML"


def _second_colon(text: str, column: int, before: Sequence[str]) -> str:
    if ": " in text[:column].lstrip():
        return 'two ": " in one line; put the value in quotes'
    above = next((line for line in reversed(before) if line.strip() and not line.lstrip().startswith("#")), "")
    name = above.strip().removeprefix("- ").partition(":")[0]
    return f'indented deeper than "{name}" above, which has a value already; align the two'


_NO_COLON = "could not find expected ':'"
_TABLE = {
    _NO_COLON: 'neither a field nor an item; write "name: value", with a blank after the colon',
    "did not find expected key": "the indentation fits none of the lines above; align it with the fields it belongs to",
    "did not find expected '-'": 'the indentation fits none of the lines above; begin an item with "- ", or align it',
    "block sequence entries": 'an item ("- ") cannot begin here; put it on a separate line, indented below its field',
    "expected ',' or ']'": "a [ that is not closed, or a comma that is missing",
    "expected ',' or '}'": "a { that is not closed, or a comma that is missing",
    "end of stream": "a quote that is not closed",
    "unknown escape": "a backslash that YAML does not know; put the value in single quotes",
    "escape": "a backslash that YAML does not know; put the value in single quotes",
    "cannot start any token": "a value cannot begin with this character; put it in quotes",
    "undefined alias": "an alias (*name) without its anchor (&name); put a value that begins with * in quotes",
    "duplicate anchor": "an anchor (&name) that is defined twice",
    "expected <document start>": 'there is more after the end of the document; align it, or begin another with "---"',
    "expected node content": "a value is missing",
    "expected the node content": "a value is missing",
    "expected alphabetic": "a value cannot begin with * or &; put it in quotes",
    "control characters": "a control character; remove it",
    "not allowed": "a character that YAML does not allow here; put the value in quotes",
}


def _shown(text: str) -> str:
    plain = "".join(char if char.isprintable() else " " for char in text.strip())
    return f"`{plain if len(plain) <= MAX_LINE else plain[: MAX_LINE - 1] + '…'}`"
