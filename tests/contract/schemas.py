"""Reads a CRD as a list of properties without descriptions, to compare two CRDs."""

from __future__ import annotations

from collections.abc import Iterator

from app.kube.base import Json

Properties = dict[str, Json]
"""Schema by path (``spec.a[].b``, ``{}`` for the values of a map)."""

ASPECTS = (
    *("type", "format", "enum", "default", "pattern", "minimum", "maximum"),
    *("minLength", "maxLength", "minItems", "maxItems"),
    *("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type", "x-kubernetes-int-or-string"),
)
OPEN = "x-kubernetes-preserve-unknown-fields"
RULES = "x-kubernetes-validations"


def properties(schema: Json, path: str = "") -> Properties:
    """Return every property of a structural schema, outside in. ``required`` is sorted; ``rules`` is a number."""
    return dict(_properties(schema, path))


def _properties(schema: Json, path: str) -> Iterator[tuple[str, Json]]:
    aspects = {aspect: schema[aspect] for aspect in ASPECTS if aspect in schema}
    if schema.get("required"):
        aspects["required"] = sorted(schema["required"])
    if schema.get(RULES):
        aspects["rules"] = len(schema[RULES])
    if schema.get(OPEN):
        aspects["open"] = True
    yield path, aspects
    for name, member in schema.get("properties", {}).items():
        yield from _properties(member, f"{path}.{name}".lstrip("."))
    for keyword, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(keyword), dict):
            yield from _properties(schema[keyword], path + mark)


def differences(theirs: Properties, ours: Properties) -> Iterator[tuple[str, str]]:
    """Yield ``(path, aspect)`` of every difference, except inside an object that is open here."""
    opened = {path for path, about in ours.items() if about.get("open")}
    for path in sorted(theirs.keys() | ours.keys()):
        if below(path, opened):
            continue
        left, right = theirs.get(path), ours.get(path)
        if left is None or right is None:
            if _parent(path) in theirs and _parent(path) in ours:
                yield path, "property"
        elif path in opened:
            if left.get("type", "object") != "object":
                yield path, "type"
        else:
            yield from ((path, aspect) for aspect in _unequal(left, right))


def _unequal(theirs: Json, ours: Json) -> Iterator[str]:
    yield from (aspect for aspect in (*ASPECTS, "required") if theirs.get(aspect) != ours.get(aspect))
    if theirs.get("rules") and not ours.get("rules"):
        yield "rules"


def below(path: str, roots: set[str]) -> bool:
    while path:
        path = _parent(path)
        if path in roots:
            return True
    return False


def _parent(path: str) -> str:
    return path[:-2] if path.endswith(("[]", "{}")) else path.rpartition(".")[0]
