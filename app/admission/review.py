"""The verdict on one object: the rules of its kind, the ratchet for updates, and the warnings."""

from datetime import UTC, datetime
from itertools import islice
from typing import Any

import msgspec
from msgspec import Raw

from app.admission import protocol
from app.admission.metadata import decode_metadata
from app.errors import ProtocolError
from app.hooks import response
from app.hooks.kind import AnyKind
from app.hooks.protocol import Parent, SyncRequest
from app.hooks.reader import ReadFault, SpecReading
from app.kube import field, modelfields
from app.kube.embedded.checks import concerning, with_release
from app.kube.objects import ObservedMeta
from app.kube.reading import decode
from app.kube.resource import AnyResource, Resource
from app.limits import BUILT_BYTES, MAX_ERRORS, MAX_SHOWN_ERRORS
from app.settings import Settings

_NOW = datetime(2025, 1, 1, tzinfo=UTC)


class Verdict(msgspec.Struct, frozen=True):
    errors: list[field.Error]
    warnings: list[field.Advice]


def answer(kind: AnyKind, body: bytes, settings: Settings) -> bytes:
    """Answer a review. Raises :class:`ProtocolError` when it cannot be answered by its uid."""
    return answer_with_facts(kind, body, settings).body


def answer_with_facts(kind: AnyKind, body: bytes, settings: Settings) -> protocol.ReviewAnswer:
    request = protocol.decode(body)
    if request.operation not in ("CREATE", "UPDATE"):
        return _answer_other(kind, request, settings)
    resource = kind.resource
    if (request.kind.group, request.kind.kind) != (resource.group, resource.kind) or request.sub_resource:
        return protocol.allow(request.uid)
    if request.kind.version != resource.version:
        return protocol.refuse(request.uid, f"{resource.kind} is served as {resource.api_version} only")
    if request.object is None:
        return protocol.refuse(request.uid, "the request has no object")
    return _answer_object(kind, request, request.object, settings)


def _answer_other(kind: AnyKind, request: protocol.AdmissionRequest, settings: Settings) -> protocol.ReviewAnswer:
    """Answer other operations than creations and updates: never refused, a deletion may have warnings."""
    if request.operation == "DELETE" and kind.admission.deleted is not None and request.kind.kind == kind.resource.kind:
        return protocol.allow(request.uid, kind.admission.deleted(request.name, settings))
    if request.operation in ("DELETE", "CONNECT"):
        return protocol.allow(request.uid)
    return protocol.refuse(request.uid, "unknown operation")


def _answer_object(
    kind: AnyKind, request: protocol.AdmissionRequest, reviewed: protocol.ReviewedObject, settings: Settings
) -> protocol.ReviewAnswer:
    metadata, errors = decode_metadata(reviewed.metadata, created=request.old_object is None)
    mismatch = _mismatch(request, reviewed, metadata)
    if mismatch:
        return protocol.refuse(request.uid, mismatch)
    if metadata.deletion_timestamp:
        return protocol.allow(request.uid)
    verdict = judge(kind, metadata, reviewed, request.old_object, settings)
    name = metadata.name or request.name or metadata.generate_name
    if errors or verdict.errors:
        return protocol.deny(request, name, [*errors, *verdict.errors], verdict.warnings)
    return protocol.allow(request.uid, verdict.warnings)


def _mismatch(request: protocol.AdmissionRequest, reviewed: protocol.ReviewedObject, metadata: ObservedMeta) -> str:
    """Return the difference between request and object, or an empty string."""
    if reviewed.kind and reviewed.kind != request.kind.kind:
        return "request.kind and object.kind differ"
    if request.namespace and metadata.namespace and request.namespace != metadata.namespace:
        return "request.namespace and object.metadata.namespace differ"
    if request.name and metadata.name and request.name != metadata.name:
        return "request.name and object.metadata.name differ"
    return ""


