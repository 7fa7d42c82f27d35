"""Progress messages: each step and its duration."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STEPS = "MODELHOOKS_NODE_STEPS"
"""The variable that names the file in which all processes of a run record their steps."""


def say(line: str) -> None:
    """Print a line to standard error."""
    print(line, file=sys.stderr, flush=True)


@contextmanager
def timed(what: str) -> Iterator[float]:
    """Print the duration of the block, whether or not it succeeds; yield its start time."""
    began = time.monotonic()
    try:
        yield began
    finally:
        say(f"  {what}: {time.monotonic() - began:.0f} s")


@contextmanager
def step(what: str) -> Iterator[None]:
    """Do the same as `timed`, and record a successful step for `table`."""
    with timed(what) as began:
        yield
    note(what, time.monotonic() - began)


def note(what: str, seconds: float) -> None:
    """Add a row to `table`."""
    if path := os.environ.get(STEPS):
        with Path(path).open("a", encoding="utf-8") as notes:
            notes.write(f"{seconds:.0f}\t{what}\n")


def table(notes: Path) -> str:
    """Return the steps so far as a Markdown table."""
    rows = [line.split("\t") for line in notes.read_text(encoding="utf-8").splitlines()] if notes.exists() else []
    lines = [f"| {what} | {seconds} |" for seconds, what in rows]
    return "\n".join(["| Step | Seconds |", "|---|---:|", *lines])
