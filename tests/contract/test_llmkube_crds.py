"""The CRDs say what upstream's say: every property, type, enumeration, default, bound and requirement.

What differs on purpose stands in :data:`REVIEWED`, with the reason; anything else fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from app.kube.resource import CustomResource
from app.kube.schema import custom_resource_definition
from app.llmkube.model.types import SOURCE_PATTERN
from app.llmkube.resources import INFERENCE_SERVICE, MODEL
from tests.contract.schemas import Schema, differences, upstream, version
from tests.shared import needs_shared

pytestmark = needs_shared

EMBEDDED = "an embedded Kubernetes type is an open object, so that its future fields survive"

REVIEWED: dict[tuple[str, str, str], str] = {
    ("Model", "spec.source", "pattern"): "the same texts, with \\w and \\s written out (test_both_patterns_agree)",
    ("Model", "status.observedGeneration", "property"): "ours: Metacontroller writes it, and it must not be pruned",
    ("InferenceService", "status.observedGeneration", "property"): "as for the Model",
}
"""``(kind, path, what)``: why it differs."""


def open_objects(node: Schema, path: str = "") -> Iterator[str]:
    if node.get("x-kubernetes-preserve-unknown-fields"):
        yield path
        return
    for name, member in node.get("properties", {}).items():
        yield from open_objects(member, f"{path}.{name}".lstrip("."))
    if isinstance(node.get("items"), dict):
        yield from open_objects(node["items"], f"{path}[]")


@pytest.mark.parametrize("resource", [MODEL, INFERENCE_SERVICE], ids=lambda resource: resource.kind)
def test_every_property_agrees(resource: CustomResource) -> None:
    """Nothing differs but what was reviewed, and every reviewed difference still exists."""
    ours = version(custom_resource_definition(resource))["schema"]["openAPIV3Schema"]
    theirs = version(upstream(resource))["schema"]["openAPIV3Schema"]
    found = set(differences(theirs, ours))
    assert found == {(path, what) for kind, path, what in REVIEWED if kind == resource.kind}


@pytest.mark.parametrize("resource", [MODEL, INFERENCE_SERVICE], ids=lambda resource: resource.kind)
def test_names_columns_and_subresources_agree(resource: CustomResource) -> None:
    """``kubectl get`` shows the same table, ``kubectl scale`` writes the same field."""
    ours, theirs = custom_resource_definition(resource), upstream(resource)
    assert ours["metadata"]["name"] == theirs["metadata"]["name"]
    assert ours["spec"]["names"] == theirs["spec"]["names"]
    assert ours["spec"]["scope"] == theirs["spec"]["scope"]
    assert version(ours)["subresources"] == version(theirs)["subresources"]
    columns = [
        {key: column[key] for key in ("name", "type", "jsonPath", "priority") if key in column}
        for column in version(theirs)["additionalPrinterColumns"]
    ]
    assert version(ours)["additionalPrinterColumns"] == columns
    assert (version(ours)["name"], version(ours)["served"], version(ours)["storage"]) == ("v1alpha1", True, True)


def test_only_kubernetes_own_types_are_open() -> None:
    """An open object loses the API server's checks, so there is one only where Kubernetes' own types stand."""
    schema = version(custom_resource_definition(INFERENCE_SERVICE))["schema"]["openAPIV3Schema"]
    assert set(open_objects(schema)) == {
        "spec.env[]",
        "spec.tolerations[]",
        "spec.imagePullSecrets[]",
        "spec.probeOverrides.startup",
        "spec.probeOverrides.liveness",
        "spec.probeOverrides.readiness",
        "spec.podSecurityContext",
        "spec.securityContext",
        "spec.vllmConfig.hfTokenSecretRef",
        "spec.tgiConfig.hfTokenSecretRef",
        "spec.personaPlexConfig.hfTokenSecretRef",
    }, EMBEDDED
    schema = version(custom_resource_definition(MODEL))["schema"]["openAPIV3Schema"]
    assert set(open_objects(schema)) == set()


@pytest.mark.parametrize(
    "text",
    [
        "https://example.com/a b",
        "pvc://c/p",
        "file://",
        "/a",
        "/a b",
        "/a\tb",
        "/",
        "a",
        "ab",
        "a/b_c-d.e",
        "a b",
        "-a/b",
        "s3://bucket/key",
        "hf://a/b",
        "HTTPS://x",
        "é/b",
        "a/é",
        "/é",
        "/a\u00a0b",
        "",
    ],
)
def test_both_patterns_agree(text: str) -> None:
    """Our pattern of ``source`` takes what upstream's takes, with Go's meaning of its character classes."""
    theirs = version(upstream(MODEL))["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["source"]
    assert bool(re.search(SOURCE_PATTERN, text, re.ASCII)) == bool(re.search(theirs["pattern"], text, re.ASCII))
