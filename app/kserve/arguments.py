"""Flags for a server that is started by a container of somebody else's making. Source: KS-3.14."""

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from app.kube.base import Json
from app.workload.engine import ADDITIONAL

_SCRIPT_FOLLOWS = re.compile(r"-[a-z]*c")


def passes_arguments(container: Mapping[str, Any]) -> bool:
    """Report whether ``args`` reach a server: not if a shell takes them as its script, or its script ignores them."""
    command = [str(part) for part in container.get("command") or ()]
    if command and _SCRIPT_FOLLOWS.fullmatch(command[-1]):
        return False
    scripts = [place + 1 for place, part in enumerate(command[:-1]) if _SCRIPT_FOLLOWS.fullmatch(part)]
    if not scripts:
        return True
    takes = "$@" in command[scripts[0]] or "$*" in command[scripts[0]]
    return takes and len(command) > scripts[0] + 1  # the first word behind the script is its name, as in ``--``


def with_arguments(container: Json, flags: Sequence[str]) -> Json:
    """Add flags to a container's server, before the user's flags, which override them.

    If the user's arguments begin with a word such as ``serve``, the flags are added at the end.
    """
    args = container.get("args") or []
    first = str(args[0]) if args else "-"
    return {**container, "args": [*flags, *args] if first.startswith("-") else [*args, *flags]}


def has_flag(container: Mapping[str, Any], flag: str) -> bool:
    """Report whether the user sets the flag, in any of its forms."""
    return any(flag in part for part in words(container))


def words(container: Mapping[str, Any]) -> list[str]:
    """Return the words with which a server is started, as far as the container has them."""
    parts = [str(part) for part in (*(container.get("command") or ()), *(container.get("args") or ()))]
    return parts + [str(v.get("value")) for v in container.get("env") or () if v.get("name") == ADDITIONAL]


def word(text: str, container: Mapping[str, Any]) -> str:
    """A text as one argument of a server, also where a script uses eval; Kubernetes reads ``$$`` as ``$``."""
    return (shlex.quote(text) if evaluates(container) else text).replace("$", "$$")


def evaluates(container: Mapping[str, Any]) -> bool:
    """Report whether a script reads the arguments again, as a shell reads words."""
    return any("eval " in str(part) for part in container.get("command") or ())
