"""Lists and maps are applied by the same keys as with upstream's CRDs, also inside of Kubernetes' own types.

Otherwise replacing those CRDs lets an unchanged server-side apply delete what other managers wrote, without a conflict.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from app.families import RESOURCES
from app.kube.resource import CustomResource
from tests.contract.recordings import records
from tests.contract.schemas import Properties, properties
from tests.contract.test_crds import here

ASPECTS = ("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type")
FAMILIES = {"llmkube": "llmkube-0.9.19", "llmaz": "llmaz", "kserve": "kserve"}
"""The recordings that have the whole CRD of a family."""
OURS = {
    r"status\.conditions": "conditions are a map by type",
    r".*\.ephemeralContainers.*": "no template may have them",
    r".*\.(fileKeyRef|evictionResponders|bindMountOptions)": "a field of a newer Kubernetes than upstream's",
    r"spec\.router\.scheduler\.tokenizer\..*": "a field of KServe v0.20",
    r".*[sS]ecretRef|.*\.nodePublishSecretRef|.*imagePullSecrets\[\]": "one field: whole or by field is the same",
    r".*\.requiredDuringSchedulingIgnoredDuringExecution": "the same: its one field is one value",
    r".*\.volumes\[\]\.configMap": "by field, as in a pod: upstream's generator takes it for a reference",
}
"""Reasons of differences by path."""

versions = pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.plural)


def upstream(resource: CustomResource) -> Properties:
    crd = next(
        definition
        for definition in records("crds")
        if definition["source"] == FAMILIES[resource.family]
        and definition["name"] == f"{resource.plural}.{resource.group}"
    )
    declared: Properties = next(v for v in crd["versions"] if v["name"] == resource.version)["properties"]
    return declared


def ours(resource: CustomResource) -> Properties:
    return properties(here(resource)[1]["schema"]["openAPIV3Schema"])


def applied(declared: Properties) -> dict[str, tuple[object, ...]]:
    """Return how each place is applied that is not applied as other than the default, outside of what is one value."""
    return {
        path: marks
        for path, about in declared.items()
        if any(marks := tuple(about.get(aspect) for aspect in ASPECTS))
        and marks[0] != "atomic"
        and path.startswith(("spec", "status"))
        and not any(_is_one_value(declared, above) for above in _above(path))
    }


def _is_one_value(declared: Properties, path: str) -> bool:
    about = declared.get(path, {})
    by_key = about.get("x-kubernetes-list-type") in ("map", "set")
    return about.get("x-kubernetes-map-type") == "atomic" or (about.get("type") == "array" and not by_key)


def _above(path: str) -> Iterator[str]:
    while path := path[:-2] if path.endswith(("[]", "{}")) else path.rpartition(".")[0]:
        yield path


def reviewed(path: str) -> bool:
    return any(re.fullmatch(pattern, path) for pattern in OURS)


@versions
def test_everything_is_applied_by_the_same_keys(resource: CustomResource) -> None:
    theirs, mine = applied(upstream(resource)), applied(ours(resource))
    differing = {path for path in theirs.keys() | mine.keys() if theirs.get(path) != mine.get(path)}
    assert {path: (theirs.get(path), mine.get(path)) for path in differing if not reviewed(path)} == {}


@versions
def test_keys_have_upstreams_defaults(resource: CustomResource) -> None:
    """An item without a key that is optional has the key that upstream's CRD gives it."""
    theirs, mine = upstream(resource), ours(resource)
    keyed = {
        path: about["x-kubernetes-list-map-keys"]
        for path, about in mine.items()
        if path.startswith("spec") and "x-kubernetes-list-map-keys" in about
    }
    keys = [f"{path}[].{key}" for path, names in keyed.items() for key in names if not reviewed(path)]
    assert [key for key in keys if mine[key].get("default") != theirs[key].get("default")] == []


def test_many_places_are_compared() -> None:
    counts = {resource.plural: len(applied(ours(resource))) for resource in RESOURCES}
    assert counts["llminferenceservices"] > 150
    assert counts["services"] > 60
