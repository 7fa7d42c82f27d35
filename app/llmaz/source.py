"""Where a model's weights are: the two forms of a source, read once into what the rest of the family asks for.

Source: LZ-2.1 to LZ-2.3.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from app.kube.hosts import FORBIDDEN, is_metadata_host, refusal, without_port
from app.llmaz.names import MODELS_DIR
from app.llmaz.openmodel.types import ModelHub, ModelSource

_LONGEST_REFERENCE = 512
"""More than any registry takes."""


class SourceError(ValueError):
    """The source cannot be used; the text says why and what to write instead."""


@dataclass(frozen=True, slots=True)
class Hub:
    """A repository on Hugging Face or ModelScope."""

    model_id: str
    hub: str
    filename: str | None
    revision: str
    allow_patterns: tuple[str, ...] | None
    """``None`` when the list is absent, which is not the same as empty."""
    ignore_patterns: tuple[str, ...] | None

    def path(self, *, skip: bool) -> str:
        if skip:
            return self.model_id
        if self.filename is not None:
            return MODELS_DIR + self.filename
        return f"{MODELS_DIR}models--{self.model_id.replace('/', '--')}"


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """A directory or file in a bucket."""

    protocol: str
    """``oss``, ``s3`` or ``gcs``, also of an address that has Google's own word for it, ``gs``."""
    bucket: str
    endpoint: str
    """Of oss only."""
    key: str
    uri: str

    def path(self, *, skip: bool) -> str:
        if skip:
            return self.uri
        last = self.key.rpartition("/")[2]
        return MODELS_DIR + (last if ".gguf" in self.key else f"models--{last}")

    @property
    def is_file(self) -> bool:
        """Whether the address is that of one file. Source: LZ-2.7."""
        return ".gguf" in self.key.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Image:
    """A directory or file in a container image."""

    reference: str
    """What a container would name as its image."""
    directory: str
    """Relative to the image's root; empty for the root itself."""
    filename: str
    """The one file in the directory that counts; empty where all do."""
    uri: str

    @property
    def is_whole(self) -> bool:
        """Whether it is all that is in the image."""
        return not self.directory and not self.filename

    @property
    def place(self) -> str:
        """The directory in the pod where the directory of the image is seen."""
        last = self.reference.rpartition("/")[2]
        return f"{MODELS_DIR}models--{last.partition('@')[0].partition(':')[0]}"

    def path(self, *, skip: bool) -> str:
        if skip:
            return self.uri
        return f"{self.place}/{self.filename}" if self.filename else self.place


@dataclass(frozen=True, slots=True)
class Host:
    """A directory or file that every node has."""

    directory: str

    def path(self, *, skip: bool) -> str:  # noqa: ARG002 - the same whoever loads it
        return self.directory


@dataclass(frozen=True, slots=True)
class Ollama:
    """A model that only the engine called like the protocol has, and fetches itself, by its own name for it."""

    protocol: ClassVar[str] = "ollama"

    name: str
    uri: str

    def path(self, *, skip: bool) -> str:
        """Meaningless unless skipped, but upstream defines it, and arguments may name it."""
        return self.uri if skip else f"{MODELS_DIR}models--{self.name.rpartition('/')[2]}"


Source: TypeAlias = Hub | ObjectStore | Image | Host | Ollama

PROTOCOLS = ("gcs", "gs", "oci", "oss", "s3", Ollama.protocol, "host")


def read(source: ModelSource) -> Source:
    """The source that counts: the hub when both are given. Raises :class:`SourceError`."""
    if source.model_hub is not None:
        return _hub(source.model_hub)
    if source.uri is not None:
        return parse_uri(source.uri)
    raise SourceError("set modelHub or uri")


def _hub(hub: ModelHub) -> Hub:
    if not hub.model_id:
        raise SourceError("modelHub.modelID is required, for example facebook/opt-125m")
    return Hub(
        hub.model_id, hub.name, hub.filename, hub.revision, _tuple(hub.allow_patterns), _tuple(hub.ignore_patterns)
    )


