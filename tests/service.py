"""The real service in a separate process, for tests that need its sockets, its signals or its clock."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

ROOT = Path(__file__).parents[1]
NEVER = 60.0
"""Timeout in seconds, long enough that no test fails on a busy machine."""
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Answer:
    """A response that was read to its end."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)


@dataclass
class Service:
    """A running service. Every request has a separate connection unless the test keeps one."""

    process: subprocess.Popen[bytes]
    port: int
    host: str = "127.0.0.1"
    tls: ssl.SSLContext | None = None
    lines: list[bytes] = field(default_factory=list)

    def connect(self, timeout: float = NEVER) -> http.client.HTTPConnection:
        """Return a connection that can be kept alive."""
        if self.tls is not None:
            return http.client.HTTPSConnection(self.host, self.port, timeout=timeout, context=self.tls)
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def ask(self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> Answer:
        with contextlib.closing(self.connect()) as connection:
            return ask(connection, method, path, body, JSON if headers is None else headers)

    def post(self, path: str, document: Any) -> Answer:
        """Post JSON; ``bytes`` are sent unchanged."""
        return self.ask("POST", path, document if isinstance(document, bytes) else orjson.dumps(document))

    def raw(self, sent: bytes, timeout: float = 5) -> bytes:
        """Return all bytes of the answer until the service closes, or sends nothing for ``timeout`` seconds."""
        with self.socket(timeout) as connection:
            with contextlib.suppress(OSError):  # it may refuse and close before it has read all
                connection.sendall(sent)
            return received(connection)

    def socket(self, timeout: float = 5) -> socket.socket:
        return socket.create_connection((self.host, self.port), timeout=timeout)

    def rss(self) -> int:
        """Return the resident memory in KiB."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        match = re.search(r"VmRSS:\s+(\d+)", text)
        assert match is not None
        return int(match[1])


def ask(
    connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None, headers: dict[str, str]
) -> Answer:
    """Send one request on an open connection."""
    connection.request(method, path, body, headers)
    response = connection.getresponse()
    return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())


def received(connection: socket.socket) -> bytes:
    parts = []
    with contextlib.suppress(OSError):
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


def statuses(answer: bytes) -> list[int]:
    """Return the status codes in a stream of HTTP/1.1 answers."""
    return [int(code) for code in re.findall(rb"HTTP/1\.1 (\d{3}) ", answer)]


@contextlib.contextmanager
def running(
    *arguments: str, environment: dict[str, str] | None = None, before: Sequence[str] = ()
) -> Iterator[Service]:
    """Run ``modelhooks serve`` on a free port of the loopback interface until the end of the block.

    ``before`` is a command that runs the one behind it.
    """
    process = start(*arguments, environment=environment, before=before)
    try:
        yield process
    finally:
        stop(process)


def start(*arguments: str, environment: dict[str, str] | None = None, before: Sequence[str] = ()) -> Service:
    command = [*before, sys.executable, "-m", "app.cli", "serve", "--host", "127.0.0.1", "--port", "0", *arguments]
    variables = {**os.environ, "MODELHOOKS_LAMEDUCK_SECONDS": "0", **(environment or {})}
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=variables)
    assert process.stdout is not None
    deadline, lines = time.monotonic() + NEVER, []
    while time.monotonic() < deadline and process.poll() is None:
        lines.append(process.stdout.readline())
        match = re.search(rb"https?://127\.0\.0\.1:([0-9]+)", lines[-1])
        if match:
            return Service(process, int(match[1]), lines=lines)
    stop_process(process)
    raise AssertionError(f"the service did not start: {b''.join(lines).decode()}")


def stop(service: Service) -> bytes:
    """Stop the service and return its log."""
    process = service.process
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    if process.stdout is not None and not process.stdout.closed:
        service.lines.append(process.stdout.read())
    stop_process(process)
    return b"".join(service.lines)


def stop_process(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
