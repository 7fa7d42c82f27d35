"""Devices requested by annotations: rules as in KServe v0.20, ResourceClaims of pods, and their template."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.desk.cluster import apply
from app.kube.base import Json
from tests.builders import NOW
from tests.kserve.objects import OPTIONAL_KINDS, Cluster, admit, fields, service
from tests.kserve.workload.test_workloads import DP, group, template

DRA = "serving.kserve.io/exp-dra-"
NOTES = {f"{DRA}device-class": "gpu.example.com"}
DECLARED = OPTIONAL_KINDS | {"ResourceClaimTemplate"}
CLAIM = {"name": "managed-device"}
OF_POD = {**CLAIM, "resourceClaimTemplateName": "demo-managed-dra"}


@pytest.mark.parametrize(
    ("annotations", "wrong"),
    [
        ({"device-class": "gpu.example.com"}, []),
        ({"device-class": "a.b", "device-count": "2", "cel-selector": "true"}, []),
        ({"device-class": "Not Ok"}, [("device-class", "Invalid")]),
        ({"device-count": "2"}, [("device-class", "Required")]),
        ({"device-class": "a.b", "device-count": "0"}, [("device-count", "Invalid")]),
        ({"device-class": "a.b", "device-count": "two"}, [("device-count", "Invalid")]),
        ({"device-class": "a.b", "cel-selector": " "}, [("cel-selector", "Invalid")]),
        ({"device-class": " a.b ", "device-count": "", "container-name": "server"}, []),
        ({"device-class": "a.b", "container-name": "No"}, [("container-name", "Invalid")]),
        ({"container-name": "server"}, [("device-class", "Required")]),
        ({"device-class": "a.b", "cel-selector": "true\n\ndevice.driver = 1"}, [("cel-selector", "Invalid")]),
        ({"device-class": "a.b", "cel-selector": "true\n" * 33}, [("cel-selector", "Invalid")]),
        ({"device-class": "a.b", "device-count": "32"}, []),
        ({"device-class": "a.b", "device-count": "33"}, [("device-count", "Invalid")]),
        ({"device-class": "a.b", "cel-selector": "true //" + "x" * 10233}, []),
        ({"device-class": "a.b", "cel-selector": "true //" + "x" * 10234}, [("cel-selector", "TooLong")]),
        ({"device-class": "a.b", "cel-selector": 'device.driver = "x"'}, [("cel-selector", "Invalid")]),
    ],
)
def test_annotations_for_devices_are_refused_where_they_are_wrong(
    annotations: dict[str, str], wrong: list[tuple[str, str]]
) -> None:
    parent = service(notes={DRA + key: value for key, value in annotations.items()})
    assert fields(parent) == [(field_of(key), type_) for key, type_ in wrong]


def field_of(annotation: str) -> str:
    return f"metadata.annotations[{DRA}{annotation}]"


def test_the_older_version_has_no_such_rules() -> None:
    parent = service(notes={f"{DRA}device-count": "2"})
    assert fields({**parent, "apiVersion": "serving.kserve.io/v1alpha1"}) == []


# Claims.


def claims(pod: Json) -> tuple[list[Json], list[Json]]:
    """Return the claims of a pod, and those of its server."""
    main = next(container for container in pod["containers"] if container["name"] == "main")
    return pod.get("resourceClaims", []), (main.get("resources") or {}).get("claims", [])


def test_each_model_server_has_a_claim() -> None:
    """Prefill pods have a claim too, the endpoint picker has none; the template is as KServe writes it."""
    parent = service(notes=NOTES, prefill={}, router={"scheduler": {}})
    cluster = Cluster(parent, optional=DECLARED)
    cluster.sync()
    for name in ("demo-kserve", "demo-kserve-prefill"):
        assert claims(template(cluster, name)["spec"]) == ([OF_POD], [CLAIM])
    assert claims(template(cluster, "demo-kserve-router-scheduler")["spec"]) == ([], [])
    template_of_claims = cluster.child("ResourceClaimTemplate", "demo-managed-dra")
    exactly = {"deviceClassName": "gpu.example.com", "count": 1}
    assert template_of_claims["apiVersion"] == "resource.k8s.io/v1"
    assert template_of_claims["spec"] == {"spec": {"devices": {"requests": [{"name": "device", "exactly": exactly}]}}}
    assert cluster.says("FeaturesApplied") is None


def test_groups_claim_in_leader_and_workers() -> None:
    cluster = Cluster(service(notes=NOTES, parallelism=DP, worker={}), optional=DECLARED)
    cluster.sync()
    parts = group(cluster)["leaderWorkerTemplate"]
    for part in ("leaderTemplate", "workerTemplate"):
        assert claims(parts[part]["spec"]) == ([OF_POD], [CLAIM])


def test_claimed_devices_are_the_gpus_of_a_parallel_server() -> None:
    """The server gets the arguments for parallelism, and requests no GPUs in addition to the claim."""
    cluster = Cluster(service(notes={**NOTES, f"{DRA}device-count": "2"}, parallelism={"tensor": 2}), optional=DECLARED)
    cluster.sync()
    main = template(cluster)["spec"]["containers"][0]
    assert main["args"] == ["--tensor-parallel-size", "2"]
    assert main["resources"] == {"claims": [CLAIM]}
    assert "pods need" not in (cluster.condition("Ready") or {}).get("message", "")


def test_the_container_that_an_annotation_names_gets_the_devices() -> None:
    """White space around values does not count, and each line of a selector is an expression of its own."""
    selectors = "device.driver == 'gpu.example.com'\n\n  device.attributes['gpu.example.com'].whole  "
    notes = {"device-class": " gpu.example.com", "container-name": " server ", "cel-selector": selectors}
    pod = {"containers": [{"name": "server", "image": "example.com/server:1"}]}
    parent = service(notes={DRA + key: value for key, value in notes.items()}, template=pod)
    cluster = Cluster(parent, optional=DECLARED)
    cluster.settle()
    claims_of = {c["name"]: (c.get("resources") or {}).get("claims") for c in template(cluster)["spec"]["containers"]}
    assert claims_of == {"main": None, "server": [CLAIM]}
    expressions = [line.strip() for line in selectors.split("\n") if line]
    wanted = {"deviceClassName": "gpu.example.com", "count": 1}
    assert _request(cluster)["exactly"] == {**wanted, "selectors": [{"cel": {"expression": e}} for e in expressions]}
    path = field_of("container-name")
    assert path not in [str(advice.path) for advice in admit(parent).warnings]
    parent["spec"].pop("template")
    assert path in [str(advice.path) for advice in admit(parent).warnings]


def test_a_claim_of_that_name_in_the_template_is_the_users_own() -> None:
    users_claim = {**CLAIM, "resourceClaimName": "mine"}
    pod = {"containers": [{"name": "main", "resources": {"claims": [CLAIM]}}], "resourceClaims": [users_claim]}
    cluster = Cluster(service(notes=NOTES, template=pod), optional=DECLARED)
    cluster.sync()
    assert claims(template(cluster)["spec"]) == ([users_claim], [CLAIM])


def test_another_template_is_made_after_the_deletion_of_the_present_one() -> None:
    """A ResourceClaimTemplate's spec is immutable, so a change deletes and recreates it."""
    cluster = Cluster(service(notes={**NOTES, f"{DRA}cel-selector": "true"}), optional=DECLARED)
    cluster.settle()
    assert _request(cluster)["exactly"]["selectors"] == [{"cel": {"expression": "true"}}]
    cluster.parent["metadata"]["annotations"] = {**NOTES, f"{DRA}device-count": "4"}
    cluster.sync()
    assert ("ResourceClaimTemplate", "demo-managed-dra") not in cluster.names
    cluster.settle()
    assert _request(cluster)["exactly"] == {"deviceClassName": "gpu.example.com", "count": 4}


