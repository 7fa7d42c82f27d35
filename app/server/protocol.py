"""uvicorn's HTTP protocol with the limits it lacks: deadlines for each request and answer, and a bound on a head.

Without them a client that sends nothing, or one byte per second, or never reads, holds a connection forever. A head of
200 MB is read whole, and so are endless trailers and chunk extensions.
"""

import asyncio
import re
import time
from enum import IntEnum
from typing import NamedTuple

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from app import limits
from app.kube.base import Json
from app.server.worker import Caller


def _refusal(status: str) -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode()


_BAD_REQUEST = _refusal("400 Bad Request")
_TIMEOUT = _refusal("408 Request Timeout")
_LONG_PATH = _refusal("414 URI Too Long")
_TOO_LARGE = _refusal("431 Request Header Fields Too Large")

_HOST = re.compile(rb"[\w.~%!$&'()*+,;=:\[\]-]*", re.ASCII)
"""A host with or without a port (RFC 3986, section 3.2.2). It may be empty, and nothing here depends on it."""


class Activity(IntEnum):
    """Progress of a connection. Of two that are equally new, the lower one is closed first."""

    SILENT = 0
    RESTING = 1
    """Every request is answered."""
    INCOMPLETE = 2
    """A request has begun."""
    SENDING = 3
    """The answer of a complete request is being sent."""
    WAITING = 4
    """A complete request waits for its answer."""


class Rank(NamedTuple):
    """Order in which connections of one address are closed in a crowd, lowest first."""

    spared: bool
    """It is new, or waits for its answer: it does not give way to others of its address."""
    activity: Activity
    since: float
    """When the activity began. Of those that wait for their answers, the last is the first to be closed."""


class PipelineError(Exception):
    """More than :data:`MAX_PIPELINED` requests wait on one connection."""


class LimitedProtocol(HttpToolsProtocol):
    """One connection. A finished request disarms its deadline; the next one's first byte arms it again."""

    def __init__(self, config: Config, server_state: ServerState, app_state: Json, address: str = "") -> None:
        super().__init__(config, server_state, app_state)
        self.caller = Caller(address, self.abort)
        self._running: RequestResponseCycle | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._framing_bytes = 0
        self._body_bytes = 0
        self._in_head = True
        self._asked = False
        self.was_silent = False
        """Its client had sent nothing yet when its turn to be opened came."""
        self._opened = self._since = time.monotonic()

    @property
    def address(self) -> str:
        return self.caller.address

    def rank(self, now: float) -> Rank:
        """Rank the oldest newcomer first, unless its request is complete. A silent connection is not a newcomer."""
        activity = self._activity
        if activity is Activity.WAITING:
            return Rank(True, activity, -self._since)
        if self.caller.answered or self.was_silent or now - self._opened >= limits.NEWCOMER_SECONDS:
            return Rank(False, activity, self._since)
        return Rank(True, activity if activity is Activity.SENDING else Activity.SILENT, self._opened)

    @property
    def _activity(self) -> Activity:
        if self.caller.call is not None:
            return Activity.WAITING
        if not self._in_head or self._head_bytes:
            return Activity.INCOMPLETE
        if self._running is not None and not self._running.response_complete:
            return Activity.SENDING
        return Activity.RESTING if self._asked else Activity.SILENT

    def abort(self) -> None:
        """Close the connection at once, without waiting for the client to read."""
        self.connections.discard(self)
        self.caller.leave()
        if self._running is not None:
            self._running.disconnected = True
        self.transport.abort()

    async def _run(self, scope: object, receive: object, send: object) -> None:
        """Run the application, unless the connection was closed before the request had its turn."""
        if not self.transport.is_closing():
            await self.app(scope, receive, send)
        elif self._running is not None:
            self._running.disconnected = True

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: object) -> None:  # noqa: ARG002 - uvicorn's signature
        self._running = cycle
        super()._start_asgi_task(cycle, self._run)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=limits.WRITE_BUFFER_BYTES, low=0)
        self._arm(limits.HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self.caller.leave()
        if self._running is not None:
            self._running.disconnected = True
        self._disarm()
        if self._unread is not None:
            self._unread.cancel()
        super().connection_lost(exc)
        self.pipeline.clear()
        self.cycle = self._running = None  # type: ignore[assignment]  # ends a cycle of references, so that this object is freed at once

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            if self._deadline is None:
                self._arm(limits.HEAD_SECONDS)
            self._head_bytes += len(data)
            if self._head_bytes > limits.MAX_HEAD_BYTES and data.find(b"\r\n\r\n") < 0:
                self._refuse(_TOO_LARGE)
                return
            super().data_received(data)
            return
        self._framing_bytes += len(data)
        super().data_received(data)
        if self._framing_bytes > limits.MAX_HEAD_BYTES + 2 * self._body_bytes:
            self._refuse(_TOO_LARGE)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # otherwise it is a trailer, which nothing reads
            super().on_header(name, value)

    def on_message_begin(self) -> None:
        if self._deadline is None:  # it came together with the end of another
            self._arm(limits.HEAD_SECONDS)
        self._since = time.monotonic()
        super().on_message_begin()
        self.scope["state"]["caller"] = self.caller

    def on_headers_complete(self) -> None:
        if refusal := self._refusal_of_head():
            self._refuse(refusal)
            return
        if len(self.pipeline) >= limits.MAX_PIPELINED:
            self.pipeline.clear()
            self.abort()
            raise PipelineError  # ends the parser, which has all of what came at once
        self._in_head, self._asked = False, True
        self._disarm()
        self._arm(limits.BODY_SECONDS)
        super().on_headers_complete()

    def _refusal_of_head(self) -> bytes:
        if len(self.url) > limits.MAX_HEAD_BYTES:
            return _LONG_PATH
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > limits.MAX_HEAD_BYTES:
            return _TOO_LARGE
        hosts = [value for name, value in self.headers if name == b"host"]
        is_valid = all(_HOST.fullmatch(host) for host in hosts) and len(hosts) <= 1
        return b"" if is_valid and (hosts or self.parser.get_http_version() == "1.0") else _BAD_REQUEST

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
        self._forget()
        super().on_response_complete()
        self.caller.answered, self._since = True, time.monotonic()
        if self.transport.is_closing():
            self._expect_progress()
        else:
            self._stop_expecting()

    def _forget(self) -> None:
        """Drop what refers to the answered request, and to its body if nothing has read that."""
        if self.cycle is self._running:  # otherwise the next request has begun
            self.cycle = self.scope = self.headers = None  # type: ignore[assignment]  # as before the first request
            self.url = b""
        self._running = None

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._expect_progress()

    def _expect_progress(self) -> None:
        """Limit the time for the client to read a whole answer: a close would wait for it forever."""
        if self._unread is None:
            self._unread = self.loop.call_later(limits.WRITE_SECONDS, self.transport.abort)

    def _stop_expecting(self) -> None:
        answered = self._running is None or self._running.response_complete
        if self._unread is not None and answered and not self.flow.write_paused and not self.transport.is_closing():
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
