"""The upper limit with uvicorn: an application that reads the body and returns a constant 6 KB."""

from typing import Any

from tests.bench.transport import Receive, Send, body_of

_ANSWER = b'{"status": {}, "children": []' + b" " * (6 * 1024 - 30) + b"}"
_HEADERS = [(b"content-type", b"application/json"), (b"content-length", str(len(_ANSWER)).encode())]


async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Read the whole body without decoding it."""
    if scope["type"] != "http":
        return
    await body_of(receive)
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    await send({"type": "http.response.body", "body": _ANSWER})
