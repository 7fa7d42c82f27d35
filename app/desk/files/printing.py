"""Output of the command: plain lines, JSON, and counted nouns.

Names, paths and values come from files of unknown authors. Printed unescaped, they could control a
terminal or add lines to a log, a comment or a report, so no unprintable character leaves the command.
"""

import json
from collections.abc import Iterable

import click
import orjson

from app.kube.regex import regex

_WORKFLOW_COMMAND = regex(r"^(\s*):(?=:)|(?<=#)#(?=\[|vso\[)")
"""Commands in the log of a job: ``::`` at the beginning of a line and ``##[`` of GitHub, ``##vso[`` of Azure."""
_PLURALS = {"kustomize patch": "kustomize patches"}


def escaped(text: str) -> str:
    """Return the string as one printable line; other characters are escaped as in JSON."""
    line = _WORKFLOW_COMMAND.sub(lambda match: f"{match[1] or ''}{_escape(match[0][-1])}", text)
    return line if line.isprintable() else "".join(char if char.isprintable() else _escape(char) for char in line)


def is_plain(text: str) -> bool:
    """Report whether :func:`escaped` changes no line."""
    commands = ("::" in text or "##" in text) and any(map(_WORKFLOW_COMMAND.search, text.split("\n")))
    return text.replace("\n", "").isprintable() and not commands


def _escape(char: str) -> str:
    return f"\\u{ord(char):04x}" if char.isprintable() else json.dumps(char)[1:-1]


def lines(texts: Iterable[str]) -> str:
    """Return one printable line for each string. Most are printable, which is seen at once for all."""
    parts = list(texts)
    text = "".join(f"{part}\n" for part in parts)
    plain = text.count("\n") == len(parts) and is_plain(text)
    return text if plain else "".join(f"{escaped(part)}\n" for part in parts)


def as_json(value: object) -> str:
    """Return indented JSON that is printable. Its strings can have the escapes of any line."""
    text = orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    return f"{text}\n" if is_plain(text) else lines(text.split("\n"))


def counted(count: int, noun: str) -> str:
    """``1 error``, ``2 errors``."""
    return f"{count} {noun if count == 1 else _PLURALS.get(noun, noun + 's')}"


def echo(texts: Iterable[str], *, err: bool = False) -> None:
    click.echo(lines(texts), nl=False, err=err)


def warn(command: str, problems: Iterable[object]) -> None:
    """Print problems of the input on standard error, beside an answer."""
    echo((f"modelhooks {command}: {problem}" for problem in problems), err=True)
