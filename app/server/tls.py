"""The serving certificate, and its replacement without a restart.

``load_cert_chain`` on the live context changes every later handshake and no open connection. It is not atomic, and
reads paths only: so both files are read once, tried on a scratch context, and then loaded through memory (reliability
4.2).
"""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from pathlib import Path

from cryptography import x509

from app.server.logs import Log
from app.server.metrics import CERTIFICATE_EXPIRY, CERTIFICATE_FAILURES

POLL_SECONDS = 2.0
READY_MARGIN_SECONDS = 300
"""A certificate this close to its end makes the process not ready."""


class Certificate:
    """A certificate and key in two files, as a context that follows them."""

    def __init__(self, cert_file: str, key_file: str, log: Log) -> None:
        self._files = (Path(cert_file), Path(key_file))
        self._log = log
        self._loaded: tuple[bytes, bytes] | None = None
        self._expires = 0.0
        self.context = _context()
        self._load(self._read())

    @property
    def usable(self) -> bool:
        """Whether the certificate is valid for some minutes to come."""
        return time.time() + READY_MARGIN_SECONDS < self._expires

    async def follow(self) -> None:
        """Reload whenever the files change, for ever. A pair that cannot be used keeps the old one in place."""
        refused: tuple[bytes, bytes] | None = None
        while True:
            await asyncio.sleep(POLL_SECONDS)
            try:
                pair = self._read()
                if pair not in (self._loaded, refused):
                    self._load(pair)
                    self._log.write("info", "certificate reloaded")
            except (OSError, ValueError, ssl.SSLError) as error:
                CERTIFICATE_FAILURES.inc()
                if self._read_quietly() != refused:
                    refused = self._read_quietly()
                    self._log.write(
                        "error", "certificate not usable, the old one stays", exception=type(error).__name__
                    )

    def _read(self) -> tuple[bytes, bytes]:
        return self._files[0].read_bytes(), self._files[1].read_bytes()

    def _read_quietly(self) -> tuple[bytes, bytes] | None:
        try:
            return self._read()
        except OSError:
            return None

    def _load(self, pair: tuple[bytes, bytes]) -> None:
        _load_chain(_context(), pair)
        _load_chain(self.context, pair)
        self._loaded = pair
        self._expires = x509.load_pem_x509_certificate(pair[0]).not_valid_after_utc.timestamp()
        CERTIFICATE_EXPIRY.set(self._expires)


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _load_chain(context: ssl.SSLContext, pair: tuple[bytes, bytes]) -> None:
    descriptors = [_memory_file(content) for content in pair]
    try:
        context.load_cert_chain(*(f"/proc/self/fd/{descriptor}" for descriptor in descriptors))
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _memory_file(content: bytes) -> int:
    descriptor = os.memfd_create("certificate")
    os.write(descriptor, content)
    return descriptor
