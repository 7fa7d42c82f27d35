"""What CRDs say about Kubernetes' own types."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.kube.base import Json
from app.kube.embedded.schema import OPEN, merges, schema
from app.kube.embedded.types import TYPES

MERGING = sorted(name for name in TYPES if merges(name))


def objects(node: Json, type_name: str) -> Iterator[tuple[Json, str]]:
    """Yield each object that has fields, with its type."""
    if "properties" in node:
        yield node, type_name
        for name, member in node["properties"].items():
            yield from objects(member.get("items", member), TYPES[type_name][name].type)


@pytest.mark.parametrize("type_name", MERGING)
def test_an_object_has_all_its_fields_and_stays_open(type_name: str) -> None:
    """Clients that are generated from a CRD know no others; a newer field is kept all the same."""
    for node, name in objects(schema(type_name), type_name):
        assert node["properties"].keys() == TYPES[name].keys()
        assert node["x-kubernetes-preserve-unknown-fields"] is True


@pytest.mark.parametrize("type_name", ["Probe", "SecurityContext", "Toleration", "ResourceFieldSelector"])
def test_a_type_without_keys_is_only_open(type_name: str) -> None:
    assert schema(type_name) == OPEN


def test_a_key_is_required_or_has_a_default() -> None:
    """The API server refuses a CRD in which an item may lack a key."""
    containers = schema("PodSpec")["properties"]["containers"]
    assert containers["items"]["required"] == ["name"]
    ports = containers["items"]["properties"]["ports"]
    assert ports["x-kubernetes-list-map-keys"] == ["containerPort", "protocol"]
    assert ports["items"]["required"] == ["containerPort"]
    assert ports["items"]["properties"]["protocol"] == {"type": "string", "default": "TCP"}
    secrets = schema("PodSpec")["properties"]["imagePullSecrets"]["items"]
    assert secrets["properties"]["name"] == {"type": "string", "default": ""}
