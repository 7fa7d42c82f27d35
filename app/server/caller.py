"""The client at the other end of a connection."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from starlette.types import Scope

Outcome = tuple[object, BaseException | None]
"""An answer, or what was raised instead."""


class Disconnected(Exception):
    """The client left before it was answered."""


@dataclass(slots=True)
class Caller:
    """A client's address, and the state of its connection."""

    address: str = ""
    abort: Callable[[], None] | None = None
    """Close the connection at once."""
    answered: bool = False
    """An earlier request on this connection was answered."""
    gone: bool = False
    _answer: asyncio.Future[Outcome] | None = None

    def waits_for(self, answer: asyncio.Future[Outcome]) -> None:
        """Note the answer to end when the client leaves."""
        self._answer = answer

    def leave(self) -> None:
        """End the wait for the answer, as the client has left."""
        self.gone, self.abort = True, None  # without it, nothing but the garbage collector frees the connection
        if self._answer is not None and not self._answer.done():
            self._answer.set_result((b"", Disconnected()))


def caller_of(scope: Scope) -> Caller:
    """Return the caller of a request; an empty one with other servers than ours."""
    caller: Caller = scope.setdefault("state", {}).setdefault("caller", Caller())
    return caller
