"""The limit under uvicorn: an application that reads the body and answers a constant 6 KB."""

from collections.abc import Awaitable, Callable
from typing import Any

_ANSWER = b'{"status": {}, "children": []' + b" " * (6 * 1024 - 30) + b"}"
_HEADERS = [(b"content-type", b"application/json"), (b"content-length", str(len(_ANSWER)).encode())]


async def app(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """Read everything, decode nothing."""
    if scope["type"] != "http":
        return
    more, parts = True, []
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    b"".join(parts)
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    await send({"type": "http.response.body", "body": _ANSWER})
