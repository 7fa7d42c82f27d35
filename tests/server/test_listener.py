"""Which connections are closed when there are too many."""

from __future__ import annotations

import asyncio
import itertools
import socket
import time
from collections.abc import Iterator
from typing import Any, cast

import pytest

from app.limits import MAX_CONNECTIONS, NEWCOMER_SECONDS
from app.server.listener import Listener, Room
from app.server.protocol import Activity, Rank
from app.server.worker import Caller

NUMBERS = itertools.count()


class Connection:
    """An open connection, as the listener sees it."""

    def __init__(
        self, opened: set[Connection], address: str, stage: Activity, age: float, *, new: bool = False
    ) -> None:
        self.opened, self.address = opened, address
        self._rank = Rank(new or stage is Activity.WAITING, stage, time.monotonic() - age)
        opened.add(self)

    def rank(self, _now: float) -> Rank:
        return self._rank

    def abort(self) -> None:
        self.opened.discard(self)


def left(connections: dict[str, Connection], newcomers: list[str]) -> set[str]:
    """Return the names of the connections that stay open when newcomers connect."""
    first = next(iter(connections.values())).opened
    for _ in range(MAX_CONNECTIONS - len(first)):
        Connection(first, f"address {next(NUMBERS)}", Activity.WAITING, 0)

    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            listener = Listener(listening, cast("Any", Opened), cast("Any", first), None)
            for address in newcomers:
                listener._waiting.put(address, (cast("Any", Accepted()), address))
            listener._open = opened  # type: ignore[assignment,method-assign]  # records it
            listener._admit()
            listener.close()

    asyncio.run(main())
    return {name for name, connection in connections.items() if connection in first}


class Opened:
    """The protocol of a connection that is being opened."""

    def __init__(self, address: str) -> None:
        self.address, self.caller = address, Caller(address)


class Accepted:
    """A socket that was accepted."""

    def __init__(self, *, silent: bool = False) -> None:
        self.silent = silent

    def recv(self, _size: int, _flags: int) -> bytes:
        """Return the first byte of a request, if there is one."""
        if self.silent:
            raise BlockingIOError
        return b"G"


async def opened(_connection: Any, _accepted: Any) -> None:
    """Pretend to open a connection."""


@pytest.mark.parametrize("stage", Activity)
def test_the_address_with_the_most_gives_way(stage: Activity) -> None:
    """It does not matter what its connections or others have sent."""
    connections: set[Connection] = set()
    crowd = {f"crowd {n}": Connection(connections, "10.0.0.1", stage, n) for n in range(5)}
    others = {f"other {n}": Connection(connections, "10.0.0.2", Activity.SILENT, 100 + n) for n in range(4)}
    assert left({**crowd, **others}, ["10.0.0.3"]) == {*crowd, *others} - {"crowd 4"}


def test_newcomers_count_for_their_address() -> None:
    """If an address with as many connections as another opens one more, it loses an older one itself."""
    connections: set[Connection] = set()
    opened = {
        f"{address} {n}": Connection(connections, address, Activity.RESTING, n) for address in "ab" for n in range(4)
    }
    assert left(opened, ["b", "b"]) == set(opened) - {"b 3", "b 2"}


def test_in_a_crowd_the_newest_and_the_busiest_stay() -> None:
    """Silent connections are closed first, then idle ones, then incomplete requests, then answers that are not read."""
    connections: set[Connection] = set()
    stages = [stage for stage in Activity if stage is not Activity.WAITING]
    opened = {stage.name: Connection(connections, "10.0.0.1", stage, 100 - stage) for stage in stages}
    opened["NEW"] = Connection(connections, "10.0.0.1", Activity.SILENT, NEWCOMER_SECONDS / 2, new=True)
    names = list(opened)
    for closed in range(1, len(names)):
        assert left({name: opened[name] for name in names[closed - 1 :]}, ["10.0.0.1"]) == set(names[closed:])


@pytest.mark.parametrize("stage", [Activity.SILENT, Activity.WAITING])
def test_new_and_waiting_ones_do_not_give_way_to_their_own_address(stage: Activity) -> None:
    """The newcomer waits: every client of a crowd would lose its request to the next one."""
    connections: set[Connection] = set()
    opened = {f"{n}": Connection(connections, "10.0.0.1", stage, 0, new=True) for n in range(5)}
    assert left(opened, ["10.0.0.1"]) == set(opened)
    assert len(left(opened, ["10.0.0.2"])) == len(opened) - 1


@pytest.mark.parametrize("silent", [True, False])
def test_knows_whether_a_client_has_sent_anything(silent: bool) -> None:
    protocols: list[Any] = []

    def protocol(address: str) -> Any:
        protocols.append(Opened(address))
        return protocols[-1]

    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            listener = Listener(listening, protocol, set(), None)
            listener._open = opened  # type: ignore[assignment,method-assign]  # records it
            listener._waiting.put("10.0.0.1", (cast("Any", Accepted(silent=silent)), "10.0.0.1"))
            listener._admit()
            listener.close()

    asyncio.run(main())
    assert [connection.was_silent for connection in protocols] == [silent]


def test_those_that_wait_for_a_connection_are_neither_lost_nor_tried_all_the_time() -> None:
    """The event loop has time for the pending answers; each of them ends its connection, so another one is opened."""

    class Counting(set[Connection]):
        asked = 0

        def __iter__(self) -> Iterator[Connection]:
            self.asked += 1
            return super().__iter__()

    async def main() -> tuple[int, list[bool], bool]:
        connections = Counting()
        first = Connection(connections, "10.0.0.1", Activity.WAITING, 0)
        for _ in range(MAX_CONNECTIONS - 1):
            Connection(connections, "10.0.0.1", Activity.WAITING, 0)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            listener = Listener(listening, cast("Any", Opened), cast("Any", connections), None)
            listener._open = opened  # type: ignore[assignment,method-assign]  # records it
            listener._waiting.put("10.0.0.1", (cast("Any", Accepted()), "10.0.0.1"))
            listener._admit()
            for _ in range(1000):
                await asyncio.sleep(0)
            asked, awaited = connections.asked, [listener.is_awaited(address) for address in ("10.0.0.1", "10.0.0.2")]
            first.abort()
            listener._admit()
            listener.close()
            return asked, awaited, listener.is_awaited("10.0.0.1")

    asked, awaited, still = asyncio.run(main())
    assert asked < 100
    assert (awaited, still) == ([True, False], False)


@pytest.mark.parametrize(("files", "room"), [(64, (24, 8)), (10, (1, 1)), (1024, (256, 736)), (5000, (256, 1024))])
def test_the_room_follows_the_limit_of_open_files(files: int, room: tuple[int, int]) -> None:
    """One connection can be open in any case, and another one can wait."""
    limits = Room.within(files)
    assert (limits.open, limits.waiting) == room
