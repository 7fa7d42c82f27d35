"""The transport's rules, over real HTTP semantics but without a network (reliability 6.1)."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from app.errors import ProtocolError, ResponseError
from app.server.endpoint import BIG_BODIES_AT_ONCE, IN_FLIGHT_MAX, Endpoint, Load
from app.server.logs import Log

LIMIT = 2 * 1024 * 1024


def echo(body: bytes) -> bytes:
    return body or b"{}"


def ask(
    handle: Any = echo,
    *,
    method: str = "POST",
    headers: dict[str, str] | None = None,
    chunks: tuple[bytes, ...] = (b"{}",),
    load: Load | None = None,
) -> tuple[int, dict[str, str], Any]:
    """One request through an endpoint: status, headers, decoded body."""
    sent: list[dict[str, Any]] = []
    messages = [{"type": "http.request", "body": c, "more_body": i < len(chunks) - 1} for i, c in enumerate(chunks)]

    async def receive() -> dict[str, Any]:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    given = {"content-type": "application/json"} if headers is None else headers
    scope = {"method": method, "headers": [(k.encode(), v.encode()) for k, v in given.items()]}
    endpoint = Endpoint("/x", handle, LIMIT, 2, load or Load(), Log())
    asyncio.run(endpoint(scope, receive, send))
    if not sent:
        return 0, {}, None
    return sent[0]["status"], {k.decode(): v.decode() for k, v in sent[0]["headers"]}, orjson.loads(sent[1]["body"])


def test_an_answer_has_a_length_and_a_type() -> None:
    """And says nothing about the server."""
    status, headers, body = ask()
    assert (status, body) == (200, {})
    assert headers == {"content-type": "application/json", "content-length": "2"}


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"method": "GET"}, 405),
        ({"headers": {}}, 415),
        ({"headers": {"content-type": "text/plain"}}, 415),
        ({"headers": {"content-type": "application/json; charset=utf-16"}}, 415),
        ({"headers": {"content-type": "application/json; charset=utf-8"}}, 200),
        ({"headers": {"content-type": "application/json", "content-encoding": "gzip"}}, 415),
        ({"headers": {"content-type": "application/json", "content-length": str(LIMIT + 1)}}, 413),
        ({"chunks": (b"x" * LIMIT, b"x")}, 413),
        ({"chunks": (b"{", b"}")}, 200),
    ],
)
def test_refusals(given: dict[str, Any], status: int) -> None:
    """Each before anything is parsed, with a reason."""
    answered, headers, body = ask(**given)
    assert answered == status
    assert status == 200 or (body["error"] and headers["connection"] == "close")


@pytest.mark.parametrize(
    ("fault", "status"), [(ProtocolError("no", 400), 400), (ResponseError("secret"), 500), (KeyError("secret"), 500)]
)
def test_faults(fault: Exception, status: int) -> None:
    """Ours is a 500 that names nothing but an id."""

    def fail(body: bytes) -> bytes:
        raise fault

    answered, _, body = ask(fail)
    assert answered == status
    assert "secret" not in str(body)
    assert status == 400 or len(body["id"]) == 12


def test_overload_is_429_with_an_integer_retry_after() -> None:
    """Without it Metacontroller would ask again at once, for ever."""
    busy, big = Load(), Load()
    busy.in_flight = IN_FLIGHT_MAX
    big.big = BIG_BODIES_AT_ONCE
    for load, length in ((busy, 2), (big, LIMIT)):
        status, headers, _ = ask(load=load, headers={"content-type": "application/json", "content-length": str(length)})
        assert (status, headers["retry-after"]) == (429, "2")
    assert (busy.in_flight, big.big) == (IN_FLIGHT_MAX, BIG_BODIES_AT_ONCE)


def test_a_lame_duck_says_goodbye() -> None:
    """The connection is not kept."""
    load = Load()
    load.draining = True
    assert ask(load=load)[1]["connection"] == "close"


def test_a_client_that_left_is_not_answered() -> None:
    """And nothing is counted as in flight afterwards."""
    load = Load()
    assert ask(chunks=(), load=load)[0] == 0
    assert load.in_flight == 0
