"""A kind: its description, its decoders and its functions. Everything else is generic."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, Generic, TypeVar, cast

import msgspec
from msgspec import Raw

from app.errors import ProtocolError
from app.hooks import response
from app.hooks.fit import Asked, Fit
from app.hooks.kept import check_recorded, keep
from app.hooks.lost import lost_fields, lost_note
from app.hooks.memo import remembered
from app.hooks.protocol import (
    AnyRequest,
    CustomizeRequest,
    KeptTemplate,
    Parent,
    RelatedRule,
    SyncAnswer,
    SyncBody,
    SyncRequest,
    SyncResponse,
    check_envelope,
)
from app.hooks.reader import ReadFault, SpecReading, read
from app.hooks.readystatus import judged, noted, unnoted, with_counts, with_times
from app.hooks.template import waiting_note
from app.hooks.weight import check_weight
from app.kube import field as fields
from app.kube.base import Json, KubeModel
from app.kube.conditions import is_true
from app.kube.names import ANNOTATIONS_MAX
from app.kube.objects import ObservedMeta
from app.kube.origin import Origin
from app.kube.reading.rawchecks import check_text
from app.kube.reading.stored import Decoder
from app.kube.resource import AnyResource, CustomResource, Resource
from app.limits import MAX_ERRORS
from app.settings import Settings

SpecT = TypeVar("SpecT", bound=KubeModel)
StatusT = TypeVar("StatusT", bound=msgspec.Struct)
RequestT = TypeVar("RequestT", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Hooks(Generic[SpecT, StatusT]):
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


@dataclass(frozen=True, slots=True)
class Admission(Generic[SpecT, StatusT]):
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


@dataclass(frozen=True, slots=True)
class Offline(Generic[SpecT, StatusT]):
    """Functions that only the command line and the studio use."""

    explain: Callable[[Resource[SpecT, StatusT], AnyRequest, Settings], list[Origin]] | None = None
    """Sources of pod values that do not show when fields are changed one by one, such as built-in presets."""
    cross_object_warnings: Callable[[Resource[SpecT, StatusT], AnyRequest, Settings], list[fields.Advice]] | None = None
    """Warnings about conflicts with the related objects."""
    together: (
        Callable[[Sequence[Resource[SpecT, StatusT]]], Iterator[tuple[Resource[SpecT, StatusT], fields.Advice]]] | None
    ) = None
    """Warnings about objects of the kind that are in each other's way; each with its object."""
    fit: Callable[[Resource[SpecT, StatusT], AnyRequest, Settings, Asked], Fit] | None = None
    """Compare the model with its GPUs. The last argument: the memory of a GPU where no object names it."""
    built_in: Callable[[Settings], Collection[str]] = lambda _: ()
    """Names of objects of this kind that can be referred to without a manifest: presets."""


@dataclass(frozen=True)
class Kind(Generic[SpecT, StatusT]):
    resource: CustomResource
    hooks: Hooks[SpecT, StatusT]
    admission: Admission[SpecT, StatusT]
    offline: Offline[SpecT, StatusT] = field(default_factory=Offline)
    older: tuple[Kind[Any, Any], ...] = ()
    """The kind in its older served versions: admission judges objects in the version they were written in."""
    upgrade: Callable[[Parent], Parent] | None = None
    """In an older version: convert an object to the stored version, which is the one that hooks know."""
    decoder: Decoder[SyncBody[Any, Any]] = field(init=False)
    status_decoder: Decoder[StatusT] = field(init=False)

    def __post_init__(self) -> None:
        body = cast("Any", SyncBody)[self.hooks.children, self.hooks.related]
        object.__setattr__(self, "decoder", Decoder(body))
        object.__setattr__(self, "status_decoder", Decoder(self.resource.status))

    def request(self, body: bytes, *, finalizing: bool = False) -> AnyRequest:
        """Decode a sync or finalize request. Raises :class:`ProtocolError` for one that Metacontroller never sends."""
        request = decode(self.decoder, body)
        request.parent = _upgraded(self, request.parent)
        check_envelope(request, self.resource.kind, self.resource.api_version, finalizing=finalizing)
        related = self.hooks.related() if request.related is None else request.related
        return SyncRequest(request.parent, request.children, related)

    def status_of(self, parent: Parent) -> StatusT:
        """Decode the last status, without notes; a new one if it is absent or invalid."""
        try:
            return unnoted(self.status_decoder.decode(parent.status))
        except (msgspec.DecodeError, RecursionError):
            return cast("StatusT", self.resource.status())

    def read(self, spec: bytes | Raw) -> SpecReading[SpecT]:
        return read(spec, cast("type[SpecT]", self.resource.spec), needed=self.resource.spec_required)

    def decode(self, parent: Parent) -> tuple[Resource[SpecT, StatusT] | None, list[fields.Error]]:
        """Return the typed parent, or the errors of its schema and of its embedded types."""
        reading = self.read(parent.spec)
        if reading.spec is None:
            return None, reading.errors
        return Resource(parent.metadata, reading.spec, self.status_of(parent)), reading.errors


