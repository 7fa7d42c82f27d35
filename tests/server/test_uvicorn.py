"""Undocumented parts of uvicorn that the service overrides: one test each, to show what a new release broke."""

from __future__ import annotations

import asyncio
import gc
import inspect
import weakref
from typing import Any, cast

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import HANDLED_SIGNALS, ServerState

from app.limits import MAX_PIPELINED
from app.server.protocol import LimitedProtocol

REQUEST = b"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\na: b\r\n\r\n"


class Transport(asyncio.Transport):
    """Accepts writes."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""

    def write(self, data: Any) -> None:
        self.written += data

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def abort(self) -> None:
        pass

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


async def answer(scope: Any, receive: Any, send: Any) -> None:
    """Read a request and answer it."""
    assert (await receive())["body"] == b"{}"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


async def receive_only(_scope: Any, receive: Any, _send: Any) -> None:
    """Read a request, and do not answer."""
    await receive()


def callbacks(protocol_class: type[HttpToolsProtocol]) -> list[str]:
    """Return the names of the methods that uvicorn and its parser call for one request, in order."""
    called: list[str] = []

    class Recording(protocol_class):  # type: ignore[misc,valid-type]  # a class from a variable
        pass

    def record(name: str) -> None:
        def method(self: Any, *args: Any) -> Any:
            called.append(name)
            return getattr(protocol_class, name)(self, *args)

        setattr(Recording, name, method)

    for name in OVERRIDDEN:
        record(name)

    async def main() -> None:
        config = uvicorn.Config(cast("Any", answer), ws="none", log_config=None)
        state = ServerState()
        protocol = Recording(config, state, {})
        protocol.connection_made(Transport())
        assert protocol in state.connections
        protocol.data_received(REQUEST)
        await asyncio.gather(*state.tasks)
        protocol.connection_lost(None)
        assert not state.connections

    asyncio.run(main())
    return called


OVERRIDDEN = (
    "connection_made",
    "data_received",
    "on_message_begin",
    "on_header",
    "on_headers_complete",
    "on_body",
    "on_message_complete",
    "on_response_complete",
    "connection_lost",
)


def test_the_protocols_methods_are_called_in_this_order() -> None:
    """A trailer arrives as another header, on which its limit depends."""
    expected = [
        "connection_made",
        "data_received",
        "on_message_begin",
        *["on_header"] * 2,
        "on_headers_complete",
        "on_body",
        "on_header",
        "on_message_complete",
        "on_response_complete",
        "connection_lost",
    ]
    assert callbacks(HttpToolsProtocol) == expected
    assert callbacks(LimitedProtocol) == expected


@pytest.mark.parametrize("requests", [1, MAX_PIPELINED + 1, MAX_PIPELINED + 2])
def test_a_lost_connection_is_freed_at_once(requests: int) -> None:
    """The garbage collector would free it hundreds of connections later, each with its TLS buffers."""

    async def main() -> weakref.ref[LimitedProtocol]:
        config, state = uvicorn.Config(cast("Any", receive_only), ws="none", log_config=None), ServerState()
        protocol = LimitedProtocol(config, state, {})
        protocol.connection_made(Transport())
        protocol.data_received(REQUEST * requests)
        protocol.connection_lost(None)
        await asyncio.gather(*state.tasks, return_exceptions=True)
        return weakref.ref(protocol)

    gc.collect()
    gc.disable()
    try:
        assert asyncio.run(main())() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "name", ["pause_writing", "resume_writing", "timeout_keep_alive_handler", "_start_asgi_task", *OVERRIDDEN]
)
def test_overridden_methods_exist_with_the_same_arguments(name: str) -> None:
    """The arguments are those of uvicorn's methods."""
    theirs = inspect.signature(getattr(HttpToolsProtocol, name)).parameters
    assert list(inspect.signature(getattr(LimitedProtocol, name)).parameters) == list(theirs)


def test_a_cycle_knows_whether_it_is_answered() -> None:
    """The attribute shows whether a connection is idle."""
    assert "response_complete" in inspect.getsource(RequestResponseCycle.__init__)
    parameters = inspect.signature(HttpToolsProtocol.__init__).parameters
    assert list(parameters) == ["self", "config", "server_state", "app_state", "_loop"]


def test_a_server_without_sockets_starts_and_stops() -> None:
    """The service accepts connections itself; uvicorn does the rest of startup and shutdown."""

    async def main() -> uvicorn.Server:
        server = uvicorn.Server(uvicorn.Config(cast("Any", answer), lifespan="off", log_config=None))
        server.should_exit = True
        await server.serve([])
        return server

    server = asyncio.run(main())
    assert (server.started, server.servers) == (True, [])


def test_signals_go_to_handle_exit() -> None:
    """SIGHUP is not among them; the service handles it itself."""
    assert {signal.name for signal in HANDLED_SIGNALS} == {"SIGINT", "SIGTERM"}
    assert list(inspect.signature(uvicorn.Server.handle_exit).parameters) == ["self", "sig", "frame"]
