"""Print the JSON schema of a kind, for editors and for other checkers of YAML.

An editor that knows YAML schemas completes and checks manifests with it, for example with this first line of a file:

  # yaml-language-server: $schema=inferenceservice.json

KIND is a kind, its plural or a short name, with or without its group, in any case. Without KIND the kinds are listed.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import orjson

from app.families import RESOURCES
from app.kube.resource import CustomResource
from app.kube.schema import Schema, structural_schema

DIALECT = "http://json-schema.org/draft-07/schema#"
"""What the YAML language server, and hence most editors, understand best."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "kind", nargs="?", metavar="KIND", help="for example inferenceservice, or model.inference.llmkube.dev"
    )


def run(args: argparse.Namespace) -> int:
    """Print the schema, or the list of kinds; 2 when there is no such kind, or more than one."""
    if args.kind is None:
        sys.stdout.write("".join(f"{_full_name(resource)}\n" for resource in RESOURCES))
        return 0
    found = [resource for resource in RESOURCES if args.kind.lower() in _names(resource)]
    if len(found) != 1:
        problem = "several kinds have that name; add the group" if found else "no such kind"
        known = ", ".join(_full_name(resource) for resource in found or RESOURCES)
        print(f"modelhooks schema: {args.kind}: {problem}: {known}", file=sys.stderr)
        return 2
    sys.stdout.write(orjson.dumps(json_schema(found[0]), option=orjson.OPT_INDENT_2).decode() + "\n")
    return 0


def json_schema(resource: CustomResource) -> Schema:
    """The kind's JSON schema: what the CRD says, and nothing beside the fields it names."""
    schema = _translated(structural_schema(resource))
    properties = schema["properties"]
    properties["apiVersion"]["const"] = resource.api_version
    properties["kind"]["const"] = resource.kind
    required = [name for name in ("apiVersion", "kind", "metadata", "spec") if name != "spec" or resource.spec_required]
    return {
        "$schema": DIALECT,
        "title": f"{resource.kind} {resource.api_version}",
        **schema,
        "required": required,
    }


def _translated(node: Schema) -> Schema:
    """A structural schema in JSON Schema's own words, without the extensions that only the API server knows."""
    translated: dict[str, Any] = {key: value for key, value in node.items() if not key.startswith("x-kubernetes-")}
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


def _full_name(resource: CustomResource) -> str:
    return f"{resource.kind.lower()}.{resource.group}"


def _names(resource: CustomResource) -> set[str]:
    """Everything the kind may be called, in lower case."""
    bare = {resource.kind.lower(), resource.plural, resource.singular or resource.kind.lower(), *resource.short_names}
    return bare | {f"{name}.{resource.group}" for name in bare}
