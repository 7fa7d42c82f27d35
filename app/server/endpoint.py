"""One POST endpoint: transport rules, then a pure function from body to body.

FastAPI finds the route and hands over the raw request; what an endpoint raises, its exception handlers answer
(:mod:`app.server.problems`). Nothing between the socket and the decoder of a hook looks at a body.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send

from app.errors import ProtocolError
from app.server.body import Load, Reader, Refusal
from app.server.caller import Disconnected, caller_of

Header = tuple[bytes, bytes]
Report = Callable[[bytes], dict[str, str] | None]

AWAITED_BYTES = 64 * 1024
"""Of a larger answer the end waits until the client has read it, and so long it counts as held."""
LINGER_SECONDS = 1.0
"""How long a refused body is still read and thrown away. A connection that is closed over unread bytes is reset, and
its client would learn nothing of the reason."""

_JSON = (b"content-type", b"application/json")
_CLOSE = (b"connection", b"close")


class HookRoute(APIRoute):
    """A route whose endpoint gets the request as it came and makes the answer itself: there is no model in between."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The endpoint, without FastAPI's reading and checking around it."""
        return self.endpoint


class Answer(Response):
    """JSON that is encoded already. It counts as held until the client has read it.

    ``unread``: the request's body is not read to its end, and so the connection ends.
    """

    def __init__(
        self, load: Load, body: bytes, status: int = 200, headers: Sequence[Header] = (), *, unread: bool = False
    ) -> None:
        self.status_code = status
        self.body = body
        self.background = None
        self.raw_headers = [_JSON, (b"content-length", str(len(body)).encode()), *headers]
        if unread or load.draining:
            self.raw_headers.append(_CLOSE)
        self._load = load
        self._unread = unread

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - as Starlette has it
        """Send it, and take in what is left of the request."""
        size, rest = len(self.body), bytes(self.body)
        self._load.held += size
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if self._unread or size > AWAITED_BYTES:
                await send({"type": "http.response.body", "body": rest, "more_body": True})
                rest = b""
            if self._unread:
                await _throw_away(receive)
            await send({"type": "http.response.body", "body": rest})
        finally:
            self._load.held -= size


class Fault(Exception):
    """A bug (the cause): answered 500 without details, upon which nothing happens to any child."""

    def __init__(self, body: bytes) -> None:
        super().__init__("internal")
        self.body = body


class Endpoint:
    """Answers one path.

    ``handle`` turns a request body into an answer's body, or raises :class:`ProtocolError` (the caller's fault).
    ``report`` counts what an answer says, and returns what the log should have of it. ``inline`` is false if a small
    body may take long; then the event loop never works on one.
    """

    def __init__(
        self,
        handle: Callable[[bytes], bytes],
        max_bytes: int,
        retry_after: int,
        load: Load,
        report: Report | None = None,
        *,
        inline: bool = True,
    ) -> None:
        self._handle = handle
        self._max_bytes = max_bytes
        self._retry_after = str(retry_after).encode()
        self._load = load
        self._report = report
        self._inline = inline

    async def answer(self, request: Request) -> Response:
        """The answer to one request. Raises what :mod:`app.server.problems` answers."""
        load, body, caller = self._load, b"", caller_of(request.scope)
        if load.draining:
            load.last = time.perf_counter()
        load.in_flight += 1
        reader = Reader(load, self._max_bytes, self._retry_after)
        try:
            body = await reader.read(request.scope, request.receive)
            answer = await load.worker.answer(self._handle, body, caller, inline=self._inline)
        except (Refusal, ProtocolError, Disconnected):
            raise
        except Exception as fault:
            raise Fault(body) from fault
        finally:
            reader.release()
            load.in_flight -= 1
        state = request.scope["state"]
        state["bytes"] = len(body)
        if self._report is not None:
            state["report"] = self._report(answer)
        return Answer(load, answer)


async def _throw_away(receive: Receive) -> None:
    """What is still coming, up to its end or for a moment."""
    try:
        async with asyncio.timeout(LINGER_SECONDS):
            while (await receive()).get("more_body"):
                pass
    except TimeoutError:
        pass
