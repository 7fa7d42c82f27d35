"""Which connections are closed when there are too many."""

from __future__ import annotations

import asyncio
import itertools
import socket
import time
from typing import Any, cast

import pytest

from app.limits import MAX_CONNECTIONS, NEWCOMER_SECONDS
from app.server.listener import Listener
from app.server.protocol import Activity, Rank
from app.server.worker import Worker

NUMBERS = itertools.count()


class Connection:
    """An open connection, as the listener sees it."""

    def __init__(
        self, opened: set[Connection], address: str, stage: Activity, age: float, *, new: bool = False
    ) -> None:
        self.opened, self.address = opened, address
        self._rank = new, stage, time.monotonic() - age
        opened.add(self)

    def rank(self, _now: float) -> Rank:
        return self._rank

    def abort(self) -> None:
        self.opened.discard(self)


def left(connections: dict[str, Connection], newcomers: list[str]) -> set[str]:
    """Return the names of the connections that stay open when newcomers, which send nothing, connect."""
    first = next(iter(connections.values())).opened
    for _ in range(MAX_CONNECTIONS - len(first)):
        Connection(first, f"address {next(NUMBERS)}", Activity.ANSWERING, 0)

    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            listener = Listener(listening, cast("Any", lambda _: object()), first, None, Worker())
            for address in newcomers:
                listener._waiting.put(address, (cast("Any", Accepted()), address))
            listener._open = opened  # type: ignore[assignment,method-assign]  # records it
            listener._admit()
            listener.close()

    asyncio.run(main())
    return {name for name, connection in connections.items() if connection in first}


class Accepted:
    """A socket that was accepted."""

    def setblocking(self, blocking: bool) -> None:
        """Accept the mode."""


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
    found = {
        f"{address} {n}": Connection(connections, address, Activity.RESTING, n) for address in "ab" for n in range(4)
    }
    assert left(found, ["b", "b"]) == set(found) - {"b 3", "b 2"}


def test_in_a_crowd_the_newest_and_the_busiest_stay() -> None:
    """Silent connections are closed first, then idle ones, then incomplete requests, and new ones last."""
    connections: set[Connection] = set()
    found = {stage.name: Connection(connections, "10.0.0.1", stage, 100 - stage) for stage in Activity}
    found["NEW"] = Connection(connections, "10.0.0.1", Activity.SILENT, NEWCOMER_SECONDS / 2, new=True)
    names = list(found)
    for closed in range(1, len(names)):
        assert left({name: found[name] for name in names[closed - 1 :]}, ["10.0.0.1"]) == set(names[closed:])


def test_while_the_worker_is_crowded_nothing_is_opened_nor_tried_all_the_time() -> None:
    """The event loop has time for the pending answers."""

    class Crowded(Worker):
        asked = 0

        @property
        def crowded(self) -> bool:
            self.asked += 1
            return True

    async def main() -> int:
        worker = Crowded()
        with socket.create_server(("127.0.0.1", 0)) as listening:
            listener = Listener(listening, cast("Any", None), set(), None, worker)
            listener._waiting.put("address", (cast("Any", Accepted()), "address"))
            listener._admit()
            for _ in range(1000):
                await asyncio.sleep(0)
            listener.close()
        return worker.asked

    assert asyncio.run(main()) < 100
