"""The graph of manifests and their children: nodes with a state, and their relations."""

from __future__ import annotations

import pytest
import yaml
from starlette.testclient import TestClient

from app.desk.cluster import store
from app.desk.cluster.simulate import MAX_PODS, Cluster
from app.kube.base import Json
from app.studio.graph import draw
from tests.studio.conftest import EXAMPLES, Ask

ALLOWED = {"MODELHOOKS_LLMKUBE_ALLOWED_HOST_PATHS": "/"}
AT_REST = {"kserve/stopped", "llmkube/metal", "llmkube/stopped", "llmkube/suspended"}
"""Examples that do not become ready, on purpose."""
RUNNING = sorted(name for name in EXAMPLES if "/rejected/" not in name and name not in AT_REST)
MODEL, SERVICE = "Model.inference.llmkube.dev/v1alpha1", "InferenceService.inference.llmkube.dev/v1alpha1"


def nodes(graph: Json) -> dict[str, Json]:
    by_id = {node["id"]: node for node in graph["nodes"]}
    assert len(by_id) == len(graph["nodes"]), "ids are unique"
    return by_id


def edges(graph: Json) -> set[tuple[str, str, str]]:
    triples = {(edge["source"], edge["label"], edge["target"]) for edge in graph["edges"]}
    ends = {end for source, _, target in triples for end in (source, target)}
    assert ends <= nodes(graph).keys(), "an edge ends at nodes"
    return triples


def test_a_parent_what_it_reads_what_it_makes_and_the_pods(ask: Ask) -> None:
    graph = ask("graph", EXAMPLES["llmkube/quickstart"])
    model, service = f"{MODEL} default/smollm", f"{SERVICE} default/smollm-chat"
    deployment, claim = "Deployment.apps/v1 default/smollm-chat", "PersistentVolumeClaim.v1 default/smollm-cache"
    assert edges(graph) >= {
        (service, "reads", model),
        (service, "makes", deployment),
        (model, "makes", claim),
        (deployment, "mounts", claim),
        (deployment, "runs", "Pod.v1 default/smollm-chat-0"),
    }
    by_id = nodes(graph)
    roles = {name: by_id[name]["role"] for name in (model, service, deployment, "Pod.v1 default/smollm-chat-0")}
    assert list(roles.values()) == ["parent", "parent", "child", "pod"]
    assert {node["state"] for node in by_id.values()} == {"ready"}
    assert (by_id[service]["document"], by_id[service]["line"]) == ("0.yaml", 10)
    assert by_id[deployment]["document"] is None
    shown = yaml.load(by_id[deployment]["yaml"], yaml.CSafeLoader)
    assert (shown["kind"], shown["metadata"]["name"], shown["status"]["readyReplicas"]) == (
        "Deployment",
        "smollm-chat",
        1,
    )
    assert by_id[service]["conditions"]


def test_the_yaml_of_one_object_is_requested_alone(ask: Ask, client: TestClient) -> None:
    text, pulled = EXAMPLES["llmkube/quickstart"], ["image-pull-fails"]
    whole, bare = ask("graph", text, scenes=pulled), ask("graph", text, scenes=pulled, yaml=False)
    assert {node["yaml"] for node in bare["nodes"]} == {""}
    assert {**bare, "nodes": [{**node, "yaml": ""} for node in whole["nodes"]]} == bare
    for node in whole["nodes"]:
        assert ask("yaml", text, scenes=pulled, node=node["id"])["text"] == node["yaml"]
    missing = client.post("api/yaml", json={"documents": [], "node": "Pod.v1 default/none"})
    assert (missing.status_code, missing.text) == (404, "Pod.v1 default/none is not created by these documents\n")


