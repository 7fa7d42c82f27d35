"""One POST endpoint: transport rules, then a pure function from body to body.

FastAPI routes come here with the raw request (design, decision 2). Every refusal is a short JSON text that names no
content of the request: Metacontroller copies it into an Event (reliability 4.3, 4.7).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import msgspec
import orjson

from app.errors import ProtocolError, ResponseError
from app.server.body import Disconnected, Load, Reader, Receive, Refusal, Scope
from app.server.logs import Log
from app.server.metrics import observe

Send = Callable[[dict[str, Any]], Awaitable[None]]

AWAITED_BYTES = 64 * 1024
"""Of a larger answer the end waits until the client has read it, and so long it counts as held."""
LINGER_SECONDS = 1.0
"""How long a refused body is still read and thrown away. A connection that is closed over unread bytes is reset, and
its client would learn nothing of the reason."""

_JSON = (b"content-type", b"application/json")
_CLOSE = (b"connection", b"close")


class Endpoint:
    """An ASGI application for one path.

    ``handle`` turns a request body into an answer's body, or raises :class:`ProtocolError` (the caller's fault). Any
    other exception is ours and becomes a 500 without details, upon which nothing happens to any child. ``denial`` finds
    in an answer what the log says of it, where it is a denial.
    """

    def __init__(
        self,
        name: str,
        handle: Callable[[bytes], bytes],
        max_bytes: int,
        retry_after: int,
        load: Load,
        log: Log,
        *,
        denial: Callable[[bytes], dict[str, str] | None] | None = None,
    ) -> None:
        self._name = name
        self._handle = handle
        self._max_bytes = max_bytes
        self._retry_after = str(retry_after).encode()
        self._load = load
        self._log = log
        self._denial = denial

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        load = self._load
        load.in_flight += 1
        reader, body = Reader(load, self._max_bytes, self._retry_after), b""
        headers: tuple[tuple[bytes, bytes], ...] = ()
        error, unread = "", False
        try:
            body = await reader.read(scope, receive)
            status, answer = 200, await load.worker.answer(self._handle, body)
        except Refusal as refusal:
            status, error, headers, unread = refusal.status, refusal.code, refusal.headers, True
            answer = _problem(error)
        except ProtocolError as fault:
            status, error = fault.status, str(fault)
            answer = _problem(error)
        except Disconnected:
            return
        except Exception as fault:  # noqa: BLE001 - the last line of defence: never a 200, never a word of the request
            status, error = 500, "internal"
            answer = self._internal(fault, body)
        finally:
            reader.release()
            load.in_flight -= 1
        if load.draining:
            load.last = started
        if unread or load.draining:
            headers = (*headers, _CLOSE)
        seconds = time.perf_counter() - started
        load.held += len(answer)
        try:
            await _respond(send, status, answer, headers, receive if unread else None)
        finally:
            load.held -= len(answer)
        denial = self._denial(answer) if self._denial is not None and status == 200 else None
        observe(self._name, status, seconds, denied=denial is not None)
        self._log.request(self._name, status, seconds, len(body), error, denial)

    def _internal(self, fault: Exception, body: bytes) -> bytes:
        """Where it happened, and to which object, goes to the log; the caller gets an id to look for."""
        identifier = uuid4().hex[:12]
        known_text = isinstance(fault, ResponseError)
        self._log.fault(self._name, identifier, fault, _subject(body), with_message=known_text)
        return orjson.dumps({"error": "internal", "id": identifier})


class _Metadata(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _Parent(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _Review(msgspec.Struct):
    uid: str = ""
    name: str = ""
    namespace: str = ""


class _Subject(msgspec.Struct):
    parent: _Parent | None = None
    request: _Review | None = None


def _subject(body: bytes) -> dict[str, str]:
    """Whom a request was about: of all that it holds, only the names and a review's uid."""
    try:
        found = msgspec.json.decode(body, type=_Subject)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    if found.request is not None:
        return {"uid": found.request.uid, "object": f"{found.request.namespace}/{found.request.name}"}
    metadata = found.parent.metadata if found.parent is not None else _Metadata()
    return {"object": f"{metadata.namespace}/{metadata.name}"}


def _problem(text: str) -> bytes:
    return orjson.dumps({"error": text[:400]})


async def _respond(
    send: Send, status: int, body: bytes, headers: tuple[tuple[bytes, bytes], ...], unread: Receive | None
) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [_JSON, length, *headers]})
    if unread is not None or len(body) > AWAITED_BYTES:
        await send({"type": "http.response.body", "body": body, "more_body": True})
        body = b""
    if unread is not None:
        await _throw_away(unread)
    await send({"type": "http.response.body", "body": body})


async def _throw_away(receive: Receive) -> None:
    """What is still coming, up to its end or for a moment."""
    try:
        async with asyncio.timeout(LINGER_SECONDS):
            while (await receive()).get("more_body"):
                pass
    except TimeoutError:
        pass
