"""The CPU time of reviews and syncs of the longest lists, which has the limit of ``tests/bench/search.py``."""

from __future__ import annotations

import time

import orjson
import pytest

from app.admission import review
from app.families import KINDS
from app.hooks.kind import answer_sync
from app.kube.base import Json
from tests.bench.search import CPU_SECONDS, SETTINGS
from tests.corpus.kinds import name_of, parent, reviewed
from tests.hookcalls import NOW

NAMES = [{"name": f"{number:x}"} for number in range(11_900)]
TWICE = [*NAMES, NAMES[-1]]
"""About as many names as a spec can hold, of which the last is there twice."""
GROUP: Json = {"worker": {}, "parallelism": {"data": 4, "dataLocal": 2}}


def with_adapters(uri: str, number: int) -> Json:
    adapters = [{"name": f"a{position}", "uri": uri} for position in range(number)]
    model = {"uri": "hf://a/b", "lora": {"adapters": adapters}}
    return {"model": model, "router": {"route": {}, "gateway": {}, "scheduler": {}}, "prefill": GROUP, **GROUP}


SPECS: dict[str, tuple[str, Json]] = {
    "volumes": ("inference.llmkube.dev/InferenceService", {"modelRef": "m", "extraVolumes": TWICE}),
    "variables": (
        "serving.kserve.io/LLMInferenceService",
        {"model": {"uri": "hf://a/b"}, "template": {"containers": [{"name": "main", "env": TWICE}]}},
    ),
    "adapters": ("serving.kserve.io/LLMInferenceService", with_adapters("s3://a/b", 1600)),
    "adapters on claims": ("serving.kserve.io/LLMInferenceService", with_adapters("pvc://a/b", 1600)),
    "too many adapters": ("serving.kserve.io/LLMInferenceService", with_adapters("pvc://a/b", 4800)),
}


@pytest.mark.no_cover
@pytest.mark.parametrize(("name", "spec"), SPECS.values(), ids=SPECS)
def test_long_lists_are_within_the_budget(name: str, spec: Json) -> None:
    kind = next(kind for kind in KINDS if name_of(kind) == name)
    document = parent(kind, spec)
    update = orjson.dumps(reviewed(kind, document, document))
    body = orjson.dumps({"parent": document, "children": {}, "related": {}, "finalizing": False})
    review.answer(kind, orjson.dumps(reviewed(kind, parent(kind, {}))), SETTINGS)  # builds what is built lazily
    began = time.process_time()
    review.answer(kind, update, SETTINGS)
    between = time.process_time()
    answer_sync(kind, body, SETTINGS, NOW)
    assert max(between - began, time.process_time() - between) < 2 * CPU_SECONDS  # machines differ
