"""The verdict on one object: every rule of its kind, the ratchet for updates, and the warnings.

A bad object is an answer, never an HTTP error (design, decision 5). The same functions serve ``modelhooks validate``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

import orjson

from app.admission import protocol
from app.admission.metadata import decode_metadata
from app.errors import ProtocolError
from app.hooks.alone import too_large
from app.hooks.kind import Kind
from app.kube import field
from app.kube.decode import SPEC, decode_rest, decode_spec
from app.kube.jsonvalue import MAX_DEPTH, TOO_DEEP, control_characters, depth_exceeds, excess, may_have_controls
from app.kube.objects import ObjectMeta
from app.kube.resource import Resource
from app.kube.shape import check_embedded, unknown_fields
from app.settings import Settings

MAX_UNKNOWN = 100
"""Unknown fields that are named: each costs a search for what was meant."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with an object, and what its user should know."""

    errors: list[field.Error]
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class _Judged:
    resource: Resource[Any, Any] | None
    errors: list[field.Error]
    warnings: list[str]


def answer(kind: Kind[Any, Any], body: bytes, settings: Settings) -> bytes:
    """The review's answer. Raises :class:`ProtocolError` when it cannot be answered by its uid."""
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


def _answer_other(kind: Kind[Any, Any], request: protocol.AdmissionRequest, settings: Settings) -> bytes:
    """Nothing but a creation or an update is ever refused; a deletion may be worth a warning."""
    if request.operation == "DELETE" and kind.deleted is not None and request.kind.kind == kind.resource.kind:
        return protocol.allow(request.uid, kind.deleted(request.name, settings))
    known = request.operation in ("DELETE", "CONNECT")
    return protocol.allow(request.uid) if known else protocol.refuse(request.uid, "unknown operation")


def _answer_object(
    kind: Kind[Any, Any], request: protocol.AdmissionRequest, reviewed: protocol.ReviewedObject, settings: Settings
) -> bytes:
    metadata, errors = _metadata(reviewed, created=request.old_object is None)
    mismatch = _mismatch(request, reviewed, metadata)
    if mismatch:
        return protocol.refuse(request.uid, mismatch)
    if metadata.deletion_timestamp:
        return protocol.allow(request.uid)
    try:
        verdict = judge(kind, metadata, reviewed, request.old_object, settings)
    except orjson.JSONDecodeError:
        raise ProtocolError("the object is not valid JSON") from None
    name = metadata.name or request.name or metadata.generate_name
    if errors or verdict.errors:
        return protocol.deny(request, name, [*errors, *verdict.errors], verdict.warnings)
    return protocol.allow(request.uid, verdict.warnings)


def _metadata(reviewed: protocol.ReviewedObject, *, created: bool = True) -> tuple[ObjectMeta, list[field.Error]]:
    try:
        return decode_metadata(reviewed.metadata, created=created)
    except orjson.JSONDecodeError:
        raise ProtocolError("metadata is not valid JSON") from None


def _mismatch(request: protocol.AdmissionRequest, reviewed: protocol.ReviewedObject, metadata: ObjectMeta) -> str:
    """Why request and object do not belong together, or an empty text."""
    if reviewed.kind and reviewed.kind != request.kind.kind:
        return "request.kind and object.kind differ"
    if request.namespace and metadata.namespace and request.namespace != metadata.namespace:
        return "request.namespace and object.metadata.namespace differ"
    if request.name and metadata.name and request.name != metadata.name:
        return "request.name and object.metadata.name differ"
    return ""


def judge(
    kind: Kind[Any, Any],
    metadata: ObjectMeta,
    reviewed: protocol.ReviewedObject,
    old: protocol.ReviewedObject | None,
    settings: Settings,
) -> Verdict:
    """Errors and warnings of an object's spec; on an update, errors that the old object has too are only warnings."""
    before = _decoded(kind, old) if old is not None and kind.judges_changes else None
    judged = _judge(kind, metadata, reviewed, before, settings)
    if old is None or not judged.errors:
        return Verdict(judged.errors, judged.warnings)
    known = set(_judge(kind, _metadata(old)[0], old, None, settings).errors)
    stale = [f"{error} (was so before; accepted)" for error in judged.errors if error in known]
    return Verdict([error for error in judged.errors if error not in known], [*stale, *judged.warnings])


