"""Server-side apply by two managers, and objects of earlier CRDs, on a real API server with the CRDs alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from app.families import RESOURCES
from app.kube.base import Json
from tests.e2e.controlplane import ControlPlane
from tools.crds import custom_resource_definition

pytestmark = pytest.mark.e2e

NAMESPACE = "models"
OPEN = "x-kubernetes-preserve-unknown-fields"
ENV = [{"name": "A", "value": "1"}]
MAIN: Json = {"name": "main", "env": ENV, "resources": {"limits": {"cpu": "1"}}, "ports": [{"containerPort": 8000}]}
"""What the first manager writes about a container; the second one writes its image and a variable of its own."""
IMAGE: Json = {"name": "main", "image": "example.com/server:1", "env": [{"name": "B", "value": "2"}]}
PLACES: dict[str, tuple[str, str]] = {
    "template": ("LLMInferenceService", "template"),
    "worker": ("LLMInferenceService", "worker"),
    "prefill": ("LLMInferenceService", "prefill.template"),
    "picker": ("LLMInferenceService", "router.scheduler.template"),
    "config": ("LLMInferenceServiceConfig", "template"),
    "llmaz": ("Service", "workloadTemplate.workerTemplate.spec"),
}
"""Where a kind has a pod."""
BASES: dict[str, Json] = {
    "LLMInferenceService": {"model": {"uri": "hf://a/b", "name": "m"}},
    "LLMInferenceServiceConfig": {},
    "Service": {"modelClaims": {"models": [{"name": "m", "role": "main"}]}},
}
TWICE: Json = {
    "containers": [
        {
            "name": "main",
            "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}],
            "ports": [{"containerPort": 8000, "name": "http"}, {"containerPort": 8000, "name": "metrics"}],
            "volumeMounts": None,
            "args": None,
        }
    ],
    "volumes": [{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}],
    "aFieldOfTomorrow": {"list": [{"name": "x"}, {"name": "x"}]},
}
"""A pod that earlier CRDs took, with every key twice, and nulls."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with ControlPlane(tmp_path_factory.mktemp("lists"), controllers=False, scheduler=False, kwok=False) as cluster:
        cluster.kubectl("create", "namespace", NAMESPACE)
        _install(cluster, tmp_path_factory.mktemp("earlier"), earlier=True)
        for kind, place in PLACES.values():
            _apply(cluster, _object(kind, f"before-{place.lower()}", place, TWICE), "team", server_side=False)
        _install(cluster, tmp_path_factory.mktemp("present"), earlier=False)
        yield cluster


def _install(cluster: ControlPlane, folder: Path, *, earlier: bool) -> None:
    for resource in RESOURCES:
        crd = custom_resource_definition(resource)
        crd["spec"]["conversion"] = {"strategy": "None"}  # nothing answers here
        if earlier:
            _as_before(crd)
        file = folder / f"{resource.plural}.{resource.group}.yaml"
        file.write_text(yaml.safe_dump(crd))
        cluster.install_crds(file)


def _as_before(node: object) -> None:
    """Make the schema that of the release before: open objects without fields, and no status from the start."""
    if isinstance(node, dict):
        if node.get(OPEN):
            for key in ("properties", "required", "x-kubernetes-map-type"):
                node.pop(key, None)
        status = node.get("properties", {}).get("status")
        if isinstance(status, dict):
            status.pop("default", None)
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        _as_before(inner)


def _object(kind: str, name: str, place: str, pod: Json) -> Json:
    resource = next(candidate for candidate in RESOURCES if candidate.kind == kind and candidate.family != "llmkube")
    inner = pod
    for part in reversed(place.split(".")):
        inner = {part: inner}
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": resource.api_version, "kind": kind, "metadata": metadata, "spec": {**BASES[kind], **inner}}


def _apply(cluster: ControlPlane, document: Json, manager: str, *, server_side: bool = True) -> None:
    words = ("apply", "--server-side", f"--field-manager={manager}") if server_side else ("create",)
    cluster.kubectl(*words, "-f", "-", input=json.dumps(document))


