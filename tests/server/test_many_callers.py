"""Limits on what one client can take from others, on the real process: bytes and connections."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from app.limits import MAX_CONNECTIONS, MAX_HEAD_BYTES, MAX_WAITING_CONNECTIONS
from tests.corpus.requests import REVIEW, SYNC, is_allowed, review, sync
from tests.server.test_tls_served import BUNDLE, Files
from tests.service import NEVER, ROOT, Service, received, running, statuses, stop

HEAD = f"POST {SYNC} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n".encode()
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
READ_AT_ONCE = 256 * 1024
"""Maximum number of bytes that the process reads from a socket at once."""


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with running() as started:
        yield started


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (b"0\r\n", b"a: b\r\n" * 2000),
        (b"0\r\na: ", b"x" * 12_000),
        (b"5;", b"x" * 12_000),
        (b"", b"1;" + b"x" * 2000 + b"\r\ny\r\n"),
    ],
    ids=["many trailers", "one trailer", "an extension", "an extension of each chunk"],
)
def test_what_is_neither_head_nor_body_is_bounded(service: Service, first: bytes, again: bytes) -> None:
    """Beyond the limit the connection is closed, so a client can send no more than buffers hold."""
    sent = 0
    with service.socket(NEVER) as connection, contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
        connection.sendall(CHUNKED + first)
        while sent < 64 * READ_AT_ONCE:
            connection.sendall(again)
            sent += len(again)
    assert MAX_HEAD_BYTES < sent < 64 * READ_AT_ONCE
    assert is_allowed(service.post(REVIEW, review())) == []


def test_accepts_small_chunks_and_a_trailer(service: Service) -> None:
    """The chunks' framing may be as large as the body, and somewhat larger."""
    body = b"{" + b" " * 20_000 + b"}"
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body[:4000]) + b"%x\r\n%s\r\n" % (len(body) - 4000, body[4000:])
    head = HEAD + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = service.raw(head + chunks + b"0\r\na: b\r\n\r\n")
    assert statuses(answer) == [400]  # read to its end, and not a request of Metacontroller


def test_declared_lengths_do_not_exhaust_the_budget(service: Service) -> None:
    """Each client declares the largest body and sends one byte."""
    with contextlib.ExitStack() as stack:
        for _ in range(40):
            idle = stack.enter_context(service.socket())
            idle.sendall(HEAD + b"Content-Length: 8000000\r\n\r\n{")
        for path, document in ((REVIEW, review()), (SYNC, sync())):
            assert service.post(path, document).status == 200


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    files = Files(tmp_path_factory.mktemp("tls"))
    files.write(BUNDLE.leaf.certificate, BUNDLE.leaf.key)
    with running("--tls-cert-file", str(files.certificate), "--tls-key-file", str(files.key)) as started:
        started.tls = ssl.create_default_context(cadata=BUNDLE.trusted)
        yield started


MORE = 100


def test_silent_connections_give_way_to_new_ones(encrypted: Service) -> None:
    """There are never more than the limit; the oldest is closed, and new ones are served."""
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(encrypted.socket(NEVER)) for _ in range(MAX_CONNECTIONS + MORE)]
        assert encrypted.ask("GET", "/healthz").status == 200
        ended = sum(map(_has_ended, silent[: MORE + 1]))
        assert ended == MORE + 1
        assert is_allowed(encrypted.post(REVIEW, review())) == []


def test_silent_connections_delay_no_other_of_their_address(encrypted: Service) -> None:
    """There are more of them than may be open and wait together."""
    with contextlib.ExitStack() as stack:
        for _ in range(MAX_CONNECTIONS + MAX_WAITING_CONNECTIONS + MORE):
            stack.enter_context(encrypted.socket(NEVER))
        assert encrypted.ask("GET", "/healthz").status == 200


def test_a_handshake_has_a_deadline(encrypted: Service) -> None:
    """The process closes the connection."""
    with encrypted.socket(NEVER) as silent:
        assert silent.recv(1) == b""


