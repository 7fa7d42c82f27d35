"""Replacing the serving certificate while the process runs: a new one is loaded, an invalid one has no effect."""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest

from app.certs import authority
from app.server.tls import POLL_SECONDS
from tests.corpus.requests import JSON_HEADERS, REVIEW, is_allowed, review
from tests.service import NEVER, Service, ask, running

NAMES = ["127.0.0.1", "localhost"]
BUNDLE = authority.ensure(None, NAMES, datetime.now(UTC))


def leaf(*, days_ago: int = 0) -> authority.KeyPair:
    """Return a certificate of our CA, issued this many days ago."""
    return authority.new_leaf(BUNDLE.ca, NAMES, datetime.now(UTC) - timedelta(days=days_ago))


class Files:
    """The two files, replaced one after the other as an editor or a slow volume does."""

    def __init__(self, directory: Path) -> None:
        self.certificate, self.key = directory / "tls.crt", directory / "tls.key"

    def write(self, certificate: str, key: str) -> None:
        self.certificate.write_text(certificate)
        self.key.write_text(key)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    pair = Files(tmp_path)
    pair.write(BUNDLE.leaf.certificate, BUNDLE.leaf.key)
    return pair


@pytest.fixture
def service(files: Files) -> Iterator[Service]:
    with running("--tls-cert-file", str(files.certificate), "--tls-key-file", str(files.key)) as started:
        started.tls = ssl.create_default_context(cadata=BUNDLE.trusted)
        yield started


def served(service: Service) -> str:
    """Return the certificate of a new connection, after a request on it was answered."""
    connection = service.connect()
    assert is_allowed(ask(connection, "POST", REVIEW, orjson.dumps(review()), JSON_HEADERS)) == []
    assert isinstance(connection.sock, ssl.SSLSocket)
    certificate = connection.sock.getpeercert(binary_form=True)
    connection.close()
    assert certificate is not None
    return ssl.DER_cert_to_PEM_cert(certificate)


def same(certificate: str, other: str) -> bool:
    return authority.first_certificate(certificate).strip() == authority.first_certificate(other).strip()


def eventually_serves(service: Service, certificate: str) -> bool:
    deadline = time.monotonic() + NEVER
    while time.monotonic() < deadline:
        if same(served(service), certificate):
            return True
        time.sleep(0.1)
    return False


def metric(service: Service, name: str) -> float:
    text = service.ask("GET", "/metrics").body.decode()
    match = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
    assert match is not None
    return float(match[1])


FAILURES = "modelhooks_certificate_reload_failures_total"


def eventually_counted(service: Service, before: float) -> float:
    """Return the number of failures after it has increased and settled: the files are not replaced at once."""
    deadline = time.monotonic() + NEVER
    while (count := metric(service, FAILURES)) <= before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert count > before
    time.sleep(POLL_SECONDS * 1.2)
    return metric(service, FAILURES)


def test_a_new_pair_is_served_and_a_bad_one_is_not(service: Service, files: Files) -> None:
    """Open connections remain. An invalid pair is counted, and the last valid one stays in use."""
    first, second = BUNDLE.leaf, leaf()
    old_connection = service.connect()
    assert ask(old_connection, "GET", "/readyz", None, {}).status == 200
    assert same(served(service), first.certificate)

    files.write(second.certificate, second.key)
    assert eventually_serves(service, second.certificate)
    assert ask(old_connection, "GET", "/readyz", None, {}).status == 200
    old_connection.close()

    before = metric(service, FAILURES)
    expired = leaf(days_ago=4000)
    files.write(expired.certificate, expired.key)
    before = eventually_counted(service, before)
    assert same(served(service), second.certificate)
    files.key.unlink()
    assert eventually_counted(service, before) == before + 1  # an unchanged file is counted once
    assert same(served(service), second.certificate)

    files.write(first.certificate, first.key)
    assert eventually_serves(service, first.certificate)


def test_refuses_old_protocols_and_plaintext(service: Service) -> None:
    """They get an alert or a closed connection, and others are served (HTTP-T29)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with service.socket() as plain, pytest.raises((ssl.SSLError, OSError)):
        context.wrap_socket(plain)
    assert not service.raw(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").startswith(b"HTTP/1.1 200")
    assert service.ask("GET", "/healthz").status == 200


@pytest.mark.parametrize(("days_ago", "status"), [(4000, "certificate expired"), (-2, "certificate not valid yet")])
def test_a_certificate_outside_its_validity_makes_the_process_not_ready(
    tmp_path: Path, days_ago: int, status: str
) -> None:
    """The user sees it, and the service still answers clients that do not check."""
    files, unusable = Files(tmp_path), leaf(days_ago=days_ago)
    files.write(unusable.certificate, unusable.key)
    with running("--tls-cert-file", str(files.certificate), "--tls-key-file", str(files.key)) as service:
        service.tls = ssl.create_default_context()
        service.tls.check_hostname, service.tls.verify_mode = False, ssl.CERT_NONE
        answer = service.ask("GET", "/readyz")
        assert (answer.status, answer.json) == (503, {"status": status})
        assert is_allowed(service.post(REVIEW, review())) == []
