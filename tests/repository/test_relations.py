"""Every rule of a customize answer is declared on its kind, with its way of selecting."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
import yaml

from app.desk.cluster import store
from app.desk.cluster.kinds import find
from app.families import RESOURCES
from app.hooks.answer import answer_customize
from app.kube.base import Json
from app.kube.resource import Selection
from app.settings import Settings
from tools import relations

ROOT = Path(__file__).parents[2]


def _parents() -> Iterator[Json]:
    for file in sorted((ROOT / "examples").glob("*/*.yaml")):
        for document in yaml.load_all(file.read_text(), yaml.CSafeLoader):
            if document and find(document["apiVersion"], document["kind"]):
                yield {**document, "metadata": {"namespace": "team-a", "uid": "1", **document["metadata"]}}


def _selection(rule: Json) -> Selection:
    if "names" in rule:
        return Selection.NAMES
    if rule.get("labelSelector"):
        return Selection.LABELS
    return Selection.NAMESPACE if rule.get("namespace") else Selection.CLUSTER


def _group(api_version: str) -> str:
    """Return the API group. An object in an older version requests related objects in that version."""
    return api_version.rpartition("/")[0]


@pytest.mark.parametrize(
    "parent", list(_parents()), ids=lambda parent: f"{parent['kind']}-{parent['metadata']['name']}"
)
def test_selects_no_more_than_its_kind_declares(parent: Json) -> None:
    kind = find(parent["apiVersion"], parent["kind"])
    assert kind is not None
    answer = orjson.loads(answer_customize(kind, store.customize_request(kind, parent), Settings()))
    declared = {(_group(item.api_version), item.plural): item.selection for item in kind.resource.related}
    order = list(Selection)
    for rule in answer["relatedResources"]:
        allowed = declared[_group(rule["apiVersion"]), rule["resource"]]
        assert order.index(_selection(rule)) <= order.index(allowed), rule


def test_every_related_kind_has_a_use_and_a_row() -> None:
    text = relations.page("| Kind | Related objects |\n\n", RESOURCES)
    related = [kind for resource in RESOURCES for kind in resource.related]
    assert all(kind.use for kind in related)
    assert text.count("\n| ") == len(related)
