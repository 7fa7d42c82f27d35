"""The parser of ``Model.spec.source``, and the paths of its files. Source: LK-2.1, LK-2.2 and LK-3.6.1."""

import posixpath
import re
from enum import StrEnum
from urllib.parse import SplitResult, quote, unquote, urlsplit

import msgspec
from msgspec.structs import replace

from app.kube.field import SPEC
from app.kube.hosts import spelling_problem
from app.kube.names import short_hash
from app.kube.regex import regex
from app.llmkube.model.types import SOURCE_FORM, ModelSpec
from app.llmkube.names import MODELS_DIR, SOURCE_DIR
from app.workload import address
from app.workload.address import Address, Form

SOURCE = SPEC.child("source")
PVC_SCHEME = "pvc://"
FILE_SCHEME = "file://"
HUB_SCHEME = "hf://"
BUCKET_SCHEME = "s3://"

_REPOSITORY = regex(r"[A-Za-z0-9][A-Za-z0-9_./-]*")
_ARCHIVES = (".tar", ".tgz", ".gz", ".bz2", ".xz", ".zst", ".zip", ".7z")


class SourceClass(StrEnum):
    PVC = "pvc"
    """A file on a claim of the same namespace; nothing is copied."""
    REPOSITORY = "hf"
    """A Hugging Face repository; the serving runtime fetches it."""
    FILES = "files"
    """Files of a Hugging Face repository; a Job fetches them."""
    S3 = "s3"
    """An object of a bucket, or several below a prefix; a Job fetches them."""
    HTTP = "http"
    """One file on a server; a Job fetches it, on metal the agent."""
    LOCAL = "local"
    """A file of the node; a Job copies it, on metal the agent opens it."""
    INVALID = "invalid"


class Source(msgspec.Struct, frozen=True):
    """A parsed source. Fields that its class does not have are empty."""

    text: str
    kind: SourceClass
    claim: str = ""
    path: str = ""
    """Path inside the claim, or on the node."""
    repository: str = ""
    """``owner/name`` on the Hugging Face Hub."""
    revision: str = ""
    """Branch, tag or commit of the repository; empty for its main branch."""
    files: tuple[str, ...] = ()
    """Paths of the files in the repository or below the prefix; the first one is served."""
    hub_page: bool = False
    """The repository is named by the address of its page in a browser."""

    @property
    def cache_key(self) -> str:
        """Return the directory below the cache: 16 digits of the SHA-256 of the source; empty for a repository."""
        return "" if self.kind is SourceClass.REPOSITORY else short_hash(self.text, 16)

    @property
    def is_file(self) -> bool:
        """Return True if a Job or init container downloads or copies files."""
        return self.kind in (SourceClass.HTTP, SourceClass.LOCAL, SourceClass.FILES, SourceClass.S3)

    @property
    def is_remote(self) -> bool:
        """Return True if a server has the file, so that changes of it can be detected."""
        return self.is_file and self.kind is not SourceClass.LOCAL

    @property
    def location(self) -> str:
        """Return the address for the downloader: the source, or the prefix of all files."""
        if self.kind is SourceClass.FILES:
            return f"https://huggingface.co/{self.repository}/resolve/{quote(self.revision or 'main', safe='')}/"
        return f"{self.text.rstrip('/')}/" if self.files else self.text

    @property
    def mounted_path(self) -> str:
        return f"{SOURCE_DIR}/{self.path}"


def parse(text: str) -> Source:
    """Parse a source. Schemes are case-sensitive, in the order of LK-2.1. See :func:`source_of`."""
    uri = Address(text)
    if text.startswith(PVC_SCHEME):
        return Source(text, SourceClass.PVC, claim=uri.head, path=uri.key)
    if text.startswith(BUCKET_SCHEME):
        return Source(text, SourceClass.S3, path=uri.key)
    if text.startswith((HUB_SCHEME, "https://", "http://")):
        repository, on_hub = address.hub_repository(uri), text.startswith(HUB_SCHEME)
        if repository is None:
            return Source(text, SourceClass.INVALID if on_hub else SourceClass.HTTP)
        kind = SourceClass.FILES if repository.file else SourceClass.REPOSITORY
        files = (repository.file,) if repository.file else ()
        revision = repository.revision if on_hub else unquote(repository.revision)
        return Source(text, kind, "", "", repository.name, revision, files, hub_page=not on_hub)
    if text.startswith((FILE_SCHEME, "/")):
        return Source(text, SourceClass.LOCAL, path=text.removeprefix(FILE_SCHEME))
    if "/" in text and _REPOSITORY.fullmatch(text):
        return Source(text, SourceClass.REPOSITORY, repository=text)
    return Source(text, SourceClass.INVALID)


