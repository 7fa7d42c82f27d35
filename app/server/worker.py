"""Work on requests: small ones on the event loop, a few at a time, and large ones in one thread.

The loop does the input and output of all connections, health included, so nothing may keep it for long. Hooks are pure
functions of their request, so a thread may answer them; one thread, because they share one interpreter lock anyway, and
because two large requests at once would need the memory of both (docs/decisions/0014).
"""

import asyncio
import contextlib
import itertools
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from starlette.exceptions import HTTPException
from starlette.types import Scope

from app.limits import INLINE_BYTES, MAX_NEWCOMERS, SLOW_SECONDS, STUCK_SECONDS, TURN_SECONDS

AnswerT = TypeVar("AnswerT")
ItemT = TypeVar("ItemT")

SLOW_FOR = 10
"""Slow answers go to the thread for this multiple of their time, so they take a tenth of the loop's time at most."""

Outcome = tuple[object, BaseException | None]
"""An answer, or what was raised instead."""


class Disconnected(HTTPException):
    """The client left before it was answered. The status is not sent; metrics have it."""

    def __init__(self) -> None:
        super().__init__(499, "the client left")


@dataclass(slots=True)
class Caller:
    """A client's address, and the state of its connection."""

    address: str = ""
    abort: Callable[[], None] | None = None
    """Close the connection at once."""
    answered: bool = False
    """An earlier request on this connection was answered."""
    gone: bool = False
    answer: asyncio.Future[Outcome] | None = None
    """The last requested answer; it ends when the client leaves."""

    def leave(self) -> None:
        self.gone, self.abort = True, None  # without it, nothing but the garbage collector frees the connection
        if self.answer is not None and not self.answer.done():
            self.answer.set_result((b"", Disconnected()))


def caller_of(scope: Scope) -> Caller:
    """Return the caller of a request; an empty one with other servers than ours."""
    caller: Caller = scope.setdefault("state", {}).setdefault("caller", Caller())
    return caller


class FairQueue(Generic[ItemT]):
    """A queue with a line for each address, in which the lines take turns: a client with many items delays its own."""

    def __init__(self) -> None:
        self._lines: dict[str, deque[ItemT]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    def put(self, address: str, item: ItemT, *, first: bool = False) -> None:
        line = self._lines.setdefault(address, deque())
        if first:
            line.appendleft(item)
        else:
            line.append(item)

    def get(self) -> ItemT:
        """Take the first item of the first line, which then goes behind the others."""
        address = next(iter(self._lines))
        line = self._lines.pop(address)
        item = line.popleft()
        if line:
            self._lines[address] = line
        return item

    def drop(self) -> ItemT:
        """Take the first item of the longest line."""
        address = max(self._lines, key=lambda address: len(self._lines[address]))
        item = self._lines[address].popleft()
        if not self._lines[address]:
            del self._lines[address]
        return item

    def remove(self, address: str, item: ItemT) -> bool:
        """Take out an item; report whether it was still there."""
        line = self._lines.get(address, deque())
        if item not in line:
            return False
        line.remove(item)
        if not line:
            del self._lines[address]
        return True


@dataclass(eq=False)
class _Call:
    is_new: bool
    """The request is the first of its connection."""
    size: int
    work: Callable[[], object]
    answer: asyncio.Future[Outcome]

    def run(self) -> Outcome:
        """Make the answer, unless the client has left."""
        if self.answer.done():
            return self.answer.result()
        try:
            return self.work(), None
        except BaseException as error:  # noqa: BLE001 - raised where the answer is awaited
            return None, error

    def deliver(self, outcome: Outcome) -> None:
        if not self.answer.done():
            self.answer.set_result(outcome)


class Worker:
    """Answers requests without keeping the loop from the others.

    Small requests wait in a :class:`FairQueue`, where the first request of a new connection goes before those of old
    ones. The thread takes the smallest first.
    """

    def __init__(self) -> None:
        self._waiting: FairQueue[_Call] = FairQueue()
        self._newcomers = 0
        self._jobs: queue.PriorityQueue[tuple[int, int, _Call]] = queue.PriorityQueue()
        """By the size of the body, then by a serial number."""
        self._count = itertools.count()
        self._thread: threading.Thread | None = None
        self._began: float | None = None
        self._slow_until = 0.0

    @property
    def stuck(self) -> bool:
        """Report whether the thread has worked on one request for longer than any may take."""
        began = self._began
        return began is not None and time.monotonic() - began > STUCK_SECONDS

    @property
    def crowded(self) -> bool:
        """Report whether the first requests of new connections come faster than they are answered."""
        return self._newcomers >= MAX_NEWCOMERS

    async def answer(
        self, handle: Callable[[bytes], AnswerT], body: bytes, caller: Caller, *, inline: bool = True
    ) -> AnswerT:
        """Return ``handle(body)``: from the loop if ``inline`` and small, else the thread; or raise Disconnected."""
        loop = asyncio.get_running_loop()
        call = _Call(not caller.answered, len(body), lambda: handle(body), loop.create_future())
        if not inline or len(body) > INLINE_BYTES:
            self._to_thread(call)
        else:
            if not self._waiting:
                loop.call_soon(self._take_turn, loop)
            self._waiting.put(caller.address, call, first=call.is_new)
            self._newcomers += call.is_new
        caller.answer = call.answer
        try:
            content, error = await call.answer
        finally:
            if caller.gone and self._waiting.remove(caller.address, call):
                self._newcomers -= call.is_new
        if error is not None:
            raise error
        return cast("AnswerT", content)

    def _take_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        """Answer waiting requests for one turn's time, then let the loop serve connections before the next turn."""
        end = time.monotonic() + TURN_SECONDS
        while self._waiting and time.monotonic() < end:
            call = self._waiting.get()
            self._newcomers -= call.is_new
            if time.monotonic() < self._slow_until:
                self._to_thread(call)
                continue
            began = time.thread_time()
            call.deliver(call.run())
            spent = time.thread_time() - began
            if spent > SLOW_SECONDS:
                self._slow_until = time.monotonic() + SLOW_FOR * spent
        if self._waiting:
            loop.call_soon(self._take_turn, loop)

    def _to_thread(self, call: _Call) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="worker", daemon=True)
            self._thread.start()
        self._jobs.put((call.size, next(self._count), call))

    def _serve(self) -> None:
        while True:
            self._work(self._jobs.get()[2])

    def _work(self, call: _Call) -> None:
        self._began = time.monotonic()
        outcome = call.run()
        self._began = None
        with contextlib.suppress(RuntimeError):  # the loop ended meanwhile
            call.answer.get_loop().call_soon_threadsafe(call.deliver, outcome)
