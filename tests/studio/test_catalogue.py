"""The page's initial data: examples, settings, schemas."""

from __future__ import annotations

from starlette.testclient import TestClient

from app.families import KINDS
from app.settings import Settings, variable_name
from app.studio.models import Document
from app.studio.routes import create_app
from tests.studio.conftest import client_of


def test_examples_of_all_families_have_a_title(client: TestClient) -> None:
    examples = client.get("api/examples").json()
    assert {example["family"] for example in examples} == {"kserve", "llmaz", "llmkube"}
    assert all(example["title"] and "\n" not in example["title"] and example["text"] for example in examples)
    assert len({example["name"] for example in examples}) == len(examples)
    rejected = [example["name"].split("/")[1] == "rejected" for example in examples]
    assert rejected == sorted(rejected), "what is refused comes last"


def test_schemas_of_every_kind_in_every_version(client: TestClient) -> None:
    schemas = client.get("api/schemas").json()
    every = [version.resource for kind in KINDS for version in (kind, *kind.older)]
    assert set(schemas) == {f"{resource.api_version}/{resource.kind}" for resource in every}
    spec = schemas["inference.llmkube.dev/v1alpha1/InferenceService"]["properties"]["spec"]
    assert spec["properties"]["replicas"]["description"]


def test_settings_are_those_of_the_hooks_with_their_words(client: TestClient) -> None:
    settings = {setting["name"]: setting for setting in client.get("api/settings").json()}
    assert settings["MODELHOOKS_CLUSTER_DOMAIN"]["default"] == "cluster.local"
    assert all(setting["description"] for setting in settings.values())
    hooks = {name for name in Settings.model_fields if name.startswith(("llmkube_", "llmaz_", "kserve_"))}
    hooks |= {"cluster_domain", "kubernetes_release", "watch_pods", "keep_pod_templates"}
    assert set(settings) == {variable_name(name) for name in hooks}


def test_a_session_has_the_files_of_the_command_line() -> None:
    app = create_app([Document(name="chat.yaml", text="kind: Model\n")])
    session = client_of(app).get("api/session").json()
    assert session["documents"] == [{"name": "chat.yaml", "text": "kind: Model\n"}]
    assert (session["live"], session["context"]) == (False, "")
