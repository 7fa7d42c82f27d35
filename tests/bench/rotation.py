"""Two replicas that restart in turn while their certificate is replaced, behind a client that alternates between them.

As in a cluster, a new replica gets connections once it is ready, and a stopping one still gets them for a moment, until
every node knows.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import os
import ssl
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from app.certs import authority
from app.certs.authority import Bundle, KeyPair
from tests.service import NEVER, Service, start, stop

LAMEDUCK_SECONDS = 3
"""Seconds that a replica serves after SIGTERM; the shipped Deployment uses more."""
PROPAGATION_SECONDS = 1
"""Seconds after SIGTERM in which a replica still gets new connections."""


class Replicas:
    """Two running replicas with a certificate in ``directory``; :meth:`rotate` keeps replacing both."""

    def __init__(self, directory: Path) -> None:
        self._files = directory / "tls.crt", directory / "tls.key"
        self._bundle = authority.ensure(None, ["127.0.0.1"], datetime.now(UTC))
        self._write(self._bundle.leaf)
        self._turns = itertools.count()
        self.restarts = 0
        self.serving = [self._start(), self._start()]

    def connect(self, timeout: float = 30) -> http.client.HTTPConnection:
        """Return a connection to the next replica."""
        serving = self.serving
        return serving[next(self._turns) % len(serving)].connect(timeout)

    def rotate(self, ended: threading.Event) -> None:
        """Until ``ended`` is set, replace the certificate and then one of the replicas."""
        while not ended.is_set():
            self._write(_new_leaf(self._bundle))
            started, old = self._start(), self.serving[0]
            self.serving = [*self.serving, started]
            old.process.terminate()
            ended.wait(PROPAGATION_SECONDS)
            self.serving = self.serving[1:]
            old.process.wait(NEVER)
            stop(old)
            self.restarts += 1

    def stop(self) -> None:
        for service in self.serving:
            stop(service)

    def _start(self) -> Service:
        """Start a replica and wait until it is ready."""
        certificate, key = map(str, self._files)
        environment = {"MODELHOOKS_LAMEDUCK_SECONDS": str(LAMEDUCK_SECONDS)}
        service = start("--tls-cert-file", certificate, "--tls-key-file", key, environment=environment)
        service.tls = ssl.create_default_context(cadata=self._bundle.trusted)
        threading.Thread(target=_discard_log, args=(service,), daemon=True).start()
        deadline = time.monotonic() + NEVER
        while service.ask("GET", "/readyz").status != 200:
            assert time.monotonic() < deadline, "a replica is not ready"
            time.sleep(0.05)
        return service

    def _write(self, leaf: KeyPair) -> None:
        """Replace each file atomically; a replica that reads between the two replacements keeps its old certificate."""
        for file, text in zip(self._files, (leaf.certificate, leaf.key), strict=True):
            new = file.with_suffix(".new")
            new.write_text(text)
            new.rename(file)


def _new_leaf(bundle: Bundle) -> KeyPair:
    return authority.new_leaf(bundle.ca, ["127.0.0.1"], datetime.now(UTC))


def _discard_log(service: Service) -> None:
    """Read and discard the log, so that its pipe does not fill up."""
    assert service.process.stdout is not None
    with contextlib.suppress(OSError, ValueError):
        while os.read(service.process.stdout.fileno(), 65536):
            pass


@contextlib.contextmanager
def rotating(directory: Path) -> Iterator[Replicas]:
    """Run two replicas that are replaced in turn until the end of the block."""
    replicas, ended = Replicas(directory), threading.Event()
    thread = threading.Thread(target=replicas.rotate, args=(ended,))
    thread.start()
    try:
        yield replicas
    finally:
        ended.set()
        thread.join()
        replicas.stop()
