"""A kind: its description, its decoders and its functions. Everything else is generic."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import Any, Generic, TypeVar, cast

import msgspec
from msgspec import Raw

from app.errors import ProtocolError
from app.hooks.fit import Asked, Fit
from app.hooks.kept import keep
from app.hooks.protocol import (
    AnyRequest,
    Parent,
    RelatedRule,
    SyncBody,
    SyncRequest,
    SyncResponse,
    check_envelope,
)
from app.hooks.reader import SpecReading, read, typed
from app.hooks.readystatus import unnoted
from app.hooks.weight import check_weight
from app.kube import field as fields
from app.kube.base import Json, KubeModel
from app.kube.origin import Origin
from app.kube.reading.rawchecks import check_text
from app.kube.reading.stored import Decoder
from app.kube.resource import CustomResource, Resource
from app.limits import LARGE_REQUEST_BYTES, MAX_ERRORS
from app.settings import Settings

SpecT = TypeVar("SpecT", bound=KubeModel)
StatusT = TypeVar("StatusT", bound=msgspec.Struct)
RequestT = TypeVar("RequestT", bound=msgspec.Struct)


class Hooks(msgspec.Struct, Generic[SpecT, StatusT], frozen=True):
    children: type[msgspec.Struct]
    related: type[msgspec.Struct]
    sync: Callable[[Resource[SpecT, StatusT], AnyRequest, Settings, datetime], SyncResponse]
    """Build the children and the status of a parent with a valid spec."""
    invalid: Callable[[Resource[SpecT | None, StatusT], Sequence[fields.Error], datetime], StatusT]
    """Build the status of a parent with errors: the family's own conditions and ``Ready=False``/``InvalidSpec``."""
    invalid_children: Callable[[AnyRequest], Sequence[Json]] = lambda request: keep(request.children)
    """The children of such a parent: unchanged, unless the readable part of its spec stops them."""
    counts: Callable[[AnyRequest], Sequence[str]] = lambda _: ()
    """Say how many replicas of such a parent are ready, for the end of the message of ``Ready``."""
    customize: Callable[[Resource[SpecT, StatusT], frozenset[str], Settings], list[RelatedRule]] | None = None
    """The related objects, by the spec and the declared child kinds. Must not fail."""
    finalize: Callable[[Resource[None, StatusT], AnyRequest, datetime], SyncResponse] | None = None
    """Decide whether an object that is being deleted may go. Its spec may be invalid, and is not read."""


class Admission(msgspec.Struct, Generic[SpecT, StatusT], frozen=True):
    """The rules of a kind's admission webhook. Syncs obey ``validate``, too."""

    validate: Callable[[Resource[SpecT, StatusT], Resource[SpecT, StatusT] | None, Settings], Iterable[fields.Error]]
    """Find every error; the old object is ``None`` except on updates."""
    warnings: Callable[[Resource[SpecT, StatusT]], Iterable[fields.Advice]]
    admit: Callable[[Resource[SpecT, StatusT], Settings], list[fields.Error]] = lambda *_: []
    """Errors that refuse a creation or a change, while syncs of stored objects go on."""
    changed: Callable[[Resource[SpecT, StatusT], Resource[SpecT, StatusT], Settings], Iterable[fields.Advice]] = (
        lambda *_: ()
    )
    """Warnings about an update, of the new and the old object."""
    deleted: Callable[[str, Settings], list[str]] | None = None
    """Warnings about the deletion of an object, by its name."""
    judges_changes: bool = True
    """True if ``validate`` uses the old object; otherwise it is not read."""

    def errors(
        self, new: Resource[SpecT, StatusT], old: Resource[SpecT, StatusT] | None, settings: Settings
    ) -> list[fields.Error]:
        return list(islice(self.validate(new, old, settings), MAX_ERRORS))


