"""Which certificates are loaded, tested with a fixed clock and without polling."""

from __future__ import annotations

import contextlib
import os
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from prometheus_client import REGISTRY

from app.certs import authority
from app.limits import MAX_PEM_BYTES
from app.server import tls
from app.server.logs import Log

NOW = datetime.now(UTC)
BUNDLE = authority.ensure(None, ["localhost"], NOW)


def issued(days: int) -> authority.KeyPair:
    return authority.new_leaf(BUNDLE.ca, ["localhost"], NOW + timedelta(days=days))


def ends(pair: authority.KeyPair) -> float:
    return x509.load_pem_x509_certificate(pair.certificate.encode()).not_valid_after_utc.timestamp()


def served() -> float | None:
    """Return the expiry time of the certificate for new connections."""
    return REGISTRY.get_sample_value("modelhooks_certificate_expiry_seconds")


def failures() -> float:
    """Return the number of pairs that could not be loaded."""
    return REGISTRY.get_sample_value("modelhooks_certificate_reload_failures_total") or 0.0


class Files:
    def __init__(self, directory: Path) -> None:
        self.paths = directory / "tls.crt", directory / "tls.key"

    def write(self, pair: authority.KeyPair) -> None:
        self.paths[0].write_text(pair.certificate)
        self.paths[1].write_text(pair.key)

    def open(self) -> tls.Certificate:
        return tls.Certificate(str(self.paths[0]), str(self.paths[1]), Log())


@pytest.fixture
def files(tmp_path: Path) -> Files:
    pair = Files(tmp_path)
    pair.write(BUNDLE.leaf)
    return pair


Line = tuple[str, str, dict[str, object]]
"""Level, message and fields of a line of the log."""


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[Line]:
    written: list[Line] = []
    monkeypatch.setattr(Log, "write", lambda _log, level, message, **fields: written.append((level, message, fields)))
    return written


@pytest.mark.parametrize("days", [-4000, 400])
def test_a_certificate_outside_its_validity_does_not_replace_a_good_one(files: Files, days: int) -> None:
    """Every client would refuse it."""
    certificate = files.open()
    files.write(issued(days))
    certificate.reload()
    assert not certificate.problem


@pytest.mark.parametrize(("days", "problem"), [(-4000, "certificate expired"), (400, "certificate not valid yet")])
def test_a_problem_is_logged_once(files: Files, lines: list[Line], days: int, problem: str) -> None:
    """The only certificate is served, whatever it is. A valid one ends the problem."""
    files.write(issued(days))
    certificate = files.open()
    for pair in (issued(days), issued(0), issued(0)):
        certificate.report()
        certificate.report()
        files.write(pair)
        certificate.reload()
    assert not certificate.problem
    assert [level for level, message, _ in lines if message == problem] == ["error"]


@pytest.mark.parametrize(
    "bad",
    [
        authority.KeyPair(BUNDLE.leaf.certificate, issued(0).key),
        authority.KeyPair(BUNDLE.leaf.certificate[:200], BUNDLE.leaf.key),
        authority.KeyPair("", ""),
    ],
    ids=["other key", "half a certificate", "empty"],
)
def test_a_bad_pair_is_counted_once(files: Files, lines: list[Line], bad: authority.KeyPair) -> None:
    """The last good pair stays in use, and the log has what is wrong with the new one."""
    certificate, before, good = files.open(), failures(), served()
    files.write(bad)
    certificate.reload()
    certificate.reload()
    assert (failures(), served()) == (before + 1, good)
    ((_, message, fields),) = lines
    assert message == "certificate not usable, the old one stays"
    assert fields["detail"]


@pytest.mark.parametrize(("early", "later"), [(400, 401), (5, 6)])
def test_a_certificate_that_was_early_is_taken_up_later(
    files: Files, early: int, later: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is loaded when the present one has expired or it becomes valid itself, because a clock may be behind."""
    certificate = files.open()
    new = issued(early)
    files.write(new)
    certificate.reload()
    assert served() == ends(BUNDLE.leaf)
    monkeypatch.setattr("app.server.tls.time.time", (NOW + timedelta(days=later)).timestamp)
    certificate.reload()
    assert served() == ends(new)
    assert not certificate.problem


def test_an_encrypted_key_is_an_error(files: Files) -> None:
    """The terminal shows no prompt."""
    key = load_pem_private_key(BUNDLE.leaf.key.encode(), None)
    sealed = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x"))
    files.write(authority.KeyPair(BUNDLE.leaf.certificate, sealed.decode()))
    with pytest.raises(OSError, match="PEM"):
        files.open()


@pytest.mark.parametrize("place", [0, 1])
def test_what_is_too_large_for_a_certificate_is_not_read(files: Files, place: int) -> None:
    """Reading it would block the event loop."""
    certificate, before = files.open(), served()
    files.paths[place].write_bytes(b"-" * (MAX_PEM_BYTES + 1))
    certificate.reload()
    assert (certificate.problem, served()) == ("", before)
    with pytest.raises(ValueError, match="more than"):
        files.open()


def test_rejects_a_pipe_as_certificate(files: Files) -> None:
    """Reading it would block until something is written."""
    files.paths[0].unlink()
    os.mkfifo(files.paths[0])
    with pytest.raises(ValueError, match="not a file"):
        files.open()


def test_every_handshake_takes_the_newest_context(files: Files) -> None:
    """With and without a server name."""
    certificate = files.open()
    new = issued(0)
    files.write(new)
    certificate.reload()
    for name in ("localhost", None):
        assert handshake(certificate.context, name) == ssl.PEM_cert_to_DER_cert(
            authority.first_certificate(new.certificate)
        )


def handshake(context: ssl.SSLContext, name: str | None) -> bytes | None:
    """Return the certificate that a client gets."""
    trusting = ssl.create_default_context(cadata=BUNDLE.trusted)
    trusting.check_hostname = name is not None
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting.wrap_bio(back, there, server_hostname=name)
    server = context.wrap_bio(there, back, server_side=True)
    for side in (client, server) * 3:
        with contextlib.suppress(ssl.SSLWantReadError):
            side.do_handshake()
    return client.getpeercert(binary_form=True)
