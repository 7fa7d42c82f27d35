"""Commands answer for every example with a field absent, null or of another type.

Commands that refuse files with errors get the objects without errors. Of these, krm and diff get one batch, because
they do little with each object that validate and render do not.
"""

from __future__ import annotations

import copy
import io
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from app.desk.cluster.catalogue import examples, installed
from app.desk.cluster.kinds import SERVED, find
from app.desk.cluster.offline import identity
from app.desk.cluster.single import check
from app.desk.convert.counterparts import FAMILIES
from app.desk.files.manifests import ManifestError, parse
from app.families import RESOURCES
from app.kube.base import Json
from app.kube.resource import CustomResource
from app.settings import Settings
from tests.changed import changed
from tests.cli.files import Command

pytestmark = pytest.mark.no_cover

Place = tuple[str | int, ...]
NAMES = [name for kinds in SERVED.values() for name in kinds]
COMMANDS = (["fit"], *(["convert", "--to", family] for family in FAMILIES))
REPLACEMENTS: tuple[Any, ...] = (..., None, {}, [], "x")
"""Values that each field gets; ``...`` removes it."""
BATCH = 50
"""Number of objects in one cluster. A request has all objects of its namespace, so the time grows with their square."""
EXPLAINED = 4
"""The number of objects of each kind whose fields are all tried with explain."""


def places(value: Any, path: Place = ()) -> Iterator[Place]:
    """Yield the path of every field and item."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def mutants(kind: str) -> list[Json]:
    """Return the examples of a kind, each with one field changed. Each path is changed once, and names are unique."""
    changed_by_shape: dict[tuple[Place, int], Json] = {}
    for example in examples():
        for document in (manifest.document for manifest in parse(example["text"], example["name"])):
            if document["kind"] != kind or find(document["apiVersion"], kind) is None:
                continue
            for place in places(document):
                shape = tuple("*" if isinstance(key, int) else key for key in place)
                for number, value in enumerate(REPLACEMENTS):
                    if (shape, number) not in changed_by_shape:
                        changed_by_shape[shape, number] = copy.deepcopy(changed(document, place, value))
    for number, document in enumerate(changed_by_shape.values()):
        if isinstance(document.get("metadata"), dict) and "name" in document["metadata"]:
            document["metadata"]["name"] = document["metadata"]["name"] and f"m{number}"
    return list(changed_by_shape.values())


def resource_of(kind: str) -> CustomResource:
    return next(resource for resource in RESOURCES if resource.kind == kind)


def context(kind: str) -> list[Json]:
    """Return the objects of other kinds that the family's examples refer to; families do not know each other."""
    family = resource_of(kind).family
    texts = [example for example in examples() if example["name"].startswith(f"{family}/")]
    samples = [manifest for example in texts for manifest in parse(example["text"], example["name"])]
    others = [manifest.document for manifest in (*samples, *installed(samples))]
    by_name = {(document["kind"], document["metadata"].get("name")): document for document in others}
    return [manifest for (other, name), manifest in by_name.items() if other != kind and name and not errors(manifest)]


def errors(document: Json) -> list[str]:
    """Return the errors of an object without other objects."""
    try:
        (manifest,) = parse(orjson.dumps(document).decode(), "mutant.json")
    except ManifestError as error:
        return [str(error)]
    if identity(manifest, "default") is None:
        return ["no cluster can hold it"]
    return [str(finding) for finding in check(manifest, Settings()) if finding.level == "error"]


def batches(documents: list[Json]) -> list[list[Json]]:
    """Divide documents into batches of at most `BATCH`, each with objects from the whole list."""
    count = -(-len(documents) // BATCH)
    return [documents[number::count] for number in range(count)]


@pytest.mark.parametrize("kind", NAMES)
def test_a_field_that_is_absent_or_of_another_type(
    command: Command, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    objects, others = mutants(kind), context(kind)
    valid = [document for document in objects if not errors(document)]
    assert len(objects) > len(valid) > 20
    related = command.file("related.yaml", *others)
    for batch in batches(objects):
        path = command.file("all.yaml", *batch)
        assert command("validate", path, "--with", related).status == 1
        assert command("render", "--status", path, "--with", related).status in (1, 2)
    for batch in batches(valid):
        path = command.file("valid.yaml", *batch)
        for arguments in COMMANDS:
            assert command(*arguments, path, "--with", related).status in (0, 1, 2)
    some = batches(valid)[0]
    items = orjson.dumps({"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": some})
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(items)))
    assert command("krm").status == 0
    old = command.file("old.yaml", *({**some[0], "metadata": document["metadata"]} for document in some))
    new = command.file("new.yaml", *some)
    assert command("diff", old, new, "--with", related).status == int(resource_of(kind).children != ())
    explained = valid[:: len(valid) // EXPLAINED]
    assert command("explain", command.file("explained.yaml", *explained), "--with", related).status == 0
