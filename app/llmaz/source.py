"""Sources of a model's weights: both forms of ``spec.source``, parsed. Source: LZ-2.1 to LZ-2.3."""

import re
from collections.abc import Callable
from typing import ClassVar, TypeAlias

import msgspec

from app.kube.field import with_hint
from app.kube.hosts import FORBIDDEN, is_metadata_host, refusal
from app.kube.names import IMAGE_DIGEST, IMAGE_REPOSITORY, IMAGE_TAG
from app.llmaz.names import MODELS_DIR
from app.llmaz.openmodel.types import ModelHub, ModelSource
from app.workload import address
from app.workload.address import Address, Form, without_port

_REFERENCE = re.compile(rf"(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?{IMAGE_REPOSITORY}(?::{IMAGE_TAG})?(?:@{IMAGE_DIGEST})?")
"""Registry, repository, tag and digest."""
_IMAGE_DIRECTORY = "/models"
"""Directory of the weights, as in KServe's images (LZ-2.2)."""


class SourceError(ValueError):
    """The source cannot be used; the message has the reason and the form to write instead."""


class Hub(msgspec.Struct, frozen=True):
    repository: ModelHub

    def path(self, *, skip: bool) -> str:
        if skip:
            return self.repository.model_id
        if self.repository.filename is not None:
            return MODELS_DIR + self.repository.filename
        return f"{MODELS_DIR}models--{self.repository.model_id.replace('/', '--')}"


class ObjectStore(msgspec.Struct, frozen=True):
    protocol: str
    """``oss``, ``s3`` or ``gcs``, also for an address with Google's scheme ``gs``."""
    bucket: str
    endpoint: str
    key: str
    uri: str

    def path(self, *, skip: bool) -> str:
        if skip:
            return self.uri
        last = self.key.rpartition("/")[2]
        return MODELS_DIR + (last if ".gguf" in self.key else f"models--{last}")

    @property
    def is_file(self) -> bool:
        """Return whether the address names one file (LZ-2.7)."""
        return ".gguf" in self.key.rpartition("/")[2]


class Image(msgspec.Struct, frozen=True):
    reference: str
    directory: str
    """Relative to the image's root; empty for the root itself."""
    filename: str
    """The one file in the directory to load; empty for all."""
    uri: str

    @property
    def is_whole(self) -> bool:
        return not self.directory and not self.filename

    @property
    def place(self) -> str:
        last = self.reference.rpartition("/")[2]
        return f"{MODELS_DIR}models--{last.partition('@')[0].partition(':')[0]}"

    def path(self, *, skip: bool) -> str:
        if skip:
            return self.uri
        return f"{self.place}/{self.filename}" if self.filename else self.place


class Host(msgspec.Struct, frozen=True):
    """A directory or file that every node has."""

    directory: str

    def path(self, *, skip: bool) -> str:  # noqa: ARG002 - the same whoever loads it
        return self.directory


class Ollama(msgspec.Struct, frozen=True):
    """A model that only the engine ``ollama`` has, and fetches itself."""

    protocol: ClassVar[str] = "ollama"

    name: str
    uri: str

    def path(self, *, skip: bool) -> str:
        """Return the path, which is meaningless unless skipped, but upstream defines it, and arguments may name it."""
        return self.uri if skip else f"{MODELS_DIR}models--{self.name.rpartition('/')[2]}"


Source: TypeAlias = Hub | ObjectStore | Image | Host | Ollama


def read(source: ModelSource) -> Source:
    """Return the effective source: the hub if both are set. Raises :class:`SourceError`."""
    if source.model_hub is not None:
        if not source.model_hub.model_id:
            raise SourceError("modelHub.modelID is required, for example facebook/opt-125m")
        return Hub(source.model_hub)
    if source.uri is not None:
        return parse_uri(source.uri)
    raise SourceError("set modelHub or uri")


