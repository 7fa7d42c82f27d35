"""Values and functions of the template language: Go's truth, Go's printing, and what may be called.

Source: kserve spec 2.6.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from app.kserve.names import child_name


class TemplateError(Exception):
    """A template cannot be read or evaluated; ``line`` counts from 1 within its string."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


class Data(Protocol):
    """What a template's field paths refer to."""

    def field(self, path: Sequence[str]) -> Any:
        """The value of ``.A.B``. Raises :class:`TemplateError`."""


class Pointer:
    """An optional value or an object that is set: true in conditions whatever is in it, as in Go."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


Expression = Callable[[Data], Any]


def apply(function: Callable[[list[Expression], Data], Any], operands: list[Expression]) -> Expression:
    return lambda data: function(operands, data)


def is_true(value: Any) -> bool:
    """Go's idea of truth: an optional value counts as soon as it is set, everything else unless it is empty."""
    return True if isinstance(value, Pointer) else bool(value)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Pointer) else value


def printed(value: Any) -> str:
    """A value as Go prints it."""
    value = _plain(value)
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{printed(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, (list, tuple)):
        return "[" + " ".join(printed(item) for item in value) + "]"
    return str(value)


def _strict(
    function: Callable[..., Any], fewest: int, most: int | None = None
) -> Callable[[list[Expression], Data], Any]:
    """A function of evaluated arguments, of which it takes a certain number."""

    def call(operands: list[Expression], data: Data) -> Any:
        if len(operands) < fewest or (most is not None and len(operands) > most):
            raise TemplateError(f"wrong number of arguments: {len(operands)}")
        return function(*(_plain(operand(data)) for operand in operands))

    return call


def _short_circuit(stop: bool) -> Callable[[list[Expression], Data], Any]:
    """``or`` and ``and``: the first value of that truth, else the last one."""

    def call(operands: list[Expression], data: Data) -> Any:
        if not operands:
            raise TemplateError("wrong number of arguments: 0")
        value = None
        for operand in operands:
            value = operand(data)
            if is_true(value) is stop:
                break
        return value

    return call


def _not(operands: list[Expression], data: Data) -> bool:
    if len(operands) != 1:
        raise TemplateError(f"wrong number of arguments: {len(operands)}")
    return not is_true(operands[0](data))


def _child_name(parent: Any, suffix: Any) -> str:
    return child_name(_text(parent), _text(suffix))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TemplateError(f"a text is wanted, not {printed(value)}")
    return value


def _index(value: Any, *keys: Any) -> Any:
    for key in keys:
        if isinstance(value, dict):
            value = value.get(key, "")
        elif isinstance(value, (list, tuple)) and isinstance(key, int) and 0 <= key < len(value):
            value = value[key]
        else:
            raise TemplateError(f"no element {printed(key)}")
    return value


def _same_kind(first: Any, *others: Any) -> None:
    if any(isinstance(first, str) is not isinstance(other, str) for other in others):
        raise TemplateError("incompatible types for comparison")


def _equal(first: Any, *others: Any) -> bool:
    _same_kind(first, *others)
    return any(first == other for other in others)


def _compare(holds: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def call(first: Any, second: Any) -> bool:
        _same_kind(first, second)
        return holds(first, second)

    return call


_VERB = re.compile(r"%(.?)", re.DOTALL)


def _printf(form: Any, *values: Any) -> str:
    rest = iter(values)

    def verb(match: re.Match[str]) -> str:
        if match[1] == "%":
            return "%"
        if match[1] not in ("s", "d", "v", "q"):
            raise TemplateError(f"printf knows %s, %d, %v and %q, not {match[0]}")
        value = next(rest, None)
        return f'"{printed(value)}"' if match[1] == "q" else printed(value)

    return _VERB.sub(verb, _text(form))


def shell_quoted(value: Any) -> str:
    """A value as one word for a shell in a container's command, whatever characters it has.

    Kubernetes expands ``$(NAME)`` in commands before the shell sees them, and reads ``$$`` as ``$``.
    """
    return shlex.quote(printed(value)).replace("$", "$$")


FUNCTIONS: dict[str, Callable[[list[Expression], Data], Any]] = {
    "ChildName": _strict(_child_name, 2, 2),
    "ShellQuote": _strict(shell_quoted, 1, 1),
    "or": _short_circuit(True),
    "and": _short_circuit(False),
    "not": _not,
    "eq": _strict(_equal, 2),
    "ne": _strict(_compare(lambda a, b: a != b), 2, 2),
    "lt": _strict(_compare(lambda a, b: a < b), 2, 2),
    "le": _strict(_compare(lambda a, b: a <= b), 2, 2),
    "gt": _strict(_compare(lambda a, b: a > b), 2, 2),
    "ge": _strict(_compare(lambda a, b: a >= b), 2, 2),
    "len": _strict(len, 1, 1),
    "index": _strict(_index, 1),
    "print": _strict(lambda *values: "".join(map(printed, values)), 0),
    "println": _strict(lambda *values: " ".join(map(printed, values)) + "\n", 0),
    "printf": _strict(_printf, 1),
}
"""Go's own functions that make sense in one string, ``ChildName`` (3.1), and our ``ShellQuote``."""
