"""Our CRDs beside upstream's: what differs, property by property."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from app.kube.resource import CustomResource
from tests.shared import UPSTREAM

Schema = dict[str, Any]

COMPARED = (
    "type",
    "format",
    "enum",
    "default",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
)


def upstream(resource: CustomResource) -> Schema:
    """The whole definition that the family's project ships."""
    path = UPSTREAM / resource.family / "crds" / f"{resource.group}_{resource.plural}.json"
    crd: Schema = json.loads(path.read_text())
    return crd


def version(crd: Schema) -> Schema:
    """Its v1alpha1, the only version of ours."""
    return next(v for v in crd["spec"]["versions"] if v["name"] == "v1alpha1")


def differences(theirs: Schema, ours: Schema, path: str = "") -> Iterator[tuple[str, str]]:
    """``(path, what)`` for every difference. What lies inside an embedded type is not ours to repeat."""
    if ours.get("x-kubernetes-preserve-unknown-fields"):
        if theirs.get("type") not in ("object", None):
            yield path, "type"
        return
    for key in COMPARED:
        if theirs.get(key) != ours.get(key):
            yield path, key
    if set(theirs.get("required", ())) != set(ours.get("required", ())):
        yield path, "required"
    if theirs.get("x-kubernetes-validations") and not ours.get("x-kubernetes-validations"):
        yield path, "rules"
    yield from _below(theirs, ours, path)


def _below(theirs: Schema, ours: Schema, path: str) -> Iterator[tuple[str, str]]:
    theirs_in, ours_in = theirs.get("properties", {}), ours.get("properties", {})
    for name in sorted(theirs_in.keys() ^ ours_in.keys()):
        yield f"{path}.{name}".lstrip("."), "property"
    for name in sorted(theirs_in.keys() & ours_in.keys()):
        yield from differences(theirs_in[name], ours_in[name], f"{path}.{name}".lstrip("."))
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(theirs.get(key), dict) or isinstance(ours.get(key), dict):
            yield from differences(theirs.get(key) or {}, ours.get(key) or {}, path + mark)