def test_idle_connections_give_way_and_busy_ones_do_not(service: Service) -> None:
    """A started request is answered, no matter how many connections follow."""
    with contextlib.ExitStack() as stack:
        for _ in range(MAX_CONNECTIONS):
            _rest(stack, service)
        busy = stack.enter_context(service.socket(NEVER))
        busy.sendall(HEAD + b"Content-Length: 2\r\n\r\n{")
        for _ in range(MORE):
            _rest(stack, service)
        busy.sendall(b"}")
        assert busy.recv(12) == b"HTTP/1.1 400"


def _rest(stack: contextlib.ExitStack, service: Service) -> None:
    """Open a connection, and keep it after one answer."""
    idle = stack.enter_context(service.socket(NEVER))
    idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    assert idle.recv(12) == b"HTTP/1.1 200"


def test_requests_that_are_not_complete_give_way(service: Service) -> None:
    """A client that starts as many requests as there may be connections, and completes none, blocks no other client."""
    begun = (HEAD, HEAD + b"Content-Length: 100\r\n\r\n{")
    with contextlib.ExitStack() as stack:
        for n in range(MAX_CONNECTIONS + MORE):
            stack.enter_context(service.socket(NEVER)).sendall(begun[n % 2])
            if n % 50 == 0:
                assert service.ask("GET", "/healthz").status == 200
        for _ in range(10):
            assert is_allowed(service.post(REVIEW, review())) == []


@pytest.mark.parametrize("started", ["service", "encrypted"])
def test_a_crowd_closes_only_its_own_connections(started: str, request: pytest.FixtureRequest) -> None:
    """The address with the most connections loses some; others are served, and their idle connections stay open."""
    service: Service = request.getfixturevalue(started)
    ask = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(contextlib.closing(service.connect())) for _ in range(20)]
        for connection in idle:
            connection.request("GET", "/healthz")
            connection.getresponse().read()
        for n in range(MAX_CONNECTIONS + MORE):
            crowd = socket.create_connection((service.host, service.port), NEVER, ("127.0.0.2", 0))
            stack.enter_context(crowd)
            if service.tls is None:
                crowd.sendall(ask)
            if n % 50 == 0:
                assert is_allowed(service.post(REVIEW, review())) == []
        for connection in idle:
            connection.request("GET", "/healthz")
            assert connection.getresponse().status == 200


def _has_ended(connection: socket.socket) -> bool:
    with contextlib.suppress(ConnectionResetError):
        return connection.recv(1) == b""
    return True


def test_a_disconnected_client_is_not_an_error() -> None:
    """A client may leave during its request or before it reads the answer; the log has no error."""
    with running() as service:
        for path in ("/metrics", "/healthz", "/readyz", SYNC):
            for rude in (b"\1\0\0\0\0\0\0\0", b"\0\0\0\0\0\0\0\0"):
                for read in (0, 1):
                    with service.socket() as connection:
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("8s", rude))
                        connection.sendall(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path.encode())
                        connection.recv(read)
        assert service.ask("GET", "/healthz").status == 200
        log = stop(service)
    assert b"Traceback" not in log
    assert b'"level":"error"' not in log


def test_answers_a_request_before_a_refused_one() -> None:
    """They arrive together; only the refusal is answered, and the log has no error."""
    head = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
    with running() as service:
        answer = service.raw(head + b"\r\n" + head + b"x: " + b"x" * MAX_HEAD_BYTES + b"\r\n\r\n")
        log = stop(service)
    assert statuses(answer) == [431]
    assert b'"level":"error"' not in log