class Offline(msgspec.Struct, Generic[SpecT, StatusT], frozen=True):
    """Functions that only the command line and the studio use."""

    explain: Callable[[Resource[SpecT, StatusT], AnyRequest, Settings], list[Origin]] | None = None
    """Sources of pod values that do not show when fields are changed one by one, such as built-in presets."""
    cross_object_warnings: Callable[[Resource[SpecT, StatusT], AnyRequest, Settings], list[fields.Advice]] | None = None
    """Warnings about conflicts with the related objects."""
    assumes: Callable[[Resource[SpecT, StatusT], AnyRequest, Settings], Iterator[str]] | None = None
    """Say what would be otherwise with an object that manifests rarely hold, such as a StorageClass."""
    together: (
        Callable[[Sequence[Resource[SpecT, StatusT]]], Iterator[tuple[Resource[SpecT, StatusT], fields.Advice]]] | None
    ) = None
    """Warnings about objects of the kind that are in each other's way; each with its object."""
    fit: Callable[[Resource[SpecT, StatusT], AnyRequest, Settings, Asked], Fit] | None = None
    """Compare the model with its GPUs. The last argument: the memory of a GPU where no object names it."""
    built_in: Callable[[Settings], Collection[str]] = lambda _: ()
    """Names of objects of this kind that can be referred to without a manifest: presets."""


class Kind(msgspec.Struct, Generic[SpecT, StatusT], frozen=True, dict=True):
    resource: CustomResource
    hooks: Hooks[SpecT, StatusT]
    admission: Admission[SpecT, StatusT]
    offline: Offline[SpecT, StatusT] = msgspec.field(default_factory=Offline)
    older: tuple[Kind[Any, Any], ...] = ()
    """The kind in its older served versions: admission judges objects in the version they were written in."""
    upgrade: Callable[[Parent], Parent] | None = None
    """In an older version: convert an object to the stored version, which is the one that hooks know."""

    @cached_property
    def decoder(self) -> Decoder[SyncBody[Any, Any]]:
        return Decoder(cast("Any", SyncBody)[self.hooks.children, self.hooks.related])

    @cached_property
    def status_decoder(self) -> Decoder[StatusT]:
        return Decoder(self.resource.status)

    def request(self, body: bytes, *, finalizing: bool = False) -> AnyRequest:
        """Decode a sync or finalize request. Raises :class:`ProtocolError` for one that Metacontroller never sends."""
        request = decode(self.decoder, body)
        request.parent = self.stored(request.parent)
        check_envelope(request, self.resource.kind, self.resource.api_version, finalizing=finalizing)
        related = self.hooks.related() if request.related is None else request.related
        return SyncRequest(request.parent, request.children, related)

    def status_of(self, parent: Parent) -> StatusT:
        """Decode the last status, without notes; a new one if it is absent or invalid."""
        try:
            return unnoted(self.status_decoder.decode(parent.status))
        except (msgspec.DecodeError, RecursionError):
            return cast("StatusT", self.resource.status())

    def stored(self, parent: Parent) -> Parent:
        """Convert a parent to the stored version, the one that Metacontroller sends; other clients may not."""
        for older in self.older:
            if older.upgrade is not None and older.resource.api_version == parent.api_version:
                return older.upgrade(parent)
        return parent

    def read(self, spec: bytes | Raw, *, embedded: bool = True) -> SpecReading[SpecT]:
        type_ = cast("type[SpecT]", self.resource.spec)
        return read(spec, type_, needed=self.resource.spec_required, embedded=embedded)

    def typed(self, spec: bytes | Raw) -> SpecT | None:
        """Decode a spec in which :meth:`read` found no error."""
        return typed(spec, cast("type[SpecT]", self.resource.spec))

    def decode(self, parent: Parent) -> tuple[Resource[SpecT, StatusT] | None, list[fields.Error]]:
        """Return the typed parent, or the errors of its schema and of its embedded types."""
        reading = self.read(parent.spec)
        if reading.spec is None:
            return None, reading.errors
        return Resource(parent.metadata, reading.spec, self.status_of(parent)), reading.errors


AnyKind = Kind[Any, Any]
"""A kind whose specification and status types do not matter to the caller."""


def decode(decoder: Decoder[RequestT], body: bytes) -> RequestT:
    """Decode a request. Raises :class:`ProtocolError` if it is invalid or too large."""
    try:
        check_text(body)
        if len(body) > LARGE_REQUEST_BYTES:
            check_weight(body)
        return decoder.decode(body)
    except RecursionError:
        raise ProtocolError("the request is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise malformed(error) from None


def malformed(error: Exception) -> ProtocolError:
    return ProtocolError(f"not a v2 hook request: {str(error)[:200]}")
