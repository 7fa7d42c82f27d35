"""Fields that were sent for a child, and that the API server does not keep.

An older API server, a feature gate that is off, an older CRD and a webhook remove fields without an error. What was
sent is in Metacontroller's record on the child, what was kept is the child, and both are in every sync. Only presence
is compared: the API server writes values otherwise (quantities), adds defaults, and leaves empty fields out.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from app.hooks.memo import remembered
from app.hooks.protocol import AnyRequest
from app.hooks.readystatus import KEEPS_NO_NOTE
from app.hooks.sendable import merge_key
from app.kube.base import Json
from app.kube.embedded.types import TYPES, EmbeddedField
from app.kube.names import LAST_APPLIED
from app.kube.objects import ObservedObject, parsed_at_any_depth
from app.limits import MAX_COMPARED_BYTES, MAX_NOTED_FIELDS

_ROOTS = {"Service": "ServiceSpec", "HorizontalPodAutoscaler": "HorizontalPodAutoscalerSpec"}
"""Types of specs, by kind; those of others are not in the table of Kubernetes' types."""
_TEMPLATES = dict.fromkeys(("template", "leaderTemplate", "workerTemplate"), EmbeddedField("PodTemplateSpec"))
_CRD_RELEASES = {
    ("HTTPRoute", "spec.rules.timeouts"): "Gateway API 1.2 has it",
    ("HTTPRoute", "spec.rules.name"): "Gateway API 1.4 has it",
}
"""The first release of a CRD whose standard channel has the field."""


class _Lost(NamedTuple):
    path: str
    place: str
    """The path without the positions in lists."""
    field: EmbeddedField | None = None

    def below(self, name: str) -> "_Lost":
        return _Lost(f"{name}{'' if self.path[:1] == '[' else '.'}{self.path}", f"{name}.{self.place}", self.field)

    def at(self, position: object) -> "_Lost":
        return _Lost(f"[{position}]{'.' if self.path and self.path[0] != '[' else ''}{self.path}", *self[1:])

    def described(self, child: ObservedObject) -> str:
        known = self.field.release if self.field else _CRD_RELEASES.get((child.kind, self.place.rstrip(".")))
        return f"{self.path} of {child.kind} {child.metadata.name}{f' ({known})' if known else ''}"


def lost_fields(request: AnyRequest) -> list[str]:
    """Return each field that is not kept, as ``spec.template.spec.hostUsers of Deployment chat (…)``."""
    children = [child for child in request.observed.values() if not child.metadata.deletion_timestamp]
    if sum(memoryview(child.raw_spec).nbytes for child in children) > MAX_COMPARED_BYTES:
        return []
    return [text for child in children for text in _of(child)]


def lost_note(fields: Sequence[str]) -> str:
    rest = len(fields) - MAX_NOTED_FIELDS
    return f"{KEEPS_NO_NOTE} {', '.join(fields[:MAX_NOTED_FIELDS])}{f', and {rest} more' if rest > 0 else ''}"


def _of(child: ObservedObject) -> Sequence[str]:
    """Compare a child. The result depends on the record and the spec alone, which most syncs have from the last one."""
    key = ("lost", child.kind, child.metadata.name, bytes(child.raw_spec), bytes(child.metadata.annotations))
    return remembered(key, lambda: _compared(child), lambda _: True)


def _compared(child: ObservedObject) -> Sequence[str]:
    """Return the lost fields; one that several items of a list lack is named once. None of a spec that is too deep."""
    try:
        record = parsed_at_any_depth(child.annotations.get(LAST_APPLIED, "").encode())
        sent = record.get("spec") if isinstance(record, dict) else None
        kept = parsed_at_any_depth(child.raw_spec)
        if not isinstance(sent, dict) or not isinstance(kept, dict) or sent == kept:
            return ()
        found: dict[str, _Lost] = {}
        for lost in _in_map(sent, kept, TYPES.get(_ROOTS.get(child.kind, ""), {})):
            found.setdefault(lost.place, lost)
    except RecursionError:
        return ()
    return tuple(lost.below("spec").described(child) for lost in found.values())


def _in_map(sent: Json, kept: Json, type_: Mapping[str, EmbeddedField]) -> Iterator[_Lost]:
    for name, item in sent.items():
        field, other = type_.get(name) or _TEMPLATES.get(name), kept.get(name)
        inner = TYPES.get(field.type, {}) if field else {}
        if other is None and isinstance(item, dict) and item and all(_is_newer(inner.get(key)) for key in item):
            other = {}  # an API server that drops all that a map has drops the map
        if other is not None:
            yield from (lost.below(name) for lost in _in_value(item, other, inner))
        elif item or (item is not None and _is_newer(field)):  # newer fields tell false from nothing
            yield _Lost(name, name, field)


def _is_newer(field: EmbeddedField | None) -> bool:
    return field is not None and bool(field.since)


def _in_value(sent: object, kept: object, type_: Mapping[str, EmbeddedField]) -> Iterator[_Lost]:
    if isinstance(sent, dict) and isinstance(kept, dict):
        yield from _in_map(sent, kept, type_)
    elif isinstance(sent, list) and isinstance(kept, list) and sent and isinstance(sent[0], dict):
        counterpart = _counterpart(sent, kept, type_)
        for number, item in enumerate(sent):
            position, other = counterpart(number, item)
            inner = (_Lost("", ""),) if other is None else _in_value(item, other, type_)
            yield from (lost.at(position) for lost in inner)


def _tells_apart(key: str, items: Sequence[object]) -> bool:
    """Report whether each item has its own value of a key; several matches of a route may have one path."""
    values = [str(item[key]) for item in items if isinstance(item, dict) and key in item]
    return len({*values}) == len(items)


def _counterpart(
    sent: list[Json], kept: list[Any], type_: Mapping[str, EmbeddedField]
) -> Callable[[int, Json], tuple[object, object]]:
    """Return what finds an item among those that were kept: by its merge key, its position, or all that it has.

    The position tells where no item was added or removed.
    """
    key = merge_key(sent)
    if key is not None and _tells_apart(key, sent) and _tells_apart(key, kept):
        by_key = {str(item[key]): item for item in kept}
        return lambda _, item: (item[key], by_key.get(str(item[key])))
    if len(sent) == len(kept):
        return lambda number, _: (number, kept[number])
    return lambda number, item: (
        number,
        next((other for other in kept if not any(_in_value(item, other, type_))), None),
    )
