"""The order in which threads take requests: what holds for every sequence of requests and answers."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from app.limits import LARGE_BODY_BYTES
from app.server.worker import Call, Lane, Line, Schedule

LINES = [Line(address, lane) for address in "abc" for lane in Lane]
CALLS = st.tuples(st.sampled_from(LINES), st.booleans())
STEPS = st.lists(st.one_of(CALLS, st.just("begin"), st.integers(0, 5)), max_size=200)
"""A call and whether it is large; a thread that takes a call; the number of a call in work, which ends."""


def call(line: Line, *, large: bool = False) -> Call:
    future: asyncio.Future[Any] = cast("Any", None)
    return Call(line, LARGE_BODY_BYTES + large, lambda: None, future)


class Watched:
    """A schedule, and what everybody may see of it."""

    def __init__(self) -> None:
        self.schedule = Schedule()
        self.waiting: list[Call] = []
        self.working: list[Call] = []
        self.overtaken: dict[Call, Counter[Line]] = {}
        """How many calls of each line began while this one could have begun."""

    def put(self, added: Call) -> None:
        self.waiting.append(added)
        self.schedule.put(added)

    def ready(self) -> list[Call]:
        """Return the calls that may begin: the oldest of each line, if no other call keeps it back."""
        busy, large = {other.line for other in self.working}, any(other.is_large for other in self.working)
        oldest = {waiting.line: waiting for waiting in reversed(self.waiting)}.values()
        return [first for first in oldest if first.line not in busy and not (large and first.is_large)]

    def begin(self) -> Call | None:
        ready, begun = self.ready(), self.schedule.begin()
        assert (begun in ready) if ready else begun is None
        if begun is not None:
            for other in ready:
                self.overtaken.setdefault(other, Counter())[begun.line] += other is not begun
            self.waiting.remove(begun)
            self.working.append(begun)
        return begun

    def end(self, ended: Call) -> None:
        self.working.remove(ended)
        self.schedule.end(ended)


@settings(max_examples=300)
@given(STEPS)
def test_nobody_waits_for_more_than_one_request_of_each_other_line(steps: list[Any]) -> None:
    """While a request could be worked on, each other line goes before it once at most; then all are answered."""
    watched = Watched()
    for step in steps:
        if step == "begin":
            watched.begin()
        elif isinstance(step, tuple):
            watched.put(call(step[0], large=step[1]))
        elif step < len(watched.working):
            watched.end(watched.working[step])
    while watched.waiting or watched.working:
        if watched.begin() is None:
            watched.end(watched.working[0])
    assert all(count <= 1 for overtaken in watched.overtaken.values() for count in overtaken.values())


@given(st.lists(CALLS, min_size=1), st.data())
def test_a_request_whose_client_left_keeps_nobody_waiting(calls: list[tuple[Line, bool]], data: st.DataObject) -> None:
    """All others are worked on."""
    schedule, waiting = Schedule(), [call(line, large=large) for line, large in calls]
    for each in waiting:
        schedule.put(each)
    gone = data.draw(st.sampled_from(waiting))
    assert (schedule.remove(gone), schedule.remove(gone)) == (True, False)
    done = []
    while (begun := schedule.begin()) is not None:
        schedule.end(begun)
        done.append(begun)
    assert {*done} == {*waiting} - {gone}


def test_one_address_leaves_a_thread_to_others() -> None:
    """It has as many threads as there are lanes, however much it sends."""
    schedule = Schedule()
    for lane in Lane:
        for _ in range(100):
            schedule.put(call(Line("a", lane)))
    begun = [schedule.begin() for _ in range(len(Lane) + 1)]
    assert [each.line.lane for each in begun if each] == list(Lane)
