"""What follows the scheme of a model's address, for something to be fetched from it.

The URL's own grammar is :mod:`app.kserve.uri`'s. Here is what would only fail later: when Kubernetes refuses the pod,
or when the download does not find a bucket. Source: reliability X02, X35 and X36; kserve spec 3.7 for the forms.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import AddressValueError, IPv4Address

from app.kserve.uri import ModelURI
from app.kube.hosts import refusal, without_port
from app.kube.names import is_dns1123_subdomain


def problem(uri: ModelURI) -> str:
    """Why nothing can be fetched from an address of a known scheme, and what to write; empty where something may be."""
    check = _CHECKS.get(uri.scheme)
    found = host_problem(uri) or (check(uri.rest) if check is not None else "")
    if not found and ".." in uri.rest.split("/"):
        found = "the path must not contain '..'"
    return f"{found}; write {_FORMS[uri.scheme]}" if found else ""


def host_problem(uri: ModelURI) -> str:
    """Why nothing may be fetched from the address, whoever fetches, by its host; empty for schemes without one."""
    if uri.scheme not in ("http", "https", "oci"):
        return ""
    host = without_port(re.split(r"[/?#]", uri.rest, maxsplit=1)[0].rpartition("@")[2])
    problem = refusal(host)
    return f"host {host} {problem}" if host and problem else ""


def _claim(rest: str) -> str:
    claim, _, path = rest.partition("/")
    if not is_dns1123_subdomain(claim):
        return "what follows pvc:// is the name of a claim: lower case letters, digits, '-' and '.'"
    return "the path inside the claim must not begin with '/'" if path.startswith("/") else ""


def _bucket(rest: str) -> str:
    """Upper case letters pass: buckets from before 2018 have them, and so has a sample of upstream's."""
    bucket = rest.partition("/")[0]
    if not bucket:
        return "the bucket is missing"
    if "@" in bucket or ":" in bucket:
        return "a bucket has no user and no port; credentials belong into a Secret of the service account"
    try:
        IPv4Address(bucket)
    except AddressValueError:
        return ""
    return "a bucket cannot be called like an IP address"


_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}")


def _image(rest: str) -> str:
    if rest.startswith("/"):
        return "the registry is missing"
    _, at, digest = rest.partition("@")
    if at and not _DIGEST.fullmatch(digest):
        return "what follows the @ of an image is its digest: sha256: and 64 hexadecimal digits"
    return ""


_CHECKS: dict[str, Callable[[str], str]] = {"pvc": _claim, "s3": _bucket, "oci": _image}
_FORMS = {
    "hf": "hf://<organisation>/<model>",
    "s3": "s3://<bucket>/<path>",
    "pvc": "pvc://<claim>/<path in the volume>",
    "oci": "oci://<registry>/<image>:<tag>, or @sha256:<digest> in the tag's place",
}
SCHEMES = tuple(_FORMS)
"""Those that the storage initializer, or a mount, understands."""