def _pod(cluster: ControlPlane, document: Json, place: str) -> Json:
    group, _, version = document["apiVersion"].partition("/")
    plural = f"{document['kind'].lower()}s.{version}.{group}"
    part_of_spec: Json = cluster.get(plural, document["metadata"]["name"], "-n", NAMESPACE)["spec"]
    for part in place.split("."):
        part_of_spec = part_of_spec[part]
    return part_of_spec


@pytest.mark.parametrize("name", PLACES)
def test_two_managers_write_one_container(cluster: ControlPlane, name: str) -> None:
    """The first applies its unchanged file again, as Flux does, and takes nothing from the second."""
    kind, place = PLACES[name]
    first = _object(kind, f"two-{name}", place, {"containers": [MAIN]})
    second = _object(kind, f"two-{name}", place, {"containers": [IMAGE]})
    for document, manager in ((first, "flux"), (second, "team"), (first, "flux")):
        _apply(cluster, document, manager)
    (container,) = _pod(cluster, first, place)["containers"]
    assert container == {
        **MAIN,
        "image": IMAGE["image"],
        "env": [*ENV, *IMAGE["env"]],
        "ports": [{"containerPort": 8000, "protocol": "TCP"}],
    }


@pytest.mark.parametrize("name", PLACES)
def test_objects_of_earlier_crds_lose_nothing_and_can_be_changed(cluster: ControlPlane, name: str) -> None:
    """They may have keys twice, which nobody can create any more."""
    kind, place = PLACES[name]
    document = _object(kind, f"before-{place.lower()}", place, TWICE)
    container = {key: value for key, value in TWICE["containers"][0].items() if value is not None}
    ports = [{**port, "protocol": "TCP"} for port in container["ports"]]
    kept = {**TWICE, "containers": [{**container, "ports": ports}]}
    assert _pod(cluster, document, place) == kept
    group, _, version = document["apiVersion"].partition("/")
    target = f"{kind.lower()}s.{version}.{group}/{document['metadata']['name']}"
    cluster.kubectl("label", target, "-n", NAMESPACE, "changed=yes")
    changed = _object(kind, document["metadata"]["name"], place, {"terminationGracePeriodSeconds": 5})
    patch = json.dumps({"spec": changed["spec"]})
    cluster.kubectl("patch", target, "-n", NAMESPACE, "--type=merge", "-p", patch)
    assert _pod(cluster, document, place) == {**kept, "terminationGracePeriodSeconds": 5}
    stored = cluster.get(target.partition("/")[0], document["metadata"]["name"], "-n", NAMESPACE)
    assert stored["status"] == {"observedGeneration": -1}


def test_a_key_cannot_be_written_twice(cluster: ControlPlane) -> None:
    """As in upstream's CRDs, and in pods."""
    document = json.dumps(_object("LLMInferenceService", "twice", "template", TWICE))
    refused = cluster.kubectl("create", "-f", "-", input=document, check=False)
    assert refused.returncode
    assert 'spec.template.containers[0].env[1]: Duplicate value: {"name":"A"}' in refused.stderr.replace(
        "map[string]interface {}", ""
    )


def test_llmkubes_lists_are_one_value(cluster: ControlPlane) -> None:
    """As in upstream's CRD: another manager's variables are a conflict, and nothing is lost without one."""
    head = {"apiVersion": "inference.llmkube.dev/v1alpha1", "kind": "InferenceService"}
    metadata = {"name": "two", "namespace": NAMESPACE}
    first = {**head, "metadata": metadata, "spec": {"modelRef": "m", "env": ENV}}
    _apply(cluster, first, "flux")
    _apply(cluster, {**head, "metadata": metadata, "spec": {"modelRef": "m", "replicas": 2}}, "team")
    _apply(cluster, first, "flux")
    spec = cluster.get("inferenceservices.inference.llmkube.dev", "two", "-n", NAMESPACE)["spec"]
    assert (spec["env"], spec["replicas"]) == (ENV, 2)
    second = json.dumps({**first, "spec": {"modelRef": "m", "env": IMAGE["env"]}})
    refused = cluster.kubectl("apply", "--server-side", "--field-manager=team", "-f", "-", input=second, check=False)
    assert 'conflict with "flux": .spec.env' in refused.stderr
