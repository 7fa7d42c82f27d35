"""Reading one request: every rule of the transport, checked before a byte is parsed, and a bound on what is held.

Memory is what a caller could take from everybody else, so the bodies that are being read share one budget. What counts
is what has arrived: a length that is only declared takes nothing from anybody, and who sends slowly gives way.
"""

from __future__ import annotations

import time

from starlette.types import Receive, Scope

from app.server.caller import Disconnected
from app.server.worker import Worker

IN_FLIGHT_MAX = 512
SMALL_BYTES = 32 * 1024
"""A body up to this is read whatever the others hold: as many as there may be connections are 8 MiB."""
LARGE_BYTES = 1024 * 1024
BODIES_BYTES = 32 * 1024 * 1024
"""Of all bodies above :data:`SMALL_BYTES` that are being read, wait or are worked on, and of answers that are not read.
Those above :data:`LARGE_BYTES` have three quarters of it, so that they leave something to the ordinary ones."""


class Load:
    """What is being worked on: shared by all endpoints of a process. ``budget`` is in bytes of bodies."""

    __slots__ = ("budget", "draining", "held", "in_flight", "last", "reading", "worker")

    def __init__(self, budget: int = BODIES_BYTES) -> None:
        self.budget = budget
        self.held = 0
        self.in_flight = 0
        self.draining = False
        self.last = time.perf_counter()
        """When the last request began while the process was stopping."""
        self.reading: set[Reader] = set()
        """Those that hold a part of the budget for a body that is not complete."""
        self.worker = Worker()

    def make_room(self, asker: Reader) -> bool:
        """Whether there is room for what the asker holds, after incomplete bodies that came in more slowly gave way.

        A client that sends as fast as it can is the last to lose.
        """
        limit = self.budget if asker.held <= LARGE_BYTES else self.budget * 3 // 4
        if self.held <= limit:
            return True
        if self.held - sum(reader.held for reader in self.reading if reader is not asker) > limit:
            return False
        now = time.monotonic()
        for reader in sorted(self.reading, key=lambda reader: reader.rate(now)):
            if reader is asker:
                return False
            reader.give_way()
            if self.held <= limit:
                return True
        return False


class Refusal(Exception):
    """An answer instead of the handler's, while some or all of the body is unread."""

    def __init__(self, status: int, code: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(code)
        self.status = status
        self.code = code
        self.headers = headers


class Reader:
    """Reads the body of one request and holds its share of the budget until :meth:`release`.

    What counts is what has arrived: a length is easily declared.
    """

    __slots__ = ("_load", "_lost", "_max_bytes", "_parts", "_retry_after", "_since", "held")

    def __init__(self, load: Load, max_bytes: int, retry_after: bytes) -> None:
        self._load = load
        self._max_bytes = max_bytes
        self._retry_after = retry_after
        self.held = 0
        self._lost = False
        self._parts: list[bytes] = []
        self._since = 0.0

    async def read(self, scope: Scope, receive: Receive) -> bytes:
        """The whole body. Raises :class:`Refusal` or :class:`Disconnected`."""
        self._check_head(scope)
        if self._load.in_flight > IN_FLIGHT_MAX:
            raise self._overloaded()
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        body: bytes = message.get("body", b"")
        if message.get("more_body"):
            return await self._rest(body, receive)
        if len(body) > SMALL_BYTES:
            self.hold(len(body))
        return body

    def hold(self, size: int) -> None:
        """Count so many bytes against the budget from now on. Raises :class:`Refusal` where they do not fit."""
        self._load.held += size - self.held
        self.held = size
        if not self._load.make_room(self):
            self.give_way()
            raise self._overloaded()

    def rate(self, now: float) -> float:
        """Bytes per second since the first that counted."""
        return self.held / max(now - self._since, 1e-6)

    def give_way(self) -> None:
        """What has arrived is let go; the client is told when it sends more, or by its deadline."""
        self._lost = True
        self._parts = []
        self.release()

    def release(self) -> None:
        """The body is of no more use."""
        self._load.held -= self.held
        self.held = 0
        self._load.reading.discard(self)

    async def _rest(self, first: bytes, receive: Receive) -> bytes:
        self._since = time.monotonic()
        size, more = self._take(first, 0), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            size = self._take(message.get("body", b""), size)
            more = bool(message.get("more_body"))
        self._load.reading.discard(self)
        parts, self._parts = self._parts, []
        return b"".join(parts)

    def _take(self, part: bytes, before: int) -> int:
        """Add a part to those of ``before`` bytes; how many they are now."""
        size = before + len(part)
        if size > self._max_bytes:
            raise self._too_large()
        if self._lost:
            raise self._overloaded()
        self._parts.append(part)
        if size > SMALL_BYTES:
            self._load.reading.add(self)
            self.hold(size)
        return size

    def _check_head(self, scope: Scope) -> None:
        """Refuse by media type, encoding or declared length."""
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

    def _too_large(self) -> Refusal:
        return Refusal(413, f"the body is larger than {self._max_bytes} bytes")

    def _overloaded(self) -> Refusal:
        return Refusal(429, "overloaded", (b"retry-after", self._retry_after))


def _is_json(media: bytes) -> bool:
    kind, _, parameter = media.lower().partition(b";")
    charset = parameter.strip().replace(b'"', b"")
    return kind.strip() == b"application/json" and charset in (b"", b"charset=utf-8")
