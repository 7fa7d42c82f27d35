"""Addresses of models and adapters: their forms, and the form to write instead of any other.

Source: KS-3.7 and KS-3.7.1. Without these checks the mistakes only show when Kubernetes refuses the pod, or when the
download finds nothing (HTTP-X02, HTTP-X35 and HTTP-X36).
"""

import re
from enum import StrEnum

import msgspec

from app.kserve.constants import MODEL_PATH
from app.kserve.modeluri import parse, url_problem
from app.kube.field import did_you_mean, with_hint, without_user
from app.kube.hosts import address_of
from app.kube.names import IMAGE_DIGEST
from app.workload import address
from app.workload.address import Address, Form

_GS_BUCKET = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,220}[a-z0-9])?")
_HUB_MODEL = re.compile(r"[^/:@\s]+/[^/:@\s]+(?::[^/:@\s]+)?")
_HUB_PAGE = re.compile(r"(?P<model>[^/]+/[^/]+)(?:/(?:tree|blob)/.*)?/?")
_ABFS = re.compile(r"(?P<container>[^@/]+)@(?P<account>[^./]+)\.[^/]+/(?P<path>.*)")


class Provider(StrEnum):
    """Storage of the files, which decides how they are fetched and with which credentials."""

    HF = "hf"
    MODELSCOPE = "modelscope"
    S3 = "s3"
    GS = "gs"
    HDFS = "hdfs"
    AZURE_BLOB = "Azure Blob"
    AZURE_FILES = "Azure Files"
    GIT = "git"
    WEB = "web"
    CLAIM = "pvc"
    IMAGE = "oci"
    IMAGE_VOLUME = "oci+native"

    @property
    def downloads(self) -> bool:
        """True if the storage initializer fetches the files; otherwise they are mounted."""
        return self is not Provider.CLAIM and not self.is_image

    @property
    def is_image(self) -> bool:
        return self in (Provider.IMAGE, Provider.IMAGE_VOLUME)


class Artifact(msgspec.Struct, frozen=True):
    """A model or a LoRA adapter: where it comes from, and its directory in the pods."""

    uri: Address
    provider: Provider | None
    """``None`` when the pods fetch it themselves."""
    path: str = MODEL_PATH
    name: str = ""
    """Of an adapter."""

    @property
    def downloads(self) -> bool:
        return self.provider is not None and self.provider.downloads


_BY_SCHEME = {
    "hf": Provider.HF,
    "modelscope": Provider.MODELSCOPE,
    "s3": Provider.S3,
    "gs": Provider.GS,
    "https": Provider.WEB,
    "http": Provider.WEB,
    "hdfs": Provider.HDFS,
    "webhdfs": Provider.HDFS,
    "pvc": Provider.CLAIM,
    "oci": Provider.IMAGE,
    "oci+native": Provider.IMAGE_VOLUME,
}
SCHEMES = tuple(_BY_SCHEME)

_AZURE = re.compile(r"[^.]+\.(?:(blob|file)\.core\.windows\.net|z[0-9]{1,2}\.(blob|file)\.storage\.azure\.net)")
_GIT = re.compile(r"https://.+\.git")


def provider(uri: Address) -> Provider:
    """Return the provider as the storage initializer chooses it; the scheme must be one of :data:`SCHEMES`."""
    if uri.scheme != "https":
        return _BY_SCHEME[uri.scheme]
    azure = _AZURE.fullmatch(uri.authority)
    if azure is not None:
        return Provider.AZURE_BLOB if "blob" in azure.groups() else Provider.AZURE_FILES
    return Provider.GIT if _GIT.match(uri.text) else Provider.WEB


def is_mounted(text: str) -> bool:
    """Return whether an address names files that are mounted rather than downloaded."""
    source = _BY_SCHEME.get(text.partition(":")[0].lower())
    return source is not None and not source.downloads


def shown(address: str) -> str:
    """Return an address for a message, without user, password and query."""
    before, question, _ = without_user(address).partition("?")
    return f"{before}?…" if question else before


def problem(uri: Address, *, enabled: bool) -> str:
    """Return why an address cannot be used and the form to write instead, or an empty string.

    ``enabled``: the storage initializer fetches the model, not the container itself.
    """
    if not uri.scheme:
        hint = address.scheme_hint(uri.text, SCHEMES, lambda text: not problem_of(text, enabled=True))
        return with_hint("the address must begin with <scheme>://, as in hf://organisation/model", hint)
    if not enabled:
        return host_problem(uri)
    if uri.scheme not in SCHEMES:
        corrected = _corrected(uri)
        remedy = f"write {corrected}" if corrected else f"use {', '.join(f'{scheme}://' for scheme in SCHEMES)}"
        return (
            f"{uri.scheme}:// is not supported, {remedy}; or set storageInitializer.enabled to false, if the container "
            "fetches the model itself"
        )
    return _FORMS[provider(uri)].problem(uri)