AnyKind = Kind[Any, Any]
"""A kind whose specification and status types do not matter to the caller."""


def answer_sync(kind: AnyKind, body: bytes, settings: Settings, now: datetime) -> bytes:
    """Answer a sync hook. Raises :class:`ProtocolError` for a request that cannot be answered."""
    return answer_sync_with_facts(kind, body, settings, now).body


def answer_sync_with_facts(
    kind: AnyKind, body: bytes, settings: Settings, now: datetime, again: float | None = None
) -> SyncAnswer:
    """As :func:`answer_sync`, with the facts for metrics and the log. ``again``: maximum seconds to the next sync."""
    request = kind.request(body)
    try:
        check_recorded(request.children)
        answer = sync(kind, request, settings, now)
        answer.resync_after_seconds = min(filter(None, (answer.resync_after_seconds, again)), default=None)
        waiting = [field for child in answer.children if isinstance(child, KeptTemplate) for field in child.waiting]
        notes = [waiting_note(waiting)] if waiting else []
        if lost := lost_fields(request):
            notes.append(lost_note(lost))
        answer.status = noted(answer.status, notes) if notes else answer.status
        return _encoded(kind, request, answer, waiting, settings, now)
    except response.TooLarge as error:  # fewer children, or less of them, would be deletions: they stay as they are
        raise ProtocolError(f"{error}: the children stay as they are", 413) from None
    except msgspec.DecodeError as error:  # in a template or a pod, which are decoded where they are needed
        raise _malformed(error) from None


def answer_finalize(kind: AnyKind, body: bytes, now: datetime) -> bytes:
    """Answer a finalize hook of a kind that has one. A failure would block the deletion."""
    request = kind.request(body, finalizing=True)
    parent, finalize = request.parent, kind.hooks.finalize
    if finalize is None:
        raise ProtocolError("this kind has no finalize hook")
    answer = finalize(Resource(parent.metadata, None, kind.status_of(parent)), request, now)
    if not parent.metadata.deletion_timestamp:
        answer.finalized = False
    return response.encode(answer, parent.metadata.namespace).body


def _encoded(
    kind: AnyKind, request: AnyRequest, answer: SyncResponse, waiting: list[str], settings: Settings, now: datetime
) -> SyncAnswer:
    """Encode the answer. If a child could not be stored, the answer keeps every child and reports the error."""
    namespace = request.parent.metadata.namespace
    try:
        encoded = response.encode(answer, namespace, waiting)
    except response.TooLarge:
        errors = response.unstorable(answer)
        if not errors:  # only all of them together
            raise
    else:
        is_large = len(encoded.body) > ANNOTATIONS_MAX  # else no child is
        errors = response.unstorable(answer) if is_large else []
        if not errors:
            return encoded
    resource, _ = _checked(kind, request.parent, settings)
    return response.encode(_keeping(kind, request, resource, errors, now), namespace)


def sync(kind: AnyKind, request: AnyRequest, settings: Settings, now: datetime) -> SyncResponse:
    """Build the desired children and status. A parent with errors keeps every child and reports them."""
    resource, errors = _checked(kind, request.parent, settings)
    if resource is None or errors:
        return _keeping(kind, request, resource, errors, now)
    answer = kind.hooks.sync(resource, request, settings, now)
    if _falls(resource.status, answer.status):
        fallen = Resource(resource.metadata, resource.spec, cast("Any", answer.status))
        answer = kind.hooks.sync(fallen, request, settings, now)
        answer.status = with_times(answer.status, resource.status)
    answer.status = judged(answer.status, now)
    return answer


