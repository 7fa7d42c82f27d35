"""How much metadata an object may have, looked at before anything is made of it.

The API server keeps objects far below these bounds; other callers may send what they like, and a map of a million
labels takes hundreds of times the memory of an ordinary object.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Raw

from app.kube import field

METADATA = field.Path("metadata")

MAX_NAME = 4 * 1024
"""Bytes of JSON of one text: names have at most 253 characters, a uid 36."""
MAX_LABELS = 64 * 1024
"""Bytes of JSON of all labels: a hundred and fifty of the longest that there can be."""
MAX_ANNOTATIONS = 1024 * 1024
"""Bytes of JSON of all annotations, of which Kubernetes allows 256 KiB without quotes and escapes."""
MAX_REFERENCES = 64 * 1024
"""Bytes of JSON of all owners, and of all finalizers: some hundred."""


class MetadataParts(msgspec.Struct, rename="camel"):
    """The parts of metadata that something is made of, unread."""

    name: Raw = Raw(b"null")
    generate_name: Raw = Raw(b"null")
    namespace: Raw = Raw(b"null")
    uid: Raw = Raw(b"null")
    generation: Raw = Raw(b"null")
    creation_timestamp: Raw = Raw(b"null")
    deletion_timestamp: Raw = Raw(b"null")
    labels: Raw = Raw(b"null")
    annotations: Raw = Raw(b"null")
    owner_references: Raw = Raw(b"null")
    finalizers: Raw = Raw(b"null")


_LIMITS = {
    **dict.fromkeys((info.name for info in msgspec.structs.fields(MetadataParts)), MAX_NAME),
    "labels": MAX_LABELS,
    "annotations": MAX_ANNOTATIONS,
    "owner_references": MAX_REFERENCES,
    "finalizers": MAX_REFERENCES,
}
_PARTS = tuple((info.name, info.encode_name, _LIMITS[info.name]) for info in msgspec.structs.fields(MetadataParts))
SMALL = min(_LIMITS.values())
"""Metadata of fewer bytes is within every bound."""


def excessive(parts: MetadataParts) -> Iterator[field.Error]:
    """An error for each part that is over its bound."""
    for name, key, limit in _PARTS:
        if memoryview(getattr(parts, name)).nbytes > limit:
            yield field.too_long(METADATA.child(key), limit)
