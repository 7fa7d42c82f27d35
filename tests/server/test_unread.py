"""Answers that the client does not read, over real sockets."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path
from typing import Any, cast

import pytest
import uvicorn
import uvloop
from uvicorn.server import ServerState

from app.limits import WRITE_BUFFER_BYTES
from app.server.body import Load
from app.server.endpoint import Answer
from app.server.protocol import LimitedProtocol
from tests.server.test_tls_served import BUNDLE, Files

SIZE = 4 * 1024 * 1024
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "TLS"])
def test_an_unread_answer_stays_in_the_budget_and_out_of_the_transport(encrypted: bool, tmp_path: Path) -> None:
    """At most a few parts are neither sent nor counted; an aborted connection releases everything."""
    context = serving(tmp_path) if encrypted else None

    async def main() -> None:
        load, state = Load(), ServerState()

        paused = asyncio.Event()

        class Watched(LimitedProtocol):
            def pause_writing(self) -> None:
                super().pause_writing()
                paused.set()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await Answer(load, b"x" * SIZE)(scope, receive, send)

        config = uvicorn.Config(cast("Any", app), ws="none", lifespan="off", log_config=None)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Watched(config, state, {}), "127.0.0.1", 0, ssl=context)
        async with server:
            with await asyncio.to_thread(asked, server.sockets[0].getsockname()[1], encrypted):
                await paused.wait()
                (connection,) = cast("set[LimitedProtocol]", state.connections)
                assert (load.held, len(load.holders)) == (SIZE, 1)
                assert connection.transport.get_write_buffer_size() <= 2 * WRITE_BUFFER_BYTES
                connection.abort()
                await asyncio.gather(*state.tasks)
                assert (load.held, load.holders) == (0, set())

    uvloop.run(main())


def serving(directory: Path) -> ssl.SSLContext:
    """Return a server's context with the tests' certificate."""
    files = Files(directory)
    files.write(BUNDLE.leaf.certificate, BUNDLE.leaf.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    return context


def asked(port: int, encrypted: bool) -> socket.socket:
    """Return a connection on which a request was sent and nothing is read."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", port))
    if encrypted:
        context = ssl.create_default_context(cadata=BUNDLE.trusted)
        connection = context.wrap_socket(connection, server_hostname="localhost")
    connection.sendall(REQUEST)
    return connection
