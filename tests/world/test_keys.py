"""Keys and logins of docs/howto/keys.md, translated by Envoy Gateway and asked of a real Envoy."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from app.kube.base import Json
from tests.e2e.installation import ROOT
from tests.world.test_translation import CHAT, documents, objects_of, without_scheduler
from tests.world.translation import GATEWAY, Proxy, Request, by_envoy_gateway

pytestmark = [pytest.mark.e2e, pytest.mark.world("egctl")]

PAGE = (ROOT / "docs/howto/keys.md").read_text()
NAMESPACE, NAME = GATEWAY
PATH = f"/default/routed-chat{CHAT}"
FORGED = {"x-client-id": "team-b"}
SIGNER = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def of_page(*kinds: str, text: str = "") -> list[Json]:
    """Return objects of the page, for KServe's Gateway as the page says."""
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    objects = [
        document
        for block in blocks
        if text in block
        for document in yaml.safe_load_all(block)
        if document.get("kind") in kinds
    ]
    for document in objects:
        document["metadata"]["namespace"] = NAMESPACE
        for target in document.get("spec", {}).get("targetRefs", ()):
            target["name"] = NAME
        for key, value in document.pop("stringData", {}).items():  # as the API server does
            document.setdefault("data", {})[key] = _encoded(value.encode(), base64.b64encode)
    return objects


def _encoded(value: bytes, how: object = base64.urlsafe_b64encode) -> str:
    assert callable(how)
    return str(how(value).decode())


def _jwt_part(value: bytes) -> str:
    return _encoded(value).rstrip("=")


def token(**claims: str) -> str:
    """Return a signed JWT."""
    parts = [{"alg": "RS256", "kid": "one"}, {"iss": "https://login.example.com", "aud": "models", **claims}]
    signed = ".".join(_jwt_part(json.dumps(part).encode()) for part in parts)
    return f"{signed}.{_jwt_part(SIGNER.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def jwks() -> str:
    """Return the key set of the identity provider."""
    numbers = SIGNER.public_key().public_numbers()
    parts = {"n": numbers.n.to_bytes(256, "big"), "e": numbers.e.to_bytes(3, "big")}
    key = {"kty": "RSA", "kid": "one", "alg": "RS256", **{name: _jwt_part(value) for name, value in parts.items()}}
    return json.dumps({"keys": [key]})


def proxy(folder: Path, policies: list[Json]) -> Proxy:
    objects = [*objects_of(*(without_scheduler(document) for document in documents("routed"))), *policies]
    return Proxy(by_envoy_gateway(objects, folder), folder)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    policies = of_page("Secret", "SecurityPolicy", text="apiKeyAuth")
    with proxy(tmp_path_factory.mktemp("keys"), policies).running() as running:
        yield running


@pytest.fixture(scope="module")
def logins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """The page's policy with the key set in place of its address."""
    (policy,) = of_page("SecurityPolicy", text="jwt:")
    for provider in policy["spec"]["jwt"]["providers"]:
        del provider["remoteJWKS"]
        provider["localJWKS"] = {"type": "Inline", "inline": jwks()}
    with proxy(tmp_path_factory.mktemp("logins"), [policy]).running() as running:
        yield running


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, FORGED], ids=["none", "wrong", "forged"])
def test_a_request_without_a_known_key_is_refused(keys: Proxy, headers: dict[str, str]) -> None:
    assert keys.seen(Request(PATH, headers)) == (401, {})


def test_the_server_sees_the_client_and_not_its_key(keys: Proxy) -> None:
    """A client cannot take another's name."""
    status, headers = keys.seen(Request(PATH, {"Authorization": "Bearer key-of-team-a", **FORGED}))
    assert (status, headers["x-client-id"]) == (200, "team-a")
    assert "authorization" not in headers


@pytest.mark.parametrize(
    "headers",
    [{}, {"Authorization": "Bearer e30.e30.e30"}, {"Authorization": f"Bearer {token(aud='others')}"}],
    ids=["none", "not signed", "for others"],
)
def test_a_request_without_a_login_is_refused(logins: Proxy, headers: dict[str, str]) -> None:
    status, _ = logins.seen(Request(PATH, headers))
    assert status in (401, 403)


def test_the_server_sees_who_logged_in(logins: Proxy) -> None:
    status, headers = logins.seen(Request(PATH, {"Authorization": f"Bearer {token(sub='ada')}", **FORGED}))
    assert (status, headers["x-client-id"]) == (200, "ada")