@pytest.mark.parametrize(
    ("example", "label", "kinds"),
    [
        ("llmkube/gpu-autoscaled", "scales", ("HorizontalPodAutoscaler", "Deployment")),
        ("llmaz/quickstart", "reads", ("Playground", "BackendRuntime")),
        ("llmaz/multi-node", "runs", ("LeaderWorkerSet", "Pod")),
        ("kserve/shared-config", "reads", ("LLMInferenceService", "LLMInferenceServiceConfig")),
        ("kserve/routed", "makes", ("LLMInferenceService", "HTTPRoute")),
        ("kserve/scaled", "scales", ("HorizontalPodAutoscaler", "Deployment")),
    ],
)
def test_what_objects_of_every_family_have_to_do_with_each_other(
    ask: Ask, example: str, label: str, kinds: tuple[str, str]
) -> None:
    triples = {(s.split(".")[0], word, t.split(".")[0]) for s, word, t in edges(ask("graph", EXAMPLES[example]))}
    assert (kinds[0], label, kinds[1]) in triples, triples


@pytest.mark.parametrize("name", RUNNING)
def test_every_example_runs(ask: Ask, name: str) -> None:
    graph = ask("graph", EXAMPLES[name], settings=ALLOWED)
    wrong = [(n["id"], n["state"], n["cause"]) for n in graph["nodes"] if n["state"] not in ("ready", "absent")]
    assert not wrong
    absent = {n["kind"] for n in graph["nodes"] if n["state"] == "absent"}
    assert absent <= {"Secret", "PersistentVolumeClaim"}, "what users have on their cluster"
    assert any(n["role"] == "pod" for n in graph["nodes"])
    edges(graph)


@pytest.mark.parametrize("name", sorted(AT_REST - {"llmkube/stopped"}))
def test_a_stopped_service_is_not_failing(ask: Ask, name: str) -> None:
    states = {(n["kind"], n["state"]) for n in ask("graph", EXAMPLES[name])["nodes"]}
    assert "failing" not in {state for _, state in states}
    assert any(state == "waiting" for kind, state in states if kind.endswith("InferenceService"))


def test_an_absent_model_is_a_failure_and_named(ask: Ask) -> None:
    _, service = EXAMPLES["llmkube/quickstart"].split("---\n")
    by_id = nodes(ask("graph", service))
    assert by_id[f"{MODEL} default/smollm"]["state"] == "absent"
    parent = by_id[f"{SERVICE} default/smollm-chat"]
    (ready,) = [c for c in parent["conditions"] if c["type"] == "Ready"]
    assert (parent["state"], parent["cause"]) == ("failing", ready["message"])
    assert "smollm does not exist" in parent["cause"]


def test_an_object_with_errors_is_refused_with_their_words(ask: Ask) -> None:
    text = EXAMPLES["llmkube/rejected/three-mistakes"]
    (parent,) = [n for n in ask("graph", text)["nodes"] if n["role"] == "parent"]
    errors = [
        f"{finding['path']}: {finding['message']}" for finding in ask("check", text) if finding["level"] == "error"
    ]
    assert parent["state"] == "refused"
    assert all(error in parent["cause"] for error in errors)


def test_an_object_that_one_file_describes_twice_is_refused(ask: Ask) -> None:
    """One of the two replaces the other, which the editor calls an error: it is not ready beside that."""
    text = EXAMPLES["llmkube/quickstart"]
    _, service = text.split("---\n")
    graph = ask("graph", f"{text}\n---\n{service.replace('contextSize: 4096', 'contextSize: 1024')}")
    node = nodes(graph)[f"{SERVICE} default/smollm-chat"]
    assert node["state"] == "refused"
    assert "is described by" in node["cause"]


def test_a_document_that_cannot_be_read_hides_no_other(ask: Ask) -> None:
    graph = ask("graph", "a: [", EXAMPLES["llmkube/quickstart"], "kind: Model\n")
    assert f"{MODEL} default/smollm" in nodes(graph)


def test_the_same_question_has_the_same_answer(ask: Ask) -> None:
    text = EXAMPLES["kserve/scaled"]
    assert ask("graph", text) == ask("graph", text)


CONTAINER = {"name": "server", "image": "server:1"}
SCALED = {"replicas": 1_000_000, "template": {"spec": {"containers": [CONTAINER]}}}


