"""Every key has its own line, and the lines take turns."""

from __future__ import annotations

from app.server.worker import FairQueue


def queue(**lines: str) -> FairQueue[str, str]:
    """Return a queue of single letters."""
    fair: FairQueue[str, str] = FairQueue()
    for address, items in lines.items():
        for item in items:
            fair.put(address, item)
    return fair


def drained(waiting: FairQueue[str, str]) -> str:
    """Return all items, in the order in which they are taken."""
    return "".join(item for _ in range(len(waiting)) if (item := waiting.get()))


def test_lines_take_turns() -> None:
    """The number of items of a line does not matter."""
    assert drained(queue(a="abcd", x="x", m="mn")) == "axmbncd"


def test_a_line_that_is_passed_over_keeps_its_place() -> None:
    """It is the first again when its item may be taken."""
    waiting = queue(a="ab", x="xy", m="m")
    assert [waiting.get(lambda key, _: key != "a") for _ in range(2)] == ["x", "m"]
    assert drained(waiting) == "ayb"


def test_get_returns_none_where_no_item_may_be_taken() -> None:
    """Nor from an empty queue."""
    assert (queue(a="a").get(lambda _key, item: item != "a"), queue().get()) == (None, None)


def test_the_longest_line_loses_its_last_item() -> None:
    """A client with many items loses its own, and those that have waited for long stay."""
    waiting = queue(x="x", a="abc", m="mn")
    assert [waiting.drop() for _ in range(3)] == ["c", "b", "n"]
    assert drained(waiting) == "xam"


def test_an_item_is_removed_once() -> None:
    """An item that is not in the queue is not an error."""
    waiting = queue(a="ab", x="x")
    items = (("a", "b"), ("x", "x"), ("x", "x"), ("nobody", "n"))
    assert [waiting.remove(*item) for item in items] == [True, True, False, False]
    assert (drained(waiting), len(waiting)) == ("a", 0)
