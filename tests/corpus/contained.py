"""Checks that a user's strings remain data: which strings an answer has, where its children are, what a shell runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from app.kube.base import Json
from tests.service import Answer


def texts(value: Any) -> Iterator[str]:
    """Yield every string in a document."""
    if isinstance(value, dict):
        for item in value.values():
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, str):
        yield value


def is_contained(answer: Answer) -> list[Json]:
    """Return the children of a sync answer, all of which must be in the parent's namespace."""
    assert answer.status == 200, answer
    children: list[Json] = answer.json["children"]
    assert {child["metadata"].get("namespace", "ns") for child in children} <= {"ns"}
    return children


def pods(children: list[Json]) -> list[Json]:
    return [child["spec"]["template"]["spec"] for child in children if "template" in child.get("spec", {})]


def containers(children: list[Json]) -> list[Json]:
    return [c for pod in pods(children) for c in [*pod.get("initContainers", []), *pod.get("containers", [])]]


def shells(children: list[Json]) -> list[str]:
    """Return every string that a shell reads as a program: the argument after ``-c``."""
    programs = []
    for container in containers(children):
        words = [*container.get("command", []), *container.get("args", [])]
        programs += [after for word, after in itertools.pairwise(words) if word == "-c"]
    return programs
