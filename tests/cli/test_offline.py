"""The simulated cluster of the offline commands: its default objects, and cluster-scoped objects."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import yaml

from app.desk.cluster.simulate import Cluster
from app.kube.base import Json
from tests.cli.files import Command, model, service

ROOT = Path(__file__).parents[2]
CLASSES: list[Json] = [
    {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "nvidia"}, "handler": "nvidia"},
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "mine"}, "value": 77},
]


def statuses(command: Command, *documents: Json) -> dict[str, Json]:
    answers = command("render", "--output", "json", command.file("all.yaml", *documents)).json
    return {answer["parent"]: answer["status"] for answer in answers}


@pytest.mark.parametrize(
    ("spec", "priority"),
    [
        ({"priorityClassName": "mine"}, 77),
        ({"priorityClassName": "system-node-critical"}, 2_000_001_000),
        ({"priority": "high"}, 100_000),
        ({}, 10_000),
    ],
)
def test_cluster_scoped_objects_are_found(command: Command, spec: Json, priority: int) -> None:
    """They come from the files, from the defaults of every cluster, and from the family's installation."""
    asked = service({"runtimeClassName": "nvidia", **spec})
    assert statuses(command, model(), asked, *CLASSES)["InferenceService/s"]["effectivePriority"] == priority


@pytest.mark.parametrize("written", [{}, {"namespace": "somewhere"}])
def test_a_hook_sees_cluster_scoped_objects_by_their_name_alone(written: Json) -> None:
    runtime, _ = CLASSES
    cluster = Cluster(send=lambda *_: b"")
    cluster.apply({**runtime, "metadata": {**runtime["metadata"], **written}}, "default")
    assert list(cluster.objects) == [("RuntimeClass.node.k8s.io/v1", "nvidia")]


SOURCES = (ROOT / "examples/kserve/sources.yaml").read_text()
SECRETS = ("azure-reader", "web-reader", "hdfs-reader")


@pytest.mark.parametrize("name", ["render", "explain", "krm", "diff"])
def test_the_default_account_exists_in_every_namespace(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    """Secrets of the default account reach the downloads of a service."""
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(SOURCES.replace("-reader", "-viewer"))
    new.write_text(SOURCES)
    items = list(yaml.safe_load_all(SOURCES))
    text = json.dumps({"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": items})
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    files = {"diff": [str(old), str(new)], "krm": []}.get(name, [str(new)])
    printed = command(name, *files).out
    if name == "krm":
        _, _, printed = printed.partition("kind: Deployment")
    assert all(secret in printed for secret in SECRETS)
