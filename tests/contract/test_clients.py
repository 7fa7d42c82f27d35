"""What clients that are generated from the CRDs keep of a manifest: each field of an object that the schema describes.

Generators such as cdk8s, datamodel-code-generator and Terraform's provider read `properties` as all that there is, and
take an object without any for a map of anything.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.desk.files.folders import read
from app.families import RESOURCES
from app.kube.base import Json
from tests.contract.recordings import RECORDINGS, cases
from tests.contract.world import expanded
from tools.crds import custom_resource_definition

ROOT = Path(__file__).parents[2]
OPEN = "x-kubernetes-preserve-unknown-fields"
VERSIONS = {
    (version.api_version, version.kind): version for resource in RESOURCES for version in (resource, *resource.older)
}


@functools.cache
def schema(api_version: str, kind: str) -> Json:
    resource = VERSIONS[api_version, kind]
    hub = next(other for other in RESOURCES if (other.group, other.kind) == (resource.group, resource.kind))
    versions = custom_resource_definition(hub)["spec"]["versions"]
    declared: Json = next(v for v in versions if v["name"] == resource.version)["schema"]["openAPIV3Schema"]
    return declared


def lost(value: object, declared: Json, path: str) -> Iterator[str]:
    """Yield what the API server keeps, and a client that knows the schema alone does not."""
    if isinstance(value, list):
        for item in value:
            yield from lost(item, declared.get("items", {}), f"{path}[]")
    elif isinstance(value, dict) and "properties" in declared:
        for name, item in value.items():
            if name in declared["properties"]:
                yield from lost(item, declared["properties"][name], f"{path}.{name}")
            elif declared.get(OPEN):
                yield f"{path}.{name}"
    elif isinstance(value, dict):
        for item in value.values():
            yield from lost(item, declared.get("additionalProperties", {}), f"{path}{{}}")


def test_every_example_comes_back_whole() -> None:
    folders = [str(ROOT / "examples"), str(ROOT / "manifests" / "llmaz-runtimes")]
    documents = [file.document for file in read(folders)]
    judged = [document for document in documents if (document.get("apiVersion"), document.get("kind")) in VERSIONS]
    assert {document["kind"] for document in judged} == {resource.kind for resource in RESOURCES}
    assert {name for document in judged for name in _lost(document)} == set()


@pytest.mark.parametrize("recording", RECORDINGS)
def test_every_recorded_object_comes_back_whole(recording: str) -> None:
    objects = [item for case in cases(recording) for item in (*case.get("objects", ()), case.get("object", {}))]
    judged = [expanded(item) for item in objects if (item.get("apiVersion"), item.get("kind")) in VERSIONS]
    assert len(judged) > 100
    assert {name for document in judged for name in _lost(document)} == set()


def _lost(document: Json) -> Iterator[str]:
    declared = schema(document["apiVersion"], document["kind"])["properties"]["spec"]
    return lost(document.get("spec") or {}, declared, f"{document['kind']}.spec")
