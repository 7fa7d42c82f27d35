"""Labels that upstream's webhook sets on OpenModels and Playgrounds, and those of Services (LZ-11.3)."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from app.hooks.labels import answer_decorate
from app.kube.base import Json
from app.llmaz.kinds import LABELS
from tests.llmaz.world import model, playground, runtime, service

SEVERAL: Json = {"models": [{"name": "small", "role": "draft"}, {"name": "opt", "role": "main"}]}
CASES: dict[str, tuple[Json, Json]] = {
    "an OpenModel has its family": (model(familyName="llama3"), {"llmaz.io/model-family-name": "llama3"}),
    "a Playground its model": (playground(), {"llmaz.io/model-name": "opt"}),
    "or its main model": (playground(modelClaims=SEVERAL), {"llmaz.io/model-name": "opt"}),
    "a Service too": (service(modelClaims=SEVERAL), {"llmaz.io/model-name": "opt"}),
    "none where nothing is claimed": (service(modelClaims={}), {"llmaz.io/model-name": None}),
    "a draft is no main model": (
        service(modelClaims={"models": [{"name": "small", "role": "draft"}]}),
        {"llmaz.io/model-name": None},
    ),
}


def labels(observed: Json) -> Any:
    return orjson.loads(answer_decorate(LABELS, orjson.dumps({"object": observed})))["labels"]


@pytest.mark.parametrize(("observed", "want"), CASES.values(), ids=CASES.keys())
def test_labels(observed: Json, want: Json) -> None:
    assert labels(observed) == want


def test_backend_runtimes_have_none() -> None:
    kinds = {label.resource.kind for label in LABELS.labels}
    assert runtime()["kind"] not in kinds
    assert kinds == {"OpenModel", "Playground", "Service"}
