"""uvicorn's HTTP protocol with the limits it lacks: deadlines for each request and answer, and a bound on a head.

Without them a client that sends nothing, or one byte a second, or never reads, holds a connection forever, and a head
of 200 MB is read whole, as are trailers and extensions of chunks without end.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

HEAD_SECONDS = 5.0
"""From connecting, or from a request's first byte, to the end of its head."""
BODY_SECONDS = 10.0
"""From the same moment to the end of its body."""
WRITE_SECONDS = 10.0
"""How long a client may take until it has read an answer."""
HEAD_BYTES = 32 * 1024
"""Of a head, and of what is neither head nor body: chunk sizes, their extensions, trailers. Of those there may be as
many again as there are bytes of the body, so that small chunks pass."""

PIPELINED = 16
"""Requests on one connection that wait for the answer to an earlier one. Neither API servers nor Metacontroller send
any; each takes 8 KiB, and 35 bytes are enough for one."""

_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_TIMEOUT = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class PipelineError(Exception):
    """More than :data:`PIPELINED` requests wait on one connection."""


class LimitedProtocol(HttpToolsProtocol):
    """One connection. A finished request disarms its deadline; the next one's first byte arms it again."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._framing_bytes = 0
        self._body_bytes = 0
        self._in_head = True
        self.asked = False
        """Whether there was a request."""
        self.since = time.monotonic()
        """When it was opened, began its request, or had its last answer."""

    @property
    def gives_way(self) -> tuple[int, float] | None:
        """How soon the connection should end where there are too many, the least first; ``None``: not at all.

        Those that never asked, then those at rest, then requests that are not complete, each from the oldest. A
        complete request is answered.
        """
        cycle: RequestResponseCycle | None = self.cycle
        if not self._in_head or self._head_bytes:
            return 2, self.since
        return (int(self.asked), self.since) if cycle is None or cycle.response_complete else None

    def abort(self) -> None:
        """End the connection at once: others need its place."""
        self.connections.discard(self)
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._arm(HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        if self._unread is not None:
            self._unread.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            if self._deadline is None:
                self._arm(HEAD_SECONDS)
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES and data.find(b"\r\n\r\n") < 0:
                self._refuse(_TOO_LARGE)
                return
            super().data_received(data)
            return
        self._framing_bytes += len(data)
        super().data_received(data)
        if self._framing_bytes > HEAD_BYTES + 2 * self._body_bytes:
            self._refuse(_TOO_LARGE)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # else it is a trailer: nobody reads it
            super().on_header(name, value)

    def on_message_begin(self) -> None:
        if self._deadline is None:  # it came together with the end of another
            self._arm(HEAD_SECONDS)
        self.since = time.monotonic()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if sum(len(name) + len(value) for name, value in self.headers) > HEAD_BYTES:
            self._refuse(_TOO_LARGE)
            return
        if len(self.pipeline) >= PIPELINED:
            self._refuse(b"")
            raise PipelineError  # ends the parser, which has all of what came at once
        self._in_head, self.asked = False, True
        self._disarm()
        self._arm(BODY_SECONDS)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._disarm()
        self._in_head = True
        self._head_bytes = self._framing_bytes = self._body_bytes = 0
        if self.cycle is not None:
            super().on_message_complete()

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if self.cycle is not None:
            super().on_body(body)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_progress()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_expecting()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self.since = time.monotonic()
        if self.transport.is_closing():
            self._expect_progress()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._expect_progress()

    def _expect_progress(self) -> None:
        """Until the client has read enough, or all of it on a connection that ends: a close waits for it forever."""
        if self._unread is None:
            self._unread = self.loop.call_later(WRITE_SECONDS, self.transport.abort)

    def _stop_expecting(self) -> None:
        if self._unread is not None and not self.transport.is_closing():
            self._unread.cancel()
            self._unread = None

    def _arm(self, seconds: float) -> None:
        self._deadline = self.loop.call_later(seconds, self._expire)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _expire(self) -> None:
        self._deadline = None
        self._refuse(_TIMEOUT if not self._in_head or self._head_bytes else b"")

    def _refuse(self, answer: bytes) -> None:
        self._disarm()
        if not self.transport.is_closing():
            if answer:
                self.transport.write(answer)
            self.transport.close()
