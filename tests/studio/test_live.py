"""Live mode, with objects as a cluster could have them."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import yaml
from starlette.testclient import TestClient

from app.desk.cluster.live import Unreadable
from app.desk.cluster.offline import World, settled
from app.desk.cluster.store import is_namespaced
from app.desk.files.manifests import parse
from app.kube.base import Json
from app.studio.live import Live
from app.studio.models import LiveEvent
from app.studio.routes import create_app
from tests.studio.conftest import EXAMPLES, client_of

TEXT = EXAMPLES["llmkube/quickstart"]
SERVICE = "inferenceservice.inference.llmkube.dev"
WHERE = {"resource": SERVICE, "namespace": "team", "name": "smollm-chat"}
TROUBLE = "pod smollm-chat-0: container llama-server was killed, out of memory (exit code 137)"


@dataclass
class FakeCluster:
    """A cluster as objects; with ``down`` it does not answer."""

    documents: list[Json]
    context: str = "kind-test"
    down: bool = False
    server_release: str | None = "1.37"
    happened: list[tuple[str, Json]] = field(default_factory=list)

    def objects(self, api_version: str, kind: str, namespace: str | None) -> list[Json] | None:
        if self.down:
            raise Unreadable("the API server does not answer: refused")
        of_kind = [d for d in self.documents if (d["apiVersion"], d["kind"]) == (api_version, kind)]
        namespaced = is_namespaced(api_version, kind)
        return [d for d in of_kind if not namespaced or namespace in (None, d["metadata"].get("namespace"))]

    def release(self) -> str:
        if self.server_release is None:
            raise Unreadable("the release of the API server cannot be read: refused")
        return self.server_release

    async def changes(self, api_version: str, kind: str, label: str = "") -> AsyncIterator[tuple[str, Json]]:
        for action, document in self.happened:
            same = (document["apiVersion"], document["kind"]) == (api_version, kind)
            if same and (not label or label in document["metadata"].get("labels", {})):
                yield action, document
        await asyncio.Event().wait()


def cluster(text: str = TEXT) -> FakeCluster:
    """Return a cluster in which the manifests and their children run."""
    documents = [*settled(parse(text, "a.yaml"), World("team")).objects.values()]
    for document in documents:
        document["metadata"] |= {"resourceVersion": "7", "managedFields": [{"manager": "kubectl"}]}
    return FakeCluster(documents)


@pytest.fixture
def fake() -> FakeCluster:
    return cluster()


@pytest.fixture
def live(fake: FakeCluster) -> TestClient:
    return client_of(create_app(live=Live(fake)))


def get(live: TestClient, path: str, **query: str) -> Any:
    response = live.get(f"api/live/{path}", params=query)
    assert response.status_code == 200, response.text
    return response.json()


def unready(document: Json, message: str) -> None:
    condition = {"type": "Ready", "status": "False", "reason": "OOMKilled", "message": message}
    document["status"]["conditions"] = [condition]


def first_of(fake: FakeCluster, kind: str) -> Json:
    return next(document for document in fake.documents if document["kind"] == kind)


def test_every_object_with_ready_and_its_first_cause(fake: FakeCluster, live: TestClient) -> None:
    unready(first_of(fake, "InferenceService"), TROUBLE)
    by_kind = {row["kind"]: row for row in get(live, "objects")}
    assert by_kind["Model"] == {
        "family": "llmkube",
        "kind": "Model",
        "resource": "model.inference.llmkube.dev",
        "namespace": "team",
        "name": "smollm",
        "ready": "True",
        "cause": "",
    }
    assert (by_kind["InferenceService"]["ready"], by_kind["InferenceService"]["cause"]) == ("False", TROUBLE)


def test_a_kind_that_nothing_answers_has_the_help_of_status(fake: FakeCluster, live: TestClient) -> None:
    del first_of(fake, "Model")["status"]
    by_kind = {row["kind"]: row for row in get(live, "objects")}
    assert by_kind["Model"]["ready"] == "Unknown"
    assert (
        by_kind["Model"]["cause"] == "no CompositeController declares this kind; apply metacontroller/ of this release"
    )


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ({"namespace": "team"}, {"Model", "InferenceService"}),
        ({"namespace": "other"}, set()),
        ({"family": "llmkube"}, {"Model", "InferenceService"}),
        ({"family": "kserve"}, set()),
        ({"text": "CHAT"}, {"InferenceService"}),
        ({"text": "memory"}, {"InferenceService"}),
    ],
)
def test_the_list_is_filtered(fake: FakeCluster, live: TestClient, query: dict[str, str], kinds: set[str]) -> None:
    unready(first_of(fake, "InferenceService"), TROUBLE)
    assert {row["kind"] for row in get(live, "objects", **query)} == kinds


def test_the_graph_around_an_object_in_the_words_of_its_status(fake: FakeCluster, live: TestClient) -> None:
    unready(first_of(fake, "InferenceService"), TROUBLE)
    pod = first_of(fake, "Pod")
    ended = {"exitCode": 137, "reason": "OOMKilled"}
    states = {"name": "llama-server", "ready": False, "state": {"terminated": ended}, "lastState": {}}
    unready_since = {"type": "Ready", "status": "False", "lastProbeTime": None, "lastTransitionTime": None}
    pod["metadata"]["creationTimestamp"] = None  # as some controllers write what they do not know
    pod["status"] = {"phase": "Running", "conditions": [unready_since], "containerStatuses": [states]}
    graph = get(live, "graph", **WHERE)
    by_kind = {node["kind"]: node for node in graph["nodes"]}
    assert {"InferenceService", "Model", "Deployment", "Pod", "Service"} <= set(by_kind)
    assert {k: n["state"] for k, n in by_kind.items() if k in ("InferenceService", "Deployment", "Pod", "Model")} == {
        "InferenceService": "failing",
        "Deployment": "failing",
        "Pod": "failing",
        "Model": "ready",
    }
    assert by_kind["InferenceService"]["cause"] == by_kind["Deployment"]["cause"] == TROUBLE
    assert all("managedFields" not in node["yaml"] for node in graph["nodes"])


def test_an_unreadable_secret_is_not_absent(live: TestClient) -> None:
    graph = get(live, "graph", **WHERE)
    assert "absent" not in {node["state"] for node in graph["nodes"]}


def test_a_model_that_is_not_there_is_absent_and_a_gateway_elsewhere_is_not() -> None:
    """Only objects of the namespace were read."""
    _, service = TEXT.split("---\n")
    graph = get(client_of(create_app(live=Live(cluster(service)))), "graph", **WHERE)
    assert [n["kind"] for n in graph["nodes"] if n["state"] == "absent"] == ["Model"]
    routed = EXAMPLES["kserve/routed"].replace("gateway: {}", "gateway: {refs: [{name: far, namespace: away}]}")
    assert "far" in routed
    where = {"resource": "llminferenceservices", "namespace": "team", "name": "routed-chat"}
    graph = get(client_of(create_app(live=Live(cluster(routed)))), "graph", **where)
    assert "absent" not in {n["state"] for n in graph["nodes"]}


def test_the_object_as_one_could_have_written_it(live: TestClient) -> None:
    graph = get(live, "graph", **WHERE)
    written = yaml.load(graph["manifest"]["text"], yaml.CSafeLoader)
    assert written == {
        **[*yaml.load_all(TEXT, yaml.CSafeLoader)][1],
        "metadata": {"name": "smollm-chat", "namespace": "team"},
    }
    assert [document["name"] for document in graph["related"]] == []
    assert (
        get(live, "graph", resource="models", namespace="team", name="smollm")["manifest"]["name"]
        == "model-smollm.yaml"
    )


def compare(live: TestClient, text: str) -> Any:
    response = live.post("api/live/compare", json={"text": text})
    assert response.status_code == 200, response.text
    return response.json()


def test_an_edit_shows_what_it_does_and_the_command_that_applies_it(live: TestClient) -> None:
    text = get(live, "graph", **WHERE)["manifest"]["text"]
    same = compare(live, text)
    assert (same["objects"], same["edits"]) == ([], [])
    edited = f"{text}  extraArgs: [--jinja]\n"
    answer = compare(live, edited)
    (changed,) = answer["objects"]
    assert (changed["kind"], changed["effect"]) == ("Deployment", "rolls pods")
    line = edited.splitlines().index("  extraArgs: [--jinja]") + 1
    assert [(edit["path"], edit["line"], edit["after"]) for edit in answer["edits"]] == [
        ("spec.extraArgs", line, ["--jinja"])
    ]
    ran = subprocess.run(
        ["/bin/sh", "-c", answer["command"].replace("kubectl apply -f -", "cat")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == edited
    assert answer["findings"] == []


def test_an_edit_with_a_mistake_has_its_finding_and_changes_nothing(live: TestClient) -> None:
    text = get(live, "graph", **WHERE)["manifest"]["text"]
    answer = compare(live, f"{text}  replicas: many\n")
    assert [finding["path"] for finding in answer["findings"]] == ["spec.replicas"]
    assert answer["objects"] == []


@pytest.mark.parametrize(("release", "dropped"), [("1.30", ["hostUsers"]), ("1.33", []), (None, [])])
def test_an_edit_is_judged_by_the_release_of_the_cluster(release: str | None, dropped: list[str]) -> None:
    """A cluster that does not name its release is no error."""
    fake = cluster(EXAMPLES["kserve/quickstart"])
    fake.server_release = release
    live = client_of(create_app(live=Live(fake)))
    where = {
        "resource": "llminferenceservices",
        "namespace": "team",
        "name": first_of(fake, "LLMInferenceService")["metadata"]["name"],
    }
    document = yaml.load(get(live, "graph", **where)["manifest"]["text"], yaml.CSafeLoader)
    document["spec"].setdefault("template", {})["hostUsers"] = False
    answer = compare(live, yaml.safe_dump(document))
    lost = [finding for finding in answer["findings"] if finding["id"] == "dropped-field"]
    assert [finding["path"].rpartition(".")[2] for finding in lost] == dropped


@pytest.mark.parametrize(
    ("path", "query", "status", "words"),
    [
        ("graph", {"resource": SERVICE, "namespace": "team", "name": "no"}, 404, "no InferenceService is called no"),
        ("graph", {"resource": "pods", "namespace": "team", "name": "a"}, 404, "pods is not supported; must be one of"),
        ("graph", {"namespace": "team"}, 422, "query.resource: Field required"),
    ],
)
def test_reports_missing_objects(live: TestClient, path: str, query: dict[str, str], status: int, words: str) -> None:
    response = live.get(f"api/live/{path}", params=query)
    assert response.status_code == status
    assert words in response.text


def test_reports_an_unreachable_cluster(fake: FakeCluster, live: TestClient) -> None:
    fake.down = True
    response = live.get("api/live/objects")
    assert (response.status_code, response.text) == (502, "the API server does not answer: refused\n")


@pytest.mark.parametrize("text", ["kind: Pod\napiVersion: v1\nmetadata: {name: a}\n", TEXT, "a: ["])
def test_only_one_object_of_ours_is_compared(live: TestClient, text: str) -> None:
    assert live.post("api/live/compare", json={"text": text}).status_code == 422


def test_the_session_says_which_cluster_it_is(live: TestClient) -> None:
    session = live.get("api/session").json()
    assert (session["live"], session["context"]) == (True, "kind-test")


def test_live_routes_need_live_mode(client: TestClient) -> None:
    assert client.get("api/live/objects").status_code == 404


def test_events_tell_of_objects_and_of_children_that_change(fake: FakeCluster) -> None:
    service, deployment = first_of(fake, "InferenceService"), first_of(fake, "Deployment")
    unready(service, TROUBLE)
    fake.happened = [("ADDED", service), ("MODIFIED", service), ("ADDED", deployment), ("DELETED", deployment)]

    async def first(count: int) -> list[LiveEvent]:
        events = Live(fake).events()
        try:
            return [await asyncio.wait_for(anext(events), 10) for _ in range(count)]
        finally:
            await events.aclose()  # type: ignore[attr-defined]  # it is a generator

    events = asyncio.run(first(3))
    of_objects = [event for event in events if event.object is not None]
    assert [event.action for event in of_objects] == ["added", "modified"]
    assert {event.object.cause for event in of_objects if event.object} == {TROUBLE}
    (child,) = [event for event in events if event.object is None]
    assert (child.action, child.node) == ("deleted", "Deployment.apps/v1 team/smollm-chat")
