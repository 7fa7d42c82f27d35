"""The API calls of ``modelhooks certs --apply``, to a test server with its own certificate."""

from __future__ import annotations

import contextlib
import http.server
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from app.certs import authority
from app.certs.kubeapi import ApiError, Client

NOW = datetime.now(UTC)


def ca_without_key_usage() -> authority.KeyPair:
    """Return a CA like those of `openssl req -x509`, EKS and MicroK8s: with basicConstraints, without keyUsage."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kubernetes")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW - timedelta(days=1))
        .not_valid_after(NOW + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return authority.KeyPair(certificate.public_bytes(serialization.Encoding.PEM).decode(), private.decode())


class Answers(http.server.BaseHTTPRequestHandler):
    """Returns the same object for every path."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"kind":"Secret"}')

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
        """Log nothing."""


@contextlib.contextmanager
def api_server(issuer: authority.KeyPair, directory: Path) -> Iterator[str]:
    """Serve HTTPS on loopback, with a certificate that the issuer signed."""
    leaf = authority.new_leaf(issuer, ["127.0.0.1"], NOW)
    (directory / "tls.crt").write_text(leaf.certificate)
    (directory / "tls.key").write_text(leaf.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "tls.crt", directory / "tls.key")
    server = http.server.HTTPServer(("127.0.0.1", 0), Answers)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def _as_python_3_13(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the TLS defaults of the image's Python, which may be newer than the one that runs the tests."""
    default = ssl.create_default_context

    def strict(*, cadata: str | None = None) -> ssl.SSLContext:
        context = default(cadata=cadata)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", strict)


@pytest.mark.usefixtures("_as_python_3_13")
def test_an_api_server_whose_ca_has_no_key_usage_is_trusted(tmp_path: Path) -> None:
    authority = ca_without_key_usage()
    with api_server(authority, tmp_path) as url:
        assert Client(url, authority.certificate, "token").get("/api/v1/x") == {"kind": "Secret"}


def test_an_api_server_of_another_ca_is_not(tmp_path: Path) -> None:
    other = ca_without_key_usage()
    with api_server(authority.new_ca(NOW), tmp_path) as url, pytest.raises(ApiError, match="certificate verify failed"):
        Client(url, other.certificate, "token").get("/api/v1/x")
