"""Read one request: check every rule of the transport before a byte is parsed, and bound the memory of all requests.

Bodies and unread answers share one budget, which counts what has arrived or has yet to be sent, not declared lengths.
When it is spent, the slowest clients give way.
"""

import time
from dataclasses import dataclass, field
from typing import Protocol

from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope

from app.limits import BODY_BUDGET_BYTES, LARGE_BODY_BYTES, MAX_IN_FLIGHT, SMALL_BODY_BYTES
from app.server.worker import Disconnected, Worker


class Holder(Protocol):
    """A body or an answer that may give way to others."""

    held: int

    def rate(self, now: float) -> float:
        """Return the bytes per second at which the client sends or reads."""

    def give_way(self) -> None:
        pass


@dataclass(eq=False, slots=True)
class Load:
    """The requests in progress, shared by all endpoints of a process. ``budget`` is in bytes."""

    budget: int = BODY_BUDGET_BYTES
    held: int = 0
    in_flight: int = 0
    draining: bool = False
    last: float = field(default_factory=time.perf_counter)
    """When the last request began while the process was stopping."""
    holders: set[Holder] = field(default_factory=set)
    """Incomplete bodies and unread answers."""
    worker: Worker = field(default_factory=Worker)

    def make_room(self, body: Holder) -> bool:
        """Report whether a body fits into the budget, after those of slower clients gave way."""
        limit = self.budget if body.held <= LARGE_BODY_BYTES else self.budget * 3 // 4
        others = sum(holder.held for holder in self.holders if holder is not body)
        if self.held - others <= limit:
            self.shrink(limit, body)
        return self.held <= limit

    def shrink(self, limit: int, spared: Holder) -> None:
        """Let the slowest clients give way until no more than ``limit`` bytes are held or ``spared`` is the slowest."""
        now = time.monotonic()
        for holder in sorted(self.holders, key=lambda holder: holder.rate(now)):
            if self.held <= limit or holder is spared:
                return
            holder.give_way()

    def release(self, holder: Holder) -> None:
        """Take back the share of a body or an answer."""
        self.held -= holder.held
        holder.held = 0
        self.holders.discard(holder)


@dataclass(eq=False, slots=True)
class Reader:
    """Reads the body of one request and holds its share of the budget until :meth:`Load.release`."""

    load: Load
    max_bytes: int
    retry_after: int
    held: int = 0
    _lost: bool = False
    _parts: list[bytes] = field(default_factory=list)
    _since: float = 0.0

    async def read(self, scope: Scope, receive: Receive) -> bytes:
        """Return the whole body, or raise ``HTTPException``."""
        self._check_head(scope)
        if self.load.in_flight > MAX_IN_FLIGHT:
            raise self._overloaded()
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        body: bytes = message.get("body", b"")
        if message.get("more_body"):
            return await self._rest(body, receive)
        if len(body) > SMALL_BODY_BYTES:
            self.hold(len(body))
        return body

    def hold(self, size: int) -> None:
        """Count ``size`` bytes against the budget from now on, or raise ``HTTPException`` if they do not fit."""
        self.load.held += size - self.held
        self.held = size
        if not self.load.make_room(self):
            self.give_way()
            raise self._overloaded()

    def rate(self, now: float) -> float:
        return self.held / max(now - self._since, 1e-6)

    def give_way(self) -> None:
        """Drop what has arrived; the client is refused when it sends more, or by its deadline."""
        self._lost = True
        self._parts = []
        self.load.release(self)

    async def _rest(self, first: bytes, receive: Receive) -> bytes:
        self._since = time.monotonic()
        size, more = self._take(first, 0), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            size = self._take(message.get("body", b""), size)
            more = bool(message.get("more_body"))
        self.load.holders.discard(self)
        parts, self._parts = self._parts, []
        return b"".join(parts)

    def _take(self, part: bytes, before: int) -> int:
        """Add a part to those of ``before`` bytes, and return the new size."""
        size = before + len(part)
        if size > self.max_bytes:
            raise self._too_large()
        if self._lost:
            raise self._overloaded()
        self._parts.append(part)
        if size > SMALL_BODY_BYTES:
            self.load.holders.add(self)
            self.hold(size)
        return size

    def _check_head(self, scope: Scope) -> None:
        media, length = b"", 0
        for name, value in scope["headers"]:
            if name == b"content-type":
                media = value
            elif name == b"content-length":
                length = int(value)
            elif name == b"content-encoding" and value.lower() != b"identity":
                raise HTTPException(415, "content-encoding is not supported")
        if media != b"application/json" and not _is_json(media):
            raise HTTPException(415, "content-type must be application/json")
        if length > self.max_bytes:
            raise self._too_large()

    def _too_large(self) -> HTTPException:
        return HTTPException(413, f"the body is larger than {self.max_bytes} bytes")

    def _overloaded(self) -> HTTPException:
        return HTTPException(429, "overloaded", {"retry-after": str(self.retry_after)})


def _is_json(media: bytes) -> bool:
    kind, _, parameter = media.lower().partition(b";")
    charset = parameter.strip().replace(b'"', b"")
    return kind.strip() == b"application/json" and charset in (b"", b"charset=utf-8")
