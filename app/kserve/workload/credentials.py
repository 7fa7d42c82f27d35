"""Download credentials for the storage initializer. Source: KS-3.7, KS-9.2.

Secrets are never read: their names and the URI's scheme decide alone. S3 variables come from annotations of the pod's
ServiceAccount and from the operator's settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.kserve.llminferenceservice.observed import ServiceAccount
from app.kserve.names import EKS_ROLE, S3_PREFIX
from app.kserve.operator import S3, Credentials

Json = dict[str, Any]

HF_TOKEN = "HF_TOKEN"  # noqa: S105 - the name of a variable
CA_BUNDLE_CONFIG_MAP = "AWS_CA_BUNDLE_CONFIGMAP"
CA_BUNDLE = "AWS_CA_BUNDLE"
ENDPOINT = "S3_ENDPOINT"


def credentials(
    scheme: str, annotations: Mapping[str, str], account: ServiceAccount | None, settings: Credentials
) -> list[Json]:
    """Environment variables for a URI of that scheme; ``annotations`` are the service's, ``account`` its pods'."""
    if account is None:
        return []
    notes = account.metadata.annotations or {}
    annotated = annotations.get(settings.storage_secret_name_annotation)
    secrets = [annotated] if annotated else [secret.name for secret in account.secrets or () if secret.name]
    env = s3_variables(notes, settings.s3) if EKS_ROLE in notes else []
    if scheme == "hf":
        env += [_secret_key(HF_TOKEN, secret, HF_TOKEN) for secret in secrets]
    elif scheme == "s3" and secrets:
        env += _keys(secrets, settings.s3) + s3_variables(notes, settings.s3)
    named: dict[str, Json] = {}
    for variable in env:
        named.setdefault(variable["name"], variable)
    return list(named.values())


def _keys(secrets: Sequence[str], s3: S3) -> list[Json]:
    pair = (
        ("AWS_ACCESS_KEY_ID", s3.access_key_id_name or "awsAccessKeyID"),
        ("AWS_SECRET_ACCESS_KEY", s3.secret_access_key_name or "awsSecretAccessKey"),
    )
    return [_secret_key(name, secret, key) for secret in secrets for name, key in pair]


def _secret_key(variable: str, secret: str, key: str) -> Json:
    """Optional: which of several Secrets has the key is not known, and a public model needs none."""
    return {"name": variable, "valueFrom": {"secretKeyRef": {"name": secret, "key": key, "optional": True}}}


def s3_variables(annotations: Mapping[str, str], s3: S3) -> list[Json]:
    """The S3 variables that have a value, in the order KServe writes them."""

    def setting(annotation: str, default: str) -> str:
        return annotations.get(S3_PREFIX + annotation) or default

    values: list[tuple[str, str]] = []
    endpoint = setting("s3-endpoint", s3.endpoint).strip()
    if endpoint:
        values += _endpoint(endpoint, setting("s3-usehttps", s3.use_https))
    values += [
        ("S3_VERIFY_SSL", setting("s3-verifyssl", s3.verify_ssl)),
        ("awsAnonymousCredential", setting("s3-useanoncredential", s3.use_anonymous_credential)),
        ("AWS_DEFAULT_REGION", setting("s3-region", s3.region)),
        ("S3_USER_VIRTUAL_BUCKET", setting("s3-usevirtualbucket", s3.use_virtual_bucket)),
        ("S3_USE_ACCELERATE", setting("s3-useaccelerate", s3.use_accelerate)),
        (CA_BUNDLE, setting("s3-cabundle", s3.ca_bundle)),
        (CA_BUNDLE_CONFIG_MAP, setting("s3-cabundle-configmap", s3.ca_bundle_config_map)),
    ]
    return [{"name": name, "value": value} for name, value in values if value]


def _endpoint(endpoint: str, use_https: str) -> list[tuple[str, str]]:
    """A scheme in the endpoint decides; without one, the setting does, and HTTPS is the default of the URL only."""
    host, url = endpoint, f"{'http' if use_https == '0' else 'https'}://{endpoint}"
    for scheme, flag in (("https://", "1"), ("http://", "0")):
        if endpoint.startswith(scheme):
            use_https, host, url = flag, endpoint.removeprefix(scheme), endpoint
    return [("S3_USE_HTTPS", use_https), (ENDPOINT, host), ("AWS_ENDPOINT_URL", url)]
