"""Accept connections, limit their number, and set a deadline for TLS handshakes.

asyncio's server does not limit connections, and each costs memory from the moment it is opened (80 KiB with TLS), even
if it is idle. At the limit a new one displaces one of the address that has the most, so a client displaces only its own
connections. None displaces a request of its own address that waits for its answer: it waits itself, in one line per
address, and each answer of that address ends its connection meanwhile. So a crowd is served in the order it came, and
who has sent nothing when its turn comes gives way to the next.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from app import limits
from app.server.metrics import CONNECTIONS_REFUSED
from app.server.protocol import LimitedProtocol, Rank
from app.server.worker import FairQueue

PAUSE_SECONDS = 0.5
"""Time without accepting after the system ran out of file descriptors or memory."""


@dataclass(frozen=True)
class Room:
    """The numbers of connections that may be open, and that may wait."""

    open: int = limits.MAX_CONNECTIONS
    waiting: int = limits.MAX_WAITING_CONNECTIONS

    @classmethod
    def within(cls, files: int) -> Room:
        """Return the room of a process that may have so many files open."""
        connections = max(files - limits.RESERVED_FILES, 2)
        opened = min(limits.MAX_CONNECTIONS, 3 * connections // 4)
        return cls(opened, min(limits.MAX_WAITING_CONNECTIONS, connections - opened))


def allowed_files() -> int:
    """Return how many files the process may open, after raising the limit as far as it may and connections need."""
    needed = limits.MAX_CONNECTIONS + limits.MAX_WAITING_CONNECTIONS + limits.RESERVED_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return needed
    raised = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
    return raised


@dataclass(eq=False)
class Listener:
    """A listening socket.

    ``protocol`` makes the protocol of a new connection, and ``connections`` are the open ones.
    """

    listening: socket.socket
    protocol: Callable[[str], LimitedProtocol]
    connections: AbstractSet[Any]
    context: ssl.SSLContext | None
    room: Room = Room()
    _waiting: FairQueue[str, tuple[socket.socket, str]] = field(default_factory=FairQueue)
    """Accepted sockets, with the addresses of their clients."""
    _opening: dict[LimitedProtocol, asyncio.Task[None]] = field(default_factory=dict)
    """Connections that are being opened; with TLS, until the handshake is complete."""
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)

    def __post_init__(self) -> None:
        self._loop.add_reader(self.listening, self._accept)

    def close(self) -> None:
        """Accept no more connections; open ones stay open."""
        self._loop.remove_reader(self.listening)
        self.listening.close()

    def is_awaited(self, address: str) -> bool:
        """Report whether connections of an address wait until others end."""
        return len(self.connections) >= self.room.open and self._waiting.count(address) > 0

    def _accept(self) -> None:
        if not self._waiting:
            self._loop.call_soon(self._admit)
        for _ in range(self.room.waiting):
            try:
                accepted, (address, *_) = self.listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:
                self._loop.remove_reader(self.listening)
                self._loop.call_later(PAUSE_SECONDS, self._resume)
                return
            accepted.setblocking(False)
            self._waiting.put(address, (accepted, address))
            if len(self._waiting) > self.room.waiting:
                CONNECTIONS_REFUSED.inc()
                self._waiting.drop(lambda waiting: not _has_sent(waiting[0]))[0].close()

    def _admit(self) -> None:
        """Open some of the connections that wait, then let the loop serve the others before the next turn."""
        crowds = self._crowds()
        opened = 0
        while opened < limits.MAX_ACCEPTED and (
            waiting := self._waiting.get(lambda address, _: crowds.admits(address))
        ):
            if connection := crowds.displaced(waiting[1]):
                self._end(connection)
            self._start(*waiting)
            opened += 1
        if self._waiting:
            self._loop.call_later(0 if opened else limits.TURN_SECONDS, self._admit)

    def _crowds(self) -> Crowds:
        return Crowds([*(self._opening.keys() - self.connections), *self.connections], self.room.open)

    def _start(self, accepted: socket.socket, address: str) -> None:
        connection = self.protocol(address)
        connection.was_silent = not _has_sent(accepted)
        connection.caller.is_awaited = partial(self.is_awaited, address)
        self._opening[connection] = self._loop.create_task(self._open(connection, accepted))

    def _end(self, connection: LimitedProtocol) -> None:
        CONNECTIONS_REFUSED.inc()
        if connection in self.connections:
            connection.abort()
        else:
            self._opening.pop(connection).cancel()

    def _resume(self) -> None:
        if self.listening.fileno() >= 0:
            self._loop.add_reader(self.listening, self._accept)

    async def _open(self, connection: LimitedProtocol, accepted: socket.socket) -> None:
        seconds = None if self.context is None else limits.HANDSHAKE_SECONDS
        try:
            await self._loop.connect_accepted_socket(
                lambda: connection, accepted, ssl=self.context, ssl_handshake_timeout=seconds
            )
        except (OSError, TimeoutError):
            pass  # the client speaks no TLS, or has left
        finally:
            self._opening.pop(connection, None)


def _has_sent(accepted: socket.socket) -> bool:
    """Report whether the client has sent its first byte, of a handshake or a request, or has left."""
    try:
        accepted.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:  # it has left, which is seen when the connection is opened
        pass
    return True


class Crowds:
    """The connections of each address, and which of them gives way to a new one."""

    def __init__(self, connections: Sequence[LimitedProtocol], room: int) -> None:
        self._free = room - len(connections)
        self._counts = Counter(connection.address for connection in connections)
        self._ranked: dict[str, list[tuple[Rank, LimitedProtocol]]] = {}
        if self._free < limits.MAX_ACCEPTED:
            self._rank(connections)

    def _rank(self, connections: Sequence[LimitedProtocol]) -> None:
        now = time.monotonic()
        ranked = [(connection.rank(now), connection) for connection in connections]
        for entry in sorted(ranked, key=lambda entry: entry[0], reverse=True):
            self._ranked.setdefault(entry[1].address, []).append(entry)

    def admits(self, address: str) -> bool:
        """Report whether one more connection of an address may be opened now."""
        if self._free > 0:
            return True
        largest = self._largest(address)
        entries = self._ranked.get(largest, [])
        return any(largest != address or not rank.spared for rank, _ in entries[-1:])

    def displaced(self, address: str) -> LimitedProtocol | None:
        """Count one more connection of an address, and return the one that gives way to it."""
        largest = self._largest(address)
        self._counts[address] += 1
        self._free -= 1
        if self._free >= 0:
            return None
        self._free += 1
        self._counts[largest] -= 1
        return self._ranked[largest].pop()[1]

    def _largest(self, newcomer: str) -> str:
        """Return the address that has the most connections if the newcomer has one more."""
        return max((newcomer, *self._counts), key=lambda address: self._counts[address] + (address == newcomer))
