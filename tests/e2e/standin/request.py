"""Bodies of hook requests, in the byte order of the real Metacontroller (MC-1.1)."""

from __future__ import annotations

import orjson

from app.kube.base import Json

from .children import ObjectMap
from .objects import gvk_key


def hook_request(controller: Json, parent: Json, children: ObjectMap, related: ObjectMap, finalizing: bool) -> bytes:
    """Return the body of a `sync` or `finalize` call; keys below the first level are sorted."""
    return _body(
        controller=controller,
        parent=parent,
        children=_by_kind(children),
        related=_by_kind(related),
        finalizing=finalizing,
    )


def customize_request(controller: Json, parent: Json) -> bytes:
    """Return the body of a `customize` call."""
    return _body(controller=controller, parent=parent)


def decorator_request(controller: Json, obj: Json) -> bytes:
    """Return the body of a `sync` call of a DecoratorController without attachments and related objects."""
    return _body(controller=controller, object=obj, attachments={}, related={}, finalizing=False)


def _body(**parts: object) -> bytes:
    members = [f'"{key}":'.encode() + orjson.dumps(value, option=orjson.OPT_SORT_KEYS) for key, value in parts.items()]
    return b"{" + b",".join(members) + b"}"


def _by_kind(objects: ObjectMap) -> dict[str, dict[str, Json]]:
    return {gvk_key(*kind): group for kind, group in objects.items()}
