"""How much a large hook request may ask for, found out before anything is made of it.

A request's bytes say little of the memory that reading it takes: an ordinary pod is half field ownership, which nobody
reads, and three bytes of a list of empty objects become a hundred. So large requests are looked through once.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Raw

from app.errors import ProtocolError
from app.kube.limits import MetadataParts, excessive

LARGE = 1024 * 1024
"""Bytes of a request; a smaller one cannot ask for too much."""
MAX_CHILDREN = 1000
"""Observed children: far above what any resource has, few enough that all of them can be kept in time."""
MAX_RELATED = 10_000
"""Related objects, of which the most are pods of one service."""
MAX_READ = 500_000
"""Values in everything that may be read: those of some thousand pods with their statuses."""

NOTHING = Raw(b"null")


class _Metadata(MetadataParts):
    managed_fields: Raw = NOTHING


class _Object(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: Raw = NOTHING


class _Request(msgspec.Struct):
    controller: Raw = NOTHING
    parent: Raw = NOTHING
    children: dict[str, dict[str, Raw]] | None = None
    related: dict[str, dict[str, Raw]] | None = None


_REQUEST, _OBJECT = msgspec.json.Decoder(_Request), msgspec.json.Decoder(_Object)


def check_weight(body: bytes) -> None:
    """Raise :class:`ProtocolError` (413) for a request that would take too much; its resource keeps its children."""
    if len(body) <= LARGE:
        return
    try:
        request = _REQUEST.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return  # who reads it says so
    for what, groups, limit in (
        ("children", request.children, MAX_CHILDREN),
        ("related objects", request.related, MAX_RELATED),
    ):
        if sum(map(len, (groups or {}).values())) > limit:
            raise ProtocolError(f"more than {limit} {what}", 413)
    read = 0
    for raw, unread in _objects(request):
        read += _values(raw, unread)
        if read > MAX_READ:
            raise ProtocolError(f"more than {MAX_READ} values to read", 413)


def _objects(request: _Request) -> Iterator[tuple[Raw, bool]]:
    """Every object, and whether its spec is not counted: no pod's is read, the parent's has the reader's own bounds."""
    yield request.controller, False
    yield request.parent, True
    for groups in (request.children, request.related):
        for outer, group in (groups or {}).items():
            for raw in group.values():
                yield raw, outer.startswith("Pod.")


def _values(raw: Raw, unread: bool) -> int:
    """About how many values of an object may be read: all but field ownership, and a spec that is not counted."""
    values = _count(raw)
    try:
        found = _OBJECT.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return values
    for error in excessive(found.metadata):
        raise ProtocolError(f"the {error.path} of an object is too long", 413)
    return values - _count(found.metadata.managed_fields) - (_count(found.spec) if unread else 0)


NULL = 10
"""As how many values a null counts: taking it out costs as much (:mod:`app.kube.stored`)."""


def _count(raw: Raw) -> int:
    text = bytes(raw)
    return text.count(b"{") + text.count(b",") + NULL * text.count(b"null")
