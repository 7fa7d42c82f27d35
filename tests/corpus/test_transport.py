"""HTTP-6.1: errors before a body is read. Slow clients are in ``tests/server``."""

from __future__ import annotations

import contextlib
import gzip
import select
import socket

import orjson
import pytest

from app.limits import MAX_PIPELINED
from tests.corpus.requests import REVIEW, SYNC, UNREADABLE, is_allowed, is_refused, review, sync
from tests.service import JSON, Service, received, statuses

BODY = orjson.dumps(review())
HEAD = f"POST {REVIEW} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n".encode()
LENGTH = b"Content-Length: %d\r\n" % len(BODY)


def test_rejects_an_endless_head(service: Service) -> None:
    """The connection ends long before 200 MB are read, and the bytes are not kept (HTTP-T05)."""
    before = service.rss()
    answer = _flood(service, b"POST / HTTP/1.1\r\nX: ", b"x" * 1_000_000, 200)
    assert statuses(answer) in ([431], [400], [])
    assert service.rss() - before < 20_000


def test_rejects_ten_thousand_small_headers(service: Service) -> None:
    """The limit is for the whole head (HTTP-T06)."""
    head = HEAD + b"".join(b"X-%d: y\r\n" % number for number in range(10_000))
    assert statuses(service.raw(head + LENGTH + b"\r\n" + BODY)) in ([431], [400], [])


@pytest.mark.parametrize("path", [REVIEW, SYNC])
def test_rejects_a_declared_length_over_the_limit_unread(service: Service, path: str) -> None:
    """The refusal has a reason, and the connection ends (HTTP-T07)."""
    answer = service.raw(HEAD.replace(REVIEW.encode(), path.encode()) + b"Content-Length: 99999999\r\n\r\n{}")
    assert statuses(answer) == [413]
    assert b"connection: close" in answer.lower()