GET = b"GET /healthz HTTP/1.1\r\n"


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /" + b"a" * 60_000 + b" HTTP/1.1\r\nHost: x\r\n", 414),
        (b"GET /healthz?" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: x\r\n", 414),
        (GET + b"Host: x\r\nx: " + b"a" * 60_000 + b"\r\n", 431),
        (GET, 400),
        (GET + b"Host: a\r\nhost: a\r\n", 400),
        (GET + b"Host: a b\r\n", 400),
        (GET + b"Host: a/b\r\n", 400),
        (GET + b"Host: [::1]:8443\r\nConnection: close\r\n", 200),
        (GET + b"Host:\r\nConnection: close\r\n", 200),
        (b"GET /healthz HTTP/1.0\r\n", 200),
        (b"GET /healthz HTTP/1.0\r\nHost: a\r\nHost: b\r\n", 400),
    ],
    ids=["path", "query", "header", "no host", "two", "blank", "path in it", "IPv6", "empty", "1.0", "1.0 with two"],
)
def test_a_head_that_no_proxy_would_pass_on_is_refused(service: Service, head: bytes, status: int) -> None:
    """The connection ends. Two readers of such a request could understand it differently."""
    assert statuses(service.raw(head + b"\r\n")) == [status]


@pytest.mark.parametrize("closed", [(1,), (0, 1, 2)], ids=["stdout", "all three"])
def test_serves_without_standard_files(closed: tuple[int, ...]) -> None:
    """A socket that got the number of one of them would get the lines of the log."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "app.cli", "serve", "--host", "127.0.0.1", "--port", str(port)]
    shell = ["sh", "-c", 'exec "$@" ' + " ".join(f"{number}>&-" for number in closed), "sh", *command]
    process = subprocess.Popen(shell, cwd=ROOT)
    try:
        service, deadline = Service(cast("Any", process), port), time.monotonic() + NEVER
        while time.monotonic() < deadline and process.poll() is None:
            with contextlib.suppress(ConnectionRefusedError):
                assert service.ask("GET", "/healthz").status == 200
                break
            time.sleep(0.1)
        files = [Path(f"/proc/{process.pid}/fd/{number}").readlink() for number in closed]
        assert files == [Path(os.devnull)] * len(closed)
        assert is_allowed(service.post(REVIEW, review())) == []
    finally:
        process.terminate()
        process.wait()


def test_few_open_files_are_few_connections() -> None:
    """Connections give way to another address before the process has no file left for a new one."""
    limit = ["sh", "-c", 'ulimit -n 64; exec "$@"', "sh"]
    with running(before=limit) as service, contextlib.ExitStack() as stack:
        for _ in range(MORE):
            stack.enter_context(service.socket(NEVER)).sendall(GET + b"Host: x\r\n\r\n")
        other = stack.enter_context(
            socket.create_connection((service.host, service.port), NEVER, source_address=("127.0.0.2", 0))
        )
        other.sendall(GET + b"Host: x\r\nConnection: close\r\n\r\n")
        assert statuses(received(other)) == [200]
        assert b"Too many open files" not in b"".join(service.lines)


def test_sighup_ends_nothing(service: Service) -> None:
    """Without a certificate there is nothing to reload."""
    service.process.send_signal(signal.SIGHUP)
    assert is_allowed(service.post(REVIEW, review())) == []


def test_sighup_reads_the_certificate_again(tmp_path: Path) -> None:
    """The file is read at once. An invalid file of 60 MB has no effect and is not read to its end."""
    files = Files(tmp_path)
    files.write(BUNDLE.leaf.certificate, BUNDLE.leaf.key)
    with running("--tls-cert-file", str(files.certificate), "--tls-key-file", str(files.key)) as service:
        service.tls = ssl.create_default_context(cadata=BUNDLE.trusted)
        files.certificate.write_bytes(b"-" * 60_000_000)
        service.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + NEVER
        while b"certificate not usable" not in service.lines[-1] and time.monotonic() < deadline:
            assert service.process.stdout is not None
            service.lines.append(service.process.stdout.readline())
        assert b"certificate not usable" in service.lines[-1]
        assert service.ask("GET", "/readyz").status == 200
