"""Answers depend only on the request: a process with earlier requests gives the same answers as a new one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.admission import review
from app.hooks.answer import answer_sync
from app.kube.base import Json
from app.settings import Settings
from tests.builders import NOW
from tests.kserve.objects import config, kind_of, service

ROOT = Path(__file__).parents[2]
REFS: list[Json] = [{"name": "base"}]
BROKEN = "{{ .Bogus }}"


def asked(condition: str) -> Json:
    """Return a spec that is only valid if the condition is false."""
    return {"template": {"containers": [{"name": "main", "args": [f"{{{{ if {condition} }}}}{BROKEN}{{{{ end }}}}"]}]}}


def case(condition: str, change: Json | None = None, **other: Any) -> tuple[Json, Json]:
    """Return two requests that differ in the one input that the condition reads."""
    plain = {"parent": service(**asked(condition)), "configs": [], "settings": {}}
    changed = json.loads(json.dumps({**plain, **other}))
    changed["parent"]["metadata"] |= change or {}
    return plain, changed


TWO = service(baseRefs=REFS, **asked("eq .Spec.Replicas 2"))
INPUTS: dict[str, tuple[Json, Json]] = {
    "labels": case('index .Labels "x"', {"labels": {"x": "y"}}),
    "annotations": case('index .Annotations "x"', {"annotations": {"x": "y"}}),
    "an annotation's value": case('eq (index .Annotations "x") "y"', {"annotations": {"x": "y"}}),
    "uid": case('eq .UID "other"', {"uid": "other"}),
    "uid of the metadata": case('eq .ObjectMeta.UID "other"', {"uid": "other"}),
    "generation": case("eq .Generation 7", {"generation": 7}),
    "name": case('eq .Name "other"', {"name": "other"}),
    "namespace": case('eq .Namespace "other"', {"namespace": "other"}),
    "generateName": case(".GenerateName", {"generateName": "other-"}),
    "finalizers": case(".Finalizers", {"finalizers": ["example.com/x"]}),
    "settings": case('eq .GlobalConfig.SystemNamespace "other"', settings={"kserve_system_namespace": "other"}),
    "a config": (
        {"parent": service(baseRefs=REFS), "configs": [config(replicas=1)], "settings": {}},
        {"parent": service(baseRefs=REFS), "configs": [config(annotations={"a": BROKEN})], "settings": {}},
    ),
    "a config's spec in a template": (
        {
            "parent": TWO,
            "configs": [config(replicas=1)],
            "settings": {},
        },
        {
            "parent": TWO,
            "configs": [config(replicas=2)],
            "settings": {},
        },
    ),
}


def answers(request: Json) -> list[Any]:
    """Return the answers of sync and admission to a request."""
    parent, settings = request["parent"], Settings(**request["settings"])
    kind = kind_of(parent)
    namespace = parent["metadata"]["namespace"]
    related = {f"{namespace}/{item['metadata']['name']}": item for item in request["configs"]}
    body = {
        "parent": parent,
        "children": {"Deployment.apps/v1": {}, "Service.v1": {}},
        "related": {"LLMInferenceServiceConfig.serving.kserve.io/v1alpha2": related},
        "finalizing": False,
    }
    reviewed = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u",
            "operation": "CREATE",
            "kind": {"group": "serving.kserve.io", "version": "v1alpha1", "kind": parent["kind"]},
            "object": parent,
        },
    }
    return [
        json.loads(answer_sync(kind, json.dumps(body).encode(), settings, NOW)),
        json.loads(review.answer(kind, json.dumps(reviewed).encode(), settings)),
    ]


def _answer_as_new() -> None:
    """Answer each request on standard input in a new process."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            print(json.dumps(answers(json.loads(line))), flush=True)
            os._exit(0)
        os.waitpid(child, 0)


@pytest.fixture(scope="module")
def new() -> dict[str, list[Any]]:
    """Return the answers of new processes, by request."""
    requests = [json.dumps(request) for pair in INPUTS.values() for request in pair]
    done = subprocess.run(
        [sys.executable, "-m", "tests.kserve.test_history"],
        input="\n".join(requests),
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return dict(zip(requests, answers, strict=True))


@pytest.mark.parametrize("pair", INPUTS.values(), ids=list(INPUTS))
def test_history_changes_no_verdict(pair: tuple[Json, Json], new: dict[str, list[Any]]) -> None:
    """The requests are sent in either order, and repeated."""
    assert new[json.dumps(pair[0])] != new[json.dumps(pair[1])]
    for request in (*pair, *reversed(pair), *pair):
        assert answers(request) == new[json.dumps(request)]


if __name__ == "__main__":
    _answer_as_new()
