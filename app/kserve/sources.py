"""Where a model or an adapter can come from: the forms of addresses, and what to write instead of any other.

Source: KS-3.7 and KS-3.7.1. The mistakes named here would only show when Kubernetes refuses the pod, or when the
download finds nothing (HTTP-X02, HTTP-X35 and HTTP-X36).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from ipaddress import AddressValueError, IPv4Address

from app.kserve.modeluri import ModelURI, parse, url_problem
from app.kube.field import without_user
from app.kube.hosts import refusal, without_port
from app.kube.names import is_dns1123_subdomain


class Provider(StrEnum):
    """Who has the files, which decides how they are fetched and with which credentials."""

    HF = "hf"
    S3 = "s3"
    GS = "gs"
    HDFS = "hdfs"
    AZURE_BLOB = "Azure Blob"
    AZURE_FILES = "Azure Files"
    GIT = "git"
    WEB = "web"
    CLAIM = "pvc"
    IMAGE = "oci"

    @property
    def downloads(self) -> bool:
        """Whether the storage initializer fetches the files; the others are mounted."""
        return self not in (Provider.CLAIM, Provider.IMAGE)


_BY_SCHEME = {
    "hf": Provider.HF,
    "s3": Provider.S3,
    "gs": Provider.GS,
    "hdfs": Provider.HDFS,
    "webhdfs": Provider.HDFS,
    "pvc": Provider.CLAIM,
    "oci": Provider.IMAGE,
}
SCHEMES = ("hf", "s3", "gs", "https", "http", "hdfs", "webhdfs", "pvc", "oci")
"""Those that the storage initializer, or a mount, understands."""

_AZURE = re.compile(r"[^.]+\.(?:(blob|file)\.core\.windows\.net|z[0-9]{1,2}\.(blob|file)\.storage\.azure\.net)")
_GIT = re.compile(r"https://.+\.git")


def provider(uri: ModelURI) -> Provider:
    """Of an address whose scheme is one of :data:`SCHEMES`, as the storage initializer tells them apart."""
    if uri.scheme in _BY_SCHEME:
        return _BY_SCHEME[uri.scheme]
    azure = _AZURE.fullmatch(_authority(uri)) if uri.scheme == "https" else None
    if azure is not None:
        return Provider.AZURE_BLOB if "blob" in azure.groups() else Provider.AZURE_FILES
    return Provider.GIT if _GIT.match(uri.text) else Provider.WEB


def host(uri: ModelURI) -> str:
    """The host in lower case, without user and port."""
    return without_port(_authority(uri)).lower()


def path(uri: ModelURI) -> str:
    """What follows the host, bucket or claim, without a slash before it and without a query."""
    return re.split(r"[?#]", uri.rest, maxsplit=1)[0].partition("/")[2]


def shown(address: str) -> str:
    """An address as a message may have it, without what may be a password or a token."""
    before, question, _ = without_user(address).partition("?")
    return f"{before}?…" if question else before


def _authority(uri: ModelURI) -> str:
    return re.split(r"[/?#]", uri.rest, maxsplit=1)[0].rpartition("@")[2]


# What cannot be fetched.


def problem(uri: ModelURI, *, enabled: bool) -> str:
    """Why nothing can be fetched from an address, and what to write; empty where something may be.

    ``enabled``: whether the storage initializer fetches, and not the container itself.
    """
    if not uri.has_authority:
        return "the address needs a scheme, as in hf://organisation/model"
    if not enabled:
        return host_problem(uri)
    if uri.scheme not in SCHEMES:
        meant = _meant(uri)
        remedy = f"write {meant}" if meant else f"use {', '.join(f'{scheme}://' for scheme in SCHEMES)}"
        return (
            f"{uri.scheme}:// is not supported, {remedy}; or set storageInitializer.enabled to false, if the container "
            "fetches the model itself"
        )
    where = provider(uri)
    found = host_problem(uri) or _login(uri) or _CHECKS.get(where, _anything)(uri)
    if not found and ".." in re.split(r"[?#]", uri.rest, maxsplit=1)[0].split("/"):
        found = "the path must not contain '..'"
    return f"{found}; write {_FORMS[where]}" if found else ""


def problem_of(text: str, *, enabled: bool) -> str:
    """As :func:`problem`, of a text; empty for one that is no URL, of which the rule about URLs speaks."""
    return "" if url_problem(text) else problem(parse(text), enabled=enabled)


def host_problem(uri: ModelURI) -> str:
    """Why nothing may be fetched from the address, whoever fetches, by its host; empty for schemes without one."""
    if uri.scheme not in ("http", "https", "oci"):
        return ""
    name = without_port(_authority(uri))
    found = refusal(name)
    return f"host {name} {found}" if name and found else ""


def _login(uri: ModelURI) -> str:
    """A password in an address would stand in the pod, in its status and in logs, for everybody to read."""
    if uri.scheme in ("http", "https") and "@" in re.split(r"[/?#]", uri.rest, maxsplit=1)[0]:
        return "an address has no user and no password here; put credentials in a Secret of the ServiceAccount"
    return ""


_ABFS = re.compile(r"(?P<container>[^@/]+)@(?P<account>[^./]+)\.[^/]+/(?P<path>.*)")
_OTHER_NAMES = {
    "gcs": "gs",
    "s3a": "s3",
    "s3n": "s3",
    "huggingface": "hf",
    "docker": "oci",
    "image": "oci",
}


def _meant(uri: ModelURI) -> str:
    """The same place in a form that can be fetched; empty where there is none."""
    if uri.scheme in ("abfs", "abfss", "wasb", "wasbs", "az", "azure", "adl"):
        named = _ABFS.fullmatch(uri.rest)
        parts = named.groupdict() if named else {"account": "<account>", "container": "<container>", "path": "<path>"}
        return "https://{account}.blob.core.windows.net/{container}/{path}".format(**parts)
    if uri.scheme in _OTHER_NAMES:
        return f"{_OTHER_NAMES[uri.scheme]}://{uri.rest}"
    if uri.scheme == "file":
        return f"{_FORMS[Provider.CLAIM]}, or bring the files in a volume of template"
    return _FORMS[Provider.GIT] if uri.scheme in ("git", "ssh", "git+https", "git+ssh") else ""


def _anything(_: ModelURI) -> str:
    return ""


def _claim(uri: ModelURI) -> str:
    claim, _, inside = uri.rest.partition("/")
    if not is_dns1123_subdomain(claim):
        return "pvc:// must be followed by the name of a PersistentVolumeClaim: lower case letters, digits, '-' and '.'"
    return "the path inside the claim must not begin with '/'" if inside.startswith("/") else ""


def _s3(uri: ModelURI) -> str:
    """Upper case letters pass: buckets from before 2018 have them, and so has a sample of upstream's."""
    return _bucket(uri.rest.partition("/")[0], "an S3")


