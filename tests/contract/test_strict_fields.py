"""Children have only fields that the API server knows: those of the examples, as those of all recordings."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from app.kube.base import Json
from tests.cli.files import Command
from tests.contract import strictfields

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(path for family in ("llmkube", "llmaz", "kserve") for path in (EXAMPLES / family).glob("*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_children_of_the_examples(tmp_path: Path, capsys: pytest.CaptureFixture[str], path: Path) -> None:
    done = Command(tmp_path, capsys)("render", str(path))
    children = [child for child in yaml.load_all(done.out, yaml.CSafeLoader) if child]
    assert [problem for child in children for problem in strictfields.problems(child)] == []


def _deployment(pod: Json, **fields: Json) -> Json:
    spec = {"selector": {}, "template": {"spec": {"containers": [{"name": "main"}], **pod}}, **fields}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec}


VOLUMES = "Deployment.spec.template.spec.volumes[0]"


@pytest.mark.parametrize(
    ("child", "problem"),
    [
        (
            _deployment({"volumes": [{"name": "v", "emptyDir": {"size": "1Gi"}}]}),
            f"{VOLUMES}.emptyDir.size: is not known",
        ),
        (_deployment({"volumes": [{"name": "v", "sizeLimit": "1Gi"}]}), f"{VOLUMES}.sizeLimit: is not known"),
        (_deployment({"volumes": [{"emptyDir": {}}]}), f"{VOLUMES}.name: is required"),
        (_deployment({}, paused="yes"), "Deployment.spec.paused: has another type"),  # type: ignore[arg-type]
        (_deployment({"nodeSelector": []}), "Deployment.spec.template.spec.nodeSelector: has another type"),
        ({**_deployment({}), "kind": "LeaderWorkerSet", "apiVersion": "leaderworkerset.x-k8s.io/v1"}, ""),
    ],
)
def test_what_the_api_server_would_drop_or_refuse(child: Json, problem: str) -> None:
    assert strictfields.problems(child) == ([problem] if problem else [])


def test_the_pods_of_other_kinds_are_compared() -> None:
    pod = {"spec": {"containers": [{"name": "main", "size": 1}]}}
    group: Json = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"name": "a"}}
    group["spec"] = {"leaderWorkerTemplate": {"workerTemplate": pod}}
    place = "LeaderWorkerSet.spec.leaderWorkerTemplate.workerTemplate.spec.containers[0].size"
    assert strictfields.problems(group) == [f"{place}: is not known"]
