"""Flags for a server that is started by a container of somebody else's making. Source: KS-3.14."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from app.kube.base import Json
from app.workload.engines.commandline import evaluates, words


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


def word(text: str, container: Mapping[str, Any]) -> str:
    """A text as one argument of a server, also where a script uses eval; Kubernetes reads ``$$`` as ``$``."""
    return (shlex.quote(text) if evaluates(container) else text).replace("$", "$$")
