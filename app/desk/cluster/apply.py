"""The three-way merge of dynamic apply (MC-3.2 and MC-10.3): observed, last applied, desired."""

import re
from collections.abc import Mapping, Sequence

import orjson

from app.hooks import sendable
from app.kube.base import Json
from app.kube.names import LAST_APPLIED

SYSTEM_FIELDS = (
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
)
"""Metadata that only the API server writes: always as observed."""
_WHOLE_FLOAT = re.compile(rb"[0-9](\.0|e[+]?[0-9]+)([,\]}]|$)")
"""Characters that :func:`as_sent` changes, and sometimes the end of a string that looks like one of them."""


def canonical(value: object) -> bytes:
    """Bytes that are equal when two JSON values are: `1` and `1.0` differ, null and absent too, key order is free."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def as_sent(value: object) -> object:
    """The value as Go writes it: a float without a fraction loses its `.0` (MC-1.2: `8080.0` is sent as `8080`)."""
    if isinstance(value, dict):
        return {key: as_sent(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_sent(item) for item in value]
    if isinstance(value, float) and value.is_integer() and -(2**63) <= value < 2**64:  # more, no encoder here writes
        return int(value)
    return value


def encode(value: object) -> bytes:
    """JSON as it goes over the wire and into the last-applied record; sorted, so equal values are equal bytes."""
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return orjson.dumps(as_sent(value), option=orjson.OPT_SORT_KEYS) if _WHOLE_FLOAT.search(text) else text


def meta(obj: Mapping[str, object]) -> Json:
    """Return the metadata; an empty map if it is absent or of another type."""
    metadata = obj.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def merge(observed: object, record: object, desired: object) -> object:
    """Return the merged value. `observed` decides its type; a record or desired value of another counts as empty."""
    if isinstance(observed, dict):
        return _merge_map(
            observed, record if isinstance(record, dict) else {}, desired if isinstance(desired, dict) else {}
        )
    if isinstance(observed, list):
        was = record if isinstance(record, list) else []
        # A desired value that is not a list leaves null, not []; the next sync writes the value (MC-3.2, t11).
        return _merge_list(observed, was, desired if isinstance(desired, list) else None)
    return desired


def _merge_map(observed: Json, record: Json, desired: Json) -> Json:
    merged = {key: value for key, value in observed.items() if key not in record or key in desired}
    for key, value in desired.items():
        merged[key] = merge(observed.get(key), record.get(key), value)
    return merged


def _merge_list(observed: list[Json], record: list[Json], desired: list[Json] | None) -> list[Json] | None:
    items = desired or []
    key = merge_key(observed, record, items)
    if key is None:
        return desired
    # Two entries with the same key become one, as in Metacontroller (MC-3.2, t31): the last one wins.
    merged = _merge_map(_keyed(observed, key), _keyed(record, key), _keyed(items, key))
    result = [merged[_text(item[key])] for item in observed if _text(item[key]) in merged]
    present = {_text(item[key]) for item in observed}
    for item in items:
        text = _text(item[key])
        if text not in present:
            present.add(text)
            result.append(merged[text])
    return result


def merge_key(*lists: Sequence[object]) -> str | None:
    """The first known key that every element of every list has, or None when the lists are replaced."""
    elements = [element for each in lists for element in each]
    return sendable.merge_key(elements) if elements else None


def _keyed(elements: list[Json], key: str) -> Json:
    return {_text(element[key]): element for element in elements}


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return orjson.dumps(as_sent(value)).decode()


def last_applied(obj: Json) -> Json:
    """Return the parsed record; empty without one."""
    text = (meta(obj).get("annotations") or {}).get(LAST_APPLIED)
    if not text:
        return {}
    record = orjson.loads(text)
    return record if isinstance(record, dict) else {}


def with_record(obj: Json, desired: Json) -> Json:
    """`obj` with `desired` as its last-applied record.

    Annotations that are not all strings are lost altogether (MC-1.2, t36).
    """
    annotations = meta(obj).get("annotations")
    if not isinstance(annotations, dict) or not all(isinstance(value, str) for value in annotations.values()):
        annotations = {}
    metadata = {**meta(obj), "annotations": {**annotations, LAST_APPLIED: encode(desired).decode()}}
    return {**obj, "metadata": metadata}


def without_record(obj: Json) -> Json:
    """Return `obj` without a last-applied record: an echoed one must not nest (MC-3.2)."""
    metadata = meta(obj)
    annotations = metadata.get("annotations")
    if not isinstance(annotations, dict) or LAST_APPLIED not in annotations:
        return obj
    left = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
    return {**obj, "metadata": {**metadata, "annotations": left}}


def updated(observed: Json, desired: Json) -> Json:
    """Return `observed` after an update towards `desired`."""
    new = without_record(desired)
    record = last_applied(observed)
    merged: Json = orjson.loads(orjson.dumps(merge(observed, record, new)))
    was, metadata = meta(observed), meta(merged)
    for field in SYSTEM_FIELDS:
        if field in was:
            metadata[field] = was[field]
        else:
            metadata.pop(field, None)
    if "status" in observed:
        merged["status"] = observed["status"]
    else:
        merged.pop("status", None)
    merged = with_record(merged, new)
    if canonical(record) == canonical(as_sent(new)):
        # The same record in other bytes (written by the real Metacontroller) is no difference.
        merged["metadata"]["annotations"][LAST_APPLIED] = was["annotations"][LAST_APPLIED]
    return merged
