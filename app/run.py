"""Run the service: uvicorn with our limits, and a stop that loses no request.

On SIGTERM the process becomes a lame duck: not ready, with ``Connection: close`` in every answer, it goes on serving
until the endpoints have removed it. With a plain stop up to 1 % of requests are lost.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
import time
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn

from app.limits import KEEP_ALIVE_SECONDS, QUIET_WITHIN_SECONDS
from app.main import Application
from app.server import logs
from app.server.listener import Listener, Room, allowed_files
from app.server.protocol import LimitedProtocol
from app.settings import Settings, unknown_variables

if TYPE_CHECKING:
    from app.server.tls import Certificate

QUIET_SECONDS = 1.0
"""Time without requests after which a stopping process ends: not every client notices the removed endpoint in time."""
SWITCH_SECONDS = 0.001
"""Time after which a thread that works gives the interpreter to another one that waits for it: the loop, or a thread
with a short answer. Python's own 5 ms would be most of the time of an ordinary sync, for each change of threads."""


class Server(uvicorn.Server):
    """uvicorn's server with a lame-duck phase before its own shutdown."""

    def __init__(self, config: uvicorn.Config, service: Application, lameduck_seconds: float) -> None:
        super().__init__(config)
        self._service = service
        self._lameduck_seconds = lameduck_seconds
        self._listeners: list[Listener] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Log the address once requests are answered and signals are handled, not before."""
        await super().startup([])  # the sockets are listened to below, with a bound on their connections
        scheme = "https" if self.config.is_ssl else "http"
        for listening in sockets or ():
            host, port = listening.getsockname()[:2]
            connections, room = self.server_state.connections, Room.within(allowed_files())
            self._listeners.append(Listener(listening, self._protocol, connections, self.config.ssl, room))
            self._service.log.write("info", "serving", address=f"{scheme}://{host}:{port}", pid=os.getpid())
        if self._service.certificate is not None:
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._service.certificate.reload)

    def _protocol(self, address: str) -> LimitedProtocol:
        return LimitedProtocol(self.config, self.server_state, self.lifespan.state, address)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for listener in self._listeners:
            listener.close()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A first SIGTERM begins the lame-duck phase, a second one ends it.

        uvicorn's own method would note the signal and raise it again in the end, which kills the process before the log
        is written out.
        """
        if sig != signal.SIGTERM:
            super().handle_exit(sig, frame)
        elif self._service.load.draining or not self._lameduck_seconds:
            self.should_exit = True
        else:
            self._service.load.draining = True
            self._service.log.write("info", "stopping", lameduck_seconds=self._lameduck_seconds)
            deadline = time.perf_counter() + self._lameduck_seconds + QUIET_WITHIN_SECONDS
            asyncio.get_running_loop().call_later(self._lameduck_seconds, self._stop_when_quiet, deadline)

    def _stop_when_quiet(self, deadline: float) -> None:
        now = time.perf_counter()
        wait = min(self._service.load.last + QUIET_SECONDS, deadline) - now
        if wait > 0:
            asyncio.get_running_loop().call_later(wait, self._stop_when_quiet, deadline)
        else:
            self.should_exit = True


def run(settings: Settings) -> int:
    """Serve until a signal ends the process. Returns the exit status."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is a certificate to reload
    log = logs.Log(settings.log_level, settings.log_format == "json")
    logs.install(log)
    log.start()
    for line in unknown_variables():
        log.write("warning", line)
    try:
        certificate = _certificate(settings, log)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"modelhooks: cannot use the certificate: {error}\n")
        return 1
    service = Application(settings, log, certificate)
    config = uvicorn.Config(
        service,
        http=LimitedProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=settings.graceful_shutdown_seconds,
        ssl_context_factory=None if certificate is None else (lambda _config, _default: certificate.context),
    )
    server = Server(config, service, settings.lameduck_seconds)
    try:
        listener = _listen(settings.host, settings.port)
    except OSError as error:
        sys.stderr.write(f"modelhooks: cannot listen on {settings.host}:{settings.port}: {error.strerror}\n")
        return 1
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.collect()
    gc.freeze()
    gc.enable()
    try:
        server.run(sockets=[listener])
    finally:
        log.close()
    return 0


def _certificate(settings: Settings, log: logs.Log) -> Certificate | None:
    if not settings.tls_cert_file and not settings.tls_key_file:
        return None
    if not settings.tls_cert_file or not settings.tls_key_file:
        raise ValueError("both --tls-cert-file and --tls-key-file are needed")
    from app.server.tls import Certificate  # noqa: PLC0415 - plain HTTP does without its libraries

    return Certificate(settings.tls_cert_file, settings.tls_key_file, log)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.bind((host, port))
    listener.listen(2048)
    listener.setblocking(False)
    return listener
