"""What the text in ``Model.spec.source`` means, and where its file lies. The one place that reads that text.

Source: LK-2.1, LK-2.2 and LK-3.6.1. Both kinds use it: the Model for its Job, the InferenceService for its pods.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from app.kube.hosts import misspelt
from app.kube.names import short_hash
from app.llmkube.names import MODELS_DIR, SOURCE_DIR

PVC_SCHEME = "pvc://"
FILE_SCHEME = "file://"
METAL = "metal"

_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./-]*")
_HUB_PAGE = re.compile(
    r"https?://(?:www\.)?(?:huggingface\.co|hf\.co)/([\w.-]+/[\w.-]+?)/?(?:tree/main/?)?(?:[?#].*)?", re.ASCII
)
_HUB_AREAS = frozenset(
    {"datasets", "spaces", "docs", "models", "api", "collections", "papers", "blog", "organizations"}
)
"""First segments of the Hub's own pages: what follows them is not the name of a model repository."""


class SourceClass(StrEnum):
    """How a source is fetched, and by whom (LK-2.1)."""

    PVC = "pvc"
    """A file on a claim of the same namespace; nothing is copied."""
    REPOSITORY = "hf"
    """A Hugging Face repository; the serving runtime fetches it."""
    HTTP = "http"
    """One file on a server; a Job fetches it, on metal the agent."""
    LOCAL = "local"
    """A file of the node; a Job copies it, on metal the agent opens it."""
    INVALID = "invalid"
    """None of these: one word without a slash."""


@dataclass(frozen=True, slots=True)
class Source:
    """A source, understood. Fields that its class does not have are empty."""

    text: str
    kind: SourceClass
    claim: str = ""
    """Name of the claim of a pvc source."""
    path: str = ""
    """Path inside the claim, or on the node."""
    repository: str = ""
    """``owner/name`` on the Hugging Face Hub."""
    hub_page: bool = False
    """The repository was given as the address of its page in a browser."""

    @property
    def cache_key(self) -> str:
        """Directory of the file below the cache: 16 hexadecimal digits of the text's SHA-256. A repository has none."""
        return "" if self.kind is SourceClass.REPOSITORY else short_hash(self.text, 16)

    @property
    def is_file(self) -> bool:
        """Whether a downloader of ours has to put one file somewhere."""
        return self.kind in (SourceClass.HTTP, SourceClass.LOCAL)

    @property
    def mounted_path(self) -> str:
        """Where a serving pod finds the file of a pvc source."""
        return f"{SOURCE_DIR}/{self.path}"


def parse(text: str) -> Source:
    """The source that a text names. Tests are case-sensitive and in the order of LK-2.1."""
    if text.startswith(PVC_SCHEME):
        claim, _, path = text.removeprefix(PVC_SCHEME).partition("/")
        return Source(text, SourceClass.PVC, claim=claim, path=path)
    if text.startswith(("https://", "http://")):
        page = _HUB_PAGE.fullmatch(text)
        if page and page[1].partition("/")[0] not in _HUB_AREAS:
            return Source(text, SourceClass.REPOSITORY, repository=page[1], hub_page=True)
        return Source(text, SourceClass.HTTP)
    if text.startswith((FILE_SCHEME, "/")):
        return Source(text, SourceClass.LOCAL, path=text.removeprefix(FILE_SCHEME))
    if "/" in text and _REPOSITORY.fullmatch(text):
        return Source(text, SourceClass.REPOSITORY, repository=text)
    return Source(text, SourceClass.INVALID)


def host(text: str) -> str:
    """Host of an http source in lower case, without port; empty when there is none."""
    try:
        return (urlsplit(text).hostname or "").rstrip(".")
    except ValueError:
        return ""


_ARCHIVES = (".tar", ".tgz", ".gz", ".bz2", ".xz", ".zst", ".zip", ".7z")


def is_archive(source: Source) -> bool:
    """Whether the file's name is that of an archive. None is unpacked: a model is one file as it is."""
    path = urlsplit(source.text).path if source.kind is SourceClass.HTTP and host(source.text) else source.path
    return path.lower().endswith(_ARCHIVES)


def slug(text: str) -> str:
    """The text as part of a file name: runs of other characters become one dash, ends are trimmed (LK-2.2)."""
    dashed = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")
    return re.sub(r"-{2,}", "-", dashed)


def file_name(model: str) -> str:
    """Name of a Model's file in the cache: from the object's name alone, so that it never moves (LK-2.9.8)."""
    return f"{slug(model) or 'model'}.gguf"


def cache_dir(source: Source) -> str:
    """Directory of the file inside a pod that mounts the cache."""
    return posixpath.join(MODELS_DIR, source.cache_key)


def recorded_key(source: Source, *, metal: bool) -> str:
    """The cache key as a Model's status has it: none where a metal agent opens the file on its own disk (LK-2.4)."""
    return "" if metal and source.kind is SourceClass.LOCAL else source.cache_key


def cached_path(source: Source, model: str) -> str:
    """Path of the file inside a pod that mounts the cache."""
    return posixpath.join(cache_dir(source), file_name(model))


def ephemeral_path(namespace: str, model: str) -> str:
    """Path of the file inside a pod that downloads into an empty directory of its own."""
    return posixpath.join(MODELS_DIR, f"{namespace}-{model}.gguf")


def url_problem(text: str) -> str:
    """Why the text is no URL that a downloader can use, or an empty text."""
    if any(char in text for char in "\t\r\n"):  # one reader drops them, another ends there
        return "a URL has no tabs and no line ends"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        return f"this is no URL ({error})"
    if not host(text):
        return "the URL has no host"
    if port == 0:
        return "port 0 is none"
    if parts.netloc.count("@") > 1 or any(char.isspace() or char == "\\" for char in parts.netloc):
        return "the URL's host cannot be told for certain"
    problem = misspelt(host(text))
    return f"host {host(text)} {problem}" if problem else ""