def test_the_template_of_an_earlier_release_stays() -> None:
    """Its request has another name and a default written out; to change it would be refused."""
    cluster = Cluster(service(notes=NOTES), optional=DECLARED)
    cluster.settle()
    template = cluster.child("ResourceClaimTemplate", "demo-managed-dra")
    request = {"name": "managed-device", "exactly": {**_request(cluster)["exactly"], "allocationMode": "ExactCount"}}
    spec = {"spec": {"devices": {"requests": [request]}}}
    others = [child for child in cluster.children if child is not template]
    cluster.children = [
        *others,
        apply.with_record({**template, "spec": spec}, {**apply.last_applied(template), "spec": spec}),
    ]
    cluster.settle()
    assert _request(cluster) == request


def _request(cluster: Cluster) -> Json:
    request: Json = cluster.child("ResourceClaimTemplate", "demo-managed-dra")["spec"]["spec"]["devices"]["requests"][0]
    return request


def test_nothing_is_claimed_where_templates_are_not_declared() -> None:
    """Without the template, pods with claims would stay pending. The status names the missing component."""
    cluster = Cluster(service(notes=NOTES))
    cluster.sync()
    assert claims(template(cluster)["spec"]) == ([], [])
    assert cluster.says("FeaturesApplied") == "DevicesNotSupported"
    assert "install the component resource-claims" in (cluster.condition("FeaturesApplied") or {})["message"]


