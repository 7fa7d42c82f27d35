"""The CRDs say what upstream's say: every property, type, enumeration, default, bound, requirement and rule.

What differs on purpose stands in :data:`REVIEWED`, with the reason; anything else fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from app.kserve.resources import LLM_INFERENCE_SERVICE, LLM_INFERENCE_SERVICE_CONFIG, RESOURCES
from app.kube import structural
from app.kube.resource import CustomResource
from app.kube.schema import custom_resource_definition
from tests.contract.schemas import Schema, differences, upstream, version
from tests.shared import needs_shared

pytestmark = needs_shared

CONDITIONS = "conditions are a map by type, and their status is one of three words"
METACONTROLLER = "ours: Metacontroller writes the status of a config, which upstream does not have"
TEMPLATED = "a config may hold a template here, as in upstream's v1alpha2"
REVIEWED: dict[tuple[str, str], str] = {
    (r"status\.conditions", "x-kubernetes-list-.*"): CONDITIONS,
    (r"status\.conditions\[\]\.status", "enum"): CONDITIONS,
    (r"spec\.model", "required"): "a config may give a model's name alone (10.1)",
    (r".*\.parentRefs\[\]\.namespace", "pattern|minLength|maxLength"): TEMPLATED,
    (r".*\.(parentRefs|backendRefs)\[\]\.name", "maxLength"): TEMPLATED,
    (r".*\.path\.(value|replaceFullPath|replacePrefixMatch)", "maxLength"): TEMPLATED,
    (r"spec\.router\.scheduler\.pool\.spec.*", ".*"): "a config's pool may have the form of v1alpha2 or of v1 (9.3)",
    (r"status.*", "property|type"): METACONTROLLER,
    (r".*\.(urlRewrite|matches\[\])\.path", "rules"): TEMPLATED,
    (r".*\.variantCost", "pattern"): "the same texts: \\d also takes digits of other scripts, outside of Go",
    (r".*\.(group|name)", "default"): "an empty text is what absent means; routes are completed before they are sent",
    (r".*\.matches\[\]\.path", "default"): "completed before the route is sent",
    (
        r".*\.forwardBody\.maxSize",
        "format|minimum",
    ): "upstream's Go type is unsigned 16-bit, of which its schema says nothing",
}
"""``(path, what)`` as patterns: why it differs."""


def reviewed(path: str, what: str) -> bool:
    return any(re.fullmatch(p, path) and re.fullmatch(w, what) for p, w in REVIEWED)


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.kind)
def test_schema(resource: CustomResource) -> None:
    """Field by field; every difference is a reviewed one."""
    theirs = version(upstream(resource))["schema"]["openAPIV3Schema"]
    ours = custom_resource_definition(resource)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    found = [
        (path, what)
        for part in ("spec", "status")
        for path, what in differences(theirs["properties"].get(part, {}), ours["properties"][part], part)
    ]
    assert [difference for difference in found if not reviewed(*difference)] == []


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.kind)
def test_names_and_columns(resource: CustomResource) -> None:
    """What ``kubectl get`` shows, and by which names."""
    theirs, ours = upstream(resource)["spec"], custom_resource_definition(resource)["spec"]
    assert ours["group"] == theirs["group"]
    assert ours["scope"] == theirs["scope"]
    assert ours["names"] == theirs["names"]
    if resource is LLM_INFERENCE_SERVICE:
        columns = version(upstream(resource))["additionalPrinterColumns"]
        assert ours["versions"][0]["additionalPrinterColumns"] == [
            {**column, "name": column["name"]} for column in columns
        ]


def test_a_config_has_a_status() -> None:
    """Metacontroller refuses a parent without the subresource."""
    crd = custom_resource_definition(LLM_INFERENCE_SERVICE_CONFIG)
    assert crd["spec"]["versions"][0]["subresources"] == {"status": {}}


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.kind)
def test_the_schema_is_structural(resource: CustomResource) -> None:
    """As far as it can be said without an API server."""
    assert list(structural.lint(custom_resource_definition(resource))) == []


def rules_of(schema: Schema, path: str) -> Iterator[tuple[str, int]]:
    if found := schema.get("x-kubernetes-validations"):
        yield path, len(found)
    for name, inner in schema.get("properties", {}).items():
        yield from rules_of(inner, f"{path}.{name}")
    if isinstance(schema.get("items"), dict):
        yield from rules_of(schema["items"], f"{path}[]")


def test_rules_between_fields_stand_where_upstreams_do() -> None:
    """At every place that has CEL rules upstream, ours has some too."""
    theirs = version(upstream(LLM_INFERENCE_SERVICE))["schema"]["openAPIV3Schema"]["properties"]["spec"]
    crd = custom_resource_definition(LLM_INFERENCE_SERVICE)
    ours = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    mine = dict(rules_of(ours, "spec"))
    assert [path for path, _ in rules_of(theirs, "spec") if path not in mine and ".template" not in path] == []
