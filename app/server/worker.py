"""Work on requests: short ones on the event loop, a few at a time, and others in a few threads.

The loop does the input and output of all connections, health included, so nothing may keep it for long. Hooks are pure
functions of their request, so threads may answer them. Why no request starves: decisions/0014.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Generic, NamedTuple, TypeVar, cast

from starlette.exceptions import HTTPException
from starlette.types import Scope

from app.limits import INLINE_BYTES, LARGE_BODY_BYTES, SLOW_SECONDS, STUCK_SECONDS, TURN_SECONDS

AnswerT = TypeVar("AnswerT")
KeyT = TypeVar("KeyT")
ItemT = TypeVar("ItemT")

SLOW_FOR = 10
"""After a slow answer, a line goes to the threads for this multiple of its time."""

Outcome = tuple[object, BaseException | None]
"""An answer, or what was raised instead."""


class Disconnected(HTTPException):
    """The client left before it was answered. The status is not sent; metrics have it."""

    def __init__(self) -> None:
        super().__init__(499, "the client left")


class Lane(Enum):
    """The kind of a request. An API server sends reviews and conversions of all users from one address."""

    HOOK = auto()
    REVIEW = auto()
    CONVERSION = auto()


THREADS = len(Lane) + 1
"""One address has one line, and so at most one thread, in each lane: it cannot keep all threads."""


class Line(NamedTuple):
    """Whose requests wait for each other."""

    address: str
    lane: Lane


@dataclass(eq=False, slots=True)
class Call:
    """A request that waits for its answer.

    The traceback of an error refers to the frames in which this is a variable, so it does not refer to the error for
    longer than necessary: else both, and the body, stay in memory until the garbage collector comes.
    """

    line: Line
    size: int
    work: Callable[[], object]
    done: asyncio.Future[None]
    begun: bool = False
    _outcome: Outcome = (None, None)

    @property
    def is_large(self) -> bool:
        return self.size > LARGE_BODY_BYTES

    def finish(self, outcome: Outcome) -> None:
        if not self.done.done():
            self._outcome = outcome
            self.done.set_result(None)

    def take(self) -> Outcome:
        outcome, self._outcome = self._outcome, (None, None)
        return outcome


@dataclass(slots=True)
class Caller:
    """A client's address, and the state of its connection."""

    address: str = ""
    abort: Callable[[], None] | None = None
    """Close the connection at once."""
    answered: bool = False
    """An earlier request on this connection was answered."""
    gone: bool = False
    call: Call | None = None
    """The request that waits for its answer."""
    is_awaited: Callable[[], bool] = lambda: False
    """Other connections of the address wait until this one ends."""

    def leave(self) -> None:
        # Without the callbacks, nothing but the garbage collector frees the connection.
        self.gone, self.abort, self.is_awaited = True, None, bool
        if self.call is not None:
            self.call.finish((None, Disconnected()))


def caller_of(scope: Scope) -> Caller:
    """Return the caller of a request; an empty one with other servers than ours."""
    caller: Caller = scope.setdefault("state", {}).setdefault("caller", Caller())
    return caller


class FairQueue(Generic[KeyT, ItemT]):
    """A queue with a line for each key. The lines take turns, so a client with many items delays its own.

    A line that is passed over keeps its place, and one that was served goes behind the others: before the first item of
    a line, at most one of each other line is taken.
    """

    def __init__(self) -> None:
        self._lines: dict[KeyT, deque[ItemT]] = {}
        """In the order of their turns."""

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    def count(self, key: KeyT) -> int:
        return len(self._lines.get(key, ()))

    def put(self, key: KeyT, item: ItemT) -> None:
        self._lines.setdefault(key, deque()).append(item)

    def get(self, may: Callable[[KeyT, ItemT], bool] = lambda _key, _item: True) -> ItemT | None:
        """Take the first item of the first line where ``may`` allows it."""
        for key, line in self._lines.items():
            if may(key, line[0]):
                item = line.popleft()
                del self._lines[key]
                if line:
                    self._lines[key] = line
                return item
        return None

    def drop(self, is_idle: Callable[[ItemT], bool] = lambda _item: False) -> ItemT:
        """Take the last item of the longest line, or its first one if that is idle."""
        key = max(self._lines, key=lambda key: len(self._lines[key]))
        line = self._lines[key]
        item = line.popleft() if is_idle(line[0]) else line.pop()
        if not line:
            del self._lines[key]
        return item

    def remove(self, key: KeyT, item: ItemT) -> bool:
        """Take out an item; report whether it was still there."""
        line = self._lines.get(key, deque())
        if item not in line:
            return False
        line.remove(item)
        if not line:
            del self._lines[key]
        return True


