"""Flags for a server that is started by a container of somebody else's making. Source: KS-3.14."""

import shlex
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from app.kube.base import Json
from app.workload.engines.commandline import evaluates, split_words, words
from app.workload.engines.engine import ADDITIONAL, engine_named
from app.workload.engines.grammar import releases_of
from app.workload.engines.parse import Parsed, read


def with_arguments(container: Json, flags: Sequence[str]) -> Json:
    """Add flags to a container's server, before the user's flags, which override them.

    If the user's arguments begin with a word such as ``serve``, the flags are added at the end.
    """
    args = container.get("args") or []
    first = str(args[0]) if args else "-"
    return {**container, "args": [*flags, *args] if first.startswith("-") else [*args, *flags]}


def options(container: Mapping[str, Any]) -> Parsed:
    """Return the options of a server as its engine reads them, with those of its script and the presets' variable."""
    image = container.get("image") or ""
    engine = engine_named(image) if isinstance(image, str) else None
    return _options(engine.name if engine is not None else "vllm", tuple(split_words(words(container))))


@lru_cache(maxsize=256)
def _options(engine: str, arguments: Sequence[str]) -> Parsed:
    _, newest = releases_of(engine)[-1]
    return read(newest, arguments)


def has_option(container: Mapping[str, Any], *names: str) -> bool:
    """Report whether a server is started with one of the options, in any spelling that its engine reads."""
    parsed = options(container)
    return parsed.gives(*names) or any(
        occurrence.name in names for occurrence in parsed.occurrences if not occurrence.option
    )


def may_hide(container: Mapping[str, Any], name: str) -> bool:
    """Report whether a server may be started with an option that cannot be read here: from a script, or a variable."""
    script = " ".join(str(part) for part in container.get("command") or ()).replace("_", "-")
    additional = (variable for variable in container.get("env") or () if variable.get("name") == ADDITIONAL)
    is_from_elsewhere = bool(container.get("envFrom")) or any(variable.get("valueFrom") for variable in additional)
    return is_from_elsewhere or (name in script and not options(container).all(name))


def has_flag(container: Mapping[str, Any], name: str) -> bool:
    """Report whether a program written in Go is started with a flag, after one dash or two."""
    flags = (part.partition("=")[0] for part in split_words(words(container)))
    return any(flag in (f"-{name}", f"--{name}") for flag in flags)


def word(text: str, container: Mapping[str, Any]) -> str:
    """A text as one argument of a server, also where a script uses eval; Kubernetes reads ``$$`` as ``$``."""
    return (shlex.quote(text) if evaluates(container) else text).replace("$", "$$")