_GS_BUCKET = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,220}[a-z0-9])?")


def _gs(uri: ModelURI) -> str:
    bucket = uri.rest.partition("/")[0]
    found = _bucket(bucket, "a gs://")
    if found or _GS_BUCKET.fullmatch(bucket):
        return found
    return f"{bucket} is no name of a bucket: up to 222 lower case letters, digits, '-', '_' and '.'"


def _bucket(bucket: str, kind: str) -> str:
    if not bucket:
        return "the bucket is missing"
    if "@" in bucket or ":" in bucket:
        return f"{kind} address has no user and no port; put credentials in a Secret of the ServiceAccount"
    try:
        IPv4Address(bucket)
    except AddressValueError:
        return ""
    return "the name of a bucket cannot be an IP address"


_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}")


def _image(uri: ModelURI) -> str:
    if uri.rest.startswith("/"):
        return "the registry is missing"
    _, at, digest = uri.rest.partition("@")
    if at and not _DIGEST.fullmatch(digest):
        return "the digest after the @ must be sha256: and 64 hexadecimal digits"
    return ""


def _hdfs(uri: ModelURI) -> str:
    """All of the address is a path, so that a host in it would be its first directory."""
    first = uri.rest.lstrip("/").partition("/")[0]
    if not first:
        return "the path is missing"
    if ":" in first or "@" in first:
        return f"{first} looks like a host; the name node is what key HDFS_NAMENODE of the credentials' Secret says"
    return ""


def _azure(uri: ModelURI) -> str:
    container, slash, _ = path(uri).partition("/")
    return "" if container and slash else "the address of a storage account needs a container and a path in it"


_HUB_PAGE = re.compile(r"(?P<model>[^/]+/[^/]+)(?:/(?:tree|blob)/.*)?/?")


def _web(uri: ModelURI) -> str:
    page = _HUB_PAGE.fullmatch(path(uri))
    if page is not None and host(uri) in ("huggingface.co", "www.huggingface.co", "hf.co"):
        return f"this is a page of the Hugging Face hub and no file: write hf://{page['model']} for the whole model"
    if not host(uri):
        return "the host is missing"
    if path(uri).rpartition("/")[2]:
        return ""
    return "http:// and https:// fetch one file, and the address must end in its name"


_CHECKS: dict[Provider, Callable[[ModelURI], str]] = {
    Provider.CLAIM: _claim,
    Provider.S3: _s3,
    Provider.GS: _gs,
    Provider.IMAGE: _image,
    Provider.HDFS: _hdfs,
    Provider.AZURE_BLOB: _azure,
    Provider.AZURE_FILES: _azure,
    Provider.WEB: _web,
}
_FORMS = {
    Provider.HF: "hf://<organisation>/<model>",
    Provider.S3: "s3://<bucket>/<path>",
    Provider.GS: "gs://<bucket>/<path>",
    Provider.HDFS: "hdfs://<path below the root>",
    Provider.AZURE_BLOB: "https://<account>.blob.core.windows.net/<container>/<path>",
    Provider.AZURE_FILES: "https://<account>.file.core.windows.net/<share>/<path>",
    Provider.GIT: "https://<host>/<path>.git",
    Provider.WEB: "https://<host>/<path>/<file>, or the address of a bucket: gs://<bucket>/<path>, s3://<bucket>/<path>",
    Provider.CLAIM: "pvc://<claim>/<path in the volume>",
    Provider.IMAGE: "oci://<registry>/<image>:<tag>, or @sha256:<digest> in the tag's place",
}


# What will be fetched, and is probably not meant.


def doubt_of(text: str, *, own_command: bool) -> str:
    """Why what is fetched may not be what is meant; ``own_command``: the server is told by its user what to serve."""
    if url_problem(text):
        return ""
    uri = parse(text)
    if uri.scheme not in SCHEMES or provider(uri) is not Provider.WEB:
        return ""
    if host(uri).endswith(".dfs.core.windows.net"):
        return f"this fetches one file; for all below a path write {_FORMS[Provider.AZURE_BLOB]}"
    if own_command or path(uri).endswith((".tar", ".tar.gz", ".tgz", ".zip")):
        return ""
    return (
        f"one file is fetched, to /mnt/models/{path(uri).rpartition('/')[2]}, and the server of the preset reads a "
        "directory: archive the model as .tar, .tar.gz, .tgz or .zip, which is unpacked, or give container main a "
        "command of its own"
    )
