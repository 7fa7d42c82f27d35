"""The upstream versions that this release follows: the table of docs/compatibility.md and of ``--version``."""

from __future__ import annotations

from typing import NamedTuple


class Upstream(NamedTuple):
    """A followed version of an operator."""

    version: str
    cases: int
    """Number of its recorded answers."""
    takeover: str
    """Whether a test shows that taking over an installation restarts nothing."""


FOLLOWED = (
    Upstream("LLMKube v0.8.7", 206, "tested"),
    Upstream("LLMKube v0.9.19", 145, "tested"),
    Upstream("llmaz' `main` of 2025-10-30 (after v0.1.4)", 183, "tested"),
    Upstream("KServe v0.17.0", 228, "tested"),
)


def table() -> str:
    """Return the versions as a table in Markdown."""
    rows = [f"| {one.version} | {one.cases} | {one.takeover} |" for one in FOLLOWED]
    return "\n".join(["| Upstream | Recorded cases | Taking over restarts nothing |", "|---|---|---|", *rows])
