"""The worker: in which thread and order requests are answered, and that none blocks the event loop.

The tests control the order of events; they measure no durations.
"""

from __future__ import annotations

import asyncio
import threading

import pytest

from app.limits import INLINE_BYTES, MAX_NEWCOMERS, SLOW_SECONDS, STUCK_SECONDS
from app.server.worker import Caller, Disconnected, Worker

LARGE = b" " * (INLINE_BYTES + 1)


def where(_body: bytes) -> bytes:
    return threading.current_thread().name.encode()


def test_only_large_bodies_go_to_the_thread() -> None:
    """A thread costs more than a small answer."""

    async def main() -> list[bytes]:
        worker = Worker()
        return [await worker.answer(where, body, Caller()) for body in (LARGE[1:], LARGE)]

    small, large = asyncio.run(main())
    assert (small, large) == (threading.current_thread().name.encode(), b"worker")


def test_handlers_that_are_not_inline_go_to_the_thread() -> None:
    """The size of the body does not matter."""
    assert asyncio.run(Worker().answer(where, b"{}", Caller(), inline=False)) == b"worker"


def test_small_requests_are_answered_while_a_large_one_is_worked_on() -> None:
    """The large request ends only after the small one is answered."""
    answered = threading.Event()

    def endless(_body: bytes) -> bytes:
        assert answered.wait(60)
        return b"late"

    async def main() -> tuple[bytes, bytes]:
        worker = Worker()
        large = asyncio.create_task(worker.answer(endless, LARGE, Caller()))
        await asyncio.sleep(0)
        small = await worker.answer(where, b"{}", Caller())
        answered.set()
        return small, await large

    assert asyncio.run(main()) == (threading.current_thread().name.encode(), b"late")


def test_the_smallest_waits_least() -> None:
    """The smallest waiting request is the thread's next one."""
    order: list[int] = []
    begun, go_on = threading.Event(), threading.Event()

    def first(_body: bytes) -> bytes:
        begun.set()
        assert go_on.wait(60)
        return b""

    def note(body: bytes) -> bytes:
        order.append(len(body) - len(LARGE))
        return b""

    async def main() -> None:
        worker = Worker()
        tasks = [asyncio.create_task(worker.answer(first, LARGE, Caller()))]
        await asyncio.to_thread(begun.wait, 60)
        tasks += [asyncio.create_task(worker.answer(note, LARGE + b" " * more, Caller())) for more in (3, 1, 2)]
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.gather(*tasks)

    asyncio.run(main())
    assert order == [1, 2, 3]


def test_addresses_take_turns_and_newcomers_go_first() -> None:
    """A client with many requests delays its own, but not the first one of a new connection."""
    order: list[str] = []

    def note(body: bytes) -> bytes:
        order.append(body.decode())
        return b""

    async def main() -> None:
        worker = Worker()
        callers = [(f"old {n}", Caller("10.0.0.1", answered=True)) for n in range(3)]
        callers += [("new", Caller("10.0.0.1")), ("other", Caller("10.0.0.2", answered=True))]
        await asyncio.gather(*(worker.answer(note, name.encode(), caller) for name, caller in callers))

    asyncio.run(main())
    assert order == ["new", "other", "old 0", "old 1", "old 2"]


@pytest.mark.parametrize("body", [b"{}", LARGE], ids=["small", "large"])
def test_requests_of_clients_that_left_are_not_worked_on(body: bytes) -> None:
    """They are not counted as waiting either."""

    async def main() -> None:
        worker, caller = Worker(), Caller()
        task = asyncio.create_task(worker.answer(lambda _: pytest.fail("worked on"), body, caller))
        await asyncio.sleep(0)
        caller.leave()
        with pytest.raises(Disconnected):
            await task
        assert (await worker.answer(where, b"{}", Caller()), worker.crowded) == (b"MainThread", False)

    asyncio.run(main())


def test_the_worker_is_crowded_by_newcomers_only() -> None:
    """Old connections and requests in the thread do not keep new connections from being opened."""

    async def main() -> list[bool]:
        found = []
        for answered, body in ((True, b"{}"), (False, LARGE), (False, b"{}")):
            worker, calls = Worker(), range(MAX_NEWCOMERS)
            tasks = [asyncio.create_task(worker.answer(where, body, Caller(answered=answered))) for _ in calls]
            await asyncio.sleep(0)
            found.append(worker.crowded)
            await asyncio.gather(*tasks)
            found.append(worker.crowded)
        return found

    assert asyncio.run(main()) == [False, False, False, False, True, False]


@pytest.mark.parametrize("fault", [KeyError("x"), RecursionError(), SystemExit(3)])
def test_the_thread_survives_what_it_works_on(fault: BaseException) -> None:
    """The caller gets the exception."""

    def fail(_body: bytes) -> bytes:
        raise fault

    async def main() -> bytes:
        worker = Worker()
        with pytest.raises(type(fault)):
            await worker.answer(fail, LARGE, Caller())
        return await worker.answer(where, LARGE, Caller())

    assert asyncio.run(main()) == b"worker"


def test_a_slow_small_request_sends_the_next_ones_to_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """They go there for ten times as long as it took, so slow requests use at most a tenth of the loop."""
    spent, now = [0.0], [1000.0]
    monkeypatch.setattr("app.server.worker.time.thread_time", lambda: spent[0])
    monkeypatch.setattr("app.server.worker.time.monotonic", lambda: now[0])

    def slow(body: bytes) -> bytes:
        spent[0] += 2 * SLOW_SECONDS
        return where(body)

    async def main() -> list[bytes]:
        worker = Worker()
        found = [await worker.answer(handle, b"{}", Caller()) for handle in (where, slow, where)]
        now[0] += 21 * SLOW_SECONDS
        return [*found, await worker.answer(where, b"{}", Caller())]

    here = threading.current_thread().name.encode()
    assert asyncio.run(main()) == [here, here, b"worker", here]


def test_a_thread_that_does_not_come_back_is_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    """An idle thread is never stuck."""
    now = [1000.0]
    monkeypatch.setattr("app.server.worker.time.monotonic", lambda: now[0])
    begun, go_on = threading.Event(), threading.Event()

    def endless(_body: bytes) -> bytes:
        begun.set()
        assert go_on.wait(60)
        return b""

    async def main() -> None:
        worker = Worker()
        task = asyncio.create_task(worker.answer(endless, LARGE, Caller()))
        await asyncio.to_thread(begun.wait, 60)
        found = [worker.stuck]
        now[0] += STUCK_SECONDS + 1
        found.append(worker.stuck)
        go_on.set()
        await task
        assert [*found, worker.stuck] == [False, True, False]

    asyncio.run(main())
