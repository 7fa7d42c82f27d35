"""Exception handlers. A refusal has no content of the request: Metacontroller copies it into an Event."""

from collections.abc import Callable, Coroutine
from typing import Any
from uuid import uuid4

import msgspec
import orjson
from fastapi import Request, Response
from starlette.exceptions import HTTPException

from app.errors import ProtocolError, ResponseError
from app.server.body import Load
from app.server.endpoint import Answer, Header, UnhandledError
from app.server.logs import Log

Handler = Callable[[Request, Any], Coroutine[object, object, Response]]


def handlers(load: Load, log: Log) -> dict[int | type[Exception], Handler]:
    def problem(request: Request, status: int, text: str, *headers: Header, unread: bool = False) -> Response:
        request.scope.setdefault("state", {})["error"] = text
        return Answer(load, orjson.dumps({"error": text[:400]}), status, headers, unread=unread)

    async def malformed(request: Request, fault: ProtocolError) -> Response:
        return problem(request, fault.status, str(fault))

    async def refused(request: Request, fault: HTTPException) -> Response:
        """Answer a request whose body, if it has one, is not read to its end: then the connection ends."""
        headers = [(name.lower().encode(), value.encode()) for name, value in (fault.headers or {}).items()]
        unread = request.method in ("POST", "PUT", "PATCH")
        return problem(request, fault.status_code, fault.detail.lower(), *headers, unread=unread)

    async def internal(request: Request, fault: UnhandledError) -> Response:
        """Log where a bug occurred and the object of the request; the caller gets an id to search for."""
        identifier, cause = uuid4().hex[:12], fault.__cause__
        assert isinstance(cause, Exception)
        with_message = isinstance(cause, ResponseError)
        log.fault(request.url.path, identifier, cause, subject(fault.body), with_message=with_message)
        request.scope.setdefault("state", {})["error"] = "internal"
        return Answer(load, orjson.dumps({"error": "internal", "id": identifier}), 500)

    return {ProtocolError: malformed, HTTPException: refused, UnhandledError: internal}


class _ObjectName(msgspec.Struct):
    uid: str = ""
    name: str = ""
    namespace: str = ""


class _Parent(msgspec.Struct):
    metadata: _ObjectName = msgspec.field(default_factory=_ObjectName)


class _Subject(msgspec.Struct):
    parent: _Parent | None = None
    request: _ObjectName | None = None


def subject(body: bytes) -> dict[str, str]:
    """Return the object of a request: its name, and a review's uid."""
    try:
        request = msgspec.json.decode(body, type=_Subject)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    if request.request is not None:
        return {"uid": request.request.uid, "object": f"{request.request.namespace}/{request.request.name}"}
    metadata = (request.parent or _Parent()).metadata
    return {"object": f"{metadata.namespace}/{metadata.name}"}