def _tuple(items: list[str] | None) -> tuple[str, ...] | None:
    return None if items is None else tuple(items)


def parse_uri(uri: str) -> Source:
    """Raises :class:`SourceError`. The protocol's case does not matter; the whole has exactly one ``://``."""
    pieces = uri.split("://")
    if len(pieces) != 2:
        raise SourceError("must be <protocol>://<address>, with exactly one ://")
    protocol, address = pieces[0].lower(), pieces[1]
    if protocol not in PROTOCOLS:
        raise SourceError(f"unknown protocol, use one of {', '.join(PROTOCOLS)}")
    if protocol == "oss":
        return _oss(address, uri)
    if protocol in ("s3", "gcs", "gs"):
        return _bucket(protocol, address, uri)
    if protocol == "oci":
        return _image(address, uri)
    if protocol == "host":
        return _host(address)
    if not address:
        raise SourceError(f"must be {protocol}://<model>, for example {protocol}://qwen2:0.5b")
    return Ollama(address, uri)


def _oss(address: str, uri: str) -> ObjectStore:
    """The bucket ends at the first dot anywhere, the endpoint at the first slash after it."""
    bucket, dot, rest = address.partition(".")
    endpoint, slash, key = rest.partition("/")
    if not (dot and slash and bucket and endpoint and key) or "/" in bucket:
        raise SourceError("must be oss://<bucket>.<endpoint>/<path>, with no part empty")
    _check_key(key)
    _check_host(bucket, without_port(endpoint))
    return ObjectStore("oss", bucket, endpoint, key, uri)


def _bucket(protocol: str, address: str, uri: str) -> ObjectStore:
    bucket, slash, key = address.partition("/")
    if not (slash and bucket and key):
        raise SourceError(f"must be {protocol}://<bucket>/<path>, with no part empty")
    _check_key(key)
    return ObjectStore("gcs" if protocol == "gs" else protocol, bucket, "", key, uri)


_PART = r"[a-z0-9]+(?:(?:[.]|__?|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?{_PART}(?:/{_PART})*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha(?:256:[0-9a-f]{64}|512:[0-9a-f]{128}))?"
)
"""Registry, repository, tag and digest."""
_IMAGE_DIRECTORY = "/models"
"""Where KServe's images of models have them too (LZ-2.2)."""


def _image(address: str, uri: str) -> Image:
    """What follows a ``#`` is the path inside the image."""
    reference, _, path = address.partition("#")
    path = path or _IMAGE_DIRECTORY
    if len(reference) > _LONGEST_REFERENCE or not _REFERENCE.fullmatch(reference):
        raise SourceError(
            "must be oci://<image>, for example oci://registry.example.com/models/llama:v1, with # and the directory "
            f"of the weights if that is not {_IMAGE_DIRECTORY}"
        )
    if not path.startswith("/") or {".", ".."} & set(path.split("/")):
        raise SourceError("what follows the # must be an absolute path in the image, without . and ..")
    parts = [part for part in path.split("/") if part]
    filename = parts.pop() if parts and ".gguf" in parts[-1] else ""
    return Image(reference, "/".join(parts), filename, uri)


def _check_host(bucket: str, endpoint: str) -> None:
    """The client asks ``<bucket>.<endpoint>``, or the endpoint where that is an address."""
    problem = refusal(endpoint)
    if problem:
        raise SourceError(f"endpoint {endpoint} {problem}")
    if is_metadata_host(f"{bucket}.{endpoint}"):
        raise SourceError(f"{bucket}.{endpoint} {FORBIDDEN}")


def _check_key(key: str) -> None:
    """What is fetched is written below a directory, by its path in the bucket."""
    if ".." in key.split("/"):
        raise SourceError("the path must not contain '..'")


def _host(address: str) -> Host:
    """What a pod can mount: Kubernetes refuses ``..`` in such a path, and the node's root over the container's own."""
    if not address.startswith("/") or not address.strip("/") or ".." in address.split("/") or ":" in address:
        raise SourceError(
            "must be host:// and an absolute path without .. or a colon, for example host:///models/llama"
        )
    return Host(address)
