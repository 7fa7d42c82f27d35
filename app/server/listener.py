"""Accept connections, limit their number, and set a deadline for TLS handshakes.

asyncio's server does not limit connections, and each costs memory from the moment it is accepted (80 KiB with TLS),
even if it is idle. At the limit a connection of the address that has the most is closed, so a client displaces only its
own connections.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from app import limits
from app.server.metrics import CONNECTIONS_REFUSED
from app.server.protocol import LimitedProtocol
from app.server.worker import FairQueue, Worker

PAUSE_SECONDS = 0.5
"""Time without accepting after the system ran out of file descriptors or memory."""


@dataclass(eq=False)
class Listener:
    """A listening socket.

    ``protocol`` makes the protocol of a new connection, and ``connections`` are the open ones. While the worker is
    crowded, accepted sockets wait in one queue per address.
    """

    listening: socket.socket
    protocol: Callable[[str], LimitedProtocol]
    connections: Collection[Any]
    context: ssl.SSLContext | None
    worker: Worker
    _waiting: FairQueue[tuple[socket.socket, str]] = field(default_factory=FairQueue)
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

    def _accept(self) -> None:
        if not self._waiting:
            self._loop.call_soon(self._admit)
        for _ in range(limits.MAX_WAITING_CONNECTIONS):
            try:
                accepted, (address, *_) = self.listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:
                self._loop.remove_reader(self.listening)
                self._loop.call_later(PAUSE_SECONDS, self._resume)
                return
            self._waiting.put(address, (accepted, address))
            if len(self._waiting) > limits.MAX_WAITING_CONNECTIONS:
                CONNECTIONS_REFUSED.inc()
                self._waiting.drop()[0].close()

    def _admit(self) -> None:
        """Open some of the connections that wait, then let the loop serve the others before the next turn."""
        if self.worker.crowded:
            self._loop.call_later(limits.TURN_SECONDS, self._admit)
            return
        turn = [self._waiting.get() for _ in range(min(limits.MAX_ACCEPTED, len(self._waiting)))]
        self._make_room(Counter(address for _, address in turn))
        for accepted, address in turn:
            accepted.setblocking(False)
            connection = self.protocol(address)
            self._opening[connection] = self._loop.create_task(self._open(connection, accepted))
        if self._waiting:
            self._loop.call_soon(self._admit)

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

    def _make_room(self, newcomers: Counter[str]) -> None:
        """Close connections of the addresses that have the most, counting the newcomers."""
        candidates = [*self._opening, *self.connections]
        excess = len(candidates) + newcomers.total() - limits.MAX_CONNECTIONS
        if excess <= 0:
            return
        CONNECTIONS_REFUSED.inc(excess)
        now = time.monotonic()
        crowds: dict[str, list[LimitedProtocol]] = {}
        for candidate in sorted(candidates, key=lambda candidate: candidate.rank(now), reverse=True):
            crowds.setdefault(candidate.address, []).append(candidate)
        for _ in range(excess):
            address = max(crowds, key=lambda address: len(crowds[address]) + newcomers[address])
            connection = crowds[address].pop()
            if opening := self._opening.pop(connection, None):
                opening.cancel()
            else:
                connection.abort()
