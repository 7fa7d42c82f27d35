"""Decode and check the metadata of an object under review."""

from collections.abc import Iterator
from itertools import islice

import msgspec
import orjson
from msgspec import Raw

from app.errors import ProtocolError
from app.kube import field
from app.kube.base import Json
from app.kube.correction import Members, wrong_type
from app.kube.field import METADATA
from app.kube.names import ANNOTATIONS_MAX, CONTROLLER_UID, LAST_APPLIED, reserved_keys, validate_labels
from app.kube.objects import ObservedMeta
from app.kube.reading import stored
from app.kube.reading.rawchecks import SMALLEST_LIMIT, MetadataParts, excessive
from app.limits import MAX_ERRORS, MAX_NAME_BYTES


def decode_metadata(raw: bytes | Raw, *, created: bool = True) -> tuple[ObservedMeta, list[field.Error]]:
    """Return the typed metadata and its errors. The API server has checked it, other callers have not.

    Metacontroller's own keys are refused only on a new object without a controller: a child of one of our kinds, such
    as a Playground's Service, has them, and keeps them when it is orphaned, or restored without its owner. Metadata
    that is too large is not read.
    """
    text = bytes(raw)
    try:
        errors = list(excessive(msgspec.json.decode(text, type=MetadataParts))) if len(text) > SMALLEST_LIMIT else []
        if errors:
            return _identity(text), errors
        metadata = msgspec.json.decode(text, type=ObservedMeta)
    except msgspec.DecodeError:
        return _repaired(text, created=created)
    return metadata, _errors_of(metadata, created=created)


class _Identity(msgspec.Struct, rename="camel"):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    deletion_timestamp: str | None = None


def _identity(text: bytes) -> ObservedMeta:
    """Decode only the fields that an answer needs, of metadata that is too large."""
    try:
        identity = msgspec.json.decode(text, type=_Identity)
    except msgspec.DecodeError:
        return ObservedMeta()
    return ObservedMeta(**msgspec.structs.asdict(identity))


def _errors_of(metadata: ObservedMeta, *, created: bool) -> list[field.Error]:
    was_child = CONTROLLER_UID in (metadata.labels or ()) and LAST_APPLIED in (metadata.annotations or ())
    reserved = created and not was_child and not any(owner.controller for owner in metadata.owner_references or ())
    return list(islice(_validate(metadata, reserved=reserved), MAX_ERRORS))


def _validate(metadata: ObservedMeta, *, reserved: bool) -> Iterator[field.Error]:
    if not metadata.name and not metadata.generate_name:
        yield field.required(METADATA.child("name"), "name or generateName is required")
    if metadata.labels:
        labels = {k: v for k, v in metadata.labels.items() if reserved or k != CONTROLLER_UID}
        yield from validate_labels(labels, METADATA.child("labels"))
    annotations = metadata.annotations or {}
    path = METADATA.child("annotations")
    if reserved:
        yield from reserved_keys(annotations, path)
    if sum(len(key) + len(value) for key, value in annotations.items()) > ANNOTATIONS_MAX // 4 and (
        sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > ANNOTATIONS_MAX
    ):
        yield field.too_long(path, ANNOTATIONS_MAX)


def _repaired(text: bytes, *, created: bool) -> tuple[ObservedMeta, list[field.Error]]:
    """Return the valid part of metadata with wrong types, and an error for each of them."""
    try:
        parts = msgspec.json.decode(text, type=MetadataParts)
    except msgspec.DecodeError:
        return ObservedMeta(), [_not_an_object(text.strip())]
    members = msgspec.structs.fields(MetadataParts)
    try:
        document = {info.encode_name: orjson.loads(bytes(getattr(parts, info.name))) for info in members}
    except orjson.JSONDecodeError:
        raise ProtocolError("metadata is not valid JSON") from None
    errors = list(islice(_wrong_types(document), MAX_ERRORS))
    document = stored.without_nulls(document)
    try:
        present = None if errors else msgspec.convert(document, ObservedMeta)
    except msgspec.ValidationError:
        present = None
    if present is not None:
        return present, _errors_of(present, created=created)
    name, namespace = document.get("name"), document.get("namespace")
    metadata = ObservedMeta(
        name=name if isinstance(name, str) else "", namespace=namespace if isinstance(namespace, str) else ""
    )
    return metadata, errors or [wrong_type(METADATA, document, "object")]


def _not_an_object(text: bytes) -> field.Error:
    """Return the error for metadata of another type; only a short string is decoded, to be shown as the name."""
    if text[:1] == b'"' and len(text) <= MAX_NAME_BYTES:
        return wrong_type(METADATA, orjson.loads(text), "object", Members(("name",), ("name",)))
    kinds: dict[bytes, object] = {b"[": [], b'"': "", b"n": None, b"t": True, b"f": False}
    return wrong_type(METADATA, kinds.get(text[:1], 0), "object")


def _wrong_types(document: Json) -> Iterator[field.Error]:
    for key in ("labels", "annotations"):
        value = document[key]
        if value is not None and not isinstance(value, dict):
            yield wrong_type(METADATA.child(key), value, "object")
        elif value:
            yield from (
                wrong_type(METADATA.child(key).key(k), v, "string", around=("annotations", "labels"))
                for k, v in value.items()
                if not isinstance(v, str)
            )
    for key in ("name", "generateName", "namespace", "uid", "creationTimestamp", "deletionTimestamp"):
        value = document[key]
        if value is not None and not isinstance(value, str):
            yield wrong_type(METADATA.child(key), value, "string")
