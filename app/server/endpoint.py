"""One POST endpoint: transport rules, then a pure function from body to body.

FastAPI routes come here with the raw request (design, decision 2). Every rule of the transport is checked before a byte
is parsed, and every refusal is a short JSON text that names no content of the request: Metacontroller copies it into an
Event (reliability 4.3, 4.7).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import orjson

from app.errors import ProtocolError, ResponseError
from app.server.logs import Log
from app.server.metrics import observe

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

BIG_BODY = 1024 * 1024
"""Bodies above this take their turn: parsing one blocks the loop for long."""
BIG_BODIES_AT_ONCE = 4
IN_FLIGHT_MAX = 512

_JSON = (b"content-type", b"application/json")
_CLOSE = (b"connection", b"close")


class Load:
    """What is being worked on: shared by all endpoints of a process."""

    __slots__ = ("big", "draining", "in_flight")

    def __init__(self) -> None:
        self.in_flight = 0
        self.big = 0
        self.draining = False


class Refusal(Exception):
    """An answer other than 200, before or instead of the handler's."""

    def __init__(self, status: int, code: str, *headers: tuple[bytes, bytes], close: bool = False) -> None:
        super().__init__(code)
        self.status = status
        self.code = code
        self.headers = headers
        self.close = close


class Endpoint:
    """An ASGI application for one path.

    ``handle`` turns a request body into an answer's body, or raises :class:`ProtocolError` (the caller's fault). Any
    other exception is ours and becomes a 500 without details, upon which nothing happens to any child.
    """

    def __init__(
        self, name: str, handle: Callable[[bytes], bytes], max_bytes: int, retry_after: int, load: Load, log: Log
    ) -> None:
        self._name = name
        self._handle = handle
        self._max_bytes = max_bytes
        self._retry_after = str(retry_after).encode()
        self._load = load
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        load = self._load
        load.in_flight += 1
        size = 0
        headers: tuple[tuple[bytes, bytes], ...] = ()
        error = ""
        try:
            body = await self._body(scope, receive)
            size = len(body)
            status, answer = 200, self._handle(body)
        except Refusal as refusal:
            status, error, headers = refusal.status, refusal.code, refusal.headers
            answer = _problem(error)
            if refusal.close:
                headers = (*headers, _CLOSE)
        except ProtocolError as fault:
            status, error = fault.status, str(fault)
            answer = _problem(error)
        except _Disconnected:
            return
        except Exception as fault:  # noqa: BLE001 - the last line of defence: never a 200, never a word of the request
            status, error = 500, "internal"
            answer = self._internal(fault)
        finally:
            load.in_flight -= 1
        if load.draining:
            headers = (*headers, _CLOSE)
        await _respond(send, status, answer, headers)
        seconds = time.perf_counter() - started
        observe(self._name, status, seconds)
        self._log.request(self._name, status, seconds, size, error)

    def _internal(self, fault: Exception) -> bytes:
        """Where it happened goes to the log; the caller gets an id to look for."""
        identifier = uuid4().hex[:12]
        self._log.fault(self._name, identifier, fault, with_message=isinstance(fault, ResponseError))
        return orjson.dumps({"error": "internal", "id": identifier})

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        length = self._check_head(scope)
        big = length is not None and length > BIG_BODY
        if self._load.in_flight > IN_FLIGHT_MAX or (big and self._load.big >= BIG_BODIES_AT_ONCE):
            raise Refusal(429, "overloaded", (b"retry-after", self._retry_after), close=True)
        if not big:
            return await self._read(receive)
        self._load.big += 1
        try:
            return await self._read(receive)
        finally:
            self._load.big -= 1

    def _check_head(self, scope: Scope) -> int | None:
        """Refuse by method, media type, encoding or declared length; the declared length otherwise."""
        if scope["method"] != "POST":
            raise Refusal(405, "only POST is allowed", (b"allow", b"POST"), close=True)
        media, length = b"", None
        for name, value in scope["headers"]:
            if name == b"content-type":
                media = value
            elif name == b"content-length":
                length = int(value)
            elif name == b"content-encoding" and value.lower() != b"identity":
                raise Refusal(415, "content-encoding is not supported", close=True)
        if media != b"application/json" and not _is_json(media):
            raise Refusal(415, "content-type must be application/json", close=True)
        if length is not None and length > self._max_bytes:
            raise Refusal(413, f"the body is larger than {self._max_bytes} bytes", close=True)
        return length

    async def _read(self, receive: Receive) -> bytes:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Disconnected
        body: bytes = message.get("body", b"")
        if not message.get("more_body"):
            return body
        parts, size = [body], len(body)
        while message.get("more_body"):
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _Disconnected
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._max_bytes:
                raise Refusal(413, f"the body is larger than {self._max_bytes} bytes", close=True)
        return b"".join(parts)


class _Disconnected(Exception):
    """The client went away; there is nobody to answer."""


def _is_json(media: bytes) -> bool:
    kind, _, parameter = media.lower().partition(b";")
    charset = parameter.strip().replace(b'"', b"")
    return kind.strip() == b"application/json" and charset in (b"", b"charset=utf-8")


def _problem(text: str) -> bytes:
    return orjson.dumps({"error": text[:400]})


async def _respond(send: Send, status: int, body: bytes, headers: tuple[tuple[bytes, bytes], ...]) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [_JSON, length, *headers]})
    await send({"type": "http.response.body", "body": body})
