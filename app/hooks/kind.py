"""A kind as the service sees it: its description, its decoders and its functions. Everything else is generic.

The functions below answer the hooks; they are pure, and the command line calls them as the routes do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Generic, TypeVar, cast

import msgspec
from msgspec import Raw

from app.errors import ProtocolError
from app.hooks import response
from app.hooks.kept import check_recorded, keep
from app.hooks.memo import remembered
from app.hooks.protocol import (
    CustomizeRequest,
    Parent,
    RelatedRule,
    SyncAnswer,
    SyncBody,
    SyncRequest,
    SyncResponse,
    check_envelope,
)
from app.hooks.reader import Fault, Reading, read
from app.hooks.template import inputs, keep_templates, noted
from app.hooks.weight import check_weight
from app.kube import field as fields
from app.kube.base import Json, KubeModel
from app.kube.fit import Fit
from app.kube.limits import check_text
from app.kube.names import ANNOTATIONS_MAX
from app.kube.objects import ObjectMeta
from app.kube.origin import Origin
from app.kube.resource import CustomResource, Resource
from app.kube.stored import Decoder
from app.settings import Settings

SpecT = TypeVar("SpecT", bound=KubeModel)
StatusT = TypeVar("StatusT", bound=msgspec.Struct)


@dataclass(frozen=True)
class Kind(Generic[SpecT, StatusT]):
    """One kind: what it looks like (``resource``) and what it does.

    ``validate`` gets the old object on updates only and returns every error; ``admit`` returns those that only keep an
    object from being created or changed: what was there before goes on. ``warnings`` never refuses anything, nor do
    ``changed`` (the new and the old object of an update) and ``deleted`` (the name of an object that goes). ``sync``
    may rely on a valid ``spec``. ``invalid`` judges a parent that has errors: it only writes the family's own
    conditions and ``Ready=False``/``InvalidSpec`` into the status. ``kept`` says what becomes of such a parent's
    children: they stay as they are, unless what can be read of it says that they are to stop.
    ``template_inputs`` returns what pod templates are made from besides the parent's spec, which is valid.
    ``customize`` gets the spec (``None`` when it does not decode) and must not fail. ``explain`` names sources of pod
    values that do not show when fields are changed one by one, such as built-in presets.
    ``cross_object_warnings`` warns of what does not fit together with the related objects. Only the command line asks
    the two.
    """

    resource: CustomResource
    children: type[msgspec.Struct]
    related: type[msgspec.Struct]
    sync: Callable[[Resource[SpecT, StatusT], SyncRequest[Any, Any], Settings, datetime], SyncResponse]
    invalid: Callable[[Resource[SpecT | None, StatusT], Sequence[fields.Error], datetime], StatusT]
    validate: Callable[[Resource[SpecT, StatusT], Resource[SpecT, StatusT] | None, Settings], list[fields.Error]]
    warnings: Callable[[Resource[SpecT, StatusT]], list[fields.Advice]]
    admit: Callable[[Resource[SpecT, StatusT], Settings], list[fields.Error]] = lambda *_: []
    changed: Callable[[Resource[SpecT, StatusT], Resource[SpecT, StatusT], Settings], list[fields.Advice]] | None = None
    deleted: Callable[[str, Settings], list[str]] | None = None
    kept: Callable[[SyncRequest[Any, Any]], Sequence[Json]] = lambda request: keep(request.children)
    template_inputs: Callable[[Resource[SpecT, StatusT], SyncRequest[Any, Any], Settings], Mapping[str, Any]] = (
        lambda *_: {}
    )
    customize: Callable[[Resource[SpecT, StatusT], frozenset[str], Settings], list[RelatedRule]] | None = None
    explain: Callable[[Resource[SpecT, StatusT], SyncRequest[Any, Any], Settings], list[Origin]] | None = None
    cross_object_warnings: (
        Callable[[Resource[SpecT, StatusT], SyncRequest[Any, Any], Settings], list[fields.Advice]] | None
    ) = None
    fit: Callable[[Resource[SpecT, StatusT], SyncRequest[Any, Any], Settings, str], Fit] | None = None
    """Whether the model fits into its GPUs; the last argument is the memory of a GPU, where no object says it."""
    older: tuple[Kind[Any, Any], ...] = ()
    """The kind in the older versions that it is served in: admission judges their objects as they were written."""
    upgrade: Callable[[Parent], Parent] | None = None
    """Of a kind in an older version: its object in the version that is stored, which is the one that hooks know."""
    judges_changes: bool = True
    """Whether ``validate`` looks at the old object; where it does not, an update is judged without reading it."""
    decoder: Decoder[Any] = field(init=False)
    status_decoder: Decoder[Any] = field(init=False)

    def __post_init__(self) -> None:
        body = cast("Any", SyncBody)[self.children, self.related]
        object.__setattr__(self, "decoder", Decoder(body))
        object.__setattr__(self, "status_decoder", Decoder(self.resource.status))

    def request(self, body: bytes) -> SyncRequest[Any, Any]:
        """A sync request. Raises :class:`ProtocolError` for one that Metacontroller never sends."""
        found: SyncBody[Any, Any] = decode(self.decoder, body)
        found.parent = _upgraded(self, found.parent)
        check_envelope(found, self.resource.kind, self.resource.api_version)
        return SyncRequest(found.parent, found.children, self.related() if found.related is None else found.related)

    def status_of(self, parent: Parent) -> StatusT:
        """The status last written; a fresh one where it is absent or not of our making."""
        try:
            status: Any = self.status_decoder.decode(parent.status)
        except (msgspec.DecodeError, RecursionError):
            status = self.resource.status()
        return cast("StatusT", status)

    def read(self, spec: bytes | Raw) -> Reading[SpecT]:
        """What a spec of this kind says, and what is wrong with it by the schema."""
        return read(spec, cast("type[SpecT]", self.resource.spec), needed=self.resource.spec_required)

    def decode(self, parent: Parent) -> tuple[Resource[SpecT, StatusT] | None, list[fields.Error]]:
        """The typed parent, or every error of its schema and of what is embedded in it."""
        reading = self.read(parent.spec)
        if reading.spec is None:
            return None, reading.errors
        return Resource(parent.metadata, reading.spec, self.status_of(parent)), reading.errors


def answer_sync(kind: Kind[Any, Any], body: bytes, settings: Settings, now: datetime) -> SyncAnswer:
    """A sync hook's answer to a request body. Raises :class:`ProtocolError` for a request that cannot be answered."""
    request = kind.request(body)
    try:
        check_recorded(request.children)
        answer = sync(kind, request, settings, now)
        answer.children, waiting = keep_templates(answer.children, request.inputs, request.children)
        if waiting:
            answer.status = noted(answer.status, waiting)
        return _encoded(kind, request, answer, waiting, settings, now)
    except response.TooLarge as error:  # fewer children, or less of them, would be deletions: they stay as they are
        raise ProtocolError(f"{error}: the children stay as they are", 413) from None


