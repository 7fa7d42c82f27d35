"""A search for a class finds one, and what names a class names one that exists."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from types import ModuleType

import pytest

from app.desk.cluster.kinds import all_kinds
from app.kube.base import KubeModel
from app.kube.embedded.types import TYPES
from tests.e2e.generated import kserve, llmaz, llmkube
from tests.repository.test_readme import ROOT


def test_no_two_classes_have_one_name() -> None:
    modules = [path.read_text() for path in (ROOT / "app").rglob("*.py")]
    classes = Counter(name for text in modules for name in re.findall(r"^ *class (\w+)[(:\[]", text, re.MULTILINE))
    assert len(classes) > 500
    assert [name for name, count in classes.items() if count > 1] == []


@pytest.mark.parametrize("family", [kserve, llmaz, llmkube])
def test_generated_manifests_have_rules_and_values_for_fields_that_exist(family: ModuleType) -> None:
    all_kinds()  # imports the types of all kinds
    fields: dict[str, set[str]] = {}
    for model in _subclasses(KubeModel):
        fields.setdefault(model.__name__, set()).update(info.alias or name for name, info in model.model_fields.items())
    assert [name for name in family.RULES if name not in fields and name not in TYPES] == []
    places = [place.partition(".") for place in family.POOLS]
    unknown = [place for place in places if place[0] not in TYPES and place[2] not in fields.get(place[0], ())]
    assert unknown == []


def _subclasses(model: type[KubeModel]) -> Iterator[type[KubeModel]]:
    for subclass in model.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)
