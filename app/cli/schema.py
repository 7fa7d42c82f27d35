"""Print the JSON schema of a kind, for editors and for other checkers of YAML.

An editor that knows YAML schemas completes and checks manifests with it, inside pod templates, too. For one file, this
first line of it does; for many, a setting of the editor:

  # yaml-language-server: $schema=inferenceservice.inference.llmkube.dev.json

KIND is a kind, its plural or a short name, with or without its group, in any case. Without KIND the kinds are listed.
"""

from pathlib import Path

import click
import orjson

from app.cli import options
from app.desk.schemas import DIALECT, json_schema
from app.errors import CommandError
from app.families import KINDS, RESOURCES
from app.kube.field import name_meant
from app.kube.resource import CustomResource
from app.kube.spelling import closest_name


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
        near = closest_name(kind, sorted(name for resource in RESOURCES for name in resource.names))
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
