"""The page's initial data: examples, settings, schemas."""

from __future__ import annotations

from starlette.testclient import TestClient

from app.families import KINDS
from app.settings import Settings, variable_name
from app.studio.models import Document
from app.studio.routes import create_app
from tests.studio.conftest import client_of


def test_examples_of_all_families_have_a_title(client: TestClient) -> None:
    found = client.get("api/examples").json()
    assert {one["family"] for one in found} == {"kserve", "llmaz", "llmkube"}
    assert all(one["title"] and "\n" not in one["title"] and one["text"] for one in found)
    assert len({one["name"] for one in found}) == len(found)
    rejected = [one["name"].split("/")[1] == "rejected" for one in found]
    assert rejected == sorted(rejected), "what is refused comes last"


def test_schemas_of_every_kind_in_every_version(client: TestClient) -> None:
    schemas = client.get("api/schemas").json()
    every = [one.resource for kind in KINDS for one in (kind, *kind.older)]
    assert set(schemas) == {f"{one.api_version}/{one.kind}" for one in every}
    spec = schemas["inference.llmkube.dev/v1alpha1/InferenceService"]["properties"]["spec"]
    assert spec["properties"]["replicas"]["description"]


def test_settings_are_those_of_the_hooks_with_their_words(client: TestClient) -> None:
    found = {one["name"]: one for one in client.get("api/settings").json()}
    assert found["MODELHOOKS_CLUSTER_DOMAIN"]["default"] == "cluster.local"
    assert all(one["description"] for one in found.values())
    hooks = {name for name in Settings.model_fields if name.startswith(("llmkube_", "llmaz_", "kserve_"))}
    hooks |= {"cluster_domain", "kubernetes_release", "watch_pods", "keep_pod_templates"}
    assert set(found) == {variable_name(name) for name in hooks}


def test_a_session_has_the_files_of_the_command_line() -> None:
    app = create_app([Document(name="chat.yaml", text="kind: Model\n")])
    session = client_of(app).get("api/session").json()
    assert session["documents"] == [{"name": "chat.yaml", "text": "kind: Model\n"}]
    assert (session["live"], session["context"]) == (False, "")
