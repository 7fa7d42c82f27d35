"""Progress of long work: one line on standard error, which is erased at the end."""

import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
EVERY_SECONDS = 0.1
AFTER_SECONDS = 1.0


@contextmanager
def line() -> Iterator[Callable[[str], None]]:
    """Yield a function that replaces the line on the terminal; it does nothing in a pipe, or in the first second."""
    shown, due = False, time.monotonic() + AFTER_SECONDS

    def show(text: str) -> None:
        nonlocal shown, due
        if time.monotonic() >= due and sys.stderr.isatty():
            due, shown = time.monotonic() + EVERY_SECONDS, True
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def counted(items: Collection[T], done: str) -> Iterator[T]:
    """Yield the items, and show how many of them there were: ``counted(objects, "objects checked")``."""
    with line() as show:
        for number, item in enumerate(items):
            show(f"{number} of {len(items)} {done}")
            yield item
