"""Where a model or an adapter can come from: the forms of addresses, and what to write instead of any other.

Source: KS-3.7 and KS-3.7.1. The mistakes named here would only show when Kubernetes refuses the pod, or when the
download finds nothing (HTTP-X02, HTTP-X35 and HTTP-X36).
"""

from __future__ import annotations

import re
from enum import StrEnum
from ipaddress import AddressValueError, IPv4Address

from app.kserve.modeluri import parse, url_problem
from app.kube.field import without_user
from app.workload import address
from app.workload.address import Address, Form


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


def provider(uri: Address) -> Provider:
    """Of an address whose scheme is one of :data:`SCHEMES`, as the storage initializer tells them apart."""
    if uri.scheme in _BY_SCHEME:
        return _BY_SCHEME[uri.scheme]
    azure = _AZURE.fullmatch(uri.authority) if uri.scheme == "https" else None
    if azure is not None:
        return Provider.AZURE_BLOB if "blob" in azure.groups() else Provider.AZURE_FILES
    return Provider.GIT if _GIT.match(uri.text) else Provider.WEB


def shown(address: str) -> str:
    """An address as a message may have it, without what may be a password or a token."""
    before, question, _ = without_user(address).partition("?")
    return f"{before}?…" if question else before


# What cannot be fetched.


def problem(uri: Address, *, enabled: bool) -> str:
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
    return _FORMS[provider(uri)].problem(uri)


def problem_of(text: str, *, enabled: bool) -> str:
    """As :func:`problem`, of a text; empty for one that is no URL, of which the rule about URLs speaks."""
    return "" if url_problem(text) else problem(parse(text), enabled=enabled)


def host_problem(uri: Address) -> str:
    """Why nothing may be fetched from the host, whoever fetches; empty for schemes without one."""
    return address.safe_host(uri) if uri.scheme in ("http", "https", "oci") else ""


_ABFS = re.compile(r"(?P<container>[^@/]+)@(?P<account>[^./]+)\.[^/]+/(?P<path>.*)")
_OTHER_NAMES = {
    "gcs": "gs",
    "s3a": "s3",
    "s3n": "s3",
    "huggingface": "hf",
    "docker": "oci",
    "image": "oci",
}


def _meant(uri: Address) -> str:
    """The same place in a form that can be fetched; empty where there is none."""
    if uri.scheme in ("abfs", "abfss", "wasb", "wasbs", "az", "azure", "adl"):
        named = _ABFS.fullmatch(uri.rest)
        parts = named.groupdict() if named else {"account": "<account>", "container": "<container>", "path": "<path>"}
        return "https://{account}.blob.core.windows.net/{container}/{path}".format(**parts)
    if uri.scheme in _OTHER_NAMES:
        return f"{_OTHER_NAMES[uri.scheme]}://{uri.rest}"
    if uri.scheme == "file":
        return f"{_FORMS[Provider.CLAIM].example}, or bring the files in a volume of template"
    return _FORMS[Provider.GIT].example if uri.scheme in ("git", "ssh", "git+https", "git+ssh") else ""


_GS_BUCKET = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,220}[a-z0-9])?")


def _bucket_only(uri: Address) -> str:
    if "@" in uri.head or ":" in uri.head:
        return "a bucket has no user and no port; put credentials in a Secret of the ServiceAccount"
    try:
        IPv4Address(uri.head)
    except AddressValueError:
        return ""
    return "the bucket must not be an IP address"


_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}")


def _digest(uri: Address) -> str:
    _, at, digest = uri.rest.partition("@")
    valid = not at or _DIGEST.fullmatch(digest)
    return "" if valid else "the digest must be sha256: and 64 hexadecimal digits"


def _hdfs(uri: Address) -> str:
    """All of the address is a path, so that a host in it would be its first directory."""
    first = uri.rest.lstrip("/").partition("/")[0]
    if not first:
        return "the path is required"
    if ":" in first or "@" in first:
        return f"{first} looks like a host; set the name node in key HDFS_NAMENODE of the credentials' Secret"
    return ""


def _azure(uri: Address) -> str:
    container, slash, _ = uri.path.partition("/")
    return "" if container and slash else "a container and a path in it are required"


_HUB_PAGE = re.compile(r"(?P<model>[^/]+/[^/]+)(?:/(?:tree|blob)/.*)?/?")


def _file(uri: Address) -> str:
    page = _HUB_PAGE.fullmatch(uri.path)
    if page is not None and uri.host in address.HUB_HOSTS:
        return f"this is a page of the Hugging Face Hub, not a file: write hf://{page['model']} for the whole model"
    if not uri.host:
        return "the host is required"
    return "" if uri.path.rpartition("/")[2] else "http:// and https:// fetch one file, whose name must end the path"


def _url_form(example: str, *checks: address.Check) -> Form:
    return Form(example, (address.safe_host, address.no_user, *checks, address.no_parent_directory))


_FORMS = {
    Provider.HF: Form("hf://<organisation>/<model>", (address.no_parent_directory,)),
    # Upper case letters pass: S3 buckets from before 2018 have them.
    Provider.S3: Form("s3://<bucket>/<path>", (address.head("bucket"), _bucket_only, address.no_parent_directory)),
    Provider.GS: Form(
        "gs://<bucket>/<path>",
        (
            address.head("bucket"),
            _bucket_only,
            address.head("bucket", "up to 222 lower case letters, digits, '-', '_' and '.'", _GS_BUCKET.fullmatch),
            address.no_parent_directory,
        ),
    ),
    Provider.HDFS: Form("hdfs://<path below the root>", (_hdfs, address.no_parent_directory)),
    Provider.AZURE_BLOB: _url_form("https://<account>.blob.core.windows.net/<container>/<path>", _azure),
    Provider.AZURE_FILES: _url_form("https://<account>.file.core.windows.net/<share>/<path>", _azure),
    Provider.GIT: _url_form("https://<host>/<path>.git"),
    Provider.WEB: _url_form(
        "https://<host>/<path>/<file>, or the address of a bucket: gs://<bucket>/<path>, s3://<bucket>/<path>", _file
    ),
    Provider.CLAIM: Form(
        "pvc://<claim>/<path in the volume>", (address.claim, address.relative_path, address.no_parent_directory)
    ),
    Provider.IMAGE: Form(
        "oci://<registry>/<image>:<tag>, or @sha256:<digest> in the tag's place",
        (address.safe_host, address.head("registry"), _digest, address.no_parent_directory),
    ),
}


# What will be fetched, and is probably not meant.


def doubt_of(text: str, *, own_command: bool) -> str:
    """Why what is fetched may not be what is meant; ``own_command``: the server is told by its user what to serve."""
    if url_problem(text):
        return ""
    uri = parse(text)
    if uri.scheme not in SCHEMES or provider(uri) is not Provider.WEB:
        return ""
    if uri.host.endswith(".dfs.core.windows.net"):
        return f"this fetches one file; for all below a path write {_FORMS[Provider.AZURE_BLOB].example}"
    if own_command or uri.path.endswith((".tar", ".tar.gz", ".tgz", ".zip")):
        return ""
    return (
        f"one file is fetched, to /mnt/models/{uri.path.rpartition('/')[2]}, and the server of the preset reads a "
        "directory: archive the model as .tar, .tar.gz, .tgz or .zip, which is unpacked, or give container main a "
        "command of its own"
    )
