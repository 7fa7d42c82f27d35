"""Slow clients: each is closed at its deadline, and others do not wait."""

from __future__ import annotations

import concurrent.futures
import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.limits import BODY_SECONDS, HEAD_SECONDS, MAX_PIPELINED, WRITE_SECONDS
from tests.corpus.requests import REVIEW, is_allowed, review
from tests.service import NEVER, Service, ask, running, statuses

HEAD = f"POST {REVIEW} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n".encode()


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with running() as started:
        yield started


WHOLE = HEAD + b"Content-Length: 0\r\n\r\n"


def closed_after(service: Service, first: bytes, drop: bytes = b"") -> tuple[float, bytes]:
    """Send ``first``, then ``drop`` every half second; return the seconds until the service closes, and the answer."""
    begin, answer = time.monotonic(), b""
    with service.socket(0.5) as connection:
        connection.sendall(first)
        while time.monotonic() - begin < NEVER:
            try:
                part = connection.recv(65536)
                answer += part
                if not part:
                    break
            except TimeoutError:
                with contextlib.suppress(OSError):
                    connection.sendall(drop)
            except OSError:
                break
    return time.monotonic() - begin, answer


CLIENTS: dict[str, tuple[bytes, bytes, float, set[tuple[int, ...]]]] = {
    "T01 nothing at all": (b"", b"", HEAD_SECONDS, {()}),
    "T02 half a line": (b"POST /val", b"", HEAD_SECONDS, {(408,), ()}),
    "T03 a byte at a time": (HEAD, b"X", HEAD_SECONDS, {(408,), ()}),
    "T04 no body": (HEAD + b"Content-Length: 1000\r\n\r\n{", b"", BODY_SECONDS, {(408,), ()}),
    "T02 half a line behind a whole request": (WHOLE + b"POST /val", b"", HEAD_SECONDS, {(400, 408), (400,)}),
    "T04 a body at a byte a time": (HEAD + b"Content-Length: 1000\r\n\r\n{", b" ", BODY_SECONDS, {(408,), ()}),
}


def test_each_slow_client_is_closed_at_its_deadline(service: Service) -> None:
    """All run at once. Others are served meanwhile, and a connection may be idle between two requests."""
    with concurrent.futures.ThreadPoolExecutor(len(CLIENTS) + 1) as pool:
        resting = pool.submit(rested, service)
        waiting = {
            name: pool.submit(closed_after, service, first, drop) for name, (first, drop, _, _) in CLIENTS.items()
        }
        assert is_allowed(service.post(REVIEW, review())) == []
        assert not any(future.done() for future in waiting.values())
        for name, (_, _, deadline, expected) in CLIENTS.items():
            seconds, answer = waiting[name].result()
            assert deadline - 1 < seconds < NEVER, name
            assert tuple(statuses(answer)) in expected, name
        assert resting.result() == [200, 200]


def test_a_client_that_does_not_read_is_dropped(service: Service) -> None:
    """Otherwise its answers would be held without end, even after a normal close."""
    request = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
    before = sockets(service)
    with service.socket(1) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with contextlib.suppress(TimeoutError, ConnectionError):
            while True:
                connection.sendall(request)
                is_allowed(service.post(REVIEW, review()))  # these are read by then
        deadline = time.monotonic() + WRITE_SECONDS + NEVER
        while sockets(service) > before and time.monotonic() < deadline:
            time.sleep(0.2)
        assert sockets(service) <= before  # a connection that was about to be closed may have been counted


def sockets(service: Service) -> int:
    """Return how many sockets the process has."""
    count = 0
    for descriptor in Path(f"/proc/{service.process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed just now
            count += str(descriptor.readlink()).startswith("socket:")
    return count


def rested(service: Service) -> list[int]:
    """Return the statuses of two requests on one connection, with a pause longer than a head's deadline."""
    statuses = []
    with contextlib.closing(service.connect()) as connection:
        for pause in (0.0, HEAD_SECONDS + 1):
            time.sleep(pause)
            statuses.append(ask(connection, "GET", "/healthz", None, {}).status)
    return statuses


def test_requests_that_do_not_wait_for_answers(service: Service) -> None:
    """Some may wait behind another. Further ones, each 35 bytes that take 8 KiB, close their connection only."""
    request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    with service.socket(NEVER) as connection:
        connection.sendall(request * (MAX_PIPELINED + 1))
        answer = b""
        while len(statuses(answer)) <= MAX_PIPELINED:
            answer += connection.recv(65536)
        assert statuses(answer) == [200] * (MAX_PIPELINED + 1)
    for depth in (MAX_PIPELINED + 2, 1500):
        seconds, answer = closed_after(service, request * depth)
        assert seconds < HEAD_SECONDS
        assert len(statuses(answer)) <= MAX_PIPELINED
    assert is_allowed(service.post(REVIEW, review())) == []
