"""Values and functions of the template language: Go's truth, Go's printing, and what may be called (KS-2.6)."""

import operator
import re
import shlex
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from app.kserve.kvcache import transfer_flag
from app.kserve.names import child_name
from app.kserve.spec.template.bounds import Meter, TemplateError, size

_SHOWN = 64
"""Characters of a value in a message."""
_VERB = re.compile(r"%(.?)", re.DOTALL)
_GRACE = 60
"""Default grace period of a pod, in seconds."""


class Data(Protocol):
    def field(self, path: Sequence[str], meter: Meter) -> object:
        """Return the value of ``.A.B``. Raises :class:`TemplateError`."""


class Scope(msgspec.Struct, frozen=True):
    data: Data
    meter: Meter


class Pointer:
    """A set pointer, which is true in conditions even if its value is false, as in Go."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


Expression: TypeAlias = Callable[[Scope], Any]
Function: TypeAlias = Callable[[list[Expression], Scope], Any]


def is_true(value: object) -> bool:
    """Return Go's truth: a pointer counts as soon as it is set, everything else unless it is empty."""
    return True if isinstance(value, Pointer) else bool(value)


def _plain(value: object) -> object:
    return value.value if isinstance(value, Pointer) else value


def printed(value: object, meter: Meter) -> str:
    """Print a value as Go does, as far as the meter allows."""
    value = _plain(value)
    if isinstance(value, dict):
        meter.spend(len(value))
        members = (f"{printed(key, meter)}:{printed(value[key], meter)}" for key in sorted(value))
        return f"map[{' '.join(members)}]"
    if isinstance(value, (list, tuple)):
        meter.spend(len(value))
        return f"[{' '.join(printed(item, meter) for item in value)}]"
    text = "<nil>" if value is None else str(value)
    meter.spend(size(text))
    return text.lower() if isinstance(value, bool) else text


def _strict(function: Callable[..., Any], fewest: int, most: int | None = None, *, prints: bool = False) -> Function:
    """Return a function of evaluated arguments; one that ``prints`` gets the meter, too.

    A string is paid for once for each function that it is given to: none looks at it more often.
    """

    def call(operands: list[Expression], scope: Scope) -> object:
        if len(operands) < fewest or (most is not None and len(operands) > most):
            raise TemplateError(f"wrong number of arguments: {len(operands)}")
        values = [_plain(operand(scope)) for operand in operands]
        for value in values:
            if isinstance(value, str):
                scope.meter.spend(size(value))
        return function(scope.meter, *values) if prints else function(*values)

    return call


def _short_circuit(stop: bool) -> Function:
    """``or`` and ``and``: the first value of that truth, else the last one."""

    def call(operands: list[Expression], scope: Scope) -> object:
        if not operands:
            raise TemplateError("wrong number of arguments: 0")
        value = None
        for operand in operands:
            value = operand(scope)
            if is_true(value) is stop:
                break
        return value

    return call


def _not(operands: list[Expression], scope: Scope) -> bool:
    if len(operands) != 1:
        raise TemplateError(f"wrong number of arguments: {len(operands)}")
    return not is_true(operands[0](scope))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TemplateError(f"expected a string, got {_named(value)}")
    return value


def _named(value: object) -> str:
    if isinstance(value, (dict, list, tuple)):
        return "a map" if isinstance(value, dict) else "a list"
    return printed(value, Meter())[:_SHOWN]


def _index(value: object, *keys: object) -> object:
    for key in keys:
        if isinstance(value, dict):
            value = value.get(key, "")
        elif isinstance(value, (list, tuple)) and isinstance(key, int) and 0 <= key < len(value):
            value = value[key]
        else:
            raise TemplateError(f"no element {_named(key)}")
    return value


def _compare(holds: Callable[[Any, Any], bool]) -> Callable[..., bool]:
    """Compare the first value with each of the others, as Go does: no maps and no lists."""

    def call(first: object, *others: object) -> bool:
        if any(isinstance(value, (dict, list, tuple)) for value in (first, *others)):
            raise TemplateError("maps and lists cannot be compared")
        if any(isinstance(first, str) is not isinstance(other, str) for other in others):
            raise TemplateError("incompatible types for comparison")
        return any(holds(first, other) for other in others)

    return call


def _printf(meter: Meter, form: object, *values: object) -> str:
    rest = iter(values)

    def verb(match: re.Match[str]) -> str:
        if match[1] == "%":
            return "%"
        if match[1] not in ("s", "d", "v", "q"):
            raise TemplateError(f"printf supports %s, %d, %v and %q, not {match[0]}")
        value = printed(next(rest, None), meter)
        return f'"{value}"' if match[1] == "q" else value

    return _VERB.sub(verb, _text(form))


def _joined(separator: str, end: str) -> Callable[..., str]:
    return lambda meter, *values: separator.join(printed(value, meter) for value in values) + end


def shell_quoted(meter: Meter, value: object) -> str:
    """Quote a value as one word for a shell in a container's command.

    Kubernetes expands ``$(NAME)`` in commands before the shell sees them, and reads ``$$`` as ``$``.
    """
    return shlex.quote(printed(value, meter)).replace("$", "$$")


def _shutdown_timeout(pod: Any, pre_stop: Any) -> int:
    """Return the seconds that a server has when its pod ends, after ``pre_stop`` and with some to spare."""
    grace = pod.get("terminationGracePeriodSeconds") if isinstance(pod, dict) else None
    seconds = grace if isinstance(grace, int) else _GRACE
    return max(0, seconds - int(pre_stop) - min(5, seconds))


FUNCTIONS: dict[str, Function] = {
    "ChildName": _strict(lambda parent, suffix: child_name(_text(parent), _text(suffix)), 2, 2),
    "ShellQuote": _strict(shell_quoted, 1, 1, prints=True),
    "shutdownTimeout": _strict(_shutdown_timeout, 2, 2),
    "kvTransferConfig": _strict(transfer_flag, 1, 1),
    "or": _short_circuit(True),
    "and": _short_circuit(False),
    "not": _not,
    "eq": _strict(_compare(operator.eq), 2),
    **{name: _strict(_compare(getattr(operator, name)), 2, 2) for name in ("ne", "lt", "le", "gt", "ge")},
    "len": _strict(len, 1, 1),
    "index": _strict(_index, 1),
    "print": _strict(_joined("", ""), 0, prints=True),
    "println": _strict(_joined(" ", "\n"), 0, prints=True),
    "printf": _strict(_printf, 1, prints=True),
}
"""Go's own functions that make sense in one string, KServe's (``ChildName``, KS-3.1), and our ``ShellQuote``."""