@pytest.mark.parametrize(
    "written",
    [
        {"apiVersion": "apps/v1", "kind": "Deployment"},
        {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": None}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {**SCALED, "replicas": "two"}},
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "spec": {**SCALED, "template": {"spec": {"containers": ["x"]}}},
        },
        {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"spec": {"containers": [{}]}}}},
        {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "spec": {"leaderWorkerTemplate": []}},
        {
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "spec": {"leaderWorkerTemplate": {"size": 0, "workerTemplate": {"spec": {"containers": [CONTAINER]}}}},
        },
        {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": {"scaleTargetRef": "chat"}},
        {"apiVersion": "v1", "kind": "Pod", "status": {"phase": 5}},
        {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "status": {"parents": [1]}},
        {"apiVersion": "v1", "kind": "Secret", "status": {"conditions": ["Ready"]}},
    ],
)
def test_an_object_that_no_cluster_stores_is_left_out(ask: Ask, written: Json) -> None:
    """Such as a Deployment that is being typed, beside resources that are complete."""
    text = yaml.safe_dump({"metadata": {"name": "typed"}, **written})
    for answer in (ask("graph", EXAMPLES["llmkube/quickstart"], text), ask("simulate", text)["steps"][-1]["graph"]):
        assert not any(node["name"] == "typed" for node in answer["nodes"])


def test_a_workload_starts_a_limited_number_of_pods(ask: Ask) -> None:
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "large"}, "spec": SCALED}
    assert [node["name"] for node in ask("graph", yaml.safe_dump(deployment))["nodes"]] == ["large"]
    large = EXAMPLES["kserve/quickstart"].replace("replicas: 1\n", "replicas: 100000\n")
    assert "100000" in large
    pods = [node for node in ask("graph", large, yaml=False)["nodes"] if node["kind"] == "Pod"]
    assert len(pods) == MAX_PODS


def test_an_outline_has_what_is_written_before_the_hooks_are_asked(ask: Ask) -> None:
    outline = ask("graph", EXAMPLES["llmkube/quickstart"], outline=True, yaml=False)
    states = {(node["kind"], node["state"]) for node in outline["nodes"]}
    assert states == {("Model", "waiting"), ("InferenceService", "waiting")}
    service, model = (f"{kind} default/{name}" for kind, name in ((SERVICE, "smollm-chat"), (MODEL, "smollm")))
    assert edges(outline) == {(service, "reads", model)}


def test_labels_may_be_null(ask: Ask) -> None:
    text = EXAMPLES["llmkube/quickstart"].replace("  name: smollm\n", "  name: smollm\n  labels:\n  annotations:\n")
    assert {node["state"] for node in ask("graph", text)["nodes"]} == {"ready"}


@pytest.mark.parametrize("outline", [False, True])
def test_an_object_with_an_unknown_field_is_refused(ask: Ask, *, outline: bool) -> None:
    """It has the error of the editor as its cause, and makes nothing."""
    text = EXAMPLES["llmkube/quickstart"].replace("modelRef:", "replicaCount: 2\n  modelRef:")
    graph = ask("graph", text, outline=outline)
    service = nodes(graph)[f"{SERVICE} default/smollm-chat"]
    assert (service["state"], 'unknown field "spec.replicaCount"' in service["cause"]) == ("refused", True)
    assert not [edge for edge in edges(graph) if edge[:2] == (service["id"], "makes")]


@pytest.mark.parametrize("reason", ["CreateRefused", "ChangeRefused"])
def test_a_service_whose_child_the_api_server_refuses_is_refused(reason: str) -> None:
    cluster = Cluster(lambda *_: b'{"relatedResources": []}')
    for document in yaml.load_all(EXAMPLES["llmkube/quickstart"], yaml.CSafeLoader):
        ready = {"type": "Ready", "status": "False", "reason": reason, "message": "pods are forbidden"}
        cluster.put({**store.stored(document, "default"), "status": {"conditions": [ready]}})
    states = {node.kind: (node.state, node.cause) for node in draw(cluster, {}).nodes}
    assert states["InferenceService"] == ("refused", "pods are forbidden")
