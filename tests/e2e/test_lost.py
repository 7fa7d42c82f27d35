"""What a real API server keeps of what is sent: all of the examples' children, and new fields as their table says."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.hooks.readystatus import KEEPS_NO_NOTE
from app.kube.base import Json
from app.kube.embedded.types import TYPES, is_before
from app.settings import minor_release
from tests.e2e import binaries
from tests.e2e.controlplane import ControlPlane, KubectlError
from tests.e2e.installation import ROOT, Installation, settle
from tests.e2e.neighbour_releases import EXAMPLES, lost
from tests.e2e.processes import wait_until
from tests.e2e.test_kserve import ready

pytestmark = pytest.mark.e2e


def test_every_child_of_the_examples_is_kept_whole(installation: Installation, namespace: str) -> None:
    """Defaults, quantities and empty fields are no loss."""
    command = [sys.executable, "-m", "app.cli", "render", "--namespace", namespace, *map(str, EXAMPLES)]
    text = subprocess.run(command, check=False, capture_output=True, text=True).stdout
    children = {json.dumps(child["spec"]): child for child in yaml.safe_load_all(text) if child and "spec" in child}
    lost_fields: dict[str, list[str]] = {}
    for sent in children.values():
        kept = dry_run(installation.cluster, namespace, sent)
        if fields := lost(sent, kept):
            lost_fields[f"{sent['kind']} {sent['metadata']['name']}"] = fields
    assert lost_fields == {}
    assert len(children) > 100
    assert len({child["kind"] for child in children.values()}) >= 8


def dry_run(cluster: ControlPlane, namespace: str, document: Json) -> Json:
    """Return an object as the API server would store it."""
    item = {**document, "metadata": {**document["metadata"], "namespace": namespace}}
    arguments = ("create", "--dry-run=server", "--validate=false", "-n", namespace, "-o", "json", "-f", "-")
    result: Json = json.loads(cluster.kubectl(*arguments, input=json.dumps(item)).stdout)
    return result


RELEASE = minor_release(binaries.release())

POD: Json = {
    "containers": [{"name": "main", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
    "volumes": [{"name": "v", "emptyDir": {}}],
}
SAMPLES: dict[tuple[str, str], tuple[tuple[str | int, ...], Any]] = {
    ("PodSpec", "hostUsers"): (("hostUsers",), False),
    ("PodSpec", "hostnameOverride"): (("hostnameOverride",), "other"),
    ("PodSpec", "resources"): (("resources",), {"limits": {"cpu": "1"}}),
    ("PodSpec", "resourceClaims"): (("resourceClaims",), [{"name": "g", "resourceClaimName": "g"}]),
    ("PodSpec", "schedulingGroup"): (("schedulingGroup",), {"podGroupName": "g"}),
    ("PodSpec", "evictionResponders"): (("evictionResponders",), [{"name": "a.example/b", "priority": 1}]),
    ("PodSecurityContext", "seLinuxChangePolicy"): (("securityContext", "seLinuxChangePolicy"), "Recursive"),
    ("PodSecurityContext", "supplementalGroupsPolicy"): (("securityContext", "supplementalGroupsPolicy"), "Strict"),
    ("Container", "resizePolicy"): (
        ("containers", 0, "resizePolicy"),
        [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
    ),
    ("VolumeMount", "recursiveReadOnly"): (("containers", 0, "volumeMounts", 0, "recursiveReadOnly"), "Disabled"),
    ("VolumeMount", "bindMountOptions"): (("containers", 0, "volumeMounts", 0, "bindMountOptions"), ["noexec"]),
    ("EmptyDirVolumeSource", "mode"): (("volumes", 0, "emptyDir", "mode"), 448),
    ("HTTPGetAction", "protocol"): (
        ("containers", 0, "readinessProbe"),
        {"httpGet": {"port": 80, "protocol": "HTTP2"}},
    ),
    ("GRPCAction", "mode"): (("containers", 0, "readinessProbe"), {"grpc": {"port": 80, "mode": "TLS"}}),
    ("Lifecycle", "stopSignal"): (("containers", 0, "lifecycle"), {"stopSignal": "SIGUSR1"}),
    ("Volume", "image"): (("volumes", 1), {"name": "i", "image": {"reference": "a/b:1"}}),
    ("EnvVarSource", "fileKeyRef"): (
        ("containers", 0, "env"),
        [{"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "f", "key": "k"}}}],
    ),
}
"""A value by type and field, and where it is in a pod."""


def deployment(pod: Json) -> Json:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec}


@pytest.mark.parametrize(("type_", "name"), SAMPLES)
def test_the_table_says_what_is_kept(control_plane: ControlPlane, namespace: str, type_: str, name: str) -> None:
    path, value = SAMPLES[type_, name]
    pod = _with(POD, path, value)
    pod.setdefault("os", {"name": "linux"})
    sent = deployment(pod)
    declared = TYPES[type_][name]
    try:
        text = " ".join(lost(sent, dry_run(control_plane, namespace, sent)))
    except KubectlError as refused:  # without the field it is not valid any more
        text = f"{name} of Deployment a ({declared.release}) {refused}"
    assert (f"{name} of Deployment a ({declared.release})" in text) == declared.is_dropped_by(RELEASE), text


VALUES: dict[tuple[str, str], tuple[tuple[str | int, ...], Any]] = {
    ("Container", "restartPolicy"): (("initContainers",), [{"name": "a", "image": "i", "restartPolicy": "Never"}]),
    ("EnvVar", "name"): (("containers", 0, "env"), [{"name": "2FA", "value": "x"}]),
    ("PodDNSConfig", "searches"): (("dnsConfig",), {"searches": ["a_b.example.com"]}),
    ("SleepAction", "seconds"): (("containers", 0, "lifecycle"), {"preStop": {"sleep": {"seconds": 0}}}),
}
"""A value that older API servers refuse by type and field, and where it is in a pod."""


def test_every_newer_value_is_tried() -> None:
    assert VALUES.keys() == {(t, name) for t, fields in TYPES.items() for name, part in fields.items() if part.newer}


@pytest.mark.parametrize(("type_", "name"), VALUES)
def test_the_table_says_which_values_are_taken(
    control_plane: ControlPlane, namespace: str, type_: str, name: str
) -> None:
    path, value = VALUES[type_, name]
    address = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    answer = control_plane.client.post(address, json=deployment(_with(POD, path, value)), params={"dryRun": "All"})
    refused = is_before(RELEASE, TYPES[type_][name].newer_since)
    assert answer.status_code == (422 if refused else 201), answer.text
    assert (name in answer.text) or not refused


@pytest.mark.skipif(int(RELEASE.partition(".")[2]) < 33, reason="this release drops hostUsers")
@pytest.mark.parametrize(
    "fields",
    [
        {"tolerations": [{"key": "a", "operator": "Gt", "value": "5"}]},
        *({"hostUsers": False, name: True} for name in ("hostNetwork", "hostPID", "hostIPC")),
    ],
    ids=str,
)
def test_the_api_server_refuses_what_needs_a_feature_gate(
    control_plane: ControlPlane, namespace: str, fields: Json
) -> None:
    """The rule ``behind_gates`` warns of it: the gate may be on, which nobody tells admission."""
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    answer = control_plane.client.post(path, json=deployment({**POD, **fields}), params={"dryRun": "All"})
    assert answer.status_code == 422, answer.text
    assert "tolerations" in answer.text or "hostUsers" in answer.text


@pytest.mark.parametrize("image", [{}, {"pullPolicy": "Always"}, {"reference": ""}])
def test_admission_refuses_an_image_volume_where_the_api_server_does(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, image: Json
) -> None:
    """Without a name of the image older releases take a template, and no pod of it."""
    pod = {**POD, "volumes": [{"name": "v", "image": image}]}
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    answer = control_plane.client.post(path, json=deployment(pod), params={"dryRun": "All"})
    refused = answer.status_code == 422 and not TYPES["Volume"]["image"].is_dropped_by(RELEASE)
    service = {
        "apiVersion": "serving.kserve.io/v1alpha2",
        "kind": "LLMInferenceService",
        "metadata": {"name": "chat"},
        "spec": {"model": {"uri": "hf://Qwen/Qwen3-8B"}, "template": pod},
    }
    file = tmp_path / "chat.yaml"
    file.write_text(yaml.safe_dump(service))
    command = [sys.executable, "-m", "app.cli", "validate", "--kubernetes", RELEASE, "--output", "json", str(file)]
    said = json.loads(subprocess.run(command, check=False, capture_output=True, text=True).stdout)["findings"]
    levels = [item["level"] for item in said if item["path"] == "spec.template.volumes[0].image.reference"]
    assert levels == ["error" if refused else "warning"], answer.text


def _with(pod: Json, path: tuple[str | int, ...], value: Any) -> Json:
    result = copy.deepcopy(pod)
    item: Any = result
    for segment in path[:-1]:
        item = item[segment] if isinstance(segment, int) or segment in item else item.setdefault(segment, {})
    if isinstance(item, list):
        item.append(value)
    else:
        item[path[-1]] = value
    return result


def test_a_field_that_is_dropped_is_named_and_no_change_is_awaited(installation: Installation, namespace: str) -> None:
    cluster = installation.cluster
    (service,) = yaml.safe_load_all((ROOT / "examples/kserve/quickstart.yaml").read_text())
    service["spec"].setdefault("template", {})["evictionResponders"] = [{"name": "a.example/b", "priority": 1}]
    cluster.kubectl("apply", "-n", namespace, "-f", "-", input=yaml.safe_dump(service))
    name = service["metadata"]["name"]
    note = f"{KEEPS_NO_NOTE} spec.template.spec.evictionResponders of Deployment"

    def said() -> bool:
        condition = ready(cluster, namespace, name)
        return condition.get("status") == "True" and note in condition.get("message", "")

    wait_until(said, "the note in Ready")
    settle(cluster, namespace, "llminferenceservices,deployments", 5)
    assert said()
