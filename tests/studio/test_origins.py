"""Sources of values, with the line that set each."""

from __future__ import annotations

import pytest

from app.desk.cluster.offline import World
from app.desk.explanation import explain
from app.desk.files.manifests import parse
from tests.studio.conftest import EXAMPLES, Ask

DEPLOYMENT = "Deployment.apps/v1 default/smollm-chat"


def test_the_line_of_the_editor_that_set_a_value(ask: Ask) -> None:
    text = EXAMPLES["llmkube/quickstart"]
    origins = ask("origins", text, node=DEPLOYMENT, filter="model-downloader].env[MODEL_SOURCE].value")
    (origin,) = origins
    assert origin["origin"] == "Model/smollm spec.source"
    assert origin["value"] in text.splitlines()[origin["line"] - 1]
    assert (origin["document"], origin["column"]) == ("0.yaml", 3)


@pytest.mark.parametrize("example", ["llmkube/quickstart", "llmaz/quickstart", "kserve/quickstart"])
def test_they_are_those_of_explain(ask: Ask, example: str) -> None:
    manifests = parse(EXAMPLES[example], "0.yaml")
    graph = ask("graph", EXAMPLES[example])
    (parent,) = [n for n in graph["nodes"] if n["role"] == "parent" and n["kind"] not in ("Model", "OpenModel")]
    origins = ask("origins", EXAMPLES[example], node=parent["id"])
    (told,) = [
        explained
        for explained in explain(manifests, World())
        if explained["object"] == f"{parent['kind']}/{parent['name']}"
    ]
    same = {(row["path"], row["source"]) for row in told["values"]}
    ours = {(row["path"], row["origin"]) for row in origins}
    assert ours == same
    assert any(row["line"] for row in origins)


def test_a_grandchild_leads_to_the_users_object(ask: Ask) -> None:
    graph = ask("graph", EXAMPLES["llmaz/quickstart"])
    (deployment,) = [n["id"] for n in graph["nodes"] if n["kind"] == "Deployment"]
    origins = ask("origins", EXAMPLES["llmaz/quickstart"], node=deployment)
    assert {row["path"].split(" ")[0] for row in origins} == {f"Deployment/{deployment.rpartition('/')[2]}"}
    assert any(row["origin"].startswith("BackendRuntime/") and row["line"] is None for row in origins)
    assert any(row["origin"].startswith("spec.") and row["line"] for row in origins)


def test_a_setting_is_an_origin(ask: Ask) -> None:
    given = {"MODELHOOKS_LLMKUBE_INIT_CONTAINER_IMAGE": "registry.example.com/curl:9"}
    origins = ask(
        "origins", EXAMPLES["llmkube/quickstart"], node=DEPLOYMENT, settings=given, filter="downloader].image"
    )
    assert [(row["value"], row["origin"]) for row in origins if row["path"].endswith(".image")] == [
        ("registry.example.com/curl:9", "setting MODELHOOKS_LLMKUBE_INIT_CONTAINER_IMAGE")
    ]
