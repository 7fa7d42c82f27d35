"""How far a long command is, on a terminal."""

from __future__ import annotations

import sys
import time
from typing import Self

EVERY_SECONDS = 0.1
AFTER_SECONDS = 1.0


class Meter:
    """A line on standard error that counts objects and goes away; silent in a pipe, and when it is over in a second."""

    def __init__(self) -> None:
        self._count = 0
        self._shown = False
        self._next = time.monotonic() + AFTER_SECONDS
        self._on = sys.stderr.isatty()

    def __enter__(self) -> Self:
        return self

    def tick(self, round_: int) -> None:
        """One more object, in this round."""
        self._count += 1
        if self._on and time.monotonic() >= self._next:
            self._next = time.monotonic() + EVERY_SECONDS
            self._shown = True
            sys.stderr.write(f"\r{self._count} syncs, round {round_}")
            sys.stderr.flush()

    def __exit__(self, *_: object) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
