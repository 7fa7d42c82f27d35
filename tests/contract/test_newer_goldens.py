"""The answers of KServe v0.20, replayed: cases that are equal must stay equal.

``recorded/kserve-0.20-open.json`` lists the cases that still have undeclared differences, and where. A case that
becomes equal must be removed from the list.
"""

from __future__ import annotations

import json
import re

import orjson
import pytest

from app.admission import review
from app.desk.cluster.kinds import find_version
from app.kube.base import Json
from tests.contract import parity, strictfields
from tests.contract.recordings import RECORDED, replayed
from tests.contract.test_goldens import reviewed, settings
from tests.contract.world import World

pytestmark = pytest.mark.no_cover

RECORDING = "kserve-0.20"
OPEN: dict[str, list[str]] = json.loads((RECORDED / f"{RECORDING}-open.json").read_text())


def undeclared(case: Json) -> list[str]:
    """Return the parts with undeclared differences, such as ``Deployment.spec.template.spec.containers``."""
    rules = reviewed("kserve")
    if "objects" in case:
        world = World(case, settings(case))
        world.run()
        assert [problem for child in world.children().values() for problem in strictfields.problems(child)] == []
        return sorted({_part(difference.path) for difference in parity.differences(case, world, rules)})
    kind = find_version(case["object"]["apiVersion"], case["object"]["kind"])
    assert kind is not None
    answer = orjson.loads(review.answer(kind, orjson.dumps(parity.review(case)), settings(case)))
    return parity.verdict(case, answer["response"], rules)


def _part(path: str) -> str:
    names: list[str] = re.sub(r"[\[(][^\])]*[\])]", "", path).split(".")
    return ".".join(names[:5])


@pytest.mark.parametrize("case", replayed(RECORDING), ids=lambda case: str(case["name"]))
def test_a_case_differs_only_where_that_is_listed(case: Json) -> None:
    """A listed case may have no further differences."""
    assert set(undeclared(case)) == set(OPEN.get(case["name"], ()))
