"""Lines for whoever waits: what is done, and the seconds that it took."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STEPS = "MODELHOOKS_NODE_STEPS"
"""The variable that names the file in which the steps of all processes of a run come together."""


def say(line: str) -> None:
    """A line on standard error."""
    print(line, file=sys.stderr, flush=True)


@contextmanager
def timed(what: str) -> Iterator[float]:
    """Say what took how long, whether or not it succeeded; gives when it began."""
    began = time.monotonic()
    try:
        yield began
    finally:
        say(f"  {what}: {time.monotonic() - began:.0f} s")


@contextmanager
def step(what: str) -> Iterator[None]:
    """The same, noted for `table`."""
    with timed(what) as began:
        yield
    note(what, time.monotonic() - began)


def note(what: str, seconds: float) -> None:
    """Add a row to `table`."""
    if path := os.environ.get(STEPS):
        with Path(path).open("a", encoding="utf-8") as notes:
            notes.write(f"{seconds:.0f}\t{what}\n")


def table(notes: Path) -> str:
    """The steps so far, as a table of Markdown."""
    rows = [line.split("\t") for line in notes.read_text(encoding="utf-8").splitlines()] if notes.exists() else []
    lines = [f"| {what} | {seconds} |" for seconds, what in rows]
    return "\n".join(["| Step | Seconds |", "|---|---:|", *lines])
