"""Generates the table of options by field in ``app/llmkube/README.md`` from the runtimes' flags."""

from __future__ import annotations

import re

from app.llmkube.runtimes.flag import Flag
from app.llmkube.runtimes.registry import RUNTIMES

HEADER = "| Field | Option | Runtime | Left out |\n|---|---|---|---|\n"
_ROWS = re.compile(re.escape(HEADER) + r"(?:\|.*\n)*")


def page(text: str) -> str:
    """Return a page with its table of options brought up to date."""
    options: dict[tuple[str, str, str], list[str]] = {}
    for runtime in RUNTIMES.values():
        for path, flag in runtime.flags.items():
            options.setdefault((path, _option(flag), _left_out(flag)), []).append(runtime.name)
    rows = (
        f"| `{path}` | {option} | {', '.join(names)} | {left_out} |\n"
        for (path, option, left_out), names in options.items()
    )
    return _ROWS.sub(lambda _: HEADER + "".join(rows), text)


def _option(flag: Flag) -> str:
    """Return an option as it is written, with the other spellings by which ``extraArgs`` may replace it."""
    written = f"`{flag.name} {flag.value}`" if flag.value else f"`{flag.name}`"
    aliases = ", ".join(f"`{alias}`" for alias in flag.aliases)
    return f"{written} ({aliases})" if aliases else written


def _left_out(flag: Flag) -> str:
    default = f"`{flag.default}`" if flag.default is not None else ""
    return "; ".join(filter(None, (default, "without a GPU" if flag.needs_gpu else "")))