def _encoded(
    kind: Kind[Any, Any],
    request: SyncRequest[Any, Any],
    answer: SyncResponse,
    waiting: list[str],
    settings: Settings,
    now: datetime,
) -> SyncAnswer:
    """The answer; where a child in it could not be stored, one that keeps all as they are and says so."""
    namespace = request.parent.metadata.namespace
    try:
        encoded = response.encode(answer, namespace, waiting)
    except response.TooLarge:
        encoded = None
    errors = [] if encoded and len(encoded.body) <= ANNOTATIONS_MAX else response.unstorable(answer)
    if errors:
        resource, _ = _checked(kind, request.parent, settings)
        return response.encode(_keeping(kind, request, resource, errors, now), namespace)
    return encoded or response.encode(answer, namespace, waiting)


def sync(kind: Kind[Any, Any], request: SyncRequest[Any, Any], settings: Settings, now: datetime) -> SyncResponse:
    """The desired children and status. A parent with errors keeps every child and says so."""
    resource, errors = _checked(kind, request.parent, settings)
    if resource is None or errors:
        return _keeping(kind, request, resource, errors, now)
    made_from = kind.template_inputs(resource, request, settings)
    request.inputs = inputs(request.parent, kind.resource.family, made_from, settings)
    return kind.sync(resource, request, settings, now)


