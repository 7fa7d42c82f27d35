"""A new CA, and a certificate for the hook on loopback."""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class HookCertificate:
    """The file with certificate and key, and the CA in PEM form."""

    pair: Path
    ca_pem: str


def hook_certificate(folder: Path) -> HookCertificate:
    """Make both; they are valid for a day."""
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hook-ca")])
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hook")])
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    ca = _builder(ca_name, ca_name, ca_key).add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    leaf = _builder(name, ca_name, key).add_extension(address, critical=False)
    pair = folder / "hook.pem"
    pair.touch(mode=0o600)
    pair.write_bytes(
        leaf.sign(ca_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    pem = ca.sign(ca_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()
    return HookCertificate(pair, pem)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + dt.timedelta(days=1))
    )
