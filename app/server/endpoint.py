"""One POST endpoint: transport rules, then a pure function from body to body.

FastAPI finds the route and passes the raw request; :mod:`app.server.problems` answers the exceptions of an endpoint.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from app.errors import ProtocolError
from app.limits import LINGER_SECONDS, WRITE_BUFFER_BYTES
from app.server.body import Load, Reader
from app.server.worker import Caller, Lane, caller_of

Header = tuple[bytes, bytes]


class Answered(Protocol):
    """The answer of a hook, with further attributes for its report. One without a report is only its bytes."""

    @property
    def body(self) -> bytes: ...


AnsweredT = TypeVar("AnsweredT", bound=Answered | bytes)
Handle = Callable[[bytes], AnsweredT]
Report = Callable[[AnsweredT], dict[str, str] | None]


class HookRoute(APIRoute):
    """A route whose endpoint gets the raw request and makes the answer itself, without a model in between."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[object, object, Response]]:
        return self.endpoint


class Answer(Response):
    """An encoded answer that counts in the budget of bodies until it is sent, and gives way to others.

    ``unread``: the request's body is not read to its end, and so the connection ends.
    """

    def __init__(
        self,
        load: Load,
        body: bytes,
        status: int = 200,
        headers: Sequence[Header] = (),
        *,
        media_type: bytes = b"application/json",
        unread: bool = False,
    ) -> None:
        self.status_code = status
        self.body = body
        self.background = None
        self.raw_headers = [(b"content-type", media_type), (b"content-length", str(len(body)).encode()), *headers]
        self.held = 0
        self._load = load
        self._unread = unread
        self._sent = 0
        self._since = 0.0
        self._caller = Caller()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the body in parts, each after the one before is written, and discard the rest of the request."""
        self._caller, self._since = caller_of(scope), time.monotonic()
        if self._unread or self._load.draining or self._caller.is_awaited():
            self.raw_headers.append((b"connection", b"close"))
        self._hold(len(self.body))
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            at_once = len(self.body) <= WRITE_BUFFER_BYTES and not self._unread
            for begin in () if at_once else range(0, len(self.body), WRITE_BUFFER_BYTES):
                part = self.body[begin : begin + WRITE_BUFFER_BYTES]
                await send({"type": "http.response.body", "body": part, "more_body": True})
                self._sent += len(part)
            if self._unread:
                await _discard(receive)
            await send({"type": "http.response.body", "body": self.body if at_once else b""})
        finally:
            self._load.release(self)

    @property
    def address(self) -> str:
        return self._caller.address

    def rate(self, now: float) -> float:
        return self._sent / max(now - self._since, 1e-6)

    def give_way(self) -> None:
        self._load.release(self)
        if self._caller.abort is not None:
            self._caller.abort()

    def _hold(self, size: int) -> None:
        self._load.hold(self, size)
        self._load.shrink(self._load.budget, self)
        self._load.holders.add(self)


class UnhandledError(Exception):
    """A bug (the cause): answered 500 without details, after which Metacontroller changes no child."""

    def __init__(self, body: bytes) -> None:
        super().__init__("internal")
        self.body = body


@dataclass(eq=False)
class HookEndpoint(Generic[AnsweredT]):
    """Answers one path.

    ``handle`` turns a request body into an answer, or raises :class:`ProtocolError` (the caller's fault). ``report``
    counts an answer, and returns its fields for the log. ``handle_other`` answers requests with another query than
    ``query``.
    """

    handle: Handle[AnsweredT]
    max_bytes: int
    retry_after: int
    load: Load
    report: Report[AnsweredT] | None = None
    lane: Lane = Lane.HOOK
    query: bytes = b""
    handle_other: Handle[AnsweredT] | None = None

    async def answer(self, request: Request) -> Response:
        load, body, caller = self.load, b"", caller_of(request.scope)
        if load.draining:
            load.last = time.perf_counter()
        load.in_flight += 1
        handle = self.handle
        if self.handle_other is not None and request.scope["query_string"] not in (b"", self.query):
            handle = self.handle_other
        reader = Reader(load, self.max_bytes, self.retry_after, caller)
        try:
            body = await reader.read(request.scope, request.receive)
            answer = await load.worker.answer(handle, body, caller, self.lane)
        except (HTTPException, ProtocolError):
            raise
        except Exception as fault:
            raise UnhandledError(body) from fault
        finally:
            reader.end()
            load.in_flight -= 1
        state = request.scope["state"]
        state["bytes"] = len(body)
        if self.report is not None:
            state["report"] = self.report(answer)
        return Answer(load, answer if isinstance(answer, bytes) else answer.body)


async def _discard(receive: Receive) -> None:
    """Read what is left of a request, for a moment at most."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            while (await receive()).get("more_body"):
                pass
