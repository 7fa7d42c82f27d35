"""What an object leads to when there is nothing else in the cluster: what can be said of its children at apply."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Raw

from app.hooks import response
from app.hooks.kind import Kind
from app.hooks.protocol import Parent, SyncRequest
from app.kube import field
from app.kube.resource import Resource
from app.settings import Settings

SMALL = 32 * 1024
"""Bytes of an object without templates whose children always fit: they hold twice what is in it, and some constants."""

_NOW = datetime(2025, 1, 1, tzinfo=UTC)


def too_large(kind: Kind[Any, Any], resource: Resource[Any, Any], spec: bytes, settings: Settings) -> list[field.Error]:
    """An error for each child that could not be stored; a sync says the same of it.

    Children that depend on other objects, as those of a service on its base, are only known to a sync.
    """
    metadata = resource.metadata
    annotations = sum(len(key) + len(value) for key, value in (metadata.annotations or {}).items())
    if len(spec) + annotations < SMALL and b"{{" not in spec:
        return []
    parent = Parent(kind.resource.api_version, kind.resource.kind, metadata, Raw(spec))
    children = kind.children(**{child.name: {} for child in msgspec.structs.fields(kind.children)})
    answer = kind.sync(resource, SyncRequest(parent, children, kind.related()), settings, _NOW)
    return response.unstorable(answer)
