"""Structural OpenAPI v3 schemas of CustomResourceDefinitions, from pydantic specs and msgspec statuses.

Pydantic and msgspec write JSON Schema; the API server accepts a narrower language, in which the type of every field
is inline. Source: HTTP-2.3. A test checks the result.
"""

from collections.abc import Mapping

import msgspec

from app.kube.embedded import schema as embeddedschema
from app.kube.embedded.schema import EMBEDDED
from app.kube.names import SUBDOMAIN
from app.kube.resource import CustomResource
from app.kube.schema.rules import Schema

_QUALIFIED_NAME = rf"^({SUBDOMAIN}/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
_INTEGER_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}

UNANSWERED = {"default": {"observedGeneration": -1}}
"""The status of an object until the first answer: programs that wait by kstatus' rules take one without for ready."""


class SchemaError(Exception):
    """A type cannot be expressed in a CRD, or has a field without a description."""


def structural_schema(resource: CustomResource, *, merging: bool = False) -> Schema:
    """Return the schema of a kind; ``merging`` declares the lists of embedded types that are applied by keys."""
    properties = {
        "apiVersion": {"type": "string", "description": f"Always {resource.api_version}."},
        "kind": {"type": "string", "description": f"Always {resource.kind}."},
        "metadata": {"type": "object"},
        "spec": {"description": f"Desired state of the {resource.kind}.", **spec_schema(resource, merging=merging)},
        "status": {"description": f"Observed state of the {resource.kind}.", **UNANSWERED, **status_schema(resource)},
    }
    schema: Schema = {"description": resource.description, "type": "object", "properties": properties}
    if resource.spec_required:
        schema["required"] = ["spec"]
    return schema


def spec_schema(resource: CustomResource, *, merging: bool = False) -> Schema:
    raw = resource.spec.model_json_schema(by_alias=True, mode="validation")
    return _Rewriter(raw.get("$defs", {}), defaults=True, merging=merging).part(raw, "spec")


def status_schema(resource: CustomResource) -> Schema:
    """Return the schema of ``status``: no defaults, conditions as a map by type, always ``observedGeneration``."""
    raw = msgspec.json.schema(resource.status)
    schema = _Rewriter(raw.get("$defs", {}), defaults=False).part(raw, "status")
    schema.pop("required", None)  # a status grows as things happen; the parts of it may still demand their fields
    properties = schema.setdefault("properties", {})
    _as_conditions(properties["conditions"])
    properties.setdefault(
        "observedGeneration",
        {"description": "The generation of the spec that this status answers.", "type": "integer", "format": "int64"},
    )
    return schema


def _as_conditions(conditions: Schema) -> None:
    """Add what ``metav1.Condition`` requires beyond our type, which also reads conditions of other writers."""
    conditions |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
    item, required = conditions["items"], ["type", "status"]
    members = item["properties"]
    if "observedGeneration" in members:  # else it is the older, shorter form, in which a true condition has no reason
        members["type"]["pattern"] = _QUALIFIED_NAME
        members["observedGeneration"]["minimum"] = 0
        required += ["reason", "message", "lastTransitionTime"]
    conditions["items"] = _ordered({**item, "required": required})