def _decoded(kind: Kind[Any, Any], old: protocol.ReviewedObject) -> Resource[Any, Any] | None:
    """The object before an update, for rules about changes; ``None`` where it is not valid by today's schema."""
    if bytes(old.spec) == b"null" or depth_exceeds(old.spec):
        return None
    spec, _ = decode_spec(old.spec, kind.resource.spec)
    return None if spec is None else Resource(_metadata(old)[0], spec, kind.resource.status())


def _judge(
    kind: Kind[Any, Any],
    metadata: ObjectMeta,
    reviewed: protocol.ReviewedObject,
    old: Resource[Any, Any] | None,
    settings: Settings,
) -> _Judged:
    if depth_exceeds(reviewed.spec):
        return _Judged(None, [_too_deep(bytes(reviewed.spec))], [])
    if too_much := excess(reviewed.spec, SPEC):
        return _Judged(None, too_much, [])
    raw = bytes(reviewed.spec)
    document = orjson.loads(raw)
    if document is None:
        if kind.resource.spec_required:
            return _Judged(None, [field.required(SPEC)], [])
        document, raw = {}, b"{}"
    warnings = list(islice(unknown_fields(document, kind.resource.spec, SPEC), MAX_UNKNOWN))
    errors = list(islice(control_characters(document, SPEC), field.MAX_ERRORS)) if may_have_controls(raw) else []
    spec, wrong = decode_spec(raw, kind.resource.spec)
    if spec is None:
        others, unknown = _rest(kind, metadata, document, wrong, settings)
        return _Judged(None, [*wrong, *errors, *others], [*warnings, *unknown])
    embedded_errors, embedded_warnings = check_embedded(spec, SPEC)
    resource = Resource(metadata, spec, kind.resource.status())
    errors += embedded_errors
    warnings += embedded_warnings
    if not embedded_errors:  # rules and warnings may rely on the types of what is embedded
        errors += kind.validate(resource, old, settings) or too_large(kind, resource, raw, settings)
        warnings += kind.warnings(resource)
        warnings += kind.changed(resource, old, settings) if old is not None and kind.changed is not None else []
    return _Judged(resource, errors, warnings)


def _rest(
    kind: Kind[Any, Any], metadata: ObjectMeta, document: Any, wrong: list[field.Error], settings: Settings
) -> tuple[list[field.Error], list[str]]:
    """What the rules find in the part of a spec that the schema has no complaint about, and what is unknown in it.

    Not when the complaints alone are more than anybody is shown.
    """
    if len(wrong) >= field.MAX_SHOWN:
        return [], []
    spec = decode_rest(document, kind.resource.spec, wrong)
    if spec is None:
        return [], []
    found, unknown = check_embedded(spec, SPEC)
    if not found:
        found = kind.validate(Resource(metadata, spec, kind.resource.status()), None, settings)
    about = [str(error.path) for error in wrong]
    return [error for error in found if not _holds(str(error.path), about)], unknown


def _holds(path: str, refused: list[str]) -> bool:
    """Whether something at or below ``path`` was refused: without it, a rule about ``path`` misjudges."""
    return any(place == path or place.startswith((f"{path}.", f"{path}[")) for place in refused)


def _too_deep(raw: bytes) -> field.Error:
    """Names the first field that holds the nesting, where the text can be read at all."""
    try:
        document = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return field.invalid(SPEC, "…", TOO_DEEP)
    for key, value in document.items() if isinstance(document, dict) else ():
        try:
            if depth_exceeds(orjson.dumps(value), MAX_DEPTH - 1):
                return field.invalid(SPEC.child(key), "…", TOO_DEEP)
        except TypeError:
            return field.invalid(SPEC.child(key), "…", TOO_DEEP)
    return field.invalid(SPEC, "…", TOO_DEEP)
