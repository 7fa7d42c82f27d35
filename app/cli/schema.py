"""Print the JSON schema of a kind, for editors and for other checkers of YAML.

An editor that knows YAML schemas completes and checks manifests with it, inside pod templates, too. For one file, this
first line of it does; for many, a setting of the editor:

  # yaml-language-server: $schema=inferenceservice.inference.llmkube.dev.json

KIND is a kind, its plural or a short name, with or without its group, in any case. Without KIND the kinds are listed.
"""

from collections.abc import Collection
from pathlib import Path

import click
import orjson

from app.cli import CommandError, options
from app.families import KINDS, RESOURCES
from app.kube import correction, embedded_types, modelfields
from app.kube.base import KubeModel
from app.kube.field import name_meant
from app.kube.resource import CustomResource
from app.kube.rules import Schema
from app.kube.schema import structural_schema

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


@click.command(help=options.doc(__doc__))
@click.argument("kind", required=False, metavar="[KIND]")
@click.option("--all", "write_all", is_flag=True, help="Write every kind's schema into --out-dir.")
@click.option(
    "--out-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="With --all: GROUP/KIND_VERSION.json for kubeconform; KIND.GROUP.json, and all.json, for editors.",
)
def command(kind: str | None, write_all: bool, out_dir: Path | None) -> int:
    if write_all:
        if out_dir is None:
            raise CommandError("--all needs --out-dir")
        return _write_all(out_dir)
    if kind is None:
        click.echo("".join(f"{resource.qualified_name}\n" for resource in RESOURCES), nl=False)
        return 0
    matches = [resource for resource in RESOURCES if kind.lower() in resource.names]
    names = ", ".join(resource.qualified_name for resource in matches or RESOURCES)
    if not matches:
        near = correction.closest_name(kind, sorted(name for resource in RESOURCES for name in resource.names))
        raise CommandError(f"{kind}: no such kind{name_meant(near) or f': {names}'}")
    if len(matches) > 1:
        raise CommandError(f"{kind}: several kinds have that name; add the group: {names}")
    click.echo(_text(matches[0]), nl=False)
    return 0


def _write_all(directory: Path) -> int:
    """kubeconform's layout ``{{.Group}}/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json``, and a flat one for editors.

    Of the flat ones ``all.json`` takes an object of any kind.
    """
    for resource in (version.resource for kind in KINDS for version in (kind, *kind.older)):
        nested = directory / resource.group / f"{resource.kind.lower()}_{resource.version}.json"
        nested.parent.mkdir(parents=True, exist_ok=True)
        nested.write_text(_text(resource))
    for resource in RESOURCES:
        (directory / f"{resource.qualified_name}.json").write_text(_text(resource))
    any_kind = {"$schema": DIALECT, "oneOf": [{"$ref": f"{resource.qualified_name}.json"} for resource in RESOURCES]}
    (directory / "all.json").write_bytes(orjson.dumps(any_kind, option=orjson.OPT_INDENT_2))
    return 0


def _text(resource: CustomResource) -> str:
    return orjson.dumps(json_schema(resource), option=orjson.OPT_INDENT_2).decode() + "\n"


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
