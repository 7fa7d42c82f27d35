"""A cheap closed-loop load generator: prepared bytes, raw sockets, one selector.

It runs on a different core than the server, so that its own cost is not measured.
"""

from __future__ import annotations

import selectors
import socket
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """Requests per second, and the 99th percentile and the maximum of the latency in milliseconds."""

    rate: float
    p99: float
    worst: float


class LoadError(Exception):
    """The server returned a status other than 200, or closed the connection."""


def run(port: int, path: str, body: bytes, connections: int, seconds: float, *, pause: float = 0) -> Result:
    """Send requests on keep-alive connections as fast as the server responds, or with a pause after each response."""
    request = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body
    selector = selectors.DefaultSelector()
    clients = [_Client(port, request) for _ in range(connections)]
    for client in clients:
        selector.register(client.socket, selectors.EVENT_READ, client)
        client.ask()
    started = time.perf_counter()
    end = started + seconds
    latencies: list[float] = []
    while (now := time.perf_counter()) < end:
        for key, _ in selector.select(1):
            client = key.data
            if client.read():
                latencies.append(time.perf_counter() - client.asked)
                time.sleep(pause)
                client.ask()
    elapsed = now - started
    for client in clients:
        client.socket.close()
    latencies.sort()
    return Result(len(latencies) / elapsed, latencies[int(len(latencies) * 0.99)] * 1000, latencies[-1] * 1000)


class _Client:
    """One connection: sends the request and detects the end of the response."""

    def __init__(self, port: int, request: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.asked = 0.0
        self._request = request
        self._received = b""

    def ask(self) -> None:
        self._received = b""
        self.asked = time.perf_counter()
        self.socket.sendall(self._request)

    def read(self) -> bool:
        """Read the available bytes; return whether the response is complete."""
        data = self.socket.recv(1 << 20)
        if not data:
            raise LoadError("the server closed the connection")
        self._received += data
        head, separator, body = self._received.partition(b"\r\n\r\n")
        if not separator:
            return False
        if not head.startswith(b"HTTP/1.1 200"):
            raise LoadError(f"{head[:80]!r} {body[:200]!r}")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        return len(body) >= int(length.split(b":")[1])