def test_admission_says_what_the_annotations_need() -> None:
    warnings = {str(a.path): str(a) for a in admit(service(notes={**NOTES, f"{DRA}device-kind": "x"})).warnings}
    needed, unknown = (warnings[f"metadata.annotations[{DRA}{key}]"] for key in ("device-class", "device-kind"))
    assert ": needs Kubernetes 1.34 or newer and the component resource-claims" in needed
    assert f"accepted, no effect; use {DRA}device-class" in unknown


def test_pods_of_services_with_annotations_claim_once_the_component_is_installed() -> None:
    cluster = Cluster(service(notes=NOTES))
    cluster.settle()
    cluster.optional = DECLARED
    cluster.settle()
    assert claims(template(cluster)["spec"]) == ([OF_POD], [CLAIM])
    assert "waits" not in (cluster.condition("Ready") or {})["message"]


def main(**fields: object) -> Json:
    return {"containers": [{"name": "main", **fields}]}


GPUS: Json = {f"{DRA}device-class": "gpu.nvidia.com"}
COUNTS: dict[str, tuple[Json, str]] = {
    "fewer than the parallelism": ({"parallelism": {"tensor": 4}}, "each pod needs 4 GPUs, and claims 2 by annotation"),
    "more than the parallelism": ({"parallelism": {"tensor": 1}}, "each pod needs 1 GPU, and claims 2 by annotation"),
    "fewer than the arguments": ({"template": main(args=["-tp", "8"])}, "each pod needs 8 GPUs, and claims 2"),
    "fewer than one of several pods": (
        {"worker": {}, "parallelism": {"data": 8, "dataLocal": 4}},
        "each pod needs 4 GPUs, and claims 2 by annotation",
    ),
    "GPUs beside them": (
        {"template": main(resources={"limits": {"nvidia.com/gpu": "1"}}), "parallelism": {"tensor": 2}},
        "requests nvidia.com/gpu, and annotations claim devices",
    ),
    "as many": ({"parallelism": {"tensor": 2}}, ""),
    "none beside them": ({"template": main(resources={"limits": {"nvidia.com/gpu": "0"}})}, ""),
}


@pytest.mark.parametrize("case", COUNTS)
def test_the_claims_count_is_compared(case: str) -> None:
    spec, said = COUNTS[case]
    warned = admit(service(notes={**GPUS, f"{DRA}device-count": "2"}, **spec)).warnings
    about_claims = [text for text in warned if "claims 2" in text or "claim devices" in text]
    assert [said in text for text in about_claims] == ([True] if said else [])


def test_a_selector_that_matches_no_device_of_the_class() -> None:
    selector = 'device.attributes["nvidia.com"].architecture == "Hopper"'
    warned = admit(service(notes={**GPUS, f"{DRA}cel-selector": selector})).warnings
    assert any('no driver publishes under "nvidia.com"' in text for text in warned)


def test_a_template_that_the_api_server_refuses_is_named() -> None:
    cluster = Cluster(service(notes=NOTES), optional=DECLARED)
    for minutes in (0, 2):
        cluster.sync(NOW + timedelta(minutes=minutes))
        cluster.children = [child for child in cluster.children if child["kind"] != "ResourceClaimTemplate"]
    ready = cluster.condition("Ready")
    assert ready is not None
    assert "ResourceClaimTemplate demo-managed-dra cannot be created: the API server rejects it" in ready["message"]
