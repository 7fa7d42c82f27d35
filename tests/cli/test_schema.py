"""``modelhooks schema``: JSON schemas that editors understand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from app.cli.schema import json_schema
from app.families import RESOURCES
from tests.cli.files import Command


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every schema within a schema."""
    yield schema
    for inner in schema.get("properties", {}).values():
        yield from nodes(inner)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from nodes(schema[key])


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: f"{resource.kind}.{resource.group}")
def test_a_schema_is_json_schema(resource: Any) -> None:
    """Draft 7, without what only the API server knows, and closed where the kind is."""
    schema = json_schema(resource)
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert schema["properties"]["kind"]["const"] == resource.kind
    assert schema["properties"]["apiVersion"]["const"] == resource.api_version
    assert {"apiVersion", "kind", "metadata"} <= set(schema["required"])
    assert schema["properties"]["spec"]["additionalProperties"] is False
    for node in nodes(schema):
        assert not any(key.startswith("x-kubernetes-") for key in node)
        assert not isinstance(node.get("exclusiveMinimum"), bool)


def test_what_is_embedded_stays_open() -> None:
    """A field of Kubernetes that is newer than this release is no mistake to an editor."""
    (resource,) = (r for r in RESOURCES if r.kind == "InferenceService")
    spec = json_schema(resource)["properties"]["spec"]
    assert "additionalProperties" not in spec["properties"]["env"]["items"]
    assert "additionalProperties" not in json_schema(resource)["properties"]["metadata"]


@pytest.mark.parametrize(
    "name", ["Model", "model", "models", "MODELS", "model.inference.llmkube.dev", "Models.inference.llmkube.dev"]
)
def test_a_kind_has_many_names(command: Command, name: str) -> None:
    """Its own, its plural, with and without its group, in any case."""
    result = command("schema", name)
    assert (result.status, result.json["title"]) == (0, "Model inference.llmkube.dev/v1alpha1")


@pytest.mark.parametrize("name", ["pod", "model.llmaz.io"])
def test_an_unknown_kind_is_an_error(command: Command, name: str) -> None:
    """With those that there are."""
    result = command("schema", name)
    assert (result.status, result.out) == (2, "")
    assert "inferenceservice.inference.llmkube.dev" in result.err


def test_a_name_that_several_kinds_have_needs_its_group(command: Command) -> None:
    """``isvc`` is a service of two families."""
    result = command("schema", "isvc")
    assert result.status == 2
    assert "add the group" in result.err
    assert command("schema", "isvc.inference.llmkube.dev").json["title"].startswith("InferenceService ")


def test_without_a_kind_all_are_listed(command: Command) -> None:
    """In the form that the command takes."""
    result = command("schema")
    assert result.status == 0
    assert [command("schema", name).status for name in result.out.split()] == [0] * len(RESOURCES)
