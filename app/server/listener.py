"""Accepting connections: a bound on how many there are, and a deadline for their TLS handshakes.

The loop's own server has neither: a connection that says nothing costs memory from the moment it is accepted, with TLS
eighty kilobytes of it, and a caller may open as many as there are ports. Here those without a complete request give way
to new ones, first those that never asked anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Callable, Collection
from functools import partial
from operator import itemgetter
from typing import Any

from app.server.metrics import CONNECTIONS_REFUSED
from app.server.protocol import LimitedProtocol

CONNECTIONS_MAX = 256
"""Each may take 370 KiB, with TLS and the beginning of a body: together 95 MiB of the 256 that a pod has. Thirty
workers of Metacontroller for each of eight controllers, spread over two pods, keep 120 open."""
HANDSHAKE_SECONDS = 5.0
YOUNG_SECONDS = 1.0
"""Who came, or began a request, within this is the last to give way: an honest client is done by then."""
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
        self._handshakes: dict[asyncio.Task[None], float] = {}
        """With the time when each began."""
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
            self._handshakes[task] = time.monotonic()
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
        """End one connection that has no complete request, for a new one; whether there was one."""
        CONNECTIONS_REFUSED.inc()
        now = time.monotonic()
        found: list[tuple[tuple[bool, int, float], Callable[[], object]]] = []
        if self._context is not None:  # without TLS a task ends in this turn of the loop
            for task, begun in self._handshakes.items():
                found.append(((now - begun < YOUNG_SECONDS, 0, begun), partial(self._cancel, task)))
        ranked = [(connection.gives_way, connection.abort) for connection in self._opened]
        found += [((now - rank[1] < YOUNG_SECONDS, *rank), abort) for rank, abort in ranked if rank is not None]
        if found:
            min(found, key=itemgetter(0))[1]()
        return bool(found)

    def _cancel(self, handshake: asyncio.Task[None]) -> None:
        del self._handshakes[handshake]
        handshake.cancel()
