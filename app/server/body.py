"""Reading one request: every rule of the transport, checked before a byte is parsed, and a bound on what is held.

Memory is what a caller could take from everybody else, so the bodies that are being read share one budget: a declared
length counts from the start, a chunked body as it grows (reliability 4.3, F16).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]

IN_FLIGHT_MAX = 512
BODIES_BYTES = 64 * 1024 * 1024
"""Of all bodies that are being read: two of the largest, or some hundred of the ordinary."""


class Load:
    """What is being worked on: shared by all endpoints of a process. ``budget`` is in bytes of bodies."""

    __slots__ = ("budget", "draining", "held", "in_flight", "last", "turn")

    def __init__(self, budget: int = BODIES_BYTES) -> None:
        self.budget = budget
        self.held = 0
        self.in_flight = 0
        self.draining = False
        self.last = time.perf_counter()
        """When the last request began while the process was stopping."""
        self.turn = asyncio.Lock()
        """Whoever works on a large body has it, so that small requests get in between two of them."""


class Refusal(Exception):
    """An answer instead of the handler's, while some or all of the body is unread."""

    def __init__(self, status: int, code: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(code)
        self.status = status
        self.code = code
        self.headers = headers


class Disconnected(Exception):
    """The client went away; there is nobody to answer."""


class Reader:
    """Reads the body of one request and holds its share of the budget until :meth:`release`."""

    __slots__ = ("_held", "_load", "_max_bytes", "_retry_after")

    def __init__(self, load: Load, max_bytes: int, retry_after: bytes) -> None:
        self._load = load
        self._max_bytes = max_bytes
        self._retry_after = retry_after
        self._held = 0

    async def read(self, scope: Scope, receive: Receive) -> bytes:
        """The whole body. Raises :class:`Refusal` or :class:`Disconnected`."""
        length = self._check_head(scope)
        if self._load.in_flight > IN_FLIGHT_MAX:
            raise self._overloaded()
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        body: bytes = message.get("body", b"")
        return await self._rest(body, length, receive) if message.get("more_body") else body

    def release(self) -> None:
        """The body is of no more use."""
        if self._held:
            self._load.held -= self._held
            self._held = 0

    async def _rest(self, first: bytes, length: int, receive: Receive) -> bytes:
        parts, size, more = [first], len(first), True
        while more:
            self._hold(max(size, length))
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._max_bytes:
                raise self._too_large()
            more = bool(message.get("more_body"))
        return b"".join(parts)

    def _hold(self, size: int) -> None:
        more = size - self._held
        if more > 0:
            if self._load.held + more > self._load.budget:
                raise self._overloaded()
            self._load.held += more
            self._held = size

    def _check_head(self, scope: Scope) -> int:
        """Refuse by method, media type, encoding or declared length; the declared length otherwise, 0 without one."""
        if scope["method"] != "POST":
            raise Refusal(405, "only POST is allowed", (b"allow", b"POST"))
        media, length = b"", 0
        for name, value in scope["headers"]:
            if name == b"content-type":
                media = value
            elif name == b"content-length":
                length = int(value)
            elif name == b"content-encoding" and value.lower() != b"identity":
                raise Refusal(415, "content-encoding is not supported")
        if media != b"application/json" and not _is_json(media):
            raise Refusal(415, "content-type must be application/json")
        if length > self._max_bytes:
            raise self._too_large()
        return length

    def _too_large(self) -> Refusal:
        return Refusal(413, f"the body is larger than {self._max_bytes} bytes")

    def _overloaded(self) -> Refusal:
        return Refusal(429, "overloaded", (b"retry-after", self._retry_after))


def _is_json(media: bytes) -> bool:
    kind, _, parameter = media.lower().partition(b";")
    charset = parameter.strip().replace(b'"', b"")
    return kind.strip() == b"application/json" and charset in (b"", b"charset=utf-8")
