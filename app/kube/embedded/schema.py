"""The schema of one of Kubernetes' own types in a CRD: open, with as much of its fields as applying needs.

A server-side apply merges lists by the keys that a schema names, and an open list is one value: whoever applies it
last owns all of it. So lists with keys are declared with the fields on the way to them. Where one field is declared all
are, because clients that are generated from a CRD know no others; none but the keys has a type, so that admission
judges the values, with its messages. Fields of newer releases are kept, as everywhere.
"""

from functools import cache

from app.kube.embedded.types import TYPES, EmbeddedField
from app.kube.schema.rules import Schema

EMBEDDED = "x-embedded-type"
"""Marks an open object with the name of its type, until a CRD is made of it."""
OPEN: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
ANY: Schema = {"x-kubernetes-preserve-unknown-fields": True}
_JSON_TYPES = {"string": "string", "int32": "integer", "int64": "integer"}
_NEVER_SET = frozenset({"ephemeralContainers", "ownerReferences", "finalizers"})
"""Lists of pods and metadata that no template has."""


@cache
def merges(type_name: str) -> bool:
    """Report whether something in the type is applied otherwise than in an open object."""
    return any(_merges(name, part) for name, part in TYPES.get(type_name, {}).items())


def _merges(name: str, part: EmbeddedField) -> bool:
    if part.keys or part.set:
        return name not in _NEVER_SET
    if part.container:
        return part.atomic
    return (part.atomic and len(TYPES[part.type]) > 1) or (not part.atomic and merges(part.type))


def schema(type_name: str) -> Schema:
    """Return the schema of a type: open alone unless something in it merges."""
    return _with_fields(type_name, ()) if merges(type_name) else OPEN


def _with_fields(type_name: str, keys: tuple[str, ...]) -> Schema:
    """Return an open object with all fields of a type; of an item of a list, its ``keys`` are required."""
    fields = TYPES[type_name]
    properties = {name: _key(part) if name in keys else _field(name, part) for name, part in fields.items()}
    required = [key for key in keys if fields[key].required]
    return {"type": "object", **({"required": required} if required else {}), "properties": properties, **ANY}


def _key(part: EmbeddedField) -> Schema:
    """Return a key, which is required or has a default."""
    return {"type": _JSON_TYPES[part.type], **({} if part.required else {"default": part.default or ""})}


def _field(name: str, part: EmbeddedField) -> Schema:
    if not _merges(name, part):
        return ANY
    if part.set:
        return {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": _JSON_TYPES[part.type]}}
    if part.keys:
        items = _with_fields(part.type, part.keys)
        keys = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(part.keys)}
        return {"type": "array", **keys, "items": items}
    return {**OPEN, "x-kubernetes-map-type": "atomic"} if part.atomic else schema(part.type)
