"""``modelhooks schema``: JSON schemas for editors."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from app.desk.cluster.kinds import SERVED
from app.desk.schemas import json_schema
from app.families import KINDS, RESOURCES
from app.kube.base import Json
from tests.cli.files import Command

ROOT = Path(__file__).parents[2]


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield every schema within a schema."""
    yield schema
    for inner in schema.get("properties", {}).values():
        yield from nodes(inner)
    for inner in schema.get("definitions", {}).values():
        yield from nodes(inner)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from nodes(schema[key])


TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}


def mistakes(schema: Any, value: Any, root: Any, path: str = "") -> Iterator[str]:
    """Yield the errors of a value, for the keywords that our schemas use."""
    parts = [*schema.get("allOf", ())]
    if "$ref" in schema:
        parts.append(root["definitions"][schema["$ref"].rpartition("/")[2]])
    for part in parts:
        yield from mistakes(part, value, root, path)
    if "anyOf" in schema and all(list(mistakes(part, value, root, path)) for part in schema["anyOf"]):
        yield f"{path}: no alternative"
    wanted = [schema["type"]] if isinstance(schema.get("type"), str) else schema.get("type", ())
    if wanted and not any(is_of(type_, value) for type_ in wanted):
        yield f"{path}: not {wanted}"
    else:
        yield from mistakes_below(schema, value, root, path)


def is_of(type_: str, value: Any) -> bool:
    """Return whether a value has the type. A boolean is not a number, unlike in Python."""
    return isinstance(value, TYPES[type_]) and (type_ == "boolean") == isinstance(value, bool)


def mistakes_below(schema: Any, value: Any, root: Any, path: str) -> Iterator[str]:
    """Yield the errors in a map, list or scalar of the right type."""
    if isinstance(value, dict):
        yield from mistakes_of_fields(schema, value, root, path)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from mistakes(schema.get("items", {}), item, root, f"{path}[{position}]")
    elif value != schema.get("const", value) or value not in schema.get("enum", [value]):
        yield f"{path}: not one of the values"
    elif isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield f"{path}: not of the form"


def mistakes_of_fields(schema: Any, value: Json, root: Any, path: str) -> Iterator[str]:
    yield from (f"{path}.{key}: missing" for key in schema.get("required", ()) if key not in value)
    for key, item in value.items():
        inner = schema.get("properties", {}).get(key, schema.get("additionalProperties", {}))
        if inner is False:
            yield f"{path}.{key}: unknown"
        elif isinstance(inner, dict):
            yield from mistakes(inner, item, root, f"{path}.{key}")


def said(document: Json) -> list[str]:
    """Return the errors of an object by the schema of its kind and version."""
    schema = schema_of(document["apiVersion"], document["kind"])
    return list(mistakes(schema, document, schema))


@functools.cache
def schema_of(api_version: str, kind: str) -> Json:
    served = [version.resource for kind_ in KINDS for version in (kind_, *kind_.older)]
    return json_schema(
        next(version for version in served if (version.api_version, version.kind) == (api_version, kind))
    )


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: f"{resource.kind}.{resource.group}")
def test_a_schema_is_json_schema(resource: Any) -> None:
    """Draft 7, without the API server's extensions; it is closed where the kind is."""
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
    """Editors accept fields of newer Kubernetes releases."""
    (resource,) = (r for r in RESOURCES if r.kind == "InferenceService")
    spec = json_schema(resource)["properties"]["spec"]
    assert "additionalProperties" not in spec["properties"]["env"]["items"]
    assert "additionalProperties" not in json_schema(resource)["properties"]["metadata"]


@pytest.mark.no_cover
def test_the_examples_fit_the_schemas() -> None:
    """All objects of our kinds, except for the rejected examples."""
    documents = [
        document
        for file in sorted((ROOT / "examples").rglob("*.yaml"))
        if "rejected" not in file.parts
        for document in yaml.load_all(file.read_text(), yaml.CSafeLoader)
        if document
        and document.get("apiVersion", "").partition("/")[0] in SERVED
        and document["kind"] in SERVED[document["apiVersion"].partition("/")[0]]
    ]
    assert len(documents) > 30
    assert [mistake for document in documents for mistake in said(document)] == []


