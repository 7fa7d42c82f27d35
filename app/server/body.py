"""Read one request: check every rule of the transport before a byte is parsed, and bound the memory of all requests.

Bodies and unread answers share one budget, which counts what has arrived or has yet to be sent, not declared lengths.
When it is spent, slower clients give way, then others of the address that holds the most. What is worked on does not.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope

from app.limits import BODY_BUDGET_BYTES, LARGE_BODY_BYTES, MAX_IN_FLIGHT, SMALL_BODY_BYTES
from app.server.worker import Caller, Disconnected, Worker


class Holder(Protocol):
    """A body or an answer that may give way to others."""

    held: int

    @property
    def address(self) -> str: ...

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
    waiting: dict[Reader, None] = field(default_factory=dict)
    """Complete bodies of unanswered requests, in the order in which they were."""
    addresses: Counter[str] = field(default_factory=Counter)
    """The bytes that each address holds."""
    worker: Worker = field(default_factory=Worker)

    def hold(self, holder: Holder, size: int) -> None:
        """Count ``size`` bytes for a body or an answer, instead of what it held before."""
        more = size - holder.held
        holder.held = size
        self.held += more
        self.addresses[holder.address] += more
        if not self.addresses[holder.address]:
            del self.addresses[holder.address]

    def make_room(self, body: Holder) -> bool:
        """Report whether a body fits into the budget, after others gave way. If it cannot, none does."""
        limit = self.budget if body.held <= LARGE_BODY_BYTES else self.budget * 3 // 4
        others = {*self.holders, *(waiting for waiting in self.waiting if waiting.may_give_way)} - {body}
        if self.held - sum(other.held for other in others) <= limit:
            self.shrink(limit, body)
        return self.held <= limit

    def shrink(self, limit: int, spared: Holder) -> None:
        """Let others give way until no more than ``limit`` bytes are held, or none is left that has to."""
        while self.held > limit and (other := self._next(spared)) is not None:
            other.give_way()

    def _next(self, spared: Holder) -> Holder | None:
        """Return who gives way next: a slower client, then those of the address that holds the most.

        An address that holds half of the budget displaces none but its own slower clients.
        """
        heaviest = max(self.addresses, key=lambda address: self.addresses[address], default=spared.address)
        is_crowd = 2 * self.addresses[heaviest] > self.budget
        mine = is_crowd and heaviest == spared.address
        slowest = self._slowest(holder for holder in self.holders if not mine or holder.address == heaviest)
        if slowest is not spared and slowest is not None:
            return slowest
        if heaviest == spared.address:
            return None
        for body in reversed(self.waiting):
            if body.address == heaviest and body.may_give_way:
                return body
        return self._slowest(holder for holder in self.holders if is_crowd and holder.address == heaviest)

    def _slowest(self, holders: Iterable[Holder]) -> Holder | None:
        now = time.monotonic()
        return min(holders, key=lambda holder: holder.rate(now), default=None)

    def release(self, holder: Holder) -> None:
        """Take back the share of a body or an answer."""
        self.hold(holder, 0)
        self.holders.discard(holder)


@dataclass(eq=False, slots=True)
class Reader:
    """Reads the body of one request and holds its share of the budget until :meth:`end`."""

    load: Load
    max_bytes: int
    retry_after: int
    caller: Caller
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
            self.load.waiting[self] = None
        return body

    @property
    def address(self) -> str:
        return self.caller.address

    @property
    def may_give_way(self) -> bool:
        """Report whether the request waits, and nothing has begun to work on it."""
        return self.caller.call is not None and not self.caller.call.begun

    def end(self) -> None:
        self.load.release(self)
        self.load.waiting.pop(self, None)

    def hold(self, size: int) -> None:
        """Count ``size`` bytes against the budget from now on, or raise ``HTTPException`` if they do not fit."""
        self.load.hold(self, size)
        if not self.load.make_room(self):
            self.give_way()
            raise self._overloaded()

    def rate(self, now: float) -> float:
        return self.held / max(now - self._since, 1e-6)

    def give_way(self) -> None:
        """Drop what has arrived. The client is refused at once if that was all, else when it sends more."""
        self._lost = True
        self._parts = []
        self.end()
        if self.caller.call is not None:
            self.caller.call.finish((None, self._overloaded()))

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
        if self.held:
            self.load.waiting[self] = None
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
