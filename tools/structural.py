"""Check the schema of a CRD as the API server does, without an API server.

The rules are the structural-schema validation of apiextensions, and this project's own: every field has a description,
the fields of the status, a subresource, have no defaults, and a pattern means the same in Go and in Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]

MAX_BYTES = 262_144
"""Maximum size: client-side ``kubectl apply`` keeps the whole object as JSON in an annotation."""

_TYPES = frozenset({"object", "array", "string", "integer", "number", "boolean"})
_FORMATS = {
    "integer": frozenset({"int32", "int64"}),
    "number": frozenset({"float", "double"}),
    "string": frozenset({"date-time", "date", "duration", "byte", "uuid", "ipv4", "ipv6", "cidr", "hostname", "uri"}),
}
_COMMON = frozenset({"description", "type", "format", "default", "enum", "anyOf"})
_OF_TYPE = {
    "object": frozenset({"properties", "required", "additionalProperties", "minProperties", "maxProperties"}),
    "array": frozenset({"items", "minItems", "maxItems"}),
    "string": frozenset({"pattern", "minLength", "maxLength"}),
    "integer": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
}
_EXTENSIONS = frozenset(
    {
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-map-type",
        "x-kubernetes-validations",
    }
)
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_NOT_RE2 = re.compile(r"\(\?<?[=!]|\\[1-9dDwWsSbB]")
"""Look-around and back-references, which Go lacks; classes that are Unicode in one engine and ASCII in the other."""


def lint(crd: Schema) -> list[str]:
    """Return every reason to refuse the CRD."""
    findings: list[str] = []
    for version in crd["spec"]["versions"]:
        root = version["schema"]["openAPIV3Schema"]
        findings += _Linter().object_root(root)
        if "status" not in version.get("subresources", {}):
            findings.append("subresources: status is missing; without it Metacontroller ignores the kind")
    return findings


class _Linter:
    """Checks one schema; each method yields findings as ``path: problem``."""

    def object_root(self, root: Schema) -> Iterator[str]:
        if root.get("type") != "object" or "additionalProperties" in root:
            yield "root: must be an object with named fields"
        if not root.get("description"):
            yield "root: no description"
        if root.get("properties", {}).get("metadata") != {"type": "object"}:
            yield "metadata: must have a type and nothing else"
        for name in ("spec", "status"):
            if name in root.get("properties", {}):
                yield from self._field(root["properties"][name], name)

    def _field(self, node: Schema, path: str) -> Iterator[str]:
        if not node.get("description"):
            yield f"{path}: no description"
        yield from self._node(node, path)

    def _node(self, node: Schema, path: str) -> Iterator[str]:
        yield from self._type(node, path)
        yield from self._vocabulary(node, path)
        yield from self._default(node, path)
        yield from self._pattern(node, path)
        yield from self._list_type(node, path)
        is_open = node.get("x-kubernetes-preserve-unknown-fields")  # a type of Kubernetes, which others describe
        for name, member in node.get("properties", {}).items():
            yield from (self._node if is_open else self._field)(member, f"{path}.{name}")
        if node.get("properties") and "additionalProperties" in node:
            yield f"{path}: properties and additionalProperties exclude each other"
        for name in node.get("required", ()):
            if name not in node.get("properties", {}):
                yield f"{path}: requires {name}, which it does not have"
        for key, mark in (("additionalProperties", "{}"), ("items", "[]")):
            if isinstance(node.get(key), dict):
                yield from self._node(node[key], path + mark)

    def _type(self, node: Schema, path: str) -> Iterator[str]:
        if node.get("x-kubernetes-int-or-string"):
            if "type" in node or node.get("anyOf") != _INT_OR_STRING:
                yield f"{path}: int-or-string has no type and exactly the two alternatives"
            return
        if "anyOf" in node:
            yield f"{path}: anyOf is only for int-or-string"
        if "type" not in node and node.get("x-kubernetes-preserve-unknown-fields"):
            return
        if node.get("type") not in _TYPES:
            yield f"{path}: type {node.get('type')!r}"
        if node.get("type") == "array" and not isinstance(node.get("items"), dict):
            yield f"{path}: an array needs items"
        if node.get("type") == "object" and not node.keys() & {
            "properties",
            "additionalProperties",
            "x-kubernetes-preserve-unknown-fields",
        }:
            yield f"{path}: an object without fields loses everything to pruning"
        if "format" in node and node["format"] not in _FORMATS.get(node.get("type", ""), ()):
            yield f"{path}: format {node['format']!r} of a {node.get('type')}"

    def _vocabulary(self, node: Schema, path: str) -> Iterator[str]:
        allowed = _COMMON | _EXTENSIONS | _OF_TYPE.get(node.get("type", ""), frozenset())
        if node.get("x-kubernetes-int-or-string"):
            allowed |= _OF_TYPE["string"]
        for key in sorted(node.keys() - allowed):
            yield f"{path}: {key} is not allowed here"
        for key in ("exclusiveMinimum", "exclusiveMaximum"):
            if key in node and not isinstance(node[key], bool):
                yield f"{path}: {key} is a flag in OpenAPI 3.0"
        if "enum" in node and (not node["enum"] or None in node["enum"]):
            yield f"{path}: an enum needs values, and must not have null"
        for rule in node.get("x-kubernetes-validations", ()):
            if "rule" not in rule or "\n" in rule.get("message", ""):
                yield f"{path}: a validation needs a rule and a message of one line"

    def _default(self, node: Schema, path: str) -> Iterator[str]:
        if "default" not in node:
            return
        if path.startswith("status."):
            yield f"{path}: no field of a status has a default"
        if "enum" in node and node["default"] not in node["enum"]:
            yield f"{path}: default {node['default']!r} is not in the enum"
        low, high = node.get("minimum"), node.get("maximum")
        if (low is not None and node["default"] < low) or (high is not None and node["default"] > high):
            yield f"{path}: default {node['default']!r} is out of bounds"
        if "pattern" in node and not re.search(node["pattern"], node["default"]):
            yield f"{path}: default {node['default']!r} does not match the pattern"

    def _pattern(self, node: Schema, path: str) -> Iterator[str]:
        if "pattern" not in node:
            return
        if _NOT_RE2.search(node["pattern"]):
            yield f"{path}: pattern {node['pattern']!r} does not mean the same to Go"
        try:
            re.compile(node["pattern"])
        except re.error as error:
            yield f"{path}: pattern: {error}"

    def _list_type(self, node: Schema, path: str) -> Iterator[str]:
        kind = node.get("x-kubernetes-list-type")
        if kind is None:
            return
        items = node.get("items", {})
        if node.get("type") != "array" or kind not in ("atomic", "set", "map"):
            yield f"{path}: list type {kind!r} of a {node.get('type')}"
        if kind == "set" and items.get("type") in ("object", "array"):
            yield f"{path}: a set has scalar items"
        keys = node.get("x-kubernetes-list-map-keys", ())
        if (kind == "map") != bool(keys):
            yield f"{path}: list type map and its keys go together"
        for key in keys:
            if key not in items.get("properties", {}):
                yield f"{path}: items have no {key} to be keyed by"
            elif key not in items.get("required", ()) and "default" not in items["properties"][key]:
                yield f"{path}: the key {key} is neither required nor defaulted"
