"""List the container images of an installation and of the pods that manifests lead to, to copy them to a registry.

Without FILE: the service, Metacontroller, and every image that a resource may start by default. With FILE: the service,
Metacontroller, and the images of the pods of these manifests. One image in each line, first the one that you build;
docs/howto/offline.md has a loop that copies the others:

  modelhooks images deploy/ > images.txt

The exit status is 1 when an image is not pinned to a version or an object has errors, so that its images are missing; 2
when there is nothing to list.
"""

import re
from collections.abc import Iterator

import click

from app import images
from app.cli import options, validate
from app.desk.cluster import sets
from app.desk.cluster.offline import World, settled
from app.desk.files import printing
from app.desk.files.folders import nothing_served
from app.desk.files.manifests import Manifest
from app.desk.origins import tracer
from app.errors import CommandError
from app.kube.base import Json

_TAG = re.compile(r":[\w][\w.-]*$")


@click.command(help=options.doc(__doc__))
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path(allow_dash=True))
@options.output("text", "json")
@options.offline
def command(*, files: tuple[str, ...], output: str, world: World) -> int:
    reading, others, errors = validate.read_and_warn("images", files, world)
    if files and not reading.manifests and not errors:
        raise CommandError(nothing_served(reading))
    started = list(_started([*reading.manifests, *others], world)) if files else images.default_images()
    names = list(dict.fromkeys([*images.INSTALLATION, *started]))
    loose = [name for name in names if not is_pinned(name)]
    if output == "json":
        click.echo(printing.as_json([{"image": name, "pinned": name not in loose} for name in names]), nl=False)
    else:
        printing.echo(names)
    printing.warn("images", [f"{name} is not pinned; write a version or a digest" for name in loose])
    return 1 if loose or errors else 0


def _started(manifests: list[Manifest], world: World) -> Iterator[str]:
    for members in sets.split(manifests, world.namespace).sets:
        for document in settled(members, world).objects.values():
            if document["kind"] in tracer.TEMPLATES:
                yield from images_of(document.get("spec") or {})


def images_of(part: Json) -> Iterator[str]:
    for key, value in part.items():
        items = value if isinstance(value, list) else [value]
        if key in ("containers", "initContainers"):
            yield from (str(item["image"]) for item in items if item.get("image"))
        elif key == "volumes":
            yield from (item["image"]["reference"] for item in items if (item.get("image") or {}).get("reference"))
        for item in items:
            if isinstance(item, dict):
                yield from images_of(item)


def is_pinned(image: str) -> bool:
    tag = _TAG.search(image)
    return "@sha256:" in image or (tag is not None and tag[0] != ":latest")
