"""An open connection that is idle keeps neither its last request nor its answer: there may be hundreds."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from typing import Any, cast

import orjson
import pytest
import uvicorn
from uvicorn.server import ServerState

from app.conversion import API_VERSION
from app.installation import CONVERSION_PATH
from app.limits import INLINE_BYTES
from app.main import Application
from app.server.protocol import LimitedProtocol
from app.settings import Settings
from tests.corpus.requests import REVIEW, SYNC, review, sync

CONNECTIONS = 50
SIZE = 400_000
"""Bytes of each request, more than a thread's share and less than what one connection may send at once."""
KEPT = 20_000
"""Bytes that an idle connection may keep: the objects of the connection itself, and little of a head."""


class Client(asyncio.Protocol):
    """The other end: counts what it gets."""

    def __init__(self) -> None:
        self.answer = b""
        self.complete = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self.answer += data
        head, separator, body = self.answer.partition(b"\r\n\r\n")
        if not separator or self.complete.done():
            return
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        if len(body) >= length:
            self.complete.set_result(int(head[9:12]))


def padded(document: Any, size: int = SIZE) -> bytes:
    """Return a document with blanks in front of its end."""
    text = orjson.dumps(document)
    return text[:-1] + b" " * (size - len(text)) + text[-1:]


def request(method: str, path: str, body: bytes, *headers: bytes) -> bytes:
    head = b"%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n" % (method.encode(), path.encode(), len(body))
    return head + b"".join(header + b"\r\n" for header in headers) + b"\r\n" + body


JSON = b"Content-Type: application/json"
CONVERSION = {
    "apiVersion": API_VERSION,
    "kind": "ConversionReview",
    "request": {"uid": "u", "desiredAPIVersion": "serving.kserve.io/v1alpha2", "objects": []},
}
REQUESTS = {
    "sync": (request("POST", SYNC, padded(sync()), JSON), 200),
    "small sync": (request("POST", SYNC, padded(sync(), INLINE_BYTES), JSON), 200),
    "review": (request("POST", REVIEW, padded(review()), JSON), 200),
    "conversion": (request("POST", CONVERSION_PATH, padded(CONVERSION), JSON), 200),
    "not a request of Metacontroller": (request("POST", SYNC, padded({"x": 1}), JSON), 400),
    "not JSON": (request("POST", SYNC, b"{" * SIZE, JSON), 400),
    "health with a body": (request("GET", "/healthz", b"x" * SIZE), 200),
    "metrics with a body": (request("GET", "/metrics", b"x" * SIZE), 200),
    "a long head": (request("GET", "/healthz", b"", b"x: " + b"x" * 30_000), 200),
    "a long path": (request("GET", "/healthz?" + "x" * 30_000, b""), 200),
}


async def kept(sent: bytes, status: int) -> int:
    """Return the bytes that connections keep after an answer, each, while the garbage collector does nothing."""
    service = Application(Settings(), cast("Any", Silent()))
    config, state = uvicorn.Config(service, ws="none", lifespan="off", log_config=None, access_log=False), ServerState()
    loop, opened = asyncio.get_running_loop(), []
    server = await loop.create_server(lambda: LimitedProtocol(config, state, {}), "127.0.0.1", 0)

    async def ask() -> None:
        transport, client = await loop.create_connection(Client, *server.sockets[0].getsockname())
        transport.write(sent)
        assert await client.complete == status
        client.answer = b""
        opened.append(transport)

    for _ in range(3):  # fills what the process remembers
        await ask()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(CONNECTIONS):
        await ask()
    after = tracemalloc.get_traced_memory()[0]
    assert len(state.connections) == len(opened)
    for transport in opened:
        transport.close()
    server.close()
    return (after - before) // CONNECTIONS


class Silent:
    """A log without lines."""

    def __getattr__(self, _name: str) -> Any:
        return lambda *_, **__: None


@pytest.mark.parametrize("name", REQUESTS)
def test_an_idle_connection_keeps_neither_request_nor_answer(name: str) -> None:
    """Nothing refers to them, so they are freed at once. The garbage collector comes thousands of requests later."""
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        assert asyncio.run(kept(*REQUESTS[name])) < KEPT
    finally:
        tracemalloc.stop()
        gc.enable()
