"""Accepting connections: a bound on how many there are, and a deadline for their TLS handshakes.

The loop's own server has neither: a connection that says nothing costs memory from the moment it is accepted, with TLS
eighty kilobytes of it, and a caller may open as many as there are ports. Here the ones that are idle give way to new
ones, those first that never asked anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Collection
from typing import Any

from app.server.metrics import CONNECTIONS_REFUSED
from app.server.protocol import LimitedProtocol

CONNECTIONS_MAX = 512
"""More than Metacontroller's workers and the API servers' webhooks keep open; with TLS they take some 40 MiB."""
HANDSHAKE_SECONDS = 5.0
PAUSE_SECONDS = 0.5
"""How long nothing is accepted after the system had no file descriptor or memory for it."""
BATCH = 64
"""Connections that are accepted before others get their turn."""


class Listener:
    """A listening socket. ``protocol`` makes the protocol of a new connection, ``opened`` has those that are open."""

    def __init__(
        self,
        listening: socket.socket,
        protocol: Callable[[], LimitedProtocol],
        opened: Collection[Any],
        context: ssl.SSLContext | None,
    ) -> None:
        self._listening = listening
        self._protocol = protocol
        self._opened = opened
        self._context = context
        self._handshakes: dict[asyncio.Task[None], None] = {}
        """The oldest first."""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(listening, self._accept)

    def close(self) -> None:
        """Accept no more; what is open stays open."""
        self._loop.remove_reader(self._listening)
        self._listening.close()

    def _accept(self) -> None:
        for _ in range(BATCH):
            try:
                accepted, _address = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:
                self._pause()
                return
            if len(self._handshakes) + len(self._opened) >= CONNECTIONS_MAX and not self._give_way():
                accepted.close()
                continue
            accepted.setblocking(False)
            task = self._loop.create_task(self._open(accepted))
            self._handshakes[task] = None
            task.add_done_callback(lambda done: self._handshakes.pop(done, None))

    def _pause(self) -> None:
        self._loop.remove_reader(self._listening)
        self._loop.call_later(PAUSE_SECONDS, self._resume)

    def _resume(self) -> None:
        if self._listening.fileno() >= 0:
            self._loop.add_reader(self._listening, self._accept)

    async def _open(self, accepted: socket.socket) -> None:
        seconds = None if self._context is None else HANDSHAKE_SECONDS
        with contextlib.suppress(OSError, TimeoutError):  # it spoke no TLS, or has gone: nobody to tell
            await self._loop.connect_accepted_socket(
                self._protocol, accepted, ssl=self._context, ssl_handshake_timeout=seconds
            )

    def _give_way(self) -> bool:
        """End one connection that has nothing under way, for a new one; whether there was one."""
        CONNECTIONS_REFUSED.inc()
        if self._context is not None and self._handshakes:
            oldest = next(iter(self._handshakes))
            del self._handshakes[oldest]
            oldest.cancel()
            return True
        longest = min((c for c in self._opened if c.idle), key=lambda c: (c.asked, c.since), default=None)
        if longest is not None:
            longest.abort()
        return longest is not None