def pods(**spec: Any) -> Json:
    """Return a service of KServe with that pod template."""
    body = {"model": {"uri": "hf://a/b"}, "template": spec}
    return {"apiVersion": "serving.kserve.io/v1alpha2", "kind": "LLMInferenceService", "metadata": {}, "spec": body}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (
            {"containers": [{"name": "main", "env": [{"name": "A", "value": 1}]}]},
            ".containers[0].env[0].value: not ['string']",
        ),
        ({"containers": [{"image": "x"}]}, ".containers[0].name: missing"),
        (
            {"containers": [{"name": "main", "ports": [{"containerPort": "http"}]}]},
            ".ports[0].containerPort: not ['integer']",
        ),
        ({"nodeSelector": {"a": True}}, ".nodeSelector.a: not ['string']"),
        ({"tolerations": {}}, ".tolerations: not ['array']"),
    ],
)
def test_pod_templates_are_known_inside(template: Json, expected: str) -> None:
    """Types and required fields of Kubernetes are checked."""
    (mistake,) = said(pods(**template))
    assert mistake.endswith(expected)


def test_a_pod_template_may_leave_its_containers_to_a_preset() -> None:
    """Fields of newer Kubernetes releases are accepted."""
    assert said(pods(nodeSelector={"a": "b"}, fieldOfTheFuture=1)) == []
    assert (
        said(pods(containers=[{"name": "main", "resources": {"limits": {"nvidia.com/gpu": 1, "memory": "8Gi"}}}])) == []
    )


def test_schemas_are_written_for_kubeconform_and_for_editors(command: Command, tmp_path: Path) -> None:
    """kubeconform: files by group, kind and version, also older ones. Editors: files by full name, and one for all."""
    assert command("schema", "--all", "--out-dir", str(tmp_path)).status == 0
    written = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.json")}
    assert "inference.llmaz.io/playground_v1alpha1.json" in written
    assert {f"serving.kserve.io/llminferenceservice_{version}.json" for version in ("v1alpha1", "v1alpha2")} <= written
    flat = {f"{resource.kind.lower()}.{resource.group}.json" for resource in RESOURCES}
    assert flat <= written
    alternatives = orjson.loads((tmp_path / "all.json").read_bytes())["oneOf"]
    assert {alternative["$ref"] for alternative in alternatives} == flat


@pytest.mark.parametrize(
    "name", ["Model", "model", "models", "MODELS", "model.inference.llmkube.dev", "Models.inference.llmkube.dev"]
)
def test_a_kind_has_many_names(command: Command, name: str) -> None:
    """Kind or plural, with or without the group, in any case."""
    result = command("schema", name)
    assert (result.status, result.json["title"]) == (0, "Model inference.llmkube.dev/v1alpha1")


@pytest.mark.parametrize(
    ("name", "words"),
    [("gadget", "no such kind: model.inference.llmkube.dev, "), ("playgruond", 'did you mean "playground"?')],
)
def test_rejects_an_unknown_kind(command: Command, name: str, words: str) -> None:
    """The message has the most similar name, or all names."""
    result = command("schema", name)
    assert (result.status, result.out) == (2, "")
    assert words in result.err


def test_a_name_that_several_kinds_have_needs_its_group(command: Command) -> None:
    """``isvc`` is the short name of two families' kinds."""
    result = command("schema", "isvc")
    assert result.status == 2
    assert "add the group" in result.err
    assert command("schema", "isvc.inference.llmkube.dev").json["title"].startswith("InferenceService ")


def test_without_a_kind_all_are_listed(command: Command) -> None:
    """The names can be passed to the command."""
    result = command("schema")
    assert result.status == 0
    assert [command("schema", name).status for name in result.out.split()] == [0] * len(RESOURCES)