def source_of(spec: ModelSpec) -> Source:
    """Return the source of a Model, with the additional files of its spec (LK-2.1)."""
    source = parse(spec.source)
    listed = tuple(dict.fromkeys([*source.files, *spec.files, *filter(None, [spec.mmproj])]))
    if not listed or source.kind not in (SourceClass.REPOSITORY, SourceClass.FILES, SourceClass.S3):
        return source
    return replace(source, files=listed, kind=SourceClass.S3 if source.kind is SourceClass.S3 else SourceClass.FILES)


def host(text: str) -> str:
    try:
        return (urlsplit(text).hostname or "").rstrip(".")
    except ValueError:
        return ""


def lacks_scheme(source: Source) -> bool:
    """Return whether a repository begins with a host, as in ``huggingface.co/owner/name``."""
    first, _, rest = source.repository.partition("/")
    return source.text == source.repository and "." in first and "/" in rest


def is_archive(source: Source) -> bool:
    path = urlsplit(source.text).path if source.kind is SourceClass.HTTP and host(source.text) else source.path
    return any(path.lower().endswith(_ARCHIVES) for path in source.files or (path,))


def file_name(model: str) -> str:
    """Return the name of a Model's file in the cache: by the object's name alone, so that it never moves (LK-2.9.8)."""
    dashed = re.sub(r"[^A-Za-z0-9._-]+", "-", model).strip("-._")
    stem = re.sub(r"-{2,}", "-", dashed)  # LK-2.2
    return f"{stem or 'model'}.gguf"


def recorded_key(source: Source, *, metal: bool) -> str:
    """Return the cache key in a Model's status: none if a metal agent opens the file on its own disk (LK-2.4)."""
    return "" if metal and source.kind is SourceClass.LOCAL else source.cache_key


def stored_as(source: Source, model: str) -> str:
    return source.files[0] if source.files else file_name(model)


def cached_path(source: Source, key: str, model: str) -> str:
    return posixpath.join(MODELS_DIR, key, stored_as(source, model))


def ephemeral_path(source: Source, namespace: str, model: str) -> str:
    stem = posixpath.join(MODELS_DIR, f"{namespace}-{model}")
    return posixpath.join(stem, source.files[0]) if source.files else f"{stem}.gguf"


def _url(url: Address) -> str:
    """Reject a URL that downloaders may interpret differently."""
    if any(char in url.text for char in "\t\r\n"):  # one reader drops them, another ends there
        return "the URL must not contain tabs or newlines"
    try:
        parts = urlsplit(url.text)
    except ValueError as error:
        return f"must be a valid URL: {error}"
    if not host(url.text):
        return "the URL must have a host"
    if not _is_port(parts):
        return "port must be between 1 and 65535"
    several_users = url.is_ambiguous or parts.netloc.count("@") > 1
    if several_users or any(char.isspace() or char == "\\" for char in parts.netloc):
        return "the host of the URL is ambiguous"
    reason = spelling_problem(host(url.text))
    return f"host {host(url.text)} {reason}" if reason else ""


def _is_port(parts: SplitResult) -> bool:
    try:
        return parts.port != 0
    except ValueError:
        return False


def _key(url: Address) -> str:
    if set(url.key.split("/")) & {".", ".."} or not url.key.isprintable():
        return "the key must not contain '.', '..' or control characters"
    return ""


_bucket = address.head("bucket", "a valid bucket name", re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]+").fullmatch)
_PREFIX = Form(f"{BUCKET_SCHEME}<bucket>/<prefix>", (_bucket, _key))
_FORMS = {
    SourceClass.PVC: Form(
        f"{PVC_SCHEME}<claim>/<path of the file in the volume>",
        (address.claim, address.path, address.relative_path, address.no_parent_directory),
    ),
    SourceClass.S3: Form(f"{BUCKET_SCHEME}<bucket>/<key of one object>", (_bucket, address.path, _key)),
    SourceClass.HTTP: Form("https://<host>/<path of one file>", (_url,)),
    SourceClass.LOCAL: Form(f"{FILE_SCHEME}/<path> or /<path>", (address.absolute_path, address.no_parent_directory)),
}
"""Forms of LK-V-M03 to LK-V-M07 and LK-V-M36. A repository may have any name: only the Hub knows whether it exists."""


def problem(source: Source) -> str:
    """Return why a source cannot be used and what to write instead, or an empty string."""
    if source.kind is SourceClass.INVALID:
        return SOURCE_FORM
    form = _PREFIX if source.kind is SourceClass.S3 and source.files else _FORMS.get(source.kind, Form(""))
    text = FILE_SCHEME + source.path if source.kind is SourceClass.LOCAL else source.text
    return form.problem(Address(text))
