"""The effect of a change on the children, in words."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.studio.conftest import EXAMPLES, documents

TEXT = EXAMPLES["llmkube/quickstart"]
KSERVE = EXAMPLES["kserve/quickstart"]


@pytest.fixture
def compare(client: TestClient) -> Any:
    def post(before: str, after: str, **fields: Any) -> Any:
        sides = {"before": documents(before), "after": documents(after)}
        response = client.post("api/compare", json={**sides, **fields})
        assert response.status_code == 200, response.text
        return response.json()

    return post


def effects(answer: Any) -> dict[str, str]:
    return {child["kind"]: child["effect"] for child in answer["objects"]}


def test_the_same_manifests_change_nothing(compare: Any) -> None:
    assert compare(TEXT, TEXT) == {"edits": [], "objects": [], "summary": "Nothing changes."}


def test_the_changed_lines_are_named(compare: Any) -> None:
    before = f"{TEXT}  env:\n    - name: A\n      value: a\n"
    after = before.replace("value: a", "value: b").replace("cpu: 500m", "cpu: 700m")
    edits = compare(before, after)["edits"]
    assert [(edit["path"], edit["before"], edit["after"]) for edit in edits] == [
        ("spec.resources.cpu", "500m", "700m"),
        ("spec.env[A].value", "a", "b"),
    ]
    lines = after.splitlines()
    assert [lines[edit["line"] - 1].strip() for edit in edits] == ["cpu: 700m", "value: b"]
    assert {edit["object"] for edit in edits} == {"InferenceService/smollm-chat"}


def test_a_new_object_is_named_with_its_first_line(compare: Any) -> None:
    model, service = TEXT.split("---\n")
    (edit,) = compare(model, f"{model}---\n{service}")["edits"]
    assert (edit["object"], edit["path"]) == ("InferenceService/smollm-chat", "")
    assert edit["line"] == len(model.splitlines()) + 2


def test_a_restart_is_named_with_the_field_that_causes_it(compare: Any) -> None:
    answer = compare(TEXT, f"{TEXT}  extraArgs: [--jinja]\n")
    (child,) = answer["objects"]
    assert (child["kind"], child["action"], child["node"]) == (
        "Deployment",
        "change",
        "Deployment.apps/v1 default/smollm-chat",
    )
    assert child["effect"] in ("rolls pods", "recreates")
    (field,) = child["fields"]
    assert field["path"].startswith("spec.template.spec.containers[")
    assert (field["before"], field["after"], field["effect"]) == (None, "--jinja", child["effect"])
    assert answer["summary"] == "1 child changes; the pods of default/smollm-chat restart."


def test_replicas_scale(compare: Any) -> None:
    assert effects(compare(TEXT, f"{TEXT}  replicas: 3\n"))["Deployment"] == "scales"


def test_an_object_that_goes_stops_and_one_that_comes_starts(compare: Any) -> None:
    model, _ = TEXT.split("---\n")
    gone, come = compare(TEXT, model), compare(model, TEXT)
    assert (effects(gone)["Deployment"], effects(gone)["Service"]) == ("stops", "none")
    assert (effects(come)["Deployment"], effects(come)["Service"]) == ("starts", "none")
    assert "stop" in gone["summary"]


def test_a_service_changes_in_place(compare: Any) -> None:
    before = f"{TEXT}  endpoint: {{port: 8080}}\n"
    assert effects(compare(before, before.replace("8080", "9090")))["Service"] == "in place"


def test_distinguishes_recreate_from_rolling_update(compare: Any) -> None:
    rolling = compare(KSERVE, KSERVE.replace("replicas: 1", "replicas: 1") + "  labels: {a: b}\n")
    assert effects(rolling)["Deployment"] == "rolls pods"
    gpu = TEXT.replace("resources:\n", "resources:\n    gpu: 1\n")
    recreated = compare(gpu, f"{gpu}  extraArgs: [--jinja]\n")
    (child,) = recreated["objects"]
    assert (child["effect"], child["words"]) == ("recreates", "recreates: all pods stop before new ones start")


def test_a_setting_changes_what_the_same_manifests_lead_to(compare: Any) -> None:
    given = {"MODELHOOKS_LLMKUBE_INIT_CONTAINER_IMAGE": "registry.example.com/curl:9"}
    answer = compare(TEXT, TEXT, settingsAfter=given)
    changed = [field for child in answer["objects"] for field in child["fields"] if field["path"].endswith(".image")]
    assert {field["after"] for field in changed} == {"registry.example.com/curl:9"}


def test_a_document_that_cannot_be_read_is_compared_with_nothing(client: TestClient) -> None:
    response = client.post("api/compare", json={"before": documents(TEXT), "after": documents(TEXT, "a: [")})
    assert response.status_code == 422
    assert "1.yaml:1:1: error" in response.text


def test_what_is_refused_is_compared_with_nothing(client: TestClient) -> None:
    sides = {"before": documents(TEXT), "after": documents(TEXT.replace("modelRef", "modlRef"))}
    response = client.post("api/compare", json=sides)
    assert response.status_code == 422
    assert "modlRef" in response.text


def test_a_claim_that_goes_takes_its_data_with_it(compare: Any) -> None:
    _, service = TEXT.split("---\n")
    answer = compare(TEXT, service)
    assert effects(answer)["PersistentVolumeClaim"] == "deletes data"
    assert "the data of default/" in answer["summary"]
