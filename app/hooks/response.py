"""The one constructor of answers. What Metacontroller was seen to choke or loop on does not pass (design 3).

Source: metacontroller sections 0, 1.2, 3.2 and 3.5. A refusal is a bug of ours: it becomes a 500, and nothing happens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import orjson

from app.errors import ResponseError
from app.hooks.memo import Memo
from app.hooks.mergekeys import merge_key, merge_key_clash
from app.hooks.protocol import RelatedRule, SyncResponse
from app.kube import field
from app.kube.decode import SPEC
from app.kube.labels import ANNOTATIONS_MAX
from app.kube.objects import ObservedObject

MAX_BYTES = 4 * 1024 * 1024
"""Metacontroller reads answers without a limit; this is ours."""

_FLOAT_FIELDS = frozenset({"memoryFraction", "gpuMemoryUtilization"})


_ENCODER = msgspec.json.Encoder(order="sorted")
_sound: Memo[bool] = Memo()
"""Answers that were checked: most are sent again and again."""


class Prepared(list[Any]):
    """Children with their bytes, for a kind that answers with the same ones again and again. Not to be changed."""

    __slots__ = ("encoded", "namespace")

    def __init__(self, children: Sequence[Any], namespace: str) -> None:
        super().__init__(children)
        self.namespace = namespace
        self.encoded = _encode_children(self, namespace)


def _encode_children(children: list[Any], namespace: str) -> bytes:
    """The children's bytes, checked. Raises :class:`ResponseError`."""
    encoded = _ENCODER.encode(children)
    if _sound.get((namespace, encoded)) is None:
        _check_children(orjson.loads(encoded), namespace)
        _sound.put((namespace, encoded), value=True, size=len(encoded))
    return encoded


def encode(response: SyncResponse, namespace: str) -> bytes:
    """The answer's bytes. Raises :class:`ResponseError` for an answer that must not be sent."""
    desired, status = response.children, _ENCODER.encode(response.status)
    if isinstance(desired, Prepared) and desired.namespace == namespace:
        children = desired.encoded
    else:
        children = _encode_children(desired, namespace)
    if b"null" in status or b".0" in status:
        _check_values(orjson.loads(status), "status", merged=False)
    resync = response.resync_after_seconds
    timer = b"" if resync is None else b',"resyncAfterSeconds":' + orjson.dumps(resync)
    encoded = b'{"children":' + children + timer + b',"status":' + status + b"}"
    if len(encoded) > MAX_BYTES:
        raise TooLarge(f"the answer has {len(encoded)} bytes")
    return encoded


class TooLarge(ResponseError):
    """The answer is over :data:`MAX_BYTES`."""


def unstorable(response: SyncResponse) -> list[field.Error]:
    """An error for each child that is too large: Metacontroller keeps a copy of it in one of its annotations."""
    errors = []
    for child in response.children:
        text = _ENCODER.encode(child)
        if len(text) > ANNOTATIONS_MAX:
            named = _NAMED.decode(text)
            what = f"{named.kind} {named.metadata.name} would have {len(text)} bytes; shorten what goes into it"
            errors.append(field.too_long(SPEC, ANNOTATIONS_MAX, what))
    return errors


_NAMED = msgspec.json.Decoder(ObservedObject)


def encode_related(rules: Sequence[RelatedRule]) -> bytes:
    """A customize answer."""
    return msgspec.json.encode({"relatedResources": list(rules)})


def is_sendable(value: Any) -> bool:
    """Whether a part of a child may be in an answer."""
    try:
        _check_values(value, "")
    except ResponseError:
        return False
    return True


def _check_children(children: list[Any], namespace: str) -> None:
    seen = set()
    for child in children:
        if not isinstance(child, dict) or not child.get("kind") or not child.get("apiVersion"):
            raise ResponseError("a child without apiVersion or kind")
        metadata = child.get("metadata") or {}
        name = metadata.get("name")
        where = f"{child['kind']} {name}"
        identity = (child["apiVersion"], child["kind"], metadata.get("namespace") or namespace, name)
        if not name or identity in seen:
            raise ResponseError(f"{where}: no name, or twice the same")
        seen.add(identity)
        if namespace and identity[2] != namespace:
            raise ResponseError(f"{where}: outside its parent's namespace")
        for key in ("labels", "annotations"):
            if not all(isinstance(value, str) for value in (metadata.get(key) or {}).values()):
                raise ResponseError(f"{where}: {key} that are not strings")
        _check_values(child, where)


def unsendable(value: Any) -> str:
    """Why :func:`encode` would refuse a child that has this value, or an empty text."""
    try:
        _check_values(value, "")
    except ResponseError as error:
        return str(error)
    return ""


def _check_values(value: Any, where: str, *, merged: bool = True) -> None:
    """No null, no float where the API has integers, no number that JSON lacks, no clash of merge keys.

    ``merged`` is false within a list that is replaced as a whole, where nothing is merged by key.
    """
    stack = [value]
    while stack:
        item = stack.pop()
        if item is None:
            raise ResponseError(f"{where}: null")
        kind = type(item)
        if kind is dict:
            for key, inner in item.items():
                if type(inner) is not str:
                    if type(inner) is float and (
                        not math.isfinite(inner) or (inner.is_integer() and key not in _FLOAT_FIELDS)
                    ):
                        raise ResponseError(f"{where}: {key} is the float {inner}")
                    stack.append(inner)
        elif kind is list:
            if merged and item and type(item[0]) is dict:
                _check_merge_key(item, where)
                if merge_key(item) is None:
                    _check_values({str(n): inner for n, inner in enumerate(item)}, where, merged=False)
                    continue
            stack.extend(inner for inner in item if type(inner) is not str)


def _check_merge_key(items: list[Any], where: str) -> None:
    clash = merge_key_clash(items)
    if clash:
        raise ResponseError(f"{where}: two list items with the same {clash[0]} {clash[1]}")
