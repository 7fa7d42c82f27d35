"""What users embed, in the form in which it is sent. Source: llmaz spec 1.0 (quantities) and 3.4 (environment)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from app.kube.podspec import normalised
from app.kube.stored import without_nulls

Json = dict[str, Any]


def stored(value: Json) -> Json:
    """A pod template, or part of one, as the API server would store it, also where we do not know its fields."""
    return normalised(without_nulls(value, in_lists=True))


def environment(entries: Iterable[Json]) -> list[Json]:
    """Environment variables, each name once: the last entry of a name, in the place of its first."""
    by_name: dict[str, Json] = {}
    for entry in entries:
        by_name[entry["name"]] = stored(entry)
    return list(by_name.values())


def containers(spec: Json) -> list[Json]:
    """Init containers and containers of a pod."""
    return [*spec.get("initContainers", ()), *spec.get("containers", ())]