def judge(
    kind: AnyKind,
    metadata: ObservedMeta,
    reviewed: protocol.ReviewedObject,
    old: protocol.ReviewedObject | None,
    settings: Settings,
    *,
    advise: bool = True,
) -> Verdict:
    """Judge an object's spec; on an update, errors that the old object has too become warnings.

    Without ``advise`` the kind's own warnings are left out, which are half of the work.
    """
    before = _read(kind, old) if old is not None and kind.admission.judges_changes else None
    changes = None
    if old is not None and before is not None and before.spec is not None:  # the current schema may refuse it
        changes = Resource(decode_metadata(old.metadata)[0], before.spec, kind.resource.status())
    verdict = _judge(kind, metadata, _read(kind, reviewed), changes, settings, advise=advise)
    if old is None or not verdict.errors:
        return verdict
    before = before or _read(kind, old)
    old_errors = set(_judge(kind, decode_metadata(old.metadata)[0], before, None, settings).errors)
    stale = [
        field.advice(error.path, f"{error.body} (unchanged from before; accepted)")
        for error in verdict.errors
        if error in old_errors
    ]
    return Verdict([error for error in verdict.errors if error not in old_errors], [*stale, *verdict.warnings])


def _read(kind: AnyKind, reviewed: protocol.ReviewedObject) -> SpecReading[Any]:
    """Read a spec. Raises :class:`ProtocolError` if it is not valid JSON."""
    reading = kind.read(reviewed.spec)
    if reading.fault is ReadFault.JSON:
        raise ProtocolError("the object is not valid JSON")
    return reading


def _judge(
    kind: AnyKind,
    metadata: ObservedMeta,
    reading: SpecReading[Any],
    old: AnyResource | None,
    settings: Settings,
    *,
    advise: bool = True,
) -> Verdict:
    errors, warnings = [*reading.errors], concerning(reading.warnings, settings.kubernetes_release)
    if reading.spec is None:
        others, unknown = _rest(kind, metadata, reading, settings)
        return Verdict([*errors, *others], [*warnings, *unknown])
    if reading.is_valid:
        resource = Resource(metadata, reading.spec, kind.resource.status())
        errors += kind.admission.errors(resource, old, settings) or too_large(kind, resource, reading.text, settings)
        errors += kind.admission.admit(resource, settings)
        if advise or settings.kubernetes_release:  # a release makes an error of some
            warnings += islice(kind.admission.warnings(resource), MAX_ERRORS)
        if old is not None:
            warnings += kind.admission.changed(resource, old, settings)
    return Verdict(*with_release(errors, warnings, settings.kubernetes_release))


def _rest(
    kind: AnyKind, metadata: ObservedMeta, reading: SpecReading[Any], settings: Settings
) -> tuple[list[field.Error], list[field.Advice]]:
    """Apply the rules to the part of a spec that the schema accepts, and list its unknown fields."""
    if reading.document is None or len(reading.errors) >= MAX_SHOWN_ERRORS:
        return [], []
    spec = decode.decode_rest(reading.document, kind.resource.spec, reading.errors)
    if spec is None:
        return [], []
    errors, unknown = modelfields.check_embedded(spec, field.SPEC)
    if not errors:
        resource = Resource(metadata, spec, kind.resource.status())
        errors = [*kind.admission.errors(resource, None, settings), *kind.admission.admit(resource, settings)]
    refused = [error.path for error in reading.errors]
    # without a value that was refused, the rules about what has it are wrong
    return [error for error in errors if not any(path.is_within(error.path) for path in refused)], unknown


def too_large(kind: AnyKind, resource: AnyResource, spec: bytes, settings: Settings) -> list[field.Error]:
    """Return an error for each child that could not be stored, of those that depend on no other object."""
    metadata = resource.metadata
    annotations = sum(len(key) + len(value) for key, value in (metadata.annotations or {}).items())
    if len(spec) + annotations < BUILT_BYTES and b"{{" not in spec:
        return []
    parent = Parent(kind.resource.api_version, kind.resource.kind, metadata, Raw(spec))
    children = kind.hooks.children(**{child.name: {} for child in msgspec.structs.fields(kind.hooks.children)})
    answer = kind.hooks.sync(resource, SyncRequest(parent, children, kind.hooks.related()), settings, _NOW)
    return response.unstorable(answer)
