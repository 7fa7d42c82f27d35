"""Whether a model fits into its GPUs, as the inspector shows it."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from app.desk.cluster.offline import World, holding
from app.desk.cluster.store import key_of
from app.desk.files.manifests import parse
from app.desk.fitting import answer
from tests.studio.conftest import EXAMPLES, Ask


@pytest.mark.parametrize("name", ["llmkube/vllm", "llmaz/gated", "kserve/gated"])
def test_the_answer_is_that_of_the_command(ask: Ask, name: str) -> None:
    manifests, world = parse(EXAMPLES[name], "0.yaml"), World()
    cluster = holding(manifests, world)
    judged = {}
    for kind, document in cluster.parents():
        if (fit := answer(kind, document, cluster, world.settings)) is not None:
            judged[" ".join(key_of(document))] = (fit.answer.value, fit.why, [list(row) for row in fit.rows])
    assert judged
    for node, expected in judged.items():
        shown = ask("fit", EXAMPLES[name], node=node)
        assert (shown["answer"], shown["why"], [[*row.values()] for row in shown["rows"]]) == expected


def test_an_object_without_a_model_has_no_answer(ask: Ask) -> None:
    node = "Service.inference.llmaz.io/v1alpha1 default/no-runner"
    assert ask("fit", EXAMPLES["llmaz/rejected/service"], node=node) is None


def test_an_unknown_object_is_not_found(client: TestClient) -> None:
    body = {"documents": [], "node": "Deployment.apps/v1 default/nothing"}
    assert client.post("/api/fit", json=body).status_code == 404
