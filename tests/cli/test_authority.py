"""The CA and the serving certificate: their content, and when they are replaced."""

from datetime import timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from app.certs import authority
from tests.hookcalls import NOW

NAMES = authority.service_names("modelhooks", "modelhooks-system", "cluster.local")


@pytest.fixture(scope="module")
def bundle() -> authority.Bundle:
    return authority.ensure(None, NAMES, NOW)


def load(pair: authority.KeyPair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate.encode())


def test_the_serving_certificate_carries_the_names_that_both_callers_verify(bundle: authority.Bundle) -> None:
    names = load(bundle.leaf).extensions.get_extension_for_class(x509.SubjectAlternativeName).value

    assert names.get_values_for_type(x509.DNSName) == [
        "modelhooks.modelhooks-system.svc",
        "modelhooks.modelhooks-system",
        "modelhooks.modelhooks-system.svc.cluster.local",
    ]


def test_an_address_becomes_an_ip_name() -> None:
    leaf = load(authority.ensure(None, ["127.0.0.1", "localhost"], NOW).leaf)

    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.IPAddress) == [ip_address("127.0.0.1")]


def test_the_ca_signs_the_leaf_and_may_sign_nothing_but_leaves(bundle: authority.Bundle) -> None:
    ca, leaf = load(bundle.ca), load(bundle.leaf)

    leaf.verify_directly_issued_by(ca)
    assert ca.extensions.get_extension_for_class(x509.BasicConstraints).value == x509.BasicConstraints(
        ca=True, path_length=0
    )
    assert list(leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [
        ExtendedKeyUsageOID.SERVER_AUTH
    ]


def test_keys_are_on_p256(bundle: authority.Bundle) -> None:
    for pair in (bundle.ca, bundle.leaf):
        key = load(pair).public_key()
        assert isinstance(key, ec.EllipticCurvePublicKey)
        assert isinstance(key.curve, ec.SECP256R1)


def test_certificates_hold_on_a_machine_whose_clock_is_behind(bundle: authority.Bundle) -> None:
    assert load(bundle.leaf).not_valid_before_utc == NOW - authority.CLOCK_SKEW
    assert load(bundle.leaf).not_valid_after_utc == NOW + timedelta(days=90)
    assert load(bundle.ca).not_valid_after_utc == NOW + timedelta(days=3650)


def test_what_is_not_due_is_kept(bundle: authority.Bundle) -> None:
    assert authority.ensure(bundle, NAMES, NOW) == bundle
    assert authority.ensure(bundle, NAMES, NOW + timedelta(days=59)) == bundle


def test_the_leaf_is_renewed_after_two_thirds_of_its_life_under_the_same_ca(bundle: authority.Bundle) -> None:
    later = authority.ensure(bundle, NAMES, NOW + timedelta(days=61))

    assert later.ca == bundle.ca
    assert later.trusted == bundle.trusted
    assert later.leaf != bundle.leaf


def test_one_more_name_is_a_reason_for_a_new_leaf(bundle: authority.Bundle) -> None:
    assert authority.ensure(bundle, [*NAMES, "127.0.0.1"], NOW).leaf != bundle.leaf
    assert authority.ensure(bundle, NAMES[:1], NOW).leaf == bundle.leaf


def test_a_new_ca_does_not_end_the_trust_in_the_old_one(bundle: authority.Bundle) -> None:
    later = authority.ensure(bundle, NAMES, NOW + timedelta(days=2500))

    assert later.ca != bundle.ca
    assert later.trusted == later.ca.certificate + bundle.ca.certificate
    load(later.leaf).verify_directly_issued_by(load(later.ca))


def test_an_expired_ca_is_trusted_no_more(bundle: authority.Bundle) -> None:
    later = authority.ensure(bundle, NAMES, NOW + timedelta(days=4000))

    assert later.trusted == later.ca.certificate


BROKEN = {
    "no certificate": authority.KeyPair("", ""),
    "garbage": authority.KeyPair("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "?"),
    "another's key": authority.KeyPair(authority.new_ca(NOW).certificate, authority.new_ca(NOW).key),
}


@pytest.mark.parametrize("pair", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_ca_is_replaced_and_so_is_the_leaf(bundle: authority.Bundle, pair: authority.KeyPair) -> None:
    repaired = authority.ensure(authority.Bundle(pair, bundle.leaf, bundle.trusted), NAMES, NOW)

    assert repaired.leaf != bundle.leaf
    load(repaired.leaf).verify_directly_issued_by(load(repaired.ca))
    assert bundle.ca.certificate in repaired.trusted


@pytest.mark.parametrize("pair", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_leaf_is_replaced_under_the_same_ca(bundle: authority.Bundle, pair: authority.KeyPair) -> None:
    repaired = authority.ensure(authority.Bundle(bundle.ca, pair, bundle.trusted), NAMES, NOW)

    assert repaired.ca == bundle.ca
    load(repaired.leaf).verify_directly_issued_by(load(bundle.ca))


def test_checks_certificates_of_another_issuer() -> None:
    """A CA without a subject key identifier can issue certificates, and a certificate without names is replaced."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "theirs")])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW)
        .not_valid_after(NOW + timedelta(days=1000))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = builder.public_bytes(serialization.Encoding.PEM).decode()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    theirs = authority.KeyPair(pem, private)

    bundle = authority.ensure(authority.Bundle(ca=theirs, leaf=theirs, trusted=pem), NAMES, NOW)

    assert bundle.ca == theirs
    assert bundle.leaf != theirs
    load(bundle.leaf).verify_directly_issued_by(load(theirs))
