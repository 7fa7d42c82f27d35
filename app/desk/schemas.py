"""The JSON schemas of the kinds, for editors and for other checkers of YAML."""

from collections.abc import Collection

from app.kube import modelfields
from app.kube.base import KubeModel
from app.kube.embedded import types as embedded_types
from app.kube.resource import CustomResource
from app.kube.schema.rules import Schema
from app.kube.schema.structural import structural_schema

DIALECT = "http://json-schema.org/draft-07/schema#"
"""The draft of JSON Schema that the YAML language server, and hence most editors, support best."""


_SCALARS: dict[str, Schema] = {
    "string": {"type": "string"},
    "boolean": {"type": "boolean"},
    "int32": {"type": "integer"},
    "int64": {"type": "integer"},
    "int-or-string": {"type": ["integer", "string"]},
    "quantity": {"type": ["string", "number"]},
    "any": {"type": "object"},
}


def json_schema(resource: CustomResource) -> Schema:
    """Return the kind's JSON schema: the schema of the CRD, without unknown fields."""
    schema = _translated(structural_schema(resource))
    properties = schema["properties"]
    properties["apiVersion"]["const"] = resource.api_version
    properties["kind"]["const"] = resource.kind
    definitions: dict[str, Schema] = {}
    _complete(properties["spec"], resource.spec, definitions)
    required = [name for name in ("apiVersion", "kind", "metadata", "spec") if name != "spec" or resource.spec_required]
    return {
        "$schema": DIALECT,
        "title": f"{resource.kind} {resource.api_version}",
        **schema,
        "required": required,
        "definitions": dict(sorted(definitions.items())),
    }


def _complete(node: Schema, model: type[KubeModel], definitions: dict[str, Schema]) -> None:
    """Add the schemas of Kubernetes' own types to the fields that the CRD leaves open.

    They allow further fields, so that one that is newer than this release is accepted.
    """
    for name, (_, shape) in modelfields.fields(model).items():
        below = node["properties"][name]
        if shape.in_list:
            below = below["items"]
        if shape.embedded:
            below["allOf"] = [_reference(shape.embedded, shape.optional, definitions)]
        elif shape.model is not None and "properties" in below:
            _complete(below, shape.model, definitions)


def _reference(type_: str, optional: Collection[str], definitions: dict[str, Schema]) -> Schema:
    """Return a reference to one of Kubernetes' types, after adding it and those that it uses to the definitions."""
    name = f"{type_}-without-{'-'.join(optional)}" if optional else type_
    if name not in definitions:
        definitions[name] = {}  # a type may contain itself
        declared = embedded_types.TYPES[type_].items()
        properties = {key: _member(part.type, part.container, definitions) for key, part in declared}
        required = [key for key, part in declared if part.required and key not in optional]
        definitions[name] = {"type": "object", "properties": properties, **({"required": required} if required else {})}
    return {"$ref": f"#/definitions/{name}"}


def _member(type_: str, container: str, definitions: dict[str, Schema]) -> Schema:
    item = _SCALARS.get(type_) or _reference(type_, (), definitions)
    if container == "[]":
        return {"type": "array", "items": item}
    return {"type": "object", "additionalProperties": item} if container else item


def _translated(node: Schema) -> Schema:
    """Return a structural schema as JSON Schema, without the API server's extensions."""
    translated: Schema = {key: value for key, value in node.items() if not key.startswith("x-kubernetes-")}
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if translated.get(exclusive) is True:  # OpenAPI 3.0 has a flag beside the bound
            translated[exclusive] = translated.pop(bound)
    if "properties" in node:
        translated["properties"] = {name: _translated(field) for name, field in node["properties"].items()}
        if not node.get("x-kubernetes-preserve-unknown-fields"):
            translated["additionalProperties"] = False
    elif isinstance(node.get("additionalProperties"), dict):
        translated["additionalProperties"] = _translated(node["additionalProperties"])
    if "items" in node:
        translated["items"] = _translated(node["items"])
    return translated
