"""The transport's rules, over real HTTP semantics but without a network (reliability 6.1)."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from prometheus_client import REGISTRY

from app.admission import protocol
from app.errors import ProtocolError, ResponseError
from app.server.body import IN_FLIGHT_MAX, Load
from app.server.endpoint import BIG_BODY, Endpoint
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
    busy = Load()
    busy.in_flight = IN_FLIGHT_MAX
    status, headers, _ = ask(load=busy)
    assert (status, headers["retry-after"], headers["connection"]) == (429, "2", "close")
    assert busy.in_flight == IN_FLIGHT_MAX


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize(("held", "status"), [(0, 200), (LIMIT // 2, 429)])
def test_bodies_share_a_budget(declared: bool, held: int, status: int) -> None:
    """A declared length counts from the start, a chunked body as it grows; and afterwards nothing is held."""
    load = Load(budget=LIMIT)
    load.held = held
    chunks = (b"[", *[b" " * (LIMIT // 4)] * 3, b"]")
    headers = {"content-type": "application/json"}
    if declared:
        headers["content-length"] = str(sum(len(chunk) for chunk in chunks))
    answered, answer_headers, _ = ask(lambda _body: b"{}", headers=headers, chunks=chunks, load=load)
    assert (answered, load.held) == (status, held)
    assert status == 200 or answer_headers["retry-after"] == "2"


def test_small_requests_get_in_between_large_ones() -> None:
    """Large bodies are worked on one at a time, with a turn of the loop after each."""
    order: list[str] = []

    def handle(body: bytes) -> bytes:
        order.append("large" if len(body) > BIG_BODY else "small")
        return b"{}"

    async def send(message: dict[str, Any]) -> None:
        pass

    async def main() -> None:
        endpoint = Endpoint("/x", handle, LIMIT, 2, Load(), Log())
        large = [asyncio.create_task(endpoint(SCOPE, source(b" " * (BIG_BODY + 1)), send)) for _ in range(3)]
        await asyncio.sleep(0)
        await asyncio.gather(*large, endpoint(SCOPE, source(b"{}"), send))

    asyncio.run(main())
    assert order == ["large", "small", "large", "large"]


def source(body: bytes) -> Any:
    """A body that is all there already."""

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


SCOPE = {"method": "POST", "headers": [(b"content-type", b"application/json")]}


def test_the_log_names_whom_a_fault_is_about(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names and uid, and nothing else that was sent."""
    written: list[dict[str, Any]] = []
    monkeypatch.setattr(Log, "write", lambda _self, _level, _message, **fields: written.append(fields))
    parent = orjson.dumps({"parent": {"metadata": {"name": "n", "namespace": "ns"}, "spec": {"x": "secret"}}})
    review = orjson.dumps({"request": {"uid": "u", "name": "n", "namespace": "ns", "object": {"x": "secret"}}})

    def fail(body: bytes) -> bytes:
        raise KeyError("secret")

    for body in (parent, review, b"[", b'{"parent": 5}'):
        ask(fail, chunks=(body,))
    faults = [fields for fields in written if "exception" in fields]
    assert [fault.get("object") for fault in faults] == ["ns/n", "ns/n", None, None]
    assert faults[1]["uid"] == "u"
    assert "secret" not in str(written)


def test_a_denial_is_counted_and_logged_with_its_uid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them, while successes are sampled."""
    written: list[dict[str, Any]] = []
    monkeypatch.setattr(Log, "write", lambda _self, _level, _message, **fields: written.append(fields))
    before = counted("/x")
    answers = [protocol.allow('u","allowed":false'), protocol.refuse("u\x9f" * 100, "no"), protocol.refuse("v", "no")]
    endpoint = Endpoint("/x", lambda _body: answers.pop(0), LIMIT, 2, Load(), Log(), denial=protocol.denial)

    async def send(message: dict[str, Any]) -> None:
        pass

    for _ in range(3):
        asyncio.run(endpoint(SCOPE, source(b"{}"), send))
    assert [fields["uid"] for fields in written if fields.get("verdict") == "denied"] == ["u\x9f" * 100, "v"]
    assert counted("/x") == before + 2


def counted(endpoint: str) -> float:
    return REGISTRY.get_sample_value("modelhooks_denials_total", {"endpoint": endpoint}) or 0.0


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
