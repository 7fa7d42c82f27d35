"""Admission validates pods as the API server does: the same ones are refused in a Deployment."""

from __future__ import annotations

import json
import re

import pytest

from app.kube.base import Json
from app.kube.merge import merge
from app.kube.podspec import POD, normalised
from tests.e2e import objects
from tests.e2e.controlplane import ControlPlane
from tests.kserve.objects import Cluster, service
from tests.kserve.test_pods import MISSING, MISTAKES, TAKEN

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module", name="namespace")
def _namespace(control_plane: ControlPlane) -> str:
    return control_plane.create_namespace()


def refusal(cluster: ControlPlane, namespace: str, pod: Json) -> str:
    """Return the API server's errors about our Deployment with the pod merged into it."""
    ours = Cluster(service())
    ours.sync()
    deployment = next(child for child in ours.answer["children"] if child["kind"] == "Deployment")
    spec = merge(deployment["spec"]["template"]["spec"], normalised(pod), POD)
    deployment["spec"]["template"]["spec"] = spec
    deployment["metadata"] = {"name": "pod"}
    return objects.refusal(cluster.client, namespace, deployment)


@pytest.mark.parametrize("mistake", [*(name for name in MISTAKES if name != "two items of one key"), *MISSING])
def test_the_api_server_refuses_it_too(control_plane: ControlPlane, namespace: str, mistake: str) -> None:
    """The API server reports the same field, or one in the same list item."""
    pod, path = {**MISTAKES, **MISSING}[mistake]
    said = refusal(control_plane, namespace, pod)
    assert "is invalid" in said
    assert re.sub(r"\[[^]]*\]", "", path).rpartition(".")[2] in said


@pytest.mark.parametrize("pod", TAKEN)
def test_the_api_server_takes_it_too(control_plane: ControlPlane, namespace: str, pod: Json) -> None:
    plain = json.loads(json.dumps(pod).replace("{{ .Namespace }}", "a"))
    assert refusal(control_plane, namespace, plain) == ""