def _keeping(
    kind: Kind[Any, Any],
    request: SyncRequest[Any, Any],
    resource: Resource[Any, Any] | None,
    errors: Sequence[fields.Error],
    now: datetime,
) -> SyncResponse:
    judged = resource or Resource(request.parent.metadata, None, kind.status_of(request.parent))
    return SyncResponse(kind.invalid(judged, errors, now), children=kind.kept(request))


def _checked(
    kind: Kind[Any, Any], parent: Parent, settings: Settings
) -> tuple[Resource[Any, Any] | None, list[fields.Error]]:
    """The typed parent and everything that is wrong with it. What was found sound is not looked at again.

    Raises :class:`ProtocolError` for a spec that no API server would send, by its numbers or texts.
    """
    metadata, text = parent.metadata, bytes(parent.spec)
    key = (kind.resource.hook_path, text, msgspec.json.encode(metadata), settings)
    spec, errors = remembered(key, partial(_judged, kind, text, metadata, settings), _is_sound)
    return None if spec is None else Resource(metadata, spec, kind.status_of(parent)), errors


Judged = tuple[KubeModel | None, list[fields.Error]]


def _judged(kind: Kind[Any, Any], text: bytes, metadata: ObjectMeta, settings: Settings) -> Judged:
    """The spec and its errors: of the kind, the bytes, the metadata and the settings, and of nothing else."""
    reading = kind.read(text)
    if reading.fault is Fault.JSON:
        raise ProtocolError(f"parent.spec {reading.fault.value}")
    if reading.spec is None or reading.errors:
        return reading.spec, reading.errors
    errors = kind.validate(Resource(metadata, reading.spec, kind.resource.status()), None, settings)
    return reading.spec, errors


def _is_sound(judged: Judged) -> bool:
    return not judged[1]


def answer_customize(kind: Kind[Any, Any], body: bytes, settings: Settings) -> bytes:
    """A customize hook's answer. It never fails for a user's mistake: deletion waits for it too (MC-6)."""
    request = decode(_CUSTOMIZE, body)
    if kind.customize is None:
        return response.encode_related([])
    parent = _upgraded(kind, request.parent)
    reading = kind.read(parent.spec)
    if reading.fault is Fault.JSON:
        raise ProtocolError(f"parent.spec {reading.fault.value}")
    if reading.spec is None:
        return response.encode_related([])
    resource = Resource(parent.metadata, reading.spec, kind.status_of(parent))
    rules = kind.customize(resource, request.declared, settings)
    return response.encode_related([_as_asked(rule, parent, request.parent) for rule in rules])


def _as_asked(rule: RelatedRule, parent: Parent, asked: Parent) -> RelatedRule:
    """Whoever works with an older version of the parent gets related objects of its group in that version too."""
    if parent is asked or rule.api_version != parent.api_version:
        return rule
    return msgspec.structs.replace(rule, api_version=asked.api_version)


def _upgraded(kind: Kind[Any, Any], parent: Parent) -> Parent:
    """The parent in the version that the hook works with: Metacontroller sends that one, others may not."""
    for older in kind.older:
        if older.upgrade is not None and older.resource.api_version == parent.api_version:
            return older.upgrade(parent)
    return parent


_CUSTOMIZE: Decoder[CustomizeRequest] = Decoder(CustomizeRequest)


def decode(decoder: Decoder[Any], body: bytes) -> Any:
    """A request, or :class:`ProtocolError` where it is none, or more than can be looked at."""
    try:
        check_text(body)
        check_weight(body)
        return decoder.decode(body)
    except RecursionError:
        raise ProtocolError("the request is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProtocolError(f"not a v2 hook request: {str(error)[:200]}") from None
