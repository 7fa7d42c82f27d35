"""The troubleshooting pages explain every reason of our conditions."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from enum import StrEnum

import pytest

import app
from app.llmkube.runtimes.registry import RUNTIMES
from tests.repository.test_readme import ROOT

DOCS = ROOT / "docs"
PAGES = "".join(page.read_text() for page in (DOCS / "troubleshooting.md", *(DOCS / "troubleshooting").glob("*.md")))
CAUSE = re.compile(r"(?:Cause|Finding)\((?:[^()]|\([^()]*\))*?\"([A-Z][A-Za-z]+)\"", re.DOTALL)
DEFAULT = re.compile(r"reason_word\([^()]*, \"([A-Z][A-Za-z]+)\"\)")

NAMES = ("Reason", "Condition", "SchedulingStatus", "Obstacle")


def enumerations() -> Iterator[type[StrEnum]]:
    """Yield the enumerations of reasons and conditions."""
    for module in pkgutil.walk_packages(app.__path__, "app."):
        if module.name.startswith(("app.kserve.", "app.llmaz.", "app.llmkube.", "app.workload.")):
            members = vars(importlib.import_module(module.name)).values()
            kinds = (item for item in members if isinstance(item, type) and issubclass(item, StrEnum))
            yield from (item for item in kinds if item.__name__.endswith(NAMES))


def reasons() -> Iterator[str]:
    """Yield the values of the enumerations, and reasons in the code of causes."""
    for enum in enumerations():
        yield from (member.value for member in enum)
    yield from filter(None, (runtime.condition for runtime in RUNTIMES.values()))
    for folder in ("workload", "llmkube/model", "llmkube/inferenceservice"):
        for file in sorted((ROOT / "app" / folder).rglob("*.py")):
            text = file.read_text()
            yield from (*CAUSE.findall(text), *DEFAULT.findall(text))


@pytest.mark.parametrize("reason", sorted({*reasons()}))
def test_a_reason_is_explained(reason: str) -> None:
    """A user who searches for the reason finds it."""
    assert f"`{reason}`" in PAGES
