"""Where a request is worked on: on the event loop when it is small, and in one thread when it is not.

The loop does the input and output of everybody, health included, so nothing may keep it for long. Hooks are pure
functions of their request, so a thread may answer them; one thread, because they share one interpreter lock anyway, and
because two large requests at once would need the memory of both (docs/decisions/0014).
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import queue
import threading
import time
from collections.abc import Callable

INLINE_BYTES = 128 * 1024
"""Bodies up to this are answered on the loop, where that costs a millisecond or two and a thread would cost more."""
SLOW_SECONDS = 0.025
"""CPU time of one answer on the loop, above which the next ones go to the thread."""
SLOW_FOR = 10
"""How many times as long as it took. So slow answers take at most a tenth of the loop's time."""
STUCK_SECONDS = 10.0
"""Twenty times what the costliest request may take (docs/operations.md): the thread will not come back."""

_Job = tuple[int, int, Callable[[], bytes], "asyncio.Future[_Outcome]", asyncio.AbstractEventLoop]
_Outcome = tuple[bytes, BaseException | None]


class Worker:
    """Answers requests without keeping the loop from the others. The thread takes the smallest body first."""

    def __init__(self) -> None:
        self._jobs: queue.PriorityQueue[_Job] = queue.PriorityQueue()
        self._count = itertools.count()
        self._thread: threading.Thread | None = None
        self._began: float | None = None
        self._slow_until = 0.0

    @property
    def stuck(self) -> bool:
        """Whether the thread has worked on one request for longer than any may take."""
        began = self._began
        return began is not None and time.monotonic() - began > STUCK_SECONDS

    async def answer(self, handle: Callable[[bytes], bytes], body: bytes, *, inline: bool = True) -> bytes:
        """Return what ``handle`` returns for the body, or raise its error; on the loop if ``inline`` and small."""
        if not inline or len(body) > INLINE_BYTES or time.monotonic() < self._slow_until:
            return await self._in_thread(len(body), lambda: handle(body))
        began = time.thread_time()
        try:
            return handle(body)
        finally:
            spent = time.thread_time() - began
            if spent > SLOW_SECONDS:
                self._slow_until = time.monotonic() + SLOW_FOR * spent

    async def _in_thread(self, size: int, work: Callable[[], bytes]) -> bytes:
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="worker", daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[_Outcome] = loop.create_future()
        self._jobs.put((size, next(self._count), work, outcome, loop))
        answer, fault = await outcome
        if fault is not None:
            raise fault
        return answer

    def _serve(self) -> None:
        while True:
            self._work(*self._jobs.get()[2:])

    def _work(
        self, work: Callable[[], bytes], outcome: asyncio.Future[_Outcome], loop: asyncio.AbstractEventLoop
    ) -> None:
        if outcome.cancelled():
            return
        found: _Outcome
        self._began = time.monotonic()
        try:
            found = work(), None
        except BaseException as fault:  # noqa: BLE001 - whoever asked decides; the thread goes on
            found = b"", fault
        finally:
            self._began = None
        with contextlib.suppress(RuntimeError):  # the loop ended meanwhile
            loop.call_soon_threadsafe(_deliver, outcome, found)


def _deliver(outcome: asyncio.Future[_Outcome], found: _Outcome) -> None:
    if not outcome.done():
        outcome.set_result(found)
