"""The metadata of an object under review."""

from __future__ import annotations

from typing import Any

import msgspec
import orjson
from msgspec import Raw

from app.kube import field
from app.kube.decode import json_type
from app.kube.labels import ANNOTATIONS_MAX, CONTROLLER_UID, reserved_keys, validate_labels
from app.kube.objects import ObjectMeta

METADATA = field.Path("metadata")


def decode_metadata(raw: bytes | Raw, *, created: bool = True) -> tuple[ObjectMeta, list[field.Error]]:
    """The typed metadata and what is wrong with it. The API server has checked it, other callers have not.

    Metacontroller's own keys are its to set on the children it makes, of which some are of our kinds; and they stay
    when an object is orphaned, so only a new object without a controller may not have them.
    """
    try:
        metadata = msgspec.json.decode(raw, type=ObjectMeta)
    except msgspec.DecodeError:
        return _repaired(bytes(raw))
    reserved = created and not any(owner.controller for owner in metadata.owner_references or ())
    return metadata, _validate(metadata, reserved=reserved)


def _validate(metadata: ObjectMeta, *, reserved: bool) -> list[field.Error]:
    errors: list[field.Error] = []
    if not metadata.name and not metadata.generate_name:
        errors.append(field.required(METADATA.child("name"), "name or generateName is required"))
    if metadata.labels:
        labels = {k: v for k, v in metadata.labels.items() if reserved or k != CONTROLLER_UID}
        errors += validate_labels(labels, METADATA.child("labels"))
    annotations = metadata.annotations or {}
    path = METADATA.child("annotations")
    if reserved:
        errors += reserved_keys(annotations, path)
    if sum(len(key) + len(value) for key, value in annotations.items()) > ANNOTATIONS_MAX // 4 and (
        sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > ANNOTATIONS_MAX
    ):
        errors.append(field.too_long(path, ANNOTATIONS_MAX))
    return errors


def _repaired(raw: bytes) -> tuple[ObjectMeta, list[field.Error]]:
    """What can be read of metadata with wrong types, and an error for each of them."""
    document = orjson.loads(raw)
    if not isinstance(document, dict):
        return ObjectMeta(), [_wrong(METADATA, "object", document)]
    errors = []
    for key in ("labels", "annotations"):
        value = document.get(key)
        if value is not None and not isinstance(value, dict):
            errors.append(_wrong(METADATA.child(key), "object", value))
        elif value:
            errors += [
                _wrong(METADATA.child(key).key(k), "string", v) for k, v in value.items() if not isinstance(v, str)
            ]
    for key in ("name", "generateName", "namespace", "uid", "creationTimestamp", "deletionTimestamp"):
        value = document.get(key)
        if value is not None and not isinstance(value, str):
            errors.append(_wrong(METADATA.child(key), "string", value))
    name, namespace = document.get("name"), document.get("namespace")
    metadata = ObjectMeta(
        name=name if isinstance(name, str) else "", namespace=namespace if isinstance(namespace, str) else ""
    )
    return metadata, errors or [_wrong(METADATA, "object", document)]


def _wrong(path: field.Path, wanted: str, value: Any) -> field.Error:
    found = json_type(value)
    return field.type_invalid(path, found, f"{path} in body must be of type {wanted}: {field.go_quote(found)}")