def test_rejects_a_chunked_body_over_the_limit(service: Service) -> None:
    """The status is 413, not 500, although no length was declared (HTTP-T08)."""
    chunk = b"%x\r\n" % 65536 + b" " * 65536 + b"\r\n"
    answer = _flood(service, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", chunk, 120)
    assert statuses(answer) in ([413], [])


def test_a_client_that_sends_all_the_same_reads_why_it_was_refused(service: Service) -> None:
    """The connection is not reset although the body was not read, so the client can read the refusal."""
    for path, size in ((REVIEW, 9), (SYNC, 40)):
        with service.socket(10) as connection:
            connection.sendall(
                HEAD.replace(REVIEW.encode(), path.encode()) + b"Content-Length: %d\r\n\r\n" % (size << 20)
            )
            for _ in range(size):
                connection.sendall(b" " * (1 << 20))
            assert statuses(received(connection)) == [413]


def test_half_sent_bodies_take_no_more_than_their_share(service: Service) -> None:
    """A client whose body is dropped gets 429 and a time when it sends more; bodies within the share are read."""
    before = service.rss()
    size = 1 << 20
    waiting = [service.socket() for _ in range(150)]
    try:
        for connection in waiting:
            connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % size + b" " * (size // 2))
        for _ in range(7):
            for connection in waiting:
                with contextlib.suppress(OSError):  # already refused
                    connection.sendall(b" " * (size // 16))
        assert select.select(waiting, [], [], 5)[0]
        answers = [received(connection) for connection in waiting if _has_answer(connection)]
        refused = [answer for answer in answers if statuses(answer) == [429]]
        assert refused  # a slow machine may answer some of the others with 408 by then
        assert all(b"retry-after: 1" in answer for answer in refused)
        assert is_allowed(service.post(REVIEW, review())) == []
        assert service.rss() - before < 120_000
    finally:
        for connection in waiting:
            connection.close()


def _has_answer(connection: socket.socket) -> bool:
    return bool(select.select([connection], [], [], 0)[0])


MALFORMED: dict[str, bytes] = {
    "T09 chunk size": HEAD + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n",
    "T10 length and chunked": HEAD + LENGTH + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "T11 two lengths": HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "T12 negative length": HEAD + b"Content-Length: -5\r\n\r\n{}",
    "T12 signed length": HEAD + b"Content-Length: +5\r\n\r\n{}",
    "T12 list of lengths": HEAD + b"Content-Length: 5, 5\r\n\r\n{}",
    "T20 no path": b"POST @evil.example HTTP/1.1\r\nHost: x\r\n\r\n",
    "T21 HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "T21 TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 64,
    "T21 noise": bytes(range(128, 256)) * 4,
}


@pytest.mark.parametrize("sent", MALFORMED.values(), ids=list(MALFORMED))
def test_what_is_not_http_is_refused_and_closed(service: Service, sent: bytes) -> None:
    """The status is 400, and the rest of the bytes is not read as a request."""
    assert statuses(service.raw(sent, timeout=2)) == [400]


REFUSED: dict[str, tuple[str, str, dict[str, str], bytes, int]] = {
    "T13 gzip": ("POST", REVIEW, {**JSON, "Content-Encoding": "gzip"}, gzip.compress(BODY), 415),
    "T14 text": ("POST", REVIEW, {"Content-Type": "text/plain"}, BODY, 415),
    "T14 no type": ("POST", REVIEW, {}, BODY, 415),
    "T14 UTF-16": ("POST", REVIEW, {"Content-Type": "application/json; charset=utf-16"}, BODY, 415),
    **{f"T16 {method}": (method, REVIEW, JSON, b"", 405) for method in ("GET", "PUT", "DELETE", "OPTIONS", "HEAD")},
    **{
        f"T17 {path}": ("POST", path, JSON, BODY, 404)
        for path in ("/nothing", f"/{REVIEW}", f"{REVIEW}/..;{SYNC}", REVIEW.upper(), f"{REVIEW}/", "/%2e%2e/sync")
    },
}


@pytest.mark.parametrize(("method", "path", "headers", "body", "status"), REFUSED.values(), ids=list(REFUSED))
def test_what_is_refused_by_its_head(
    service: Service, method: str, path: str, headers: dict[str, str], body: bytes, status: int
) -> None:
    """The body is not read."""
    answer = service.ask(method, path, body, headers)
    assert answer.status == status
    assert len(answer.body) <= 512
    assert method == "HEAD" or isinstance(answer.json["error"], str)
    assert status != 405 or answer.headers["allow"] == "POST"


ACCEPTED: dict[str, tuple[str, dict[str, str]]] = {
    "T15 charset": ("", {"Content-Type": "application/json; charset=utf-8"}),
    **{f"T18 {query}": (query, JSON) for query in ("?timeout=5s", "?timeout=999h", "?timeout=%00")},
    "T19 odd host": ("", {**JSON, "Host": "other.example:1"}),
    **{f"T30 {word}": ("", {**JSON, "Authorization": word}) for word in ("Bearer x", "Basic Og==", "")},
}


@pytest.mark.parametrize(("query", "headers"), ACCEPTED.values(), ids=list(ACCEPTED))
def test_what_makes_no_difference(service: Service, query: str, headers: dict[str, str]) -> None:
    """The query, the host, the charset and credentials have no effect."""
    assert is_allowed(service.ask("POST", REVIEW + query, BODY, headers)) == []


def test_answers_a_request_without_host(service: Service) -> None:
    """Nothing depends on the host (HTTP-T19)."""
    head = f"POST {REVIEW} HTTP/1.1\r\nContent-Type: application/json\r\nConnection: close\r\n".encode()
    assert statuses(service.raw(head + LENGTH + b"\r\n" + BODY)) in ([200], [400])


def test_ignores_the_host_of_an_absolute_target(service: Service) -> None:
    """The host of the target is not contacted (HTTP-T20)."""
    answer = service.raw(f"POST http://evil.example{REVIEW} HTTP/1.1\r\nHost: x\r\n\r\n".encode(), timeout=2)
    assert set(statuses(answer)) <= {400, 404, 415}


def test_answers_http_1_0_and_closes(service: Service) -> None:
    """HTTP/1.0 clients expect the connection to be closed (HTTP-T22)."""
    head = f"POST {REVIEW} HTTP/1.0\r\nContent-Type: application/json\r\n".encode()
    assert statuses(service.raw(head + LENGTH + b"\r\n" + BODY)) == [200]


def test_answers_pipelined_requests_in_order(service: Service) -> None:
    """Each answer has its own uid, up to the limit of pipelined requests (HTTP-T23)."""
    depth = MAX_PIPELINED + 1
    bodies = [orjson.dumps(review(uid=f"r-{number}")) for number in range(depth)]
    requests = [HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body for body in bodies]
    requests[-1] = requests[-1].replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)
    answer = service.raw(b"".join(requests), timeout=10)
    places = [answer.find(f'"uid":"r-{number}"'.encode()) for number in range(depth)]
    assert statuses(answer) == [200] * depth
    assert -1 not in places
    assert places == sorted(places)


def test_answers_expect_100_continue(service: Service) -> None:
    """The answer is 100 if the body is accepted, and 413 if its length exceeds the limit (HTTP-T24)."""
    expecting = HEAD + b"Expect: 100-continue\r\nConnection: close\r\n"
    assert statuses(service.raw(expecting + LENGTH + b"\r\n" + BODY)) == [100, 200]
    assert statuses(service.raw(expecting + b"Content-Length: 99999999\r\n\r\n")) == [413]


def test_refuses_websocket_upgrades(service: Service) -> None:
    """HTTP-T25: the connection remains HTTP."""
    head = f"GET {REVIEW} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n".encode()
    key = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    assert set(statuses(service.raw(head + key, timeout=2))) <= {400, 404, 405, 426}


def test_frees_memory_of_disconnected_clients(service: Service) -> None:
    """Clients disconnect in the middle of a head or a body (HTTP-T26)."""
    whole = HEAD + LENGTH + b"\r\n" + BODY
    for end in range(0, len(whole), 50):
        with service.socket() as connection:
            connection.sendall(whole[:end])
    is_allowed(service.post(REVIEW, review()))


def test_bounds_buffers_of_a_client_that_never_reads(service: Service) -> None:
    """Its answers wait in bounded buffers (HTTP-T27)."""
    before = service.rss()
    with service.socket() as connection:
        connection.settimeout(0.5)
        body = orjson.dumps(sync())
        request = HEAD.replace(REVIEW.encode(), SYNC.encode()) + b"Content-Length: %d\r\n\r\n" % len(body) + body
        try:
            for _ in range(2000):
                connection.sendall(request)
        except OSError:
            pass
        assert is_allowed(service.post(REVIEW, review())) == []
        assert service.rss() - before < 60_000


def test_serves_beside_idle_connections(service: Service) -> None:
    """HTTP-T28: with 500 idle connections, others are answered."""
    idle = [service.socket() for _ in range(500)]
    try:
        assert is_refused(service.post(REVIEW, b"")).startswith(UNREADABLE[REVIEW])
        assert is_allowed(service.post(REVIEW, review())) == []
    finally:
        for connection in idle:
            connection.close()


def _flood(service: Service, head: bytes, part: bytes, times: int) -> bytes:
    """Send the part repeatedly until the service closes, and return the answer."""
    with service.socket(10) as connection:
        try:
            connection.sendall(head)
            for _ in range(times):
                connection.sendall(part)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        return received(connection)
