"""Simulated events, step by step, with the messages that users would see."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from app.kube.base import Json
from app.studio.scenes import SCENES
from tests.studio.conftest import EXAMPLES, Ask, documents

ONE_OF_EACH = ("kserve/quickstart", "llmaz/quickstart", "llmkube/quickstart")
SHA = "0123456789abcdef" * 4
CHECKED = f"""apiVersion: inference.llmkube.dev/v1alpha1
kind: Model
metadata: {{name: chat}}
spec:
  source: https://models.example.com/chat.gguf
  sha256: {SHA}
---
apiVersion: inference.llmkube.dev/v1alpha1
kind: InferenceService
metadata: {{name: chat}}
spec: {{modelRef: chat, replicas: 4}}
"""
SAID = {
    "image-pull-fails": ("ImagePullBackOff", "cannot pull its image"),
    "unschedulable": ("Unschedulable", "nodes are available"),
    "out-of-memory": ("OOMKilled", "was killed, out of memory (exit code 137)"),
    "probe-fails": ("ReadinessProbeFailed", "its readiness probe fails"),
}


def test_every_scene_is_listed(client: TestClient) -> None:
    scenes = client.get("api/scenes").json()
    assert [scene["name"] for scene in scenes] == list(SCENES)
    assert all(scene["title"] and scene["description"] for scene in scenes)


@pytest.mark.parametrize("scene", SAID)
@pytest.mark.parametrize("example", ONE_OF_EACH)
def test_a_failure_turns_the_graph_red_with_the_words_of_ready(ask: Ask, example: str, scene: str) -> None:
    simulation = ask("simulate", EXAMPLES[example], scenes=[scene])
    assert simulation["notes"] == []
    reason, words = SAID[scene]
    failing = [step for step in simulation["steps"] if reason in step["title"]]
    assert failing, [step["title"] for step in simulation["steps"]]
    step = failing[0]
    red = {n["id"]: n for n in step["graph"]["nodes"] if n["state"] == "failing"}
    assert {"pod", "child", "parent"} <= {n["role"] for n in red.values()}
    for parent in step["parents"]:
        if parent["node"] in red:
            assert words in parent["message"]
            assert red[parent["node"]]["cause"] == parent["message"]
            assert parent["ready"] == "False"
    assert not any(p["ready"] == "True" for p in simulation["steps"][-1]["parents"] if p["node"] in red)


@pytest.mark.parametrize("example", ONE_OF_EACH)
def test_without_a_scene_everything_becomes_ready_step_by_step(ask: Ask, example: str) -> None:
    steps = ask("simulate", EXAMPLES[example])["steps"]
    assert [step["seconds"] for step in steps] == sorted({step["seconds"] for step in steps}), "time passes"
    first, last = steps[0], steps[-1]
    assert not any(n["role"] == "pod" for n in first["graph"]["nodes"])
    assert any(p["ready"] != "True" for p in first["parents"])
    assert all(p["ready"] == "True" for p in last["parents"])
    assert not any(n["state"] == "failing" for step in steps for n in step["graph"]["nodes"])
    graph = ask("graph", EXAMPLES[example])
    assert {n["id"]: n["state"] for n in graph["nodes"]} == {n["id"]: n["state"] for n in last["graph"]["nodes"]}


def parents(step: Json) -> str:
    return " ".join(parent["message"] for parent in step["parents"])


def test_a_pending_claim(ask: Ask) -> None:
    last = ask("simulate", EXAMPLES["llmkube/quickstart"], scenes=["claim-pending"])["steps"][-1]
    states = {n["kind"]: n["state"] for n in last["graph"]["nodes"]}
    assert (states["PersistentVolumeClaim"], states["Pod"], states["Model"]) == ("waiting", "failing", "failing")
    assert "has no volume yet" in parents(last)


@pytest.mark.parametrize(
    ("example", "words"),
    [
        ("llmkube/quickstart", "failed with exit code 64"),
        ("llmaz/quickstart", "init container model-loader exited with code 1"),
        ("kserve/quickstart", "init container storage-initializer exited with code 1"),
    ],
)
def test_a_download_that_is_not_found(ask: Ask, example: str, words: str) -> None:
    last = ask("simulate", EXAMPLES[example], scenes=["download-not-found"])["steps"][-1]
    assert words in parents(last)
    assert "404" in parents(last)


def test_a_wrong_checksum_has_both_sums(ask: Ask) -> None:
    last = ask("simulate", CHECKED, scenes=["checksum-wrong"])["steps"][-1]
    assert f"the Model demands {SHA}" in parents(last)
    assert "wrong SHA-256" in parents(last)


def test_half_of_the_replicas(ask: Ask) -> None:
    last = ask("simulate", CHECKED, scenes=["half-ready"])["steps"][-2]
    states = sorted(n["state"] for n in last["graph"]["nodes"] if n["name"].startswith("chat-") and n["role"] == "pod")
    assert states.count("waiting") == 2
    assert "2 pods" in parents(last)


@pytest.mark.parametrize("example", ["llmkube/gpu-autoscaled", "llmaz/elastic", "kserve/scaled"])
def test_an_autoscaler_gets_more_pods(ask: Ask, example: str) -> None:
    simulation = ask("simulate", EXAMPLES[example], scenes=["scaled-up"])
    assert simulation["notes"] == []
    (at,) = [number for number, step in enumerate(simulation["steps"]) if "asks for" in step["title"]]
    before, after = simulation["steps"][at - 1], simulation["steps"][-1]
    count = [
        sum(n["role"] == "pod" and n["state"] == "ready" for n in step["graph"]["nodes"]) for step in (before, after)
    ]
    assert count[0] < count[1]
    assert all(parent["ready"] == "True" for parent in after["parents"])


def test_a_lost_node_is_named_and_its_pods_come_back(ask: Ask) -> None:
    steps = ask("simulate", EXAMPLES["kserve/quickstart"], scenes=["node-lost"])["steps"]
    (lost,) = [step for step in steps if "stops responding" in step["title"]]
    assert "node node-1 is not ready" in parents(lost)
    assert all(parent["ready"] == "True" for parent in steps[-1]["parents"])
    (created,) = [step for step in steps[steps.index(lost) :] if step["title"].endswith(": created")]
    assert [n["name"] for n in created["graph"]["nodes"] if "nodeName:" in n["yaml"]] == []


def test_a_scene_that_concerns_nothing_says_so(ask: Ask) -> None:
    simulation = ask("simulate", EXAMPLES["llmkube/stopped"], scenes=list(SCENES))
    assert len(simulation["notes"]) == len(SCENES)
    assert all(": no effect, " in note for note in simulation["notes"])


def test_after_ten_minutes_the_deployment_says_that_it_is_stuck(ask: Ask) -> None:
    last = ask("simulate", EXAMPLES["llmkube/quickstart"], scenes=["probe-fails"])["steps"][-1]
    assert last["seconds"] > 600
    assert "does not progress" in parents(last)


@pytest.mark.parametrize("example", ["kserve/scaled", "llmaz/multi-node", "llmkube/gpu-autoscaled"])
def test_everything_at_once_is_answered(ask: Ask, example: str) -> None:
    steps = ask("simulate", EXAMPLES[example], scenes=list(SCENES))["steps"]
    assert any(n["state"] == "failing" for n in steps[-1]["graph"]["nodes"])
    assert not any(parent["ready"] == "True" and "Model" not in parent["node"] for parent in steps[-1]["parents"])


@pytest.mark.parametrize("example", ONE_OF_EACH)
def test_a_lost_node_opens_where_it_is_felt(ask: Ask, example: str) -> None:
    """In the last step everything is ready again, so the step that shows the failure is opened."""
    simulation = ask("simulate", EXAMPLES[example], scenes=["node-lost"])
    opened = simulation["steps"][simulation["opens"]]
    assert any(parent["ready"] != "True" for parent in opened["parents"])
    assert all(parent["ready"] == "True" for parent in simulation["steps"][-1]["parents"])
    assert (
        ask("simulate", EXAMPLES[example], scenes=[])["opens"] == len(ask("simulate", EXAMPLES[example])["steps"]) - 1
    )


def test_the_yaml_of_an_object_in_a_step(ask: Ask, client: TestClient) -> None:
    text, scenes = EXAMPLES["llmkube/quickstart"], ["image-pull-fails"]
    steps = ask("simulate", text, scenes=scenes)["steps"]
    (pod,) = (node["id"] for node in steps[-1]["graph"]["nodes"] if node["name"] == "smollm-chat-0")
    assert {node["yaml"] for step in steps for node in step["graph"]["nodes"]} == {""}, "a thousand objects have 100 MB"
    first = next(at for at, step in enumerate(steps) if any(node["id"] == pod for node in step["graph"]["nodes"]))
    earlier, last = (ask("yaml", text, scenes=scenes, node=pod, step=at)["text"] for at in (first, len(steps) - 1))
    assert "ImagePullBackOff" not in earlier
    assert "ImagePullBackOff" in last
    body = {"documents": documents(text), "scenes": scenes, "node": pod, "step": len(steps)}
    assert client.post("api/yaml", json=body).status_code == 404
