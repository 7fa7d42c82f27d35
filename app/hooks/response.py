"""The only encoder of answers. It refuses what makes Metacontroller fail or loop.

The rules are MC-0, MC-1.2, MC-3.2 and MC-3.5. A refusal is a bug in this project: status 500, nothing is applied.
"""

from collections.abc import Sequence

import msgspec

from app.errors import ResponseError
from app.hooks.protocol import Applied, RelatedRule, SyncAnswer, SyncResponse
from app.hooks.sendable import faults
from app.kube import field
from app.kube.base import Json
from app.kube.conditions import printable
from app.kube.names import ANNOTATIONS_MAX
from app.kube.objects import ObservedObject
from app.limits import MAX_ANSWER_BYTES

_ENCODER = msgspec.json.Encoder(order="sorted")


def encode(response: SyncResponse, namespace: str, waiting: Sequence[str] = ()) -> SyncAnswer:
    """Encode an answer. Raises :class:`ResponseError` for one that must not be sent."""
    status = msgspec.to_builtins(response.status)
    _check_children(response.children, namespace)
    _check_values(status, "status", merged=False)
    status = printable(status)
    answer = {"children": response.children, "status": status}
    if response.resync_after_seconds is not None:
        answer["resyncAfterSeconds"] = response.resync_after_seconds
    if response.finalized:
        answer["finalized"] = True
    encoded = _ENCODER.encode(answer)
    if len(encoded) > MAX_ANSWER_BYTES:
        raise TooLarge(f"the answer would have {len(encoded)} bytes, at most {MAX_ANSWER_BYTES} are sent")
    return SyncAnswer(encoded, status, waiting)


class TooLarge(ResponseError):
    pass


def unstorable(response: SyncResponse) -> list[field.Error]:
    """Return an error for each child that is too large for its annotation with Metacontroller's copy."""
    errors = []
    for child in response.children:
        text = _ENCODER.encode(child)
        if len(text) > ANNOTATIONS_MAX:
            named = _NAMED.decode(text)
            what = f"{named.kind} {named.metadata.name} would have {len(text)} bytes; shorten what goes into it"
            errors.append(field.too_long(field.SPEC, ANNOTATIONS_MAX, what))
    return errors


_NAMED = msgspec.json.Decoder(ObservedObject)


def encode_related(rules: Sequence[RelatedRule]) -> bytes:
    return msgspec.json.encode({"relatedResources": list(rules)})


def _check_children(children: Sequence[Json], namespace: str) -> None:
    identities = set()
    for child in children:
        if not child or not child.get("kind") or not child.get("apiVersion"):
            raise ResponseError("a child without apiVersion or kind")
        metadata = child.get("metadata") or {}
        name = metadata.get("name")
        where = f"{child['kind']} {name}"
        identity = (child["apiVersion"], child["kind"], metadata.get("namespace") or namespace, name)
        if not name or identity in identities:
            raise ResponseError(f"{where}: no name, or twice the same")
        identities.add(identity)
        if namespace and identity[2] != namespace:
            raise ResponseError(f"{where}: outside its parent's namespace")
        for key in ("labels", "annotations"):
            if not all(isinstance(value, str) for value in (metadata.get(key) or {}).values()):
                raise ResponseError(f"{where}: {key} that are not strings")
        _check_values(metadata if isinstance(child, Applied) else child, where)


def _check_values(value: object, where: str, *, merged: bool = True) -> None:
    """Refuse the first value that cannot be applied; ``merged`` is false where nothing is merged by key."""
    for fault in faults(value, merged=merged):
        if fault.key:
            raise ResponseError(f"{where}: two list items with the same {fault.key} {fault.value}")
        name = next((segment for segment in fault.segments if isinstance(segment, str)), "")
        raise ResponseError(f"{where}: {name} is the {type(fault.value).__name__} {fault.value}")
