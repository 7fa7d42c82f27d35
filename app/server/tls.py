"""The serving certificate, and its replacement without a restart.

Each valid pair gets a separate context, and a handshake uses the newest: ``sni_callback`` is called in all of them,
also without a server name. So open connections do not change, and nothing is half replaced.
"""

import asyncio
import ssl
import time
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509

from app.limits import MAX_PEM_BYTES
from app.server.logs import Log
from app.server.metrics import CERTIFICATE_EXPIRY, CERTIFICATE_FAILURES

POLL_SECONDS = 2.0
READY_MARGIN_SECONDS = 300
"""A certificate this close to its end makes the process not ready."""

Pair = tuple[bytes, bytes]
"""Certificate and key, as in the files."""


class Certificate:
    """A certificate and key in two files, as a context that follows them."""

    def __init__(self, cert_file: str, key_file: str, log: Log) -> None:
        self._files = (Path(cert_file), Path(key_file))
        self._log = log
        self._loaded: Pair | None = None
        self._refused: list[Pair | None] = []
        self._begins = self._expires = 0.0
        self._reported = ""
        self._newest = self.context = _context()
        self._load(self._read())
        self.context.sni_callback = self._choose

    @property
    def problem(self) -> str:
        """Return why callers refuse the certificate, or will within minutes; empty for a valid one."""
        now = time.time()
        if now < self._begins:
            return "certificate not valid yet"
        return "certificate expired" if now + READY_MARGIN_SECONDS >= self._expires else ""

    async def follow(self) -> None:
        """Reload whenever the files change, until cancelled. A pair that cannot be used keeps the old one in place."""
        while True:
            self.reload()
            self.report()
            await asyncio.sleep(POLL_SECONDS)

    def report(self) -> None:
        """Log a problem once: callers see a refused handshake, or no pod that is ready."""
        problem = self.problem
        if problem and problem != self._reported:
            begins, ends = (datetime.fromtimestamp(moment, UTC) for moment in (self._begins, self._expires))
            self._log.write("error", problem, begins=begins, ends=ends)
        self._reported = problem

    def reload(self) -> None:
        """Load a new pair. An invalid one is counted and logged once, and tried again, as it may become valid."""
        pair = None
        try:
            if (pair := self._read()) == self._loaded:
                return
            self._load(pair)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            if pair not in self._refused:
                CERTIFICATE_FAILURES.inc()
                text = "certificate not usable, the old one stays"
                self._log.write("error", text, exception=type(error).__name__, detail=str(error))
            self._refused = [pair]
        else:
            self._refused = []
            self._log.write("info", "certificate reloaded")

    def _choose(self, connection: ssl.SSLSocket | ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._newest

    def _read(self) -> Pair:
        return _bounded(self._files[0]), _bounded(self._files[1])

    def _load(self, pair: Pair) -> None:
        """Load a pair. Raises ``ValueError`` or ``OSError`` for an invalid or worse one, without changing anything."""
        certificate = x509.load_pem_x509_certificate(pair[0])
        begins, ends = certificate.not_valid_before_utc.timestamp(), certificate.not_valid_after_utc.timestamp()
        now = time.time()
        if self._begins <= now < self._expires and not begins <= now < ends:  # by our clock, which may be behind
            raise ValueError("expired" if now >= ends else "not valid yet")
        context = _context()
        # An encrypted key is an error: without a password given, OpenSSL would ask the terminal for it.
        context.load_cert_chain(*self._files, password="")
        if self._read() != pair:
            raise ValueError("replaced while it was read")
        self._newest, self._loaded, self._begins, self._expires = context, pair, begins, ends
        CERTIFICATE_EXPIRY.set(ends)


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _bounded(path: Path) -> bytes:
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is not a file")
    with path.open("rb") as file:
        content = file.read(MAX_PEM_BYTES + 1)
    if len(content) > MAX_PEM_BYTES:
        raise ValueError(f"{path} has more than {MAX_PEM_BYTES} bytes")
    return content
