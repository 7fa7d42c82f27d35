"""The upstream versions that this release follows: in docs/compatibility.md and ``--version``."""

from typing import NamedTuple


class Upstream(NamedTuple):
    version: str
    cases: int
    """Number of its recorded answers."""
    takeover: str
    """``tested`` if a test shows that taking over an installation restarts nothing."""


FOLLOWED = (
    Upstream("LLMKube v0.8.7", 206, "tested"),
    Upstream("LLMKube v0.9.19", 145, "tested"),
    Upstream("llmaz' main of 2025-10-30 (after v0.1.4)", 183, "tested"),
    Upstream("KServe v0.17.0", 228, "tested"),
    Upstream("KServe v0.20.0", 190, "tested"),
)


def table() -> str:
    rows = [f"| {upstream.version} | {upstream.cases} | {upstream.takeover} |" for upstream in FOLLOWED]
    return "\n".join(["| Upstream | Recorded cases | Taking over restarts nothing |", "|---|---|---|", *rows])
