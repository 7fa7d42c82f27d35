"""Print the JSON schema of a kind, for editors and for other checkers of YAML.

An editor that knows YAML schemas completes and checks manifests with it, for example with this first line of a file:

  # yaml-language-server: $schema=inferenceservice.json

KIND is a kind, its plural or a short name, with or without its group, in any case. Without KIND the kinds are listed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import orjson

from app.cli import options
from app.families import RESOURCES
from app.kube.resource import CustomResource
from app.kube.schema import Schema, structural_schema

DIALECT = "http://json-schema.org/draft-07/schema#"
"""What the YAML language server, and hence most editors, understand best."""


@click.command(help=options.doc(__doc__))
@click.argument("kind", required=False, metavar="[KIND]")
@click.option("--all", "every", is_flag=True, help="Write every kind's schema into --out-dir.")
@click.option(
    "--out-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="With --all: KIND_VERSION.json for kubeconform below the group's name, and kind.json for editors.",
)
def command(kind: str | None, every: bool, out_dir: Path | None) -> int:
    """Print the schema, or the list of kinds; 2 when there is no such kind, or more than one."""
    if every:
        return _write_all(out_dir) if out_dir else options.fail("schema", "--all needs --out-dir")
    if kind is None:
        click.echo("".join(f"{_full_name(resource)}\n" for resource in RESOURCES), nl=False)
        return 0
    found = [resource for resource in RESOURCES if kind.lower() in _names(resource)]
    if len(found) != 1:
        problem = "several kinds have that name; add the group" if found else "no such kind"
        known = ", ".join(_full_name(resource) for resource in found or RESOURCES)
        return options.fail("schema", f"{kind}: {problem}: {known}")
    click.echo(_text(found[0]), nl=False)
    return 0


def _write_all(directory: Path) -> int:
    """kubeconform's layout ``{{.Group}}/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json``, and a flat one."""
    for resource in RESOURCES:
        nested = directory / resource.group / f"{resource.kind.lower()}_{resource.version}.json"
        nested.parent.mkdir(parents=True, exist_ok=True)
        for file in (nested, directory / f"{_full_name(resource)}.json"):
            file.write_text(_text(resource))
    return 0


def _text(resource: CustomResource) -> str:
    return orjson.dumps(json_schema(resource), option=orjson.OPT_INDENT_2).decode() + "\n"


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