def parse_uri(uri: str) -> Source:
    """Parse an address with exactly one ``://``; its scheme may be in upper case. Raises :class:`SourceError`."""
    parsed = Address(uri)
    if uri.count("://") != 1:
        hint = address.scheme_hint(uri, _FORMS, _is_usable)
        raise SourceError(with_hint("must be <protocol>://<address>, with exactly one ://", hint))
    if parsed.scheme not in _FORMS:
        raise SourceError(with_hint(f"unknown protocol; must be one of {', '.join(_FORMS)}", _address_hint(parsed)))
    form, build = _FORMS[parsed.scheme]
    if problem := form.problem(parsed):
        raise SourceError(problem)
    return build(parsed)


def _address_hint(uri: Address) -> str:
    """Suggest another address, or the hub's own field for one of its repositories."""
    if hub := address.hub_repository(uri):
        return f"; did you mean modelHub: {{modelID: {hub.name}}} in place of uri?"
    return address.scheme_hint(uri.text, _FORMS, _is_usable)


def _is_usable(uri: str) -> bool:
    try:
        parse_uri(uri)
    except SourceError:
        return False
    return True


def _oss(uri: Address) -> ObjectStore:
    bucket, _, endpoint = uri.head.partition(".")
    return ObjectStore(uri.scheme, bucket, endpoint, uri.key, uri.text)


def _oss_endpoint(uri: Address) -> str:
    """Check the host of the requests: ``<bucket>.<endpoint>``, or the endpoint if that is an IP address."""
    store = _oss(uri)
    if not (store.bucket and store.endpoint and store.key):
        return "bucket, endpoint and path are required"
    endpoint = without_port(store.endpoint)
    if problem := refusal(endpoint):
        return f"endpoint {endpoint} {problem}"
    host = f"{store.bucket}.{endpoint}"
    return f"{host} {FORBIDDEN}" if is_metadata_host(host) else ""


def _bucket(uri: Address) -> ObjectStore:
    return ObjectStore("gcs" if uri.scheme == "gs" else uri.scheme, uri.head, "", uri.key, uri.text)


def _image_reference(uri: Address) -> str:
    reference, _, path = uri.rest.partition("#")
    if len(reference) > 512 or not _REFERENCE.fullmatch(reference):  # longer than any registry accepts
        return "the image reference is not valid"
    if path and (not path.startswith("/") or {".", ".."} & set(path.split("/"))):
        return "what follows the # must be an absolute path in the image, without . and .."
    return ""


def _image(uri: Address) -> Image:
    reference, _, path = uri.rest.partition("#")
    parts = [part for part in (path or _IMAGE_DIRECTORY).split("/") if part]
    filename = parts.pop() if parts and ".gguf" in parts[-1] else ""
    return Image(reference, "/".join(parts), filename, uri.text)


_mountable = address.matching(
    lambda uri: uri.rest.strip("/") and ":" not in uri.rest, "the path must not be / or contain a colon"
)
"""The node's root would hide the container's."""


_BUCKET_CHECKS = (address.head("bucket"), address.path)
_FORMS: dict[str, tuple[Form, Callable[[Address], Source]]] = {
    "gcs": (address.bucket_form("gcs", *_BUCKET_CHECKS), _bucket),
    "gs": (address.bucket_form("gs", *_BUCKET_CHECKS), _bucket),
    "oci": (
        Form(
            "oci://<image>, for example oci://registry.example.com/models/llama:v1, with # and the directory of the "
            f"weights if that is not {_IMAGE_DIRECTORY}",
            (_image_reference,),
        ),
        _image,
    ),
    "oss": (Form("oss://<bucket>.<endpoint>/<path>", (_oss_endpoint, address.no_parent_directory)), _oss),
    "s3": (address.bucket_form("s3", *_BUCKET_CHECKS), _bucket),
    Ollama.protocol: (
        Form(f"{Ollama.protocol}://<model>, for example {Ollama.protocol}://qwen2:0.5b", (address.anything,)),
        lambda uri: Ollama(uri.rest, uri.text),
    ),
    "host": (
        Form(
            "host:// and an absolute path, for example host:///models/llama",
            (address.absolute_path, address.no_parent_directory, _mountable),
        ),
        lambda uri: Host(uri.rest),
    ),
}
