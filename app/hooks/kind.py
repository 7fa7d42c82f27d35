"""A kind as the service sees it: its description, its decoders and its functions. Everything else is generic.

The functions below answer the hooks; they are pure, and the command line calls them as the routes do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, Generic, TypeVar, cast

import msgspec
import orjson

from app.errors import ProtocolError
from app.hooks import response
from app.hooks.keep import keep
from app.hooks.memo import Memo
from app.hooks.origin import Origin
from app.hooks.protocol import CustomizeRequest, Parent, RelatedRule, SyncRequest, SyncResponse, check_envelope
from app.hooks.template import keep_templates
from app.kube import field as fields
from app.kube.base import KubeModel
from app.kube.decode import SPEC, decode_spec
from app.kube.jsonvalue import (
    MAX_BYTES,
    MAX_DEPTH,
    check_text,
    control_characters,
    depth_exceeds,
    excess,
    may_have_controls,
)
from app.kube.labels import ANNOTATIONS_MAX
from app.kube.nulls import Decoder
from app.kube.resource import CustomResource, Resource
from app.kube.shape import check_embedded
from app.settings import Settings

SpecT = TypeVar("SpecT", bound=KubeModel)
StatusT = TypeVar("StatusT", bound=msgspec.Struct)


@dataclass(frozen=True)
class Kind(Generic[SpecT, StatusT]):
    """One kind: what it looks like (``resource``) and what it does.

    ``validate`` gets the old object on updates only and returns every error; ``warnings`` never refuses anything,
    nor do ``changed`` (the new and the old object of an update) and ``deleted`` (the name of an object that goes).
    ``sync`` may rely on a valid ``spec``. ``invalid`` judges a parent that has errors: it only writes the family's own
    conditions and ``Ready=False``/``InvalidSpec`` into the status. ``kept`` says what becomes of such a parent's
    children: they stay as they are, unless what can be read of it says that they are to stop. ``customize`` gets the
    spec (``None`` when it does not decode) and must not fail. ``explain`` names sources of pod values that do not
    show when fields are changed one by one, such as built-in presets. ``across`` warns of what does not fit together
    with the related objects. Only the command line asks the two.
    """

    resource: CustomResource
    children: type[msgspec.Struct]
    related: type[msgspec.Struct]
    sync: Callable[[Resource[SpecT, StatusT], SyncRequest[Any, Any], Settings, datetime], SyncResponse]
    invalid: Callable[[Resource[SpecT | None, StatusT], Sequence[fields.Error], datetime], StatusT]
    validate: Callable[[Resource[SpecT, StatusT], Resource[SpecT, StatusT] | None, Settings], list[fields.Error]]
    warnings: Callable[[Resource[SpecT, StatusT]], list[str]]
    changed: Callable[[Resource[SpecT, StatusT], Resource[SpecT, StatusT], Settings], list[str]] | None = None
    deleted: Callable[[str, Settings], list[str]] | None = None
    kept: Callable[[SyncRequest[Any, Any]], list[Any]] = lambda request: keep(request.children)
    customize: Callable[[Resource[SpecT, StatusT], frozenset[str], Settings], list[RelatedRule]] | None = None
    explain: Callable[[Resource[SpecT, StatusT], SyncRequest[Any, Any], Settings], list[Origin]] | None = None
    across: Callable[[Resource[SpecT, StatusT], SyncRequest[Any, Any], Settings], list[str]] | None = None
    judges_changes: bool = True
    """Whether ``validate`` looks at the old object; where it does not, an update is judged without reading it."""
    decoder: Decoder[Any] = field(init=False)
    status_decoder: Decoder[Any] = field(init=False)

    def __post_init__(self) -> None:
        request = cast("Any", SyncRequest)[self.children, self.related]
        object.__setattr__(self, "decoder", Decoder(request))
        object.__setattr__(self, "status_decoder", Decoder(self.resource.status))

    def status_of(self, parent: Parent) -> StatusT:
        """The status last written; a fresh one where it is absent or not of our making."""
        try:
            status: Any = self.status_decoder.decode(parent.status)
        except (msgspec.DecodeError, RecursionError):
            status = self.resource.status()
        return cast("StatusT", status)

    def decode(self, parent: Parent) -> tuple[Resource[SpecT, StatusT] | None, list[fields.Error]]:
        """The typed parent, or every error of its schema and of what is embedded in it."""
        raw = bytes(parent.spec)
        if raw == b"null":
            if self.resource.spec_required:
                return None, [fields.required(SPEC)]
            raw = b"{}"
        if errors := excess(raw, SPEC):
            return None, errors
        spec, errors = decode_spec(raw, self.resource.spec)
        if spec is None:
            return None, errors
        errors, _ = check_embedded(spec, SPEC)
        if may_have_controls(raw):
            errors += islice(control_characters(orjson.loads(raw), SPEC), fields.MAX_ERRORS)
        return Resource(parent.metadata, cast("SpecT", spec), self.status_of(parent)), errors


def answer_sync(kind: Kind[Any, Any], body: bytes, settings: Settings, now: datetime) -> bytes:
    """A sync hook's answer to a request body.

    Raises :class:`ProtocolError` for a malformed request, and for one whose answer would be too large: that leaves
    every child as it is, too.
    """
    try:
        return _answer_sync(kind, body, settings, now)
    except response.TooLarge as fault:
        raise ProtocolError(f"{fault}, more than {response.MAX_BYTES}: the children stay as they are", 413) from None


def _answer_sync(kind: Kind[Any, Any], body: bytes, settings: Settings, now: datetime) -> bytes:
    request = _decode(kind.decoder, body)
    check_envelope(request, kind.resource.kind, kind.resource.api_version)
    answer, namespace = sync(kind, request, settings, now), request.parent.metadata.namespace
    answer = keep_templates(answer, request.parent, request.children, body)
    try:
        encoded = response.encode(answer, namespace)
        errors = response.unstorable(answer) if len(encoded) > ANNOTATIONS_MAX else []
        if not errors:
            return encoded
    except response.TooLarge:
        errors = response.unstorable(answer)
        if not errors:
            raise
    resource, _ = _checked(kind, request.parent, settings)
    return response.encode(_keeping(kind, request, resource, errors, now), namespace)


def sync(kind: Kind[Any, Any], request: SyncRequest[Any, Any], settings: Settings, now: datetime) -> SyncResponse:
    """The desired children and status. A parent with errors keeps every child and says so (decisions 4 and 5)."""
    if request.related is None:
        request.related = kind.related()
    resource, errors = _checked(kind, request.parent, settings)
    if resource is None or errors:
        return _keeping(kind, request, resource, errors, now)
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

    Raises :class:`ProtocolError` for a spec that no API server would send, by its depth or its numbers.
    """
    metadata = parent.metadata
    seen = msgspec.json.encode(metadata)
    key = (kind.resource.hook_path, bytes(parent.spec), seen, id(settings))
    sound = _sound.get(key)
    if sound is not None:
        return Resource(metadata, sound[0], kind.status_of(parent)), []
    if depth_exceeds(parent.spec):
        raise ProtocolError(f"parent.spec is nested deeper than {MAX_DEPTH} levels")
    _check_json(parent)
    resource, errors = kind.decode(parent)
    if resource is not None and not errors:
        errors = kind.validate(resource, None, settings)
        if not errors:
            _sound.put(key, (resource.spec, settings), len(key[1]) + len(seen))
    return resource, errors


