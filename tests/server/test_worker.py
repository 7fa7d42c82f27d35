"""The worker: in which thread and order requests are answered, and that none blocks the event loop.

The tests control the order of events; they measure no durations.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from app.limits import INLINE_BYTES, LARGE_BODY_BYTES, SLOW_SECONDS, STUCK_SECONDS
from app.server.worker import Caller, Disconnected, Lane, Worker

LARGE = b" " * (INLINE_BYTES + 1)


def where(_body: bytes) -> bytes:
    """Return ``worker`` in any of the worker's threads."""
    return threading.current_thread().name.partition("-")[0].encode()


def test_only_large_bodies_go_to_the_thread() -> None:
    """A thread costs more than a small answer."""

    async def main() -> list[bytes]:
        worker = Worker()
        return [await worker.answer(where, body, Caller()) for body in (LARGE[1:], LARGE)]

    small, large = asyncio.run(main())
    assert (small, large) == (threading.current_thread().name.encode(), b"worker")


def test_conversions_go_to_a_thread() -> None:
    """Small ones may take long. The size of the body does not matter."""
    assert asyncio.run(Worker().answer(where, b"{}", Caller(), Lane.CONVERSION)) == b"worker"


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


class Stage:
    """A worker that is busy with one request, until the others have been put."""

    def __init__(self) -> None:
        self.worker, self.order = Worker(), list[str]()
        self._begun, self._go_on = threading.Event(), threading.Event()

    async def play(self, first: tuple[Caller, Lane], *others: tuple[str, bytes, Caller, Lane]) -> list[str]:
        """Return the names of the other requests in the order in which they were worked on."""
        busy = asyncio.create_task(self.worker.answer(self._wait, LARGE, *first))
        await asyncio.to_thread(self._begun.wait, 60)
        tasks = [asyncio.create_task(self._note(*other)) for other in others]
        await asyncio.sleep(0)
        self._go_on.set()
        await asyncio.gather(busy, *tasks)
        return self.order

    def _wait(self, _body: bytes) -> bytes:
        self._begun.set()
        assert self._go_on.wait(60)
        return b""

    async def _note(self, name: str, body: bytes, caller: Caller, lane: Lane) -> None:
        def note(_body: bytes) -> bytes:
            self.order.append(name)
            return b""

        await self.worker.answer(note, body, caller, lane)


def test_a_line_is_served_in_its_order() -> None:
    """The sizes of bodies do not matter: large ones would wait for as long as smaller ones come."""
    caller = Caller("10.0.0.1")
    others = [(str(more), LARGE + b" " * more, caller, Lane.HOOK) for more in (3, 1, 2)]
    assert asyncio.run(Stage().play((caller, Lane.HOOK), *others)) == ["3", "1", "2"]


@pytest.mark.parametrize(("address", "lane"), [("10.0.0.1", Lane.REVIEW), ("10.0.0.2", Lane.HOOK)])
def test_another_line_does_not_wait(address: str, lane: Lane) -> None:
    """Whether it is of another address, or asks for something else."""
    stage, other = Stage(), Caller(address)

    async def main() -> None:
        busy = asyncio.create_task(stage.worker.answer(stage._wait, LARGE, Caller("10.0.0.1"), Lane.HOOK))
        await asyncio.to_thread(stage._begun.wait, 60)
        await stage._note("other", LARGE, other, lane)
        stage._go_on.set()
        await busy

    asyncio.run(main())
    assert stage.order == ["other"]


def test_two_large_requests_are_never_worked_on_at_once() -> None:
    """Both would need their memory. A smaller one goes on meanwhile."""
    stage, huge = Stage(), b" " * (LARGE_BODY_BYTES + 1)

    async def main() -> list[str]:
        busy = asyncio.create_task(stage.worker.answer(stage._wait, huge, Caller("10.0.0.1")))
        await asyncio.to_thread(stage._begun.wait, 60)
        large = asyncio.create_task(stage._note("large", huge, Caller("10.0.0.2"), Lane.HOOK))
        await stage._note("smaller", LARGE, Caller("10.0.0.3"), Lane.HOOK)
        before = list(stage.order)
        stage._go_on.set()
        await asyncio.gather(busy, large)
        return before

    assert asyncio.run(main()) == ["smaller"]
    assert stage.order == ["smaller", "large"]


def test_on_the_loop_the_lines_take_turns() -> None:
    """A client with many requests delays its own, whether its connections are new or old."""
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
    assert order == ["old 0", "other", "old 1", "old 2", "new"]


@pytest.mark.parametrize("body", [b"{}", LARGE], ids=["small", "large"])
def test_requests_of_clients_that_left_are_not_worked_on(body: bytes) -> None:
    """Others are not kept waiting by them."""

    async def main() -> None:
        worker, caller = Worker(), Caller()
        task = asyncio.create_task(worker.answer(lambda _: pytest.fail("worked on"), body, caller))
        await asyncio.sleep(0)
        caller.leave()
        with pytest.raises(Disconnected):
            await task
        assert (caller.call, await worker.answer(where, b"{}", Caller())) == (None, b"MainThread")

    asyncio.run(main())


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


@pytest.fixture(name="slow")
def _slow(monkeypatch: pytest.MonkeyPatch) -> tuple[Callable[[bytes], bytes], list[float]]:
    """Return a handler that takes long, and the clock, which stands still otherwise."""
    spent, now = [0.0], [1000.0]
    monkeypatch.setattr("app.server.worker.time.thread_time", lambda: spent[0])
    monkeypatch.setattr("app.server.worker.time.monotonic", lambda: now[0])

    def slow(body: bytes) -> bytes:
        spent[0] += 2 * SLOW_SECONDS
        return where(body)

    return slow, now


HERE = threading.current_thread().name.encode()


def test_after_a_slow_answer_a_line_goes_to_the_threads(slow: tuple[Callable[[bytes], bytes], list[float]]) -> None:
    """It does so for ten times as long as the last slow answer took, wherever that was made."""
    handle, now = slow

    async def main() -> list[bytes]:
        worker, answers = Worker(), []
        for work, seconds in ((where, 0), (handle, 19), (handle, 19), (where, 21), (where, 0)):
            answers.append(await worker.answer(work, b"{}", Caller()))
            now[0] += seconds * SLOW_SECONDS
        return answers

    assert asyncio.run(main()) == [HERE, HERE, b"worker", b"worker", HERE]


def test_a_slow_answer_moves_no_others_to_the_threads(
    slow: tuple[Callable[[bytes], bytes], list[float]],
) -> None:
    """Neither other addresses nor other requests of the same address."""

    async def main() -> list[bytes]:
        worker = Worker()
        await worker.answer(slow[0], b"{}", Caller("10.0.0.1"), Lane.REVIEW)
        lines = (("10.0.0.1", Lane.REVIEW), ("10.0.0.1", Lane.HOOK), ("10.0.0.2", Lane.REVIEW))
        return [await worker.answer(where, b"{}", Caller(address), lane) for address, lane in lines]

    assert asyncio.run(main()) == [b"worker", HERE, HERE]


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
        stuck = [worker.stuck]
        now[0] += STUCK_SECONDS + 1
        stuck.append(worker.stuck)
        go_on.set()
        await task
        assert [*stuck, worker.stuck] == [False, True, False]

    asyncio.run(main())
