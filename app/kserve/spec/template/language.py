"""The template language of presets and configs: a subset of Go's ``text/template``.

Field paths, ``if``/``else if``/``else``/``end``, pipelines and parentheses, literals, trim markers, comments, and the
functions of :mod:`app.kserve.spec.template.functions`. Loops, variables and nested templates are refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

import msgspec

from app import limits
from app.kserve.constants import OPEN
from app.kserve.spec.template.bounds import Meter, ReadError, RefusedError, TemplateError, size
from app.kserve.spec.template.functions import FUNCTIONS, Data, Expression, Function, Scope, is_true, printed

_CONSTANTS = {"true": True, "false": False, "nil": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}


class Branch(msgspec.Struct, frozen=True):
    """An ``if`` with its ``else if`` and ``else``: the first part whose condition is true is rendered."""

    line: int
    parts: tuple[tuple[Expression | None, tuple[Node, ...]], ...]


Node: TypeAlias = str | tuple[int, Expression] | Branch
"""Literal text, an action with its line, or a branch."""


class Template:
    """A parsed string, which can be rendered many times. Raises :class:`TemplateError` if it is invalid."""

    __slots__ = ("_nodes", "actions")

    def __init__(self, text: str) -> None:
        if len(text) > limits.MAX_TEMPLATE_CHARACTERS:
            raise RefusedError(
                f"a string with actions may have at most {limits.MAX_TEMPLATE_CHARACTERS} characters, this one has "
                f"{len(text)}"
            )
        parser = _Parser(text)
        self._nodes = parser.parse()
        self.actions = parser.actions
        """Number of actions, including those of branches that are not taken."""

    def render(self, data: Data, meter: Meter) -> str:
        """Evaluate every action. Raises :class:`TemplateError`."""
        pieces, rendered = [], 0
        for text, line in _rendered(self._nodes, Scope(data, meter)):
            rendered += size(text)
            if rendered > limits.MAX_RENDERED_STRING_BYTES:
                limit = f"{limits.MAX_RENDERED_STRING_BYTES} bytes"
                raise RefusedError(f"renders to more than {limit}; print fewer or shorter fields", line)
            pieces.append(text)
        meter.render(rendered)
        return "".join(pieces)


def _rendered(nodes: Sequence[Node], scope: Scope) -> Iterator[tuple[str, int]]:
    """Yield the parts of the output, each with the line of the action before it."""
    line = 0
    for node in nodes:
        if isinstance(node, str):
            yield node, line
        elif isinstance(node, Branch):
            line = node.line
            for condition, part in node.parts:
                if condition is None or is_true(_evaluate(condition, scope, line)):
                    yield from _rendered(part, scope)
                    break
        else:
            line, expression = node
            yield _evaluate(expression, scope, line, show=True), line


def _evaluate(expression: Expression, scope: Scope, line: int, *, show: bool = False) -> Any:
    try:
        value = expression(scope)
        return printed(value, scope.meter) if show else value
    except TemplateError as error:
        error.line = error.line or line
        raise
    except (TypeError, ValueError, IndexError, KeyError, ArithmeticError) as error:
        raise TemplateError(f"cannot be evaluated: {error}", line) from None


_TOKEN = re.compile(
    r"""\s*(?:(?P<raw>`[^`]*`)|(?P<quoted>"(?:\\.|[^"\\\n])*")|(?P<number>[-+]?[0-9][0-9_]*(?:\.[0-9]+)?(?![\w.]))"""
    r"""|(?P<field>(?:\.[A-Za-z_]\w*)+)|(?P<dot>\.)|(?P<word>[A-Za-z_]\w*)|(?P<mark>[()|]))"""
)
_ACTION = re.compile(r"""(?:[^`"}]++|`[^`]*+`|"(?:\\.|[^"\\\n])*"|\}(?!\}))*+\}\}""")
"""An action after its opening braces; braces in strings do not end it."""
_COMMENT = re.compile(r"-?\s*/\*")
_WHOLE_COMMENT = re.compile(r"-?\s*/\*(?>.*?\*/)\s*-?\}\}", re.DOTALL)
_TRIM_BEFORE = re.compile(r"-\s")
_TRIMMED = " "
"""Characters that trim markers remove. Upstream renders a spec as JSON, where a newline is two letters, and is kept."""
_BLOCKS = ("range", "with", "define", "template", "block", "break", "continue")


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._actions = self._split()
        self._depth = 0
        self.actions = 0

    def parse(self) -> tuple[Node, ...]:
        nodes, ended_by, line, _ = self._block(top=True)
        if ended_by:
            raise ReadError(f"unexpected {{{{ {ended_by} }}}}", line)
        return nodes

    def _split(self) -> Iterator[tuple[str, str, int]]:
        """Yield each literal with the action behind it and that action's line; the last one has no action."""
        text, position, trim, line = self._text, 0, False, 1
        while True:
            start = text.find(OPEN, position)
            literal = text[position:] if start < 0 else text[position:start]
            line += literal.count("\n")
            if trim:
                literal = literal.lstrip(_TRIMMED)
            if start < 0:
                yield literal, "", 0
                return
            self.actions += 1
            if self.actions > limits.MAX_ACTIONS:
                raise RefusedError(f"more than {limits.MAX_ACTIONS} actions in one text; divide it", line)
            position = _end_of_action(text, start + 2, line)
            action = text[start + 2 : position - 2]
            if _TRIM_BEFORE.match(action):
                literal, action = literal.rstrip(_TRIMMED), action[1:]
            trim = len(action) > 1 and action[-1] == "-" and action[-2].isspace()
            yield literal, (action[:-1] if trim else action).strip() or " ", line
            line += text.count("\n", start, position)

    def _block(self, *, top: bool = False) -> tuple[tuple[Node, ...], str, int, str]:
        """Parse up to the ``else`` or ``end`` that closes the block: ``(nodes, keyword, line, rest)``."""
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
                raise ReadError(f"{word} is not supported", line)
            elif not action.startswith("/*"):
                nodes.append((line, _Expression(action, line).parse()))
        if not top:
            raise ReadError("{{ end }} is missing", self._text.count("\n") + 1)
        return tuple(nodes), "", 0, ""

    def _branch(self, condition: str, line: int) -> Branch:
        parts: list[tuple[Expression | None, tuple[Node, ...]]] = []
        current: Expression | None = _Expression(condition, line).parse()
        self._depth += 1
        if self._depth > limits.MAX_TEMPLATE_NESTING:
            raise RefusedError(
                f"more than {limits.MAX_TEMPLATE_NESTING} ifs within each other; join their conditions with and", line
            )
        while True:
            nodes, keyword, at, rest = self._block()
            parts.append((current, nodes))
            if keyword == "end":
                self._depth -= 1
                return Branch(line, tuple(parts))
            if current is None:
                raise ReadError("a second {{ else }}", at)
            current = _Expression(rest[2:].strip(), at).parse() if rest.startswith("if ") else None
            if rest and current is None:
                raise ReadError(f"unexpected {rest!r} after else", at)


