"""KServe's own conversions, as recorded: ours writes the same, and unlike KServe's it loses nothing on the way back."""

from __future__ import annotations

from typing import Any

import pytest

from app.kserve.conversion import convert
from tests.contract.recordings import Json, records

CASES = list(records("conversions"))
cases = pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))


@cases
def test_the_object_is_kserves(case: Json) -> None:
    """But for annotations of ours, and for what Go writes of fields that are absent."""
    converted = convert(case["from"], case["to"]["apiVersion"])
    assert cleaned(converted) == cleaned(case["to"])


@cases
def test_there_and_back_is_the_same(case: Json) -> None:
    """Target ports, criticalities, spelling and all."""
    there = convert(case["from"], case["to"]["apiVersion"])
    assert without_nulls(convert(there, case["from"]["apiVersion"])) == without_nulls(case["from"])


def without_nulls(value: Any) -> Any:
    """``null`` is absent to an API server, and so are no annotations at all."""
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None and (k, v) != ("annotations", {})}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def cleaned(document: Json) -> Any:
    """Without what the recordings do not judge."""
    annotations = document["metadata"].get("annotations") or {}
    kept = {key: value for key, value in annotations.items() if not key.startswith("modelhooks.dev/")}
    cleaned = _cleaned({**document, "metadata": {**document["metadata"], "annotations": kept}})
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
