"""Mistakes in CEL expressions that select devices, which the API server refuses or which no device can match.

The whole language needs a compiler with Kubernetes' types, which no library for Python has. So an expression is divided
into tokens, and what is refused in any expression is looked for.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

MAX_BYTES = 10 * 1024
"""``CELSelectorExpressionMaxLength`` of the API."""

_RAW = r"""[bB]?[rR][bB]?(?:"[^"\n]*"|'[^'\n]*')"""
_LINES = r"""[bB]?"{3}(?:\\.|[^\\])*?"{3}|[bB]?'{3}(?:\\.|[^\\])*?'{3}"""
_LINE = r"""[bB]?"(?:\\.|[^"\\\n])*"|[bB]?'(?:\\.|[^'\\\n])*'"""
_TOKENS = re.compile(
    rf"""\s*(?://[^\n]*\s*)*(?:(?P<string>{_RAW}|{_LINES}|{_LINE})"""
    r"""|(?P<number>0[xX][0-9a-fA-F]+[uU]?|(?:\d+\.\d+|\.\d+|\d+)(?:[eE][+-]?\d+)?[uU]?)"""
    r"""|(?P<name>[A-Za-z_]\w*)|(?P<quote>[\u2018\u2019\u201c\u201d\u00ab\u00bb])"""
    r"""|(?P<operator>==|!=|<=|>=|&&|\|\||[-+*/%<>!?:.,])|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<other>\S)|$)""",
    re.DOTALL,
)
_PAIRS = {"(": ")", "[": "]", "{": "}"}
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_BINARY = (*_COMPARISONS, "&&", "||", "+", "*", "/", "%", "in")
_MEMBERS = ("driver", "attributes", "capacity", "allowMultipleAllocations")
_SIGNS = {"=": "==", "&": "&&", "|": "||"}
_WORDS = {"and": "&&", "or": "||", "not": "!", "True": "true", "False": "false"}


class Token(NamedTuple):
    kind: str
    text: str

    @property
    def ends_a_value(self) -> bool:
        return self.kind in ("string", "number", "close") or (self.kind == "name" and self.text != "in")

    @property
    def begins_a_value(self) -> bool:
        return self.kind in ("string", "number") or (self.kind == "name" and self.text != "in")


def problem(expression: str) -> str:
    """Return why the API server refuses an expression; empty where nothing is found."""
    tokens = _tokens(expression)
    return next((text for check in _CHECKS for text in check(tokens)), "")


def doubt(expression: str, device_class: str) -> str:
    """Return why an expression that the API server accepts may match no device, or every one."""
    tokens = _tokens(expression)
    if Token("name", "device") not in tokens and tokens != [Token("name", "true")]:
        return "does not read device, so it is the same for every device"
    domains = (unquoted(tokens[at + 1]) for at in _maps(tokens))
    wrong = next((domain for domain in domains if device_class.endswith(f".{domain}")), "")
    return f'no driver publishes under "{wrong}"; devices of the class are under "{device_class}"' if wrong else ""


def unquoted(token: Token) -> str:
    return token.text.strip("\"'")


def _tokens(expression: str) -> list[Token]:
    matches = _TOKENS.finditer(expression[:MAX_BYTES])
    return [Token(match.lastgroup, match[match.lastgroup]) for match in matches if match.lastgroup]


def _foreign(tokens: Sequence[Token]) -> Iterator[str]:
    for token in tokens:
        if token.kind == "quote":
            yield f"{token.text} is no quotation mark of CEL; write \" or '"
        elif token.text in _SIGNS and token.kind == "other":
            yield f"{token.text} is no operator of CEL; write {_SIGNS[token.text]}"
        elif token.kind == "other":
            unclosed = token.text in "\"'"
            yield "a quotation mark is not closed" if unclosed else f"{token.text} has no meaning in CEL"
        elif token.kind == "name" and token.text in _WORDS:
            yield f"{token.text} has no meaning in CEL; write {_WORDS[token.text]}"


def _unclosed(tokens: Sequence[Token]) -> Iterator[str]:
    expected: list[str] = []
    for token in tokens:
        if token.kind == "open":
            expected.append(_PAIRS[token.text])
        elif token.kind == "close" and (not expected or expected.pop() != token.text):
            yield f"{token.text} closes nothing"
            return
    if expected:
        yield f"{expected[-1]} is missing"


def _incomplete(tokens: Sequence[Token]) -> Iterator[str]:
    for token, following in pairwise([*tokens, Token("end", "")]):
        if token.ends_a_value and following.begins_a_value:
            yield f"an operator is missing between {token.text} and {following.text}"
        elif token.text in _BINARY and token.kind != "string" and following.kind in ("close", "end"):
            yield f"a value is missing after {token.text}"


def _members(tokens: Sequence[Token]) -> Iterator[str]:
    for before, dot, member in zip(tokens, tokens[1:], tokens[2:], strict=False):
        is_member = before == Token("name", "device") and dot.text == "." and member.kind == "name"
        if is_member and member.text not in _MEMBERS:
            yield f"device has no {member.text}, only {', '.join(_MEMBERS)}"


def _maps(tokens: Sequence[Token]) -> Iterator[int]:
    """Yield where ``["domain"]`` begins behind ``device.attributes`` and ``device.capacity``."""
    for at in range(len(tokens) - 5):
        words = [token.text for token in tokens[at : at + 3]]
        is_map = words[:2] == ["device", "."] and words[2] in ("attributes", "capacity")
        if is_map and tokens[at + 3].text == "[" and tokens[at + 4].kind == "string" and tokens[at + 5].text == "]":
            yield at + 3


def _without_domain(tokens: Sequence[Token]) -> Iterator[str]:
    """A domain's attributes are a map, which is compared with no value."""
    for at in _maps(tokens):
        is_whole = at + 3 == len(tokens) or tokens[at + 3].text not in (".", "[")
        is_searched = at > 3 and tokens[at - 4].text == "in"
        if is_whole and not is_searched and _is_compared(tokens, at - 3, at + 3):
            name = unquoted(tokens[at + 1])
            yield f'"{name}" must be the domain of a driver, with the name behind it: ["gpu.example.com"].{name}'


def _quantities(tokens: Sequence[Token]) -> Iterator[str]:
    """A capacity is a Quantity, which has methods instead of ``>=``, and which no number equals."""
    for at in _maps(tokens):
        end = at + 5
        is_capacity = tokens[at - 1].text == "capacity" and [t.kind for t in tokens[at + 3 : end]] == [
            "operator",
            "name",
        ]
        if is_capacity and tokens[at + 3].text == "." and _is_compared(tokens, at - 3, end):
            others = (*tokens[end : end + 2], *tokens[max(at - 5, 0) : at - 3])
            if any(t.kind in ("number", "string") or t.text[0] in "<>" for t in others):
                yield f'capacity is a quantity: write .{tokens[at + 4].text}.compareTo(quantity("80Gi")) >= 0'


def _is_compared(tokens: Sequence[Token], start: int, end: int) -> bool:
    """Report whether the value of tokens is one side of a comparison."""
    sides = [*tokens[max(start - 1, 0) : start], *tokens[end : end + 1]]
    return any(token.kind == "operator" and token.text in _COMPARISONS for token in sides)


_CHECKS = (_foreign, _unclosed, _incomplete, _members, _without_domain, _quantities)