def _end_of_action(text: str, start: int, line: int) -> int:
    """Return the end of the action, after its closing braces."""
    is_comment = _COMMENT.match(text, start) is not None
    action = (_WHOLE_COMMENT if is_comment else _ACTION).match(text, start)
    if action is None:
        problem = "comment: must end with */}}" if is_comment else "action: }} is missing"
        raise ReadError(f"unclosed {problem}", line)
    return action.end()


class _Expression:
    """A pipeline: calls separated by ``|``, each given the one before it as its last argument."""

    def __init__(self, source: str, line: int) -> None:
        self._line = line
        self._tokens: list[tuple[str, str]] = []
        self._next = 0
        source, position = source.rstrip(), 0
        while position < len(source):
            match = _TOKEN.match(source, position)
            if match is None:
                raise ReadError(f"unexpected {source[position:].strip()[:20]!r}", line)
            position, kind = match.end(), match.lastgroup or ""
            self._tokens.append((kind, match[kind]))
            if len(self._tokens) > limits.MAX_TOKENS:
                raise RefusedError(f"more than {limits.MAX_TOKENS} words and signs in one action; divide it", line)

    def parse(self) -> Expression:
        expression = self._pipeline()
        if self._next < len(self._tokens):
            raise ReadError(f"unexpected {self._tokens[self._next][1]!r}", self._line)
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
            function, operands = self._function(text), self._operands()
            return partial(function, [*operands, last] if last is not None else operands)
        operands = self._operands()
        if not operands:
            raise ReadError("missing value", self._line)
        if len(operands) > 1 or last is not None:
            raise ReadError("a value takes no arguments", self._line)
        return operands[0]

    def _operands(self) -> list[Expression]:
        return list(iter(self._operand, None))

    def _operand(self) -> Expression | None:
        kind, text = self._peek()
        if not kind or (kind == "mark" and text != "("):
            return None
        self._next += 1
        if kind == "mark":
            inner = self._pipeline()
            if self._peek() != ("mark", ")"):
                raise ReadError("unclosed parenthesis", self._line)
            self._next += 1
            return inner
        return self._leaf(kind, text)

    def _leaf(self, kind: str, text: str) -> Expression:
        if kind == "field":
            path = tuple(text[1:].split("."))
            return lambda scope: scope.data.field(path, scope.meter)
        if kind == "dot":
            raise ReadError("name a field of the root object, such as .Spec", self._line)
        if kind == "word" and text not in _CONSTANTS:
            return partial(self._function(text), [])
        if kind == "word":
            value: object = _CONSTANTS[text]
        elif kind == "raw":
            value = text[1:-1]
        elif kind == "quoted":
            value = _unquoted(text, self._line)
        else:
            value = self._number(text)
        return lambda _: value

    def _function(self, name: str) -> Function:
        if name not in FUNCTIONS:
            raise ReadError(f"function {name} is not defined", self._line)
        return FUNCTIONS[name]

    def _number(self, text: str) -> int | float:
        if len(text) <= limits.MAX_NUMBER_CHARACTERS:
            value = float(text) if "." in text else int(text.replace("_", ""))
            if -(2**63) <= value < 2**63:
                return value
        raise RefusedError(f"number {text[: limits.MAX_NUMBER_CHARACTERS]}… does not fit into 64 bits", self._line)


def _unquoted(text: str, line: int) -> str:
    def escape(match: re.Match[str]) -> str:
        if match[1] not in _ESCAPES:
            raise ReadError(f"unknown escape \\{match[1]}", line)
        return _ESCAPES[match[1]]

    return re.sub(r"\\(.)", escape, text[1:-1])
