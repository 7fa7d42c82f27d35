"""A certificate authority for ``modelhooks certs``, and the serving certificate that it signs.

Pure functions of certificates and the time. :mod:`app.cli.certs` stores the certificates.
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_LIFETIME = timedelta(days=3650)
LEAF_LIFETIME = timedelta(days=90)
CLOCK_SKEW = timedelta(hours=1)
"""Certificates are valid from this long before now, for machines whose clocks are behind."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, both as PEM text."""

    certificate: str
    key: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """The contents of the Secret. ``trusted`` has the CA and earlier ones that are still valid, for clients."""

    ca: KeyPair
    leaf: KeyPair
    trusted: str


def service_names(service: str, namespace: str, cluster_domain: str) -> list[str]:
    """The names that callers verify: the API server asks for ``svc.ns.svc``, Metacontroller for ``svc.ns``."""
    return [f"{service}.{namespace}.svc", f"{service}.{namespace}", f"{service}.{namespace}.svc.{cluster_domain}"]


def ensure(current: Bundle | None, names: Sequence[str], now: datetime) -> Bundle:
    """Return the certificates to use: those of ``current``, unless they are invalid or due for renewal.

    Each certificate is renewed after two thirds of its lifetime. Clients continue to trust an old CA, so that servers
    and clients need not change at the same time.
    """
    certificate = _certificate(current.ca) if current else None
    if current is None or certificate is None or _renewal_due(certificate, now):
        ca = new_ca(now)
        return Bundle(ca, new_leaf(ca, names, now), _trusted(ca, current.trusted if current else "", now))
    usable = _usable_leaf(current.leaf, certificate, names, now)
    leaf = current.leaf if usable else new_leaf(current.ca, names, now)
    return Bundle(current.ca, leaf, _trusted(current.ca, current.trusted, now))


def new_ca(now: datetime) -> KeyPair:
    """Create a self-signed CA that can sign certificates of servers, but no further CA."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(f"modelhooks CA {now:%Y-%m-%d}")
    return _signed(_builder(name, name, key, now, CA_LIFETIME, is_ca=True), key, key)


def new_leaf(ca: KeyPair, names: Sequence[str], now: datetime) -> KeyPair:
    authority, ca_key = x509.load_pem_x509_certificate(ca.certificate.encode()), _private_key(ca)
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _builder(_name("modelhooks"), authority.subject, key, now, LEAF_LIFETIME, is_ca=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
        .add_extension(_authority_identifier(authority, ca_key.public_key()), critical=False)
    )
    return _signed(builder, key, ca_key)


def _authority_identifier(authority: x509.Certificate, key: ec.EllipticCurvePublicKey) -> x509.AuthorityKeyIdentifier:
    """Use the key identifier of the CA, which one that was made elsewhere may lack."""
    try:
        identifier = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(key)
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)


def first_certificate(bundle: str) -> str:
    """Return the first certificate of a PEM bundle; empty for an invalid one."""
    certificates = _readable(bundle)
    return certificates[0].public_bytes(serialization.Encoding.PEM).decode() if certificates else ""


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    lifetime: timedelta,
    *,
    is_ca: bool,
) -> x509.CertificateBuilder:
    others = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
    unused = dict.fromkeys((*others, "encipher_only", "decipher_only"), False)
    usage = x509.KeyUsage(digital_signature=not is_ca, key_cert_sign=is_ca, crl_sign=is_ca, **unused)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=0 if is_ca else None), critical=True)
        .add_extension(usage, critical=True)
    )


def _usable_leaf(leaf: KeyPair, ca: x509.Certificate, names: Sequence[str], now: datetime) -> bool:
    certificate = _certificate(leaf)
    if certificate is None or _renewal_due(certificate, now):
        return False
    try:
        certificate.verify_directly_issued_by(ca)
        covered = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (InvalidSignature, ValueError, TypeError, x509.ExtensionNotFound):
        return False
    return {_general_name(name) for name in names} <= set(covered)


def _certificate(pair: KeyPair) -> x509.Certificate | None:
    """Return the certificate of a pair; None if one of the two is invalid, or they do not belong together."""
    try:
        certificate = x509.load_pem_x509_certificate(pair.certificate.encode())
        return certificate if certificate.public_key() == _private_key(pair).public_key() else None
    except (ValueError, TypeError):
        return None


def _renewal_due(certificate: x509.Certificate, now: datetime) -> bool:
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return not start <= now < start + (end - start) * 2 / 3


def _trusted(ca: KeyPair, earlier: str, now: datetime) -> str:
    """Return our CA and every earlier one that has not expired, as PEM text."""
    texts = [ca.certificate]
    for certificate in _readable(earlier):
        text = certificate.public_bytes(serialization.Encoding.PEM).decode()
        if text not in texts and now < certificate.not_valid_after_utc:
            texts.append(text)
    return "".join(texts)


def _readable(bundle: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(bundle.encode())
    except ValueError:
        return []


def _private_key(pair: KeyPair) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pair.key.encode(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("not an elliptic curve key, so it was not made here")
    return key


def _signed(
    builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey, ca_key: ec.EllipticCurvePrivateKey
) -> KeyPair:
    certificate = builder.sign(ca_key, hashes.SHA256())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return KeyPair(certificate.public_bytes(serialization.Encoding.PEM).decode(), private.decode())


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
