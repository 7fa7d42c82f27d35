"""Answer the hooks of a kind: sync, finalize and customize. Everything here is the same for all kinds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from operator import not_
from typing import Any, cast

import msgspec

from app.errors import ProtocolError
from app.hooks import response
from app.hooks.kept import check_recorded
from app.hooks.kind import AnyKind, decode, malformed
from app.hooks.lost import lost_fields, lost_note
from app.hooks.memo import remembered
from app.hooks.protocol import (
    AnyRequest,
    CustomizeRequest,
    KeptTemplate,
    Parent,
    RelatedRule,
    SyncAnswer,
    SyncResponse,
)
from app.hooks.reader import ReadFault
from app.hooks.readystatus import judged, noted, with_counts, with_times
from app.hooks.template import waiting_note
from app.kube import field as fields
from app.kube.conditions import is_true
from app.kube.names import ANNOTATIONS_MAX
from app.kube.objects import ObservedMeta
from app.kube.reading.stored import Decoder
from app.kube.resource import AnyResource, Resource
from app.settings import Settings

_CUSTOMIZE: Decoder[CustomizeRequest] = Decoder(CustomizeRequest)


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
        raise malformed(error) from None


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
    """Return the typed parent and its errors. A valid spec is decoded again, but not checked again.

    Raises :class:`ProtocolError` for a spec with numbers or strings that no API server sends.
    """
    metadata, text = parent.metadata, bytes(parent.spec)
    key = (kind.resource.hook_path, text, msgspec.json.encode(metadata), settings.digest)
    errors = remembered(key, partial(_errors, kind, text, metadata, settings), not_)
    spec = kind.read(text).spec if errors else kind.typed(text)
    return None if spec is None else Resource(metadata, spec, kind.status_of(parent)), errors


def _errors(kind: AnyKind, text: bytes, metadata: ObservedMeta, settings: Settings) -> list[fields.Error]:
    """Validate a spec. The result depends on the arguments only, so it may be cached."""
    reading = kind.read(text)
    if reading.fault is ReadFault.JSON:
        raise ProtocolError(f"parent.spec {reading.fault.value}")
    if reading.spec is None or reading.errors:
        return reading.errors
    return kind.admission.errors(Resource(metadata, reading.spec, kind.resource.status()), None, settings)


def answer_customize(kind: AnyKind, body: bytes, settings: Settings) -> bytes:
    """Answer a customize hook. It never fails for a mistake in the spec: deletion waits for it too (MC-6)."""
    request = decode(_CUSTOMIZE, body)
    if kind.hooks.customize is None:
        return response.encode_related([])
    parent = kind.stored(request.parent)
    reading = kind.read(parent.spec, embedded=False)
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