class Schedule:
    """Which call is worked on next: the oldest of its line, while the lines take turns.

    Two calls of one line, or two large ones, are never worked on at once. The first bounds what one client takes from
    others, the second what all take from the memory.
    """

    def __init__(self) -> None:
        self._waiting: FairQueue[Line, Call] = FairQueue()
        self._busy: set[Line] = set()
        self._has_large = False

    def put(self, call: Call) -> None:
        self._waiting.put(call.line, call)

    def remove(self, call: Call) -> bool:
        return self._waiting.remove(call.line, call)

    def begin(self) -> Call | None:
        """Take the next call whose work may begin now."""
        call = self._waiting.get(self._may_begin)
        if call is not None:
            self._busy.add(call.line)
            self._has_large |= call.is_large
        return call

    def end(self, call: Call) -> None:
        """Let calls begin that waited for this one."""
        self._busy.discard(call.line)
        self._has_large &= not call.is_large

    def _may_begin(self, line: Line, call: Call) -> bool:
        return line not in self._busy and not (call.is_large and self._has_large)


class Worker:
    """Answers requests: short ones on the loop, a few at a time, and others in threads.

    A request is short if its body is small and the last answer of its line was. In both places the oldest request of a
    line is the first, and the lines take turns.
    """

    def __init__(self) -> None:
        self._short: FairQueue[Line, Call] = FairQueue()
        self._long = Schedule()
        self._slow_until: dict[Line, float] = {}
        self._changed = threading.Condition()
        """Guards the schedule."""
        self._threads = 0
        self._began: dict[int, float] = {}
        """When each busy thread began its work, by the thread's id."""

    @property
    def stuck(self) -> bool:
        """Report whether a thread has worked on one request for longer than any may take."""
        now = time.monotonic()
        return any(now - began > STUCK_SECONDS for began in tuple(self._began.values()))

    async def answer(
        self, handle: Callable[[bytes], AnswerT], body: bytes, caller: Caller, lane: Lane = Lane.HOOK
    ) -> AnswerT:
        """Return ``handle(body)``, or raise what it raises, or Disconnected."""
        loop = asyncio.get_running_loop()
        call = Call(Line(caller.address, lane), len(body), lambda: handle(body), loop.create_future())
        caller.call = call
        self._put(call, loop)
        try:
            await call.done
        finally:
            caller.call = None
            if not call.begun:
                self._remove(call)
        content, error = call.take()
        try:
            if error is not None:
                raise error
            return cast("AnswerT", content)
        finally:
            del error

    def _put(self, call: Call, loop: asyncio.AbstractEventLoop) -> None:
        if not self._is_short(call):
            self._to_thread(call)
            return
        if not self._short:
            loop.call_soon(self._take_turn, loop)
        self._short.put(call.line, call)

    def _is_short(self, call: Call) -> bool:
        small = call.line.lane is not Lane.CONVERSION and call.size <= INLINE_BYTES
        return small and time.monotonic() >= self._slow_until.get(call.line, 0.0)

    def _remove(self, call: Call) -> None:
        if not self._short.remove(call.line, call):
            with self._changed:
                self._long.remove(call)

    def _take_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        """Answer waiting requests for one turn's time, then let the loop serve connections before the next turn."""
        end = time.monotonic() + TURN_SECONDS
        while time.monotonic() < end and (call := self._short.get()) is not None:
            if self._is_short(call):
                call.finish(self._run(call))
            else:
                self._to_thread(call)
        if self._short:
            loop.call_soon(self._take_turn, loop)

    def _to_thread(self, call: Call) -> None:
        with self._changed:
            self._long.put(call)
            self._changed.notify()
        if self._threads < THREADS:
            self._threads += 1
            threading.Thread(target=self._serve, name=f"worker-{self._threads}", daemon=True).start()

    def _serve(self) -> None:
        while True:
            self._work(self._begin())

    def _begin(self) -> Call:
        with self._changed:
            while (call := self._long.begin()) is None:
                self._changed.wait()
            return call

    def _work(self, call: Call) -> None:
        self._began[threading.get_ident()] = time.monotonic()
        self._post(call, self._run(call))
        with self._changed:
            self._long.end(call)
            self._changed.notify()

    def _post(self, call: Call, outcome: Outcome) -> None:
        del self._began[threading.get_ident()]
        with contextlib.suppress(RuntimeError):  # the loop ended meanwhile
            call.done.get_loop().call_soon_threadsafe(call.finish, outcome)

    def _run(self, call: Call) -> Outcome:
        """Make the answer, unless the client has left, and note the time for the next ones of its line."""
        if call.done.done():
            return None, None
        call.begun, began = True, time.thread_time()
        try:
            return _outcome_of(call.work)
        finally:
            self._note(call, time.thread_time() - began)

    def _note(self, call: Call, spent: float) -> None:
        if spent > SLOW_SECONDS and call.size <= INLINE_BYTES:
            now = time.monotonic()
            slow = {line: until for line, until in self._slow_until.copy().items() if until > now}
            self._slow_until = slow | {call.line: now + SLOW_FOR * spent}


def _outcome_of(work: Callable[[], object]) -> Outcome:
    try:
        return work(), None
    except BaseException as error:  # noqa: BLE001 - raised where the answer is awaited
        return None, error