class _Rewriter:
    """Inlines references and rewrites one node at a time, from the outside in."""

    def __init__(self, definitions: Mapping[str, Schema], *, defaults: bool, merging: bool = False) -> None:
        self._definitions = definitions
        self._defaults = defaults
        self._merging = merging
        self._open: list[str] = []

    def _node(self, raw: Schema, path: str) -> Schema:
        if "$ref" in raw:
            return self._reference(raw, path)
        if "anyOf" in raw or "oneOf" in raw or "allOf" in raw:
            return self._junction(raw, path)
        if EMBEDDED in raw:
            raw = {**raw, **embeddedschema.schema(raw[EMBEDDED])} if self._merging else raw
            return _ordered({key: value for key, value in raw.items() if key not in (EMBEDDED, *_DROPPED, "default")})
        unknown = raw.keys() - _KEPT - _DROPPED - _REWRITTEN
        if unknown := {key for key in unknown if not key.startswith("x-kubernetes-")}:
            raise SchemaError(f"{path}: a CRD cannot say {', '.join(sorted(unknown))}")
        node = {key: value for key, value in raw.items() if key in _KEPT or key.startswith("x-kubernetes-")}
        if raw.get("x-kubernetes-int-or-string"):
            node["anyOf"] = [{"type": "integer"}, {"type": "string"}]
            node.pop("type", None)
        _values(raw, node)
        _bounds(raw, node)
        self._default(raw, node)
        if "items" in raw:
            items = {**raw["items"], **({EMBEDDED: ""} if EMBEDDED in raw["items"] else {})}  # no list here has keys
            node["items"] = self.part(items, f"{path}[]")
        self._members(raw, node, path)
        return _ordered(node)

    def _reference(self, raw: Schema, path: str) -> Schema:
        """Return the definition; a type that contains itself ends in an open object."""
        name = raw["$ref"].rpartition("/")[2]
        siblings = {key: value for key, value in raw.items() if key not in ("$ref", "$defs")}
        if name in self._open:
            return self._node({"type": "object", "x-kubernetes-preserve-unknown-fields": True, **siblings}, path)
        definition = {key: value for key, value in self._definitions[name].items() if key != "description"}
        self._open.append(name)
        try:
            return self._node({**definition, **siblings}, path)
        finally:
            self._open.pop()

    def _junction(self, raw: Schema, path: str) -> Schema:
        """Return T for ``T | None``; a CRD has no other unions."""
        siblings = {key: value for key, value in raw.items() if key not in ("anyOf", "oneOf", "allOf")}
        branches = [b for b in raw.get("anyOf") or raw.get("oneOf") or raw["allOf"] if b.get("type") != "null"]
        if len(branches) != 1:
            raise SchemaError(f"{path}: a CRD has no unions; mark it as IntOrString or make it an object")
        return self._node({**branches[0], **siblings}, path)

    def _members(self, raw: Schema, node: Schema, path: str) -> None:
        """Add named fields, or the values of a map; an object with neither is open."""
        if raw.get("properties"):
            node["properties"] = {
                name: self._field(member, f"{path}.{name}") for name, member in raw["properties"].items()
            }
            if required := [name for name in raw["properties"] if name in raw.get("required", ())]:
                node["required"] = required
            return
        values = raw.get("additionalProperties", True)
        if isinstance(values, dict) and values:
            node["additionalProperties"] = self.part(values, f"{path}{{}}")
        elif _is_open(raw, node):
            node["x-kubernetes-preserve-unknown-fields"] = True

    def _field(self, raw: Schema, path: str) -> Schema:
        node = self._node(raw, path)
        if not node.get("description", "").strip():
            raise SchemaError(f"{path}: describe the field, in a docstring below it or by description=...")
        return node

    def part(self, raw: Schema, path: str) -> Schema:
        """Return a node without its description: an item's field has one, a class's docstring is for programmers."""
        node = self._node(raw, path)
        node.pop("description", None)
        return node

    def _default(self, raw: Schema, node: Schema) -> None:
        """Add a default that a user would notice: not null, false or empty, which are Go's zero values.

        A field whose default should not be in the CRD has ``json_schema_extra={"default": None}``.
        """
        value = raw.get("default")
        if self._defaults and value not in (None, "", [], {}) and value is not False and not isinstance(value, dict):
            node["default"] = value


_ORDER = (
    "description",
    "type",
    "format",
    "anyOf",
    "x-kubernetes-int-or-string",
    "enum",
    "default",
    "pattern",
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "required",
    "properties",
    "additionalProperties",
    "items",
)
_REWRITTEN = frozenset({"const", "default", "properties", "required", "additionalProperties", "items"})
_SIZES = frozenset({"minLength", "maxLength", "multipleOf", "minItems", "maxItems", "minProperties", "maxProperties"})
_KEPT = (frozenset(_ORDER) | _SIZES) - _REWRITTEN
_DROPPED = frozenset({"title", "$defs", "examples", "$comment", "discriminator", "deprecated", "propertyNames"})


def _is_open(raw: Schema, node: Schema) -> bool:
    """Return whether it is a map of anything, or a value without a type. A class without fields is a closed object."""
    if node.get("type") == "object":
        return "properties" not in raw and raw.get("additionalProperties") is not False
    return not raw.keys() & {"type", "enum", "const", "x-kubernetes-int-or-string"}


def _values(raw: Schema, node: Schema) -> None:
    """Write ``const`` as an ``enum`` of one; msgspec leaves out the type of an enum."""
    if "const" in raw:
        node["enum"] = [raw["const"]]
    if node.get("enum") and "type" not in node:
        node["type"] = _TYPES[type(node["enum"][0])]


def _bounds(raw: Schema, node: Schema) -> None:
    """Write exclusive bounds as flags, as OpenAPI 3.0, and leave out the bounds of a sized integer."""
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if exclusive in raw and not isinstance(raw[exclusive], bool):
            node[bound], node[exclusive] = raw[exclusive], True
    lowest, highest = _INTEGER_RANGES.get(node.get("format", ""), (None, None))
    for bound, limit in (("minimum", lowest), ("maximum", highest)):
        if limit is not None and node.get(bound) == limit:
            del node[bound]


def _ordered(node: Schema) -> Schema:
    first = {key: node[key] for key in _ORDER if key in node}
    return first | {key: node[key] for key in sorted(node.keys() - first.keys())}
