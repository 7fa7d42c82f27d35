"""Every address has its own line, and the lines take turns."""

from __future__ import annotations

from app.server.worker import FairQueue


def queue(**lines: str) -> FairQueue[str]:
    """Return a queue of single letters."""
    found: FairQueue[str] = FairQueue()
    for address, items in lines.items():
        for item in items:
            found.put(address, item)
    return found


def drained(waiting: FairQueue[str]) -> str:
    """Return all items, in the order in which they are taken."""
    return "".join(waiting.get() for _ in range(len(waiting)))


def test_addresses_take_turns() -> None:
    """The number of items of an address does not matter."""
    assert drained(queue(a="abcd", x="x", m="mn")) == "axmbncd"


def test_an_item_may_go_first() -> None:
    """It is first in its own line only."""
    waiting = queue(a="abc", x="x")
    waiting.put("a", "z", first=True)
    assert drained(waiting) == "zxabc"


def test_the_longest_line_loses_its_first() -> None:
    """An address with many items loses its own."""
    waiting = queue(x="x", a="abc", m="mn")
    assert [waiting.drop() for _ in range(3)] == ["a", "b", "m"]
    assert drained(waiting) == "xcn"


def test_an_item_is_removed_once() -> None:
    """An item that is not in the queue is not an error."""
    waiting = queue(a="ab", x="x")
    items = (("a", "b"), ("x", "x"), ("x", "x"), ("nobody", "n"))
    assert [waiting.remove(*item) for item in items] == [True, True, False, False]
    assert (drained(waiting), len(waiting)) == ("a", 0)
