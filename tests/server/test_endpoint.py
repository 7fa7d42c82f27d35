"""The transport's rules, with real HTTP semantics and without a network."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import orjson
import pytest
from fastapi import FastAPI
from prometheus_client import REGISTRY
from prometheus_fastapi_instrumentator import Instrumentator
from starlette.exceptions import HTTPException

from app.admission import protocol
from app.errors import ProtocolError, ResponseError
from app.kube import field
from app.limits import LARGE_BODY_BYTES, MAX_IN_FLIGHT, SMALL_BODY_BYTES, WRITE_BUFFER_BYTES
from app.server.body import Load, Reader
from app.server.endpoint import Answer, HookEndpoint, HookRoute, Report
from app.server.logs import Log, logged
from app.server.metrics import reviewed
from app.server.problems import handlers
from app.server.worker import Call, Caller, Disconnected, Lane, Line

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
    log: Log | None = None,
    report: Report[Any] | None = None,
) -> tuple[int, dict[str, str], Any]:
    """Send one request to an application with one endpoint; return status, headers and decoded body."""
    load, log = load or Load(), log or Log()
    app = FastAPI(openapi_url=None, exception_handlers=cast("Any", handlers(load, log)))
    app.router.route_class = HookRoute
    app.add_api_route("/x", HookEndpoint(handle, LIMIT, 2, load, report).answer, methods=["POST"])
    Instrumentator(should_group_status_codes=False).add(logged(log)).instrument(app)
    sent: list[dict[str, Any]] = []
    messages = [{"type": "http.request", "body": c, "more_body": i < len(chunks) - 1} for i, c in enumerate(chunks)]

    async def receive() -> Any:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    given = {"content-type": "application/json"} if headers is None else headers
    encoded = [(k.encode(), v.encode()) for k, v in given.items()]
    scope = {"type": "http", "method": method, "path": "/x", "query_string": b"", "headers": encoded}
    asyncio.run(app(scope, receive, send))
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], {k.decode(): v.decode() for k, v in sent[0]["headers"]}, orjson.loads(body)


def test_an_answer_has_a_length_and_a_type() -> None:
    """No header identifies the server."""
    status, headers, body = ask()
    assert (status, body) == (200, {})
    assert headers == {"content-type": "application/json", "content-length": "2"}


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"method": "PUT"}, 405),
        ({"headers": {}}, 415),
        ({"headers": {"content-type": "text/plain"}}, 415),
        ({"headers": {"content-type": "application/json", "content-length": str(LIMIT + 1)}}, 413),
        ({"chunks": (b"x" * LIMIT, b"x")}, 413),
        ({"chunks": (b"{", b"}")}, 200),
    ],
)
def test_requests_that_are_refused_before_parsing(given: dict[str, Any], status: int) -> None:
    """Each has a reason and precedes any parsing."""
    answered, headers, body = ask(**given)
    assert answered == status
    assert status == 200 or (body["error"] and headers["connection"] == "close")


@pytest.mark.parametrize(
    ("fault", "status"), [(ProtocolError("no", 400), 400), (ResponseError("secret"), 500), (KeyError("secret"), 500)]
)
def test_an_exception_is_an_error_with_an_id(fault: Exception, status: int) -> None:
    """An internal error is a 500 with only an id."""

    def fail(body: bytes) -> bytes:
        raise fault

    answered, _, body = ask(fail)
    assert answered == status
    assert "secret" not in str(body)
    assert status == 400 or len(body["id"]) == 12


def test_overload_is_429_with_an_integer_retry_after() -> None:
    """Without the header, Metacontroller would retry at once."""
    busy = Load()
    busy.in_flight = MAX_IN_FLIGHT
    status, headers, _ = ask(load=busy)
    assert (status, headers["retry-after"], headers["connection"]) == (429, "2", "close")
    assert busy.in_flight == MAX_IN_FLIGHT


class Client:
    """Sends a body in parts."""

    def __init__(self, load: Load, headers: dict[str, str] | None = None, address: str = "") -> None:
        self.sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.reader = Reader(load, LIMIT, 2, Caller(address))
        given = {"content-type": "application/json", **(headers or {})}
        scope = {"method": "POST", "headers": [(k.encode(), v.encode()) for k, v in given.items()]}
        self.task = asyncio.create_task(self.reader.read(scope, self.sent.get))

    async def send(self, size: int, *, more: bool = True) -> None:
        """Send a part of that size, and let the reader run."""
        self.sent.put_nowait({"type": "http.request", "body": b" " * size, "more_body": more})
        for _ in range(3):
            await asyncio.sleep(0)

    async def outcome(self) -> int:
        """Return the length of the body, or the status of the refusal."""
        try:
            return len(await self.task)
        except HTTPException as refusal:
            return refusal.status_code


def test_only_received_bytes_count() -> None:
    """Only received bytes count, and a small body does not count at all: two idle clients used the whole budget."""

    async def main() -> None:
        load = Load(budget=LIMIT)
        idle = [Client(load, {"content-length": str(LIMIT)}) for _ in range(50)]
        for client in idle:
            await client.send(1)
        assert load.held == 0
        honest = Client(load)
        await honest.send(LARGE_BODY_BYTES // 2)
        assert load.held == LARGE_BODY_BYTES // 2
        await honest.send(LARGE_BODY_BYTES // 2, more=False)
        assert await honest.outcome() == LARGE_BODY_BYTES
        load.release(honest.reader)
        assert load.held == 0
        for client in idle:
            client.task.cancel()

    asyncio.run(main())


def test_the_slowest_incomplete_body_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slowest in bytes per second is dropped and freed; it gets 429 when it sends more."""
    now = [100.0]
    monkeypatch.setattr("app.server.body.time.monotonic", lambda: now[0])

    async def main() -> None:
        load = Load(budget=LIMIT)
        slow, slower = Client(load), Client(load)
        for client, size in ((slow, LIMIT // 2 - 2), (slower, LIMIT // 4)):
            await client.send(1)
            await client.send(size)
        now[0] += 5
        quick = Client(load)
        await quick.send(1)
        await quick.send(LIMIT // 2 - LIMIT // 8)
        assert (slower.reader.held, load.held) == (0, slow.reader.held + quick.reader.held)
        await slower.send(1)
        assert await slower.outcome() == 429
        await quick.send(1, more=False)
        await slow.send(1, more=False)
        assert [await quick.outcome(), await slow.outcome()] == [LIMIT // 2 - LIMIT // 8 + 2, LIMIT // 2]

    asyncio.run(main())


class Crowd:
    """Complete bodies of one address that wait, in the order of their names."""

    def __init__(self, load: Load, address: str, *sizes: int) -> None:
        self.load, self.address, self.sizes = load, address, sizes
        self.clients: list[Client] = []

    async def wait(self) -> None:
        for size in self.sizes:
            client = Client(self.load, address=self.address)
            await client.send(1)
            await client.send(size - 1, more=False)
            done = asyncio.get_running_loop().create_future()
            client.reader.caller.call = Call(Line(self.address, Lane.HOOK), size, lambda: None, done)
            self.clients.append(client)

    def refused(self) -> list[bool]:
        return [call.done.done() for client in self.clients if (call := client.reader.caller.call)]


@pytest.mark.parametrize(("address", "refused"), [("b", [False, False, True]), ("a", [False, False, False])])
def test_the_address_with_the_most_bytes_loses_its_last_bodies(address: str, refused: list[bool]) -> None:
    """It does not lose them to itself, where a request that came later is refused."""

    async def main() -> tuple[int, list[bool], list[bool], int]:
        load = Load(budget=LIMIT)
        crowd, other = Crowd(load, "a", *[LIMIT // 4] * 3), Crowd(load, "c", LIMIT // 5)
        await crowd.wait()
        await other.wait()
        late = Client(load, address=address)
        await late.send(1)
        await late.send(LARGE_BODY_BYTES // 2, more=False)
        return await late.outcome(), crowd.refused(), other.refused(), load.held

    expected = LARGE_BODY_BYTES // 2 + 1 if address == "b" else 429
    status, refusals, others, bytes_in_memory = asyncio.run(main())
    assert (status, refusals, others) == (expected, refused, [False])
    assert bytes_in_memory <= LIMIT


def test_what_is_worked_on_does_not_give_way() -> None:
    """Its memory is not free until it is done."""

    async def main() -> tuple[int, list[bool]]:
        load = Load(budget=LIMIT)
        crowd = Crowd(load, "a", LIMIT // 2 - 2, LIMIT // 4)
        await crowd.wait()
        for client in crowd.clients:
            assert client.reader.caller.call is not None
            client.reader.caller.call.begun = True
        late = Client(load, address="b")
        await late.send(1)
        await late.send(LIMIT // 2, more=False)
        return await late.outcome(), crowd.refused()

    assert asyncio.run(main()) == (429, [False, False])


@pytest.mark.parametrize(("size", "outcome"), [(SMALL_BODY_BYTES, SMALL_BODY_BYTES), (SMALL_BODY_BYTES + 1, 429)])
@pytest.mark.parametrize("parts", [1, 2])
def test_reads_a_small_body_beside_large_ones(size: int, outcome: int, parts: int) -> None:
    """Complete bodies that wait for work may use the whole budget, and are not dropped."""

    async def main() -> None:
        load = Load(budget=LIMIT)
        load.held = LIMIT
        client = Client(load)
        if parts == 2:
            await client.send(1)
        await client.send(size - parts + 1, more=False)
        assert await client.outcome() == outcome
        assert load.held == LIMIT

    asyncio.run(main())


def test_large_bodies_leave_a_quarter_to_the_others() -> None:
    """Twenty of them do not cause every ordinary sync to be refused."""

    async def main() -> None:
        load = Load(budget=LIMIT)
        load.held = LIMIT * 3 // 4 - LARGE_BODY_BYTES
        large, ordinary = Client(load), Client(load)
        await large.send(LARGE_BODY_BYTES + 1, more=False)
        await ordinary.send(LARGE_BODY_BYTES // 8, more=False)
        assert [await large.outcome(), await ordinary.outcome()] == [429, LARGE_BODY_BYTES // 8]

    asyncio.run(main())


def test_the_bytes_of_a_client_that_left_are_released() -> None:
    """All that it had sent is released."""

    async def main() -> None:
        load = Load(budget=LIMIT)
        client = Client(load)
        await client.send(1)
        await client.send(LIMIT // 2)
        client.sent.put_nowait({"type": "http.disconnect"})
        with pytest.raises(Disconnected):
            await client.task
        load.release(client.reader)
        assert (load.held, load.holders) == (0, set())

    asyncio.run(main())


def test_the_log_names_whom_a_fault_is_about(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log has names and uid, and nothing else of the request."""
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


def test_a_denial_is_counted_by_its_reasons_and_logged_with_its_uid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every denial is logged; successes are sampled."""
    written: list[dict[str, Any]] = []
    monkeypatch.setattr(Log, "write", lambda _self, _level, _message, **fields: written.append(fields))
    path, request = field.Path("spec"), protocol.AdmissionRequest(uid="u\x9f" * 100)
    mistakes = [field.required(path), field.required(path.child("a")), field.invalid(path, 1, "no")]
    answers = [
        protocol.allow('u","allowed":false', ["a", "b"]),
        protocol.deny(request, "n", mistakes, ["c"]),
        protocol.refuse("v", "no"),
    ]
    for answer in answers:
        ask(lambda _body, answer=answer: answer, report=reviewed("Test"))
    assert [fields["uid"] for fields in written if fields.get("verdict") == "denied"] == ["u\x9f" * 100, "v"]
    reasons = ("FieldValueRequired", "FieldValueInvalid", "BadRequest")
    assert [counted("denials", kind="Test", reason=reason) for reason in reasons] == [1, 1, 1]
    assert counted("warnings", kind="Test") == 3


def counted(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"modelhooks_{name}_total", labels) or 0.0


@pytest.mark.parametrize("size", [1, WRITE_BUFFER_BYTES, WRITE_BUFFER_BYTES + 1, 4 * WRITE_BUFFER_BYTES])
def test_an_answer_counts_until_it_is_sent(size: int) -> None:
    """An answer of any size is sent in parts, each of which waits for the previous one."""

    async def main() -> list[int]:
        load, sizes, parts = Load(), [], []

        async def send(message: Any) -> None:
            sizes.append(load.held)
            parts.append(message.get("body", b""))

        await Answer(load, b"x" * size)({}, cast("Any", None), send)
        assert (sum(map(len, parts)), max(map(len, parts)) <= WRITE_BUFFER_BYTES) == (size, True)
        return [*sorted(set(sizes)), load.held]

    assert asyncio.run(main()) == [size, 0]


def test_the_answer_that_is_read_most_slowly_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends with its connection, so that other answers and bodies have room."""
    now = [100.0]
    monkeypatch.setattr("app.server.body.time.monotonic", lambda: now[0])
    aborted: list[str] = []

    async def main() -> None:
        load = Load(budget=LIMIT)

        async def begin(name: str, parts: int) -> asyncio.Event:
            """Send an answer to a client that reads this many parts and then waits for the event."""
            end, sent = asyncio.Event(), iter(range(parts + 1))

            async def send(_message: Any) -> None:
                if next(sent, None) is None:
                    await end.wait()

            def abort() -> None:
                aborted.append(name)
                end.set()

            scope = {"state": {"caller": Caller(name, abort)}}
            tasks.append(asyncio.create_task(Answer(load, b"x" * (LIMIT // 3))(scope, cast("Any", None), send)))
            await asyncio.sleep(0)
            return end

        tasks: list[asyncio.Task[None]] = []
        ends = [await begin("slow", 2), await begin("slowest", 1), await begin("steady", 3)]
        now[0] += 5
        ends.append(await begin("next", 4))
        assert (aborted, load.held) == (["slowest"], LIMIT // 3 * 3)
        client = Client(load)
        now[0] += 5
        await client.send(LIMIT // 3, more=False)
        assert (aborted, await client.outcome()) == (["slowest", "slow"], LIMIT // 3)
        load.release(client.reader)
        for end in ends:
            end.set()
        await asyncio.gather(*tasks)
        assert (load.held, load.holders) == (0, set())

    asyncio.run(main())


def test_a_draining_process_closes_connections() -> None:
    load = Load()
    load.draining = True
    assert ask(load=load)[1]["connection"] == "close"


def test_a_client_that_left_is_not_answered() -> None:
    """Afterwards no request is in flight."""
    load = Load()
    assert ask(chunks=(), load=load)[0] == 499
    assert load.in_flight == 0