_sound: Memo[tuple[KubeModel, Settings]] = Memo()
"""Specs without errors, with the settings they were judged by: held, so that their id stays theirs."""


def answer_customize(kind: Kind[Any, Any], body: bytes, settings: Settings) -> bytes:
    """A customize hook's answer. It never fails for a user's mistake: deletion waits for it too (metacontroller 6)."""
    request = _decode(_CUSTOMIZE, body)
    if kind.customize is None or depth_exceeds(request.parent.spec):
        return response.encode_related([])
    _check_json(request.parent)
    resource, _ = kind.decode(request.parent)
    return response.encode_related([] if resource is None else kind.customize(resource, request.declared, settings))


def _check_json(parent: Parent) -> None:
    """Refuse a spec with what JSON does not have, such as 1e400 or half a surrogate: no API server sends it.

    The request's decoder skips over a spec without looking that closely.
    """
    if len(bytes(parent.spec)) > MAX_BYTES:
        return  # refused unread
    try:
        orjson.loads(bytes(parent.spec))
    except orjson.JSONDecodeError:
        raise ProtocolError("parent.spec is not valid JSON") from None


_CUSTOMIZE: Decoder[CustomizeRequest] = Decoder(CustomizeRequest)


def _decode(decoder: Decoder[Any], body: bytes) -> Any:
    try:
        check_text(body)
        return decoder.decode(body)
    except RecursionError:
        raise ProtocolError("the request is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProtocolError(f"not a v2 hook request: {str(error)[:200]}") from None