def problem_of(text: str, *, enabled: bool) -> str:
    """Like :func:`problem`, for a string; empty if it is not a valid URL, which another rule reports."""
    return "" if url_problem(text) else problem(parse(text), enabled=enabled)


def host_problem(uri: Address) -> str:
    """Return why nothing may be fetched from the host; empty for schemes without a host."""
    return address.safe_host(uri) if uri.scheme in ("http", "https", "oci", "oci+native") else ""


def _corrected(uri: Address) -> str:
    """Return the same location in a supported form, or an empty string."""
    if uri.scheme in ("abfs", "abfss", "wasb", "wasbs", "az", "azure", "adl"):
        match = _ABFS.fullmatch(uri.rest)
        parts = match.groupdict() if match else {"account": "<account>", "container": "<container>", "path": "<path>"}
        return "https://{account}.blob.core.windows.net/{container}/{path}".format(**parts)
    if scheme := address.scheme_meant(uri.scheme, SCHEMES):
        return f"{scheme}://{uri.rest}"
    if uri.scheme == "file":
        return f"{_FORMS[Provider.CLAIM].example}, or bring the files in a volume of template"
    return _FORMS[Provider.GIT].example if uri.scheme in ("git", "ssh", "git+https", "git+ssh") else ""


def _bucket_only(uri: Address) -> str:
    if "@" in uri.head or ":" in uri.head:
        return "a bucket has no user and no port; put credentials in a Secret of the ServiceAccount"
    return "the bucket must not be an IP address" if address_of(uri.head) is not None else ""


def _digest(uri: Address) -> str:
    _, at, digest = uri.rest.partition("@")
    valid = not at or re.fullmatch(IMAGE_DIGEST, digest)
    return "" if valid else "the digest must be sha256: and 64 hexadecimal digits"


def _modelscope(uri: Address) -> str:
    return "" if _HUB_MODEL.fullmatch(uri.rest) else "an organisation and a model in it are required"


def _hdfs(uri: Address) -> str:
    """Refuse a host: the whole address is a path, and a host would be its first directory."""
    first = uri.rest.lstrip("/").partition("/")[0]
    if not first:
        return "the path is required"
    if ":" in first or "@" in first:
        return f"{first} looks like a host; set the name node in key HDFS_NAMENODE of the credentials' Secret"
    return ""


def _azure(uri: Address) -> str:
    container, slash, _ = uri.path.partition("/")
    return "" if container and slash else "a container and a path in it are required"


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
    Provider.MODELSCOPE: Form(
        "modelscope://<organisation>/<model>, or that and :<revision>", (_modelscope, address.no_parent_directory)
    ),
    # Upper case letters pass: S3 buckets from before 2018 have them.
    Provider.S3: address.bucket_form("s3", _bucket_only, address.head("bucket")),
    Provider.GS: address.bucket_form(
        "gs",
        _bucket_only,
        address.head("bucket", "up to 222 lower case letters, digits, '-', '_' and '.'", _GS_BUCKET.fullmatch),
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
    **{
        image: Form(
            f"{image}://<registry>/<image>:<tag>, or @sha256:<digest> in the tag's place",
            (address.safe_host, address.head("registry"), _digest, address.no_parent_directory),
        )
        for image in (Provider.IMAGE, Provider.IMAGE_VOLUME)
    },
}


def doubt_of(text: str, *, own_command: bool) -> str:
    """Return why the files of a usable address may not be the intended ones."""
    if url_problem(text):
        return ""
    uri = parse(text)
    if uri.scheme == "hf" and not _HUB_MODEL.fullmatch(uri.rest):
        revised = f"hf://{uri.rest.replace('@', ':')}"
        hint = did_you_mean(revised) if _HUB_MODEL.fullmatch(revised.removeprefix("hf://")) else ""
        return with_hint("the storage initializer takes hf://<organisation>/<model>, or that and :<revision>", hint)
    if uri.scheme == Provider.CLAIM and (links := address.linked(uri.path)):
        return links
    if uri.scheme == Provider.MODELSCOPE:
        return (
            "needs kserve/storage-initializer v0.21 or newer: set storageInitializer.image in inferenceservice-config"
        )
    if uri.scheme not in SCHEMES or provider(uri) is not Provider.WEB or problem(uri, enabled=True):
        is_image = uri.scheme in SCHEMES and provider(uri).is_image and "{{" not in text
        return address.spaces(text) or (address.untagged(uri.rest) if is_image else "")
    if uri.host.endswith(".dfs.core.windows.net"):
        return f"this fetches one file; for all below a path write {_FORMS[Provider.AZURE_BLOB].example}"
    if own_command or uri.path.endswith((".tar", ".tar.gz", ".tgz", ".zip")):
        return ""
    return (
        f"one file is fetched, to /mnt/models/{uri.path.rpartition('/')[2]}, and the server of the preset reads a "
        "directory: archive the model as .tar, .tar.gz, .tgz or .zip, which is unpacked, or set the command of "
        "container main"
    )
