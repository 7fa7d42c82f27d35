"""Explain syntax errors of YAML in plain words, with the line that they are about."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import yaml

from app.desk.files.fixes import Edit, Fix
from app.kube.regex import regex

_NO_BLANK = regex(r"(\s*-)(?=[A-Za-z]\w*:)")
_CONFLICT = regex("<{7}( |$)")
MAX_LINE = 80
_Remedy = Callable[[str], Iterable[tuple[str, str]]]
"""Returns the title of a fix and the line after it, or nothing for a line that it does not correct."""
_BEGUN_EARLIER = ("end of stream", "could not find expected ':'", "expected ',' or")
"""Errors that are reported late: their cause is at the context."""


def explain(error: yaml.YAMLError, document: str, lines: Sequence[str]) -> tuple[int, int, str, tuple[Fix, ...]]:
    """Return line and column, from 1, the problem, and the correction of the line if it is certain."""
    for number, text in enumerate(lines, 1):
        if _CONFLICT.match(text):
            message = f"a merge conflict that is not resolved: {_shown(text)}; keep one side, remove the marks"
            return number, 1, message, ()
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return 1, 1, "has a character that YAML does not allow; save the file as UTF-8 text", ()
    problem, mark = error.problem or "", error.problem_mark
    if error.context_mark is not None and any(words in problem for words in _BEGUN_EARLIER):
        mark = error.context_mark
    line, column = min(mark.line, max(len(lines) - 1, 0)), mark.column
    if (opened := _opened_quote(lines, line, column)) is not None:
        line, column, problem = opened, 0, "end of stream"
    if "mapping values" in problem and line and not re.search(r":(\s|$)", lines[line - 1]) and lines[line - 1].strip():
        return line, 1, f"{_NO_COLON}: {_shown(lines[line - 1])}", ()
    if "mapping values" in problem and line and _NO_BLANK.match(lines[line - 1]):
        line, column = line - 1, 0
    text = lines[line] if lines else ""
    words, remedy = _words(problem, text, column, lines[:line])
    corrected = remedy(text) if remedy is not None else ()
    fixes = (Fix(title, (Edit(document, line + 1, 1, line + 1, len(text) + 1, new),)) for title, new in corrected)
    return line + 1, column + 1, f"{words}: {_shown(text)}", tuple(fixes)


_QUOTE = regex(r"""[-:][ \t]{1,80}(["'])""")


def _opened_quote(lines: Sequence[str], line: int, column: int) -> int | None:
    """Return the line above whose quote is not closed on it, if the next one is in front of a problem."""
    for above in range(line - 1, -1, -1):
        begun = _QUOTE.search(lines[above])
        if begun is None:
            continue
        between = [lines[above][begun.end() :], *lines[above + 1 : line]]
        return above if begun[1] in lines[line][:column] and not any(begun[1] in text for text in between) else None
    return None


def _close_quote(line: str) -> Iterator[tuple[str, str]]:
    value = line.partition(": ")[2].rstrip()
    if value[:1] in ("'", '"'):
        yield f"Close the quote: {value}{value[0]}", f"{line.rstrip()}{value[0]}"


def _quote(line: str) -> Iterator[tuple[str, str]]:
    key, _, value = line.partition(": ")
    quoted = "'" + value.strip().strip("'\"").replace("'", "''") + "'"
    if value.strip():
        yield f"Write {quoted}", f"{key}: {quoted}"


def _use_blanks(line: str) -> Iterator[tuple[str, str]]:
    yield "Write blanks for tabs", line.replace("\t", "  ")


def _add_blank(line: str) -> Iterator[tuple[str, str]]:
    yield "Write a blank after the dash", _NO_BLANK.sub(r"\1 ", line, count=1)


def _words(problem: str, text: str, column: int, before: Sequence[str]) -> tuple[str, _Remedy | None]:
    if "{{" in text or text.lstrip().startswith("{%"):
        return UNRENDERED, None
    if re.fullmatch(r"\s*-{2,}\s*", text):
        return 'objects are separated by "---", at the beginning of its line', None
    if text.startswith("```"):
        return "a mark of Markdown; remove it, and the one at the end", None
    if "tab" in problem or text[: len(text) - len(text.lstrip())].count("\t"):
        return "a tab where spaces belong; YAML is indented with spaces only", _use_blanks
    if "mapping values are not allowed" in problem:
        if _NO_BLANK.match(text):
            return "a dash begins an item only with a blank after it", _add_blank
        if ": " in text[:column].lstrip():
            return 'two ": " in one line; put the value in quotes', _quote
        above = next((line for line in reversed(before) if line.strip() and not line.lstrip().startswith("#")), "")
        name = above.strip().removeprefix("- ").partition(":")[0]
        return f'indented deeper than "{name}" above, which has a value already; align the two', None
    part = next((part for part in _TABLE if part in problem), "")
    return _TABLE.get(part, "cannot be read as YAML"), _REMEDIES.get(part)


UNRENDERED = (
    "an unrendered template; render it first, or leave the file out with --exclude; "
    "put a value that begins with braces in quotes"
)
_NO_COLON = 'neither a field nor an item; write "name: value", with a blank after the colon'
_TABLE = {
    "could not find expected ':'": _NO_COLON,
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
_REMEDIES: dict[str, _Remedy] = {
    "end of stream": _close_quote,
    "cannot start any token": _quote,
    "undefined alias": _quote,
    "expected alphabetic": _quote,
    "not allowed": _quote,
}


def _shown(text: str) -> str:
    plain = "".join(char if char.isprintable() else " " for char in text.strip())
    return f"`{plain if len(plain) <= MAX_LINE else plain[: MAX_LINE - 1] + '…'}`"