def _falls(before: Any, after: Any) -> bool:
    """Report whether an answer takes ``Ready`` away, on which parts of it depend.

    It is computed again from the new status, so that the same observation is answered in the same way afterwards.
    """
    return is_true(before.conditions, "Ready") and not is_true(after.conditions, "Ready")


def _keeping(
    kind: AnyKind, request: AnyRequest, resource: AnyResource | None, errors: Sequence[fields.Error], now: datetime
) -> SyncResponse:
    invalid = resource or Resource(request.parent.metadata, None, kind.status_of(request.parent))
    status = with_counts(kind.hooks.invalid(invalid, errors, now), kind.hooks.counts(request))
    return SyncResponse(judged(status, now), children=kind.hooks.invalid_children(request))


def _checked(kind: AnyKind, parent: Parent, settings: Settings) -> tuple[AnyResource | None, list[fields.Error]]:
    """Return the typed parent and its errors. A valid spec is not checked again.

    Raises :class:`ProtocolError` for a spec with numbers or strings that no API server sends.
    """
    metadata, text = parent.metadata, bytes(parent.spec)
    key = (kind.resource.hook_path, text, msgspec.json.encode(metadata), settings)
    spec, errors = remembered(key, partial(_validated, kind, text, metadata, settings), lambda result: not result[1])
    return None if spec is None else Resource(metadata, spec, kind.status_of(parent)), errors


Validated = tuple[KubeModel | None, list[fields.Error]]


def _validated(kind: AnyKind, text: bytes, metadata: ObservedMeta, settings: Settings) -> Validated:
    """Decode and validate a spec. The result depends on the arguments only, so it may be cached."""
    reading = kind.read(text)
    if reading.fault is ReadFault.JSON:
        raise ProtocolError(f"parent.spec {reading.fault.value}")
    if reading.spec is None or reading.errors:
        return reading.spec, reading.errors
    errors = kind.admission.errors(Resource(metadata, reading.spec, kind.resource.status()), None, settings)
    return reading.spec, errors


def answer_customize(kind: AnyKind, body: bytes, settings: Settings) -> bytes:
    """Answer a customize hook. It never fails for a mistake in the spec: deletion waits for it too (MC-6)."""
    request = decode(_CUSTOMIZE, body)
    if kind.hooks.customize is None:
        return response.encode_related([])
    parent = _upgraded(kind, request.parent)
    reading = kind.read(parent.spec)
    if reading.fault is ReadFault.JSON:
        raise ProtocolError(f"parent.spec {reading.fault.value}")
    if reading.spec is None:
        return response.encode_related([])
    resource = Resource(parent.metadata, reading.spec, kind.status_of(parent))
    rules = kind.hooks.customize(resource, request.declared, settings)
    return response.encode_related([_in_version_of(request.parent, rule, parent) for rule in rules])


def _in_version_of(original: Parent, rule: RelatedRule, parent: Parent) -> RelatedRule:
    """Ask for related objects of the parent's group in the version of the request's parent."""
    if parent is original or rule.api_version != parent.api_version:
        return rule
    return msgspec.structs.replace(rule, api_version=original.api_version)


def _upgraded(kind: AnyKind, parent: Parent) -> Parent:
    """Convert the parent to the stored version, the one that Metacontroller sends; other clients may not."""
    for older in kind.older:
        if older.upgrade is not None and older.resource.api_version == parent.api_version:
            return older.upgrade(parent)
    return parent


_CUSTOMIZE: Decoder[CustomizeRequest] = Decoder(CustomizeRequest)


def decode(decoder: Decoder[RequestT], body: bytes) -> RequestT:
    """Decode a request. Raises :class:`ProtocolError` if it is invalid or too large."""
    try:
        check_text(body)
        check_weight(body)
        return decoder.decode(body)
    except RecursionError:
        raise ProtocolError("the request is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _malformed(error) from None


def _malformed(error: Exception) -> ProtocolError:
    return ProtocolError(f"not a v2 hook request: {str(error)[:200]}")
