"""Limits on large hook requests, checked before anything is decoded.

A request's size tells little about the memory that decoding takes: half of an ordinary pod is field ownership, which is
skipped, and three bytes of a list of empty objects become a hundred. So large requests are scanned once.
"""

from collections.abc import Iterator

import msgspec
from msgspec import Raw

from app.errors import ProtocolError
from app.kube.reading.rawchecks import MetadataParts, excessive
from app.kube.reading.stored import Decoder
from app.limits import MAX_CHILDREN, MAX_READ_VALUES, MAX_RELATED

NOTHING = Raw()
NULL = 10
"""Number of values that a null counts as: removing it costs as much (:mod:`app.kube.reading.stored`)."""


class _Metadata(MetadataParts):
    """Field ownership is not among it. What is absent counts nothing."""

    labels: Raw = NOTHING
    annotations: Raw = NOTHING
    owner_references: Raw = NOTHING
    finalizers: Raw = NOTHING


class Weighed(msgspec.Struct, rename="camel"):
    """The parts of an object that any type decodes."""

    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: Raw = NOTHING
    status: Raw = NOTHING
    data: Raw = NOTHING
    endpoints: Raw = NOTHING
    role_ref: Raw = NOTHING
    secrets: Raw = NOTHING
    subjects: Raw = NOTHING


_Groups = dict[str, dict[str, Weighed]]


class _Request(msgspec.Struct):
    controller: Weighed | None = None
    parent: Weighed | None = None
    children: _Groups | None = None
    related: _Groups | None = None


_REQUEST: Decoder[_Request] = Decoder(_Request)


def check_weight(body: bytes) -> None:
    """Raise :class:`ProtocolError` (413) for a large request that would take too much; its resource keeps its children.

    Raises ``msgspec.DecodeError`` for an invalid request.
    """
    request = _REQUEST.decode(body)
    for what, groups, limit in (
        ("children", request.children, MAX_CHILDREN),
        ("related objects", request.related, MAX_RELATED),
    ):
        if sum(map(len, (groups or {}).values())) > limit:
            raise ProtocolError(f"more than {limit} {what}", 413)
    read = 0
    for item, spec in _objects(request):
        for error in excessive(item.metadata):
            raise ProtocolError(f"the {error.path} of an object is too long", 413)
        read += _values(item, spec)
        if read > MAX_READ_VALUES:
            raise ProtocolError(f"more than {MAX_READ_VALUES} values to read", 413)


def _objects(request: _Request) -> Iterator[tuple[Weighed, Raw]]:
    """Yield every object with its spec; empty for pods, whose specs are skipped, and the parent, limited elsewhere."""
    if request.controller is not None:
        yield request.controller, request.controller.spec
    if request.parent is not None:
        yield request.parent, NOTHING
    for groups in (request.children, request.related):
        for outer, group in (groups or {}).items():
            for item in group.values():
                yield item, NOTHING if outer.startswith("Pod.") else item.spec


def _values(item: Weighed, spec: Raw) -> int:
    """Return approximately how many values of an object are decoded."""
    metadata = item.metadata
    named = metadata.labels, metadata.annotations, metadata.owner_references, metadata.finalizers
    rest = item.status, item.data, item.endpoints, item.role_ref, item.secrets, item.subjects
    text = b"".join((*named, spec, *rest))
    return text.count(b"{") + text.count(b",") + NULL * text.count(b"null")
