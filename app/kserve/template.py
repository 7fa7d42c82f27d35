"""The template language of presets and configs: the part of Go's ``text/template`` that one string needs.

Field paths, ``if``/``else if``/``else``/``end``, pipelines and parentheses, literals, trim markers, comments, and the
functions below. Loops, variables and nested templates are refused by name. Each string of a spec is a template of its
own; results are inserted as they are. Source: kserve spec 2.6.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from app.kserve.templatevalues import FUNCTIONS, Data, Expression, TemplateError, apply, is_true, printed

OPEN = "{{"


@dataclass(frozen=True, slots=True)
class Branch:
    """``if`` with what follows it: the first part whose condition holds is rendered."""

    line: int
    parts: tuple[tuple[Expression | None, tuple[Node, ...]], ...]


Node: TypeAlias = str | tuple[int, Expression] | Branch
"""Text as it is, an action with its line, or a choice."""


class Template:
    """A string that has been read once and can be rendered often."""

    __slots__ = ("_nodes", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._nodes = _Parser(text).parse()

    def render(self, data: Data) -> str:
        """The string with every action evaluated. Raises :class:`TemplateError`."""
        out: list[str] = []
        _render(self._nodes, data, out)
        return "".join(out)


def _render(nodes: Sequence[Node], data: Data, out: list[str]) -> None:
    for node in nodes:
        if isinstance(node, str):
            out.append(node)
        elif isinstance(node, Branch):
            for condition, part in node.parts:
                if condition is None or is_true(_evaluate(condition, data, node.line)):
                    _render(part, data, out)
                    break
        else:
            out.append(printed(_evaluate(node[1], data, node[0])))


def _evaluate(expression: Expression, data: Data, line: int) -> Any:
    try:
        return expression(data)
    except TemplateError as error:
        error.line = error.line or line
        raise
    except (TypeError, ValueError, IndexError, KeyError, ArithmeticError) as error:
        raise TemplateError(f"cannot be evaluated: {error}", line) from None


# Reading.

_TOKEN = re.compile(
    r"""\s*(?:(?P<raw>`[^`]*`)|(?P<quoted>"(?:\\.|[^"\\\n])*")|(?P<number>[-+]?[0-9][0-9_]*(?:\.[0-9]+)?(?![\w.]))"""
    r"""|(?P<field>(?:\.[A-Za-z_]\w*)+)|(?P<dot>\.)|(?P<word>[A-Za-z_]\w*)|(?P<mark>[()|]))"""
)
_TRIMMED = " "
"""What trim markers take away. Upstream renders a spec as JSON text, where a line break is two letters, and stays."""
_BLOCKS = ("range", "with", "define", "template", "block", "break", "continue")


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._actions = self._split(text)

    def parse(self) -> tuple[Node, ...]:
        nodes, ended_by, line, _ = self._block(top=True)
        if ended_by:
            raise TemplateError(f"unexpected {{{{ {ended_by} }}}}", line)
        return nodes

    def _split(self, text: str) -> Iterator[tuple[str, str, int]]:
        """``(literal, action, line)`` triples; the last literal has the action ``""`` and line 0."""
        position, trim = 0, False
        while True:
            start = text.find(OPEN, position)
            literal = text[position:] if start < 0 else text[position:start]
            if trim:
                literal = literal.lstrip(_TRIMMED)
            if start < 0:
                yield literal, "", 0
                return
            line = text.count("\n", 0, start) + 1
            end, action = self._action_end(text, start + 2, line)
            if re.match(r"-\s", action):
                literal, action = literal.rstrip(_TRIMMED), action[1:]
            trim = re.search(r"\s-$", action) is not None
            yield literal, (action[:-1] if trim else action).strip() or " ", line
            position = end

    @staticmethod
    def _action_end(text: str, start: int, line: int) -> tuple[int, str]:
        """Where the action ends; braces within its strings and comments do not end it."""
        match = re.compile(r"-?\s*/\*.*?\*/\s*-?\}\}|(?:`[^`]*`|\"(?:\\.|[^\"\\\n])*\"|[^`\"])*?\}\}", re.DOTALL).match(
            text, start
        )
        if match is None:
            raise TemplateError("unclosed action: }} is missing", line)
        return match.end(), match.group()[:-2]

    def _block(self, *, top: bool = False) -> tuple[tuple[Node, ...], str, int, str]:
        """Nodes up to the ``else`` or ``end`` that closes the block: ``(nodes, keyword, line, rest)``."""
        nodes: list[Node] = []
        for literal, action, line in self._actions:
            if literal:
                nodes.append(literal)
            if not action:
                break
            word, _, rest = action.partition(" ")
            if word in ("end", "else"):
                return tuple(nodes), word, line, rest.strip()
            if word == "if":
                nodes.append(self._branch(rest, line))
            elif word in _BLOCKS:
                raise TemplateError(f"{word} is not supported", line)
            elif not action.startswith("/*"):
                nodes.append((line, _Expression(action, line).parse()))
        if not top:
            raise TemplateError("{{ end }} is missing", self._text.count("\n") + 1)
        return tuple(nodes), "", 0, ""

    def _branch(self, condition: str, line: int) -> Branch:
        parts: list[tuple[Expression | None, tuple[Node, ...]]] = []
        current: Expression | None = _Expression(condition, line).parse()
        while True:
            nodes, keyword, at, rest = self._block()
            parts.append((current, nodes))
            if keyword == "end":
                return Branch(line, tuple(parts))
            if current is None:
                raise TemplateError("a second {{ else }}", at)
            current = _Expression(rest[2:].strip(), at).parse() if rest.startswith("if ") else None
            if rest and current is None:
                raise TemplateError(f"unexpected {rest!r} after else", at)


class _Expression:
    """A pipeline: calls separated by ``|``, each given the one before it as its last argument."""

    def __init__(self, source: str, line: int) -> None:
        self._line = line
        self._tokens = list(self._tokenise(source))
        self._next = 0

    def _tokenise(self, source: str) -> Iterator[tuple[str, str]]:
        position = 0
        source = source.rstrip()
        while position < len(source):
            match = _TOKEN.match(source, position)
            if match is None:
                raise TemplateError(f"unexpected {source[position:].strip()[:20]!r}", self._line)
            position = match.end()
            kind = match.lastgroup or ""
            yield kind, match.group(kind)

    def parse(self) -> Expression:
        expression = self._pipeline()
        if self._next < len(self._tokens):
            raise TemplateError(f"unexpected {self._tokens[self._next][1]!r}", self._line)
        return expression

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._next] if self._next < len(self._tokens) else ("", "")

    def _pipeline(self) -> Expression:
        expression = self._call(None)
        while self._peek() == ("mark", "|"):
            self._next += 1
            expression = self._call(expression)
        return expression

    def _call(self, last: Expression | None) -> Expression:
        kind, text = self._peek()
        if kind == "word" and text not in _CONSTANTS:
            self._next += 1
            function = FUNCTIONS.get(text)
            if function is None:
                raise TemplateError(f"function {text} is not defined", self._line)
            operands = self._operands()
            return apply(function, [*operands, last] if last is not None else operands)
        operands = self._operands()
        if not operands:
            raise TemplateError("missing value", self._line)
        if len(operands) > 1 or last is not None:
            raise TemplateError("a value takes no arguments", self._line)
        return operands[0]

    def _operands(self) -> list[Expression]:
        operands = []
        while (operand := self._operand()) is not None:
            operands.append(operand)
        return operands

    def _operand(self) -> Expression | None:
        kind, text = self._peek()
        if not kind or (kind == "mark" and text != "("):
            return None
        self._next += 1
        if kind == "mark":
            inner = self._pipeline()
            if self._peek() != ("mark", ")"):
                raise TemplateError("unclosed parenthesis", self._line)
            self._next += 1
            return inner
        return self._leaf(kind, text)

    def _leaf(self, kind: str, text: str) -> Expression:
        if kind == "field":
            path = tuple(text[1:].split("."))
            return lambda data: data.field(path)
        if kind == "dot":
            raise TemplateError("name a field of the root, such as .Spec", self._line)
        if kind == "word":
            if text in _CONSTANTS:
                value: Any = _CONSTANTS[text]
            elif text in FUNCTIONS:
                return apply(FUNCTIONS[text], [])
            else:
                raise TemplateError(f"function {text} is not defined", self._line)
        elif kind == "raw":
            value = text[1:-1]
        elif kind == "quoted":
            value = _unquoted(text, self._line)
        else:
            value = float(text) if "." in text else int(text.replace("_", ""))
        return lambda _: value


_CONSTANTS = {"true": True, "false": False, "nil": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}


def _unquoted(text: str, line: int) -> str:
    def escape(match: re.Match[str]) -> str:
        if match[1] not in _ESCAPES:
            raise TemplateError(f"unknown escape \\{match[1]}", line)
        return _ESCAPES[match[1]]

    return re.sub(r"\\(.)", escape, text[1:-1])
