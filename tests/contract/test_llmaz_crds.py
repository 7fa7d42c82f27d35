"""Our CRDs of the llmaz family beside upstream's: the same names, fields, types, enumerations, defaults and bounds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from app.kube.resource import CustomResource
from app.kube.schema import custom_resource_definition
from app.llmaz.resources import RESOURCES
from tests.shared import UPSTREAM, needs_shared

pytestmark = needs_shared

Json = dict[str, Any]

CRDS = UPSTREAM / "llmaz" / "crds"
ASPECTS = ("type", "format", "enum", "default", "minimum", "maximum", "minItems", "maxItems")
EMBEDDED = {
    "BackendRuntime": {
        "spec.envs[]",
        "spec.lifecycle",
        "spec.livenessProbe",
        "spec.readinessProbe",
        "spec.startupProbe",
        "spec.recommendedConfigs[].scaleTrigger.hpa.metrics[]",
        "spec.recommendedConfigs[].scaleTrigger.hpa.behavior",
    },
    "Playground": {
        "spec.backendRuntimeConfig.envs[]",
        "spec.elasticConfig.scaleTrigger.hpa.metrics[]",
        "spec.elasticConfig.scaleTrigger.hpa.behavior",
    },
    "Service": {"spec.workloadTemplate.workerTemplate", "spec.workloadTemplate.leaderTemplate"},
    "OpenModel": set(),
}
"""Kubernetes' own types: open here, so that fields newer than this service survive; the webhook checks them."""

DIFFERENCES = {
    (
        "Service",
        "spec.rolloutStrategy",
        "default",
    ): "the hook takes the same default, nothing is written into the object",
    ("Service", "spec.rolloutStrategy", "required"): "its one required field has a default, so nothing can be missing",
}
"""Reviewed differences of ``spec``: kind, path, aspect, and why."""

CONDITIONS = {"status.conditions"}
"""Conditions differ in form only: a map by type instead of a list, and without bounds on what others write."""


def upstream(resource: CustomResource) -> Json:
    crd = json.loads((CRDS / f"{resource.group}_{resource.plural}.json").read_text())
    spec: Json = crd["spec"]
    return spec


def root(spec: Json) -> Json:
    (version,) = spec["versions"]
    schema: Json = version["schema"]["openAPIV3Schema"]
    return schema


def fields(node: Json, path: str) -> Iterator[tuple[str, Json]]:
    """Every field with its schema, outside in; embedded types as one field."""
    yield path, node
    if node.get("x-kubernetes-preserve-unknown-fields"):
        return
    for name, member in node.get("properties", {}).items():
        yield from fields(member, f"{path}.{name}")
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(node.get(key), dict):
            yield from fields(node[key], path + mark)


def below(path: str, roots: set[str]) -> bool:
    return any(path.startswith((f"{start}.", f"{start}[", f"{start}{{")) for start in roots)


def compared(resource: CustomResource, part: str) -> tuple[dict[str, Json], dict[str, Json]]:
    skipped = EMBEDDED[resource.kind] | CONDITIONS
    ours = root(custom_resource_definition(resource)["spec"])["properties"][part]
    theirs = root(upstream(resource))["properties"][part]
    return tuple({p: n for p, n in fields(node, part) if not below(p, skipped)} for node in (ours, theirs))  # type: ignore[return-value]


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.kind)
def test_names(resource: CustomResource) -> None:
    """Group, names, scope, columns in their order, and subresources."""
    ours, theirs = custom_resource_definition(resource)["spec"], upstream(resource)
    assert ours["group"] == theirs["group"]
    assert ours["scope"] == theirs["scope"]
    assert ours["names"] == theirs["names"]
    mine, other = ours["versions"][0], theirs["versions"][0]
    assert (mine["name"], mine["served"], mine["storage"]) == (other["name"], True, True)
    assert mine["subresources"] == other["subresources"]
    assert columns(mine) == columns(other)


def columns(version: Json) -> list[tuple[str, str, str]]:
    return [(c["name"], c["type"], c["jsonPath"]) for c in version.get("additionalPrinterColumns") or []]


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.kind)
def test_spec(resource: CustomResource) -> None:
    """Field by field; the only differences are the reviewed ones."""
    ours, theirs = compared(resource, "spec")
    assert ours.keys() == theirs.keys()
    embedded = {path for path, node in ours.items() if node.get("x-kubernetes-preserve-unknown-fields")}
    assert embedded == EMBEDDED[resource.kind]
    found = {
        (resource.kind, path, aspect)
        for path, node in ours.items()
        for aspect in (*ASPECTS, "required", "x-kubernetes-int-or-string")
        if value(node, aspect) != value(theirs[path], aspect)
        and not (path in embedded and aspect in ("required", "type"))
    }
    assert found == {key for key in DIFFERENCES if key[0] == resource.kind}


def value(node: Json, aspect: str) -> Any:
    """An aspect in comparable form."""
    found = node.get(aspect)
    return sorted(found) if aspect in ("required", "enum") and found else found


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.kind)
def test_status(resource: CustomResource) -> None:
    """Upstream's fields, and ``observedGeneration``, which Metacontroller writes."""
    ours, theirs = compared(resource, "status")
    assert ours.keys() - {"status.observedGeneration"} == theirs.keys()
    assert ours["status.observedGeneration"]["format"] == "int64"
    for path, node in theirs.items():
        assert (ours[path].get("type"), ours[path].get("format")) == (node.get("type"), node.get("format"))


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.kind)
def test_quantities(resource: CustomResource) -> None:
    """Numbers or texts, and the texts are those that upstream takes."""
    ours, theirs = compared(resource, "spec")
    for path, node in theirs.items():
        if "pattern" in node:
            assert ours[path]["x-kubernetes-int-or-string"] is True
            assert ours[path]["pattern"]
