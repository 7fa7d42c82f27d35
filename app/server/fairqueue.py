"""A queue with a line for each address, in which the lines take turns."""

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """A client that adds many items delays mostly its own."""

    def __init__(self) -> None:
        self._lines: dict[str, deque[T]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    def put(self, address: str, item: T, *, first: bool = False) -> None:
        """Add an item to the end of its address's line, or to its beginning."""
        line = self._lines.setdefault(address, deque())
        if first:
            line.appendleft(item)
        else:
            line.append(item)

    def get(self) -> T:
        """Take the first item of the first line, which then goes behind the others."""
        address = next(iter(self._lines))
        line = self._lines.pop(address)
        item = line.popleft()
        if line:
            self._lines[address] = line
        return item

    def drop(self) -> T:
        """Take the first item of the longest line."""
        address = max(self._lines, key=lambda address: len(self._lines[address]))
        item = self._lines[address].popleft()
        if not self._lines[address]:
            del self._lines[address]
        return item

    def remove(self, address: str, item: T) -> bool:
        """Take out an item; report whether it was still there."""
        line = self._lines.get(address, deque())
        if item not in line:
            return False
        line.remove(item)
        if not line:
            del self._lines[address]
        return True
