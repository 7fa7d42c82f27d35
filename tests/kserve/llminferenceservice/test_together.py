"""Behaviour of a whole service that KServe's integration tests cover and tests of its parts here do not."""

from __future__ import annotations

from typing import Any

import pytest

from app.kube.base import Json
from tests.kserve.objects import (
    AVAILABLE,
    DEFAULT_PARENT,
    OPTIONAL_KINDS,
    RBAC_KINDS,
    Cluster,
    accepted,
    config,
    gateway,
    service,
)
from tests.kserve.workload.test_workloads import DP

GROUP: Json = {"parallelism": DP, "worker": {}}
CONTAINER = {"name": "main", "image": "example.com/vllm:1"}


def settled(parent: Json, *related: Json) -> Cluster:
    cluster = Cluster(parent, *related)
    cluster.settle()
    return cluster


def test_a_service_of_bases_only() -> None:
    """Model, router and workload come from a config each: the workload's image wins, and all presets are pinned."""
    bases = [
        config("model", model={"uri": "hf://facebook/opt-125m", "name": "facebook/opt-125m"}),
        config("router", router={"route": {}, "gateway": {}, "scheduler": {}}),
        config("workload", template={"containers": [CONTAINER]}),
    ]
    references: Any = [{"name": base["metadata"]["name"]} for base in bases]
    cluster = settled(service("test-llm", uri=None, baseRefs=references), *bases, gateway())
    deployment = cluster.child("Deployment", "test-llm-kserve")
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "example.com/vllm:1"
    assert len(cluster.answer["status"]["annotations"]) == 8
    assert ("HTTPRoute", "test-llm-kserve-route") in cluster.names
    assert ("Deployment", "test-llm-kserve-router-scheduler") in cluster.names


@pytest.mark.parametrize(("wanted", "after"), [(None, 5), (2, 2)])
def test_a_group_scaled_from_outside(wanted: int | None, after: int) -> None:
    """Replicas stay as observed if the spec has no number, and are reset if it has one."""
    given: dict[str, Any] = {} if wanted is None else {"replicas": wanted}
    cluster = settled(service(**GROUP, **given))
    group = cluster.child("LeaderWorkerSet", "demo-kserve-mn")
    group["spec"]["replicas"] = 5
    sent = next(c for c in cluster.sync()["children"] if c["kind"] == "LeaderWorkerSet")["spec"]
    assert sent.get("replicas", 5) == after


UNAVAILABLE = {"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable", "message": "none"}
LATE = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "timed out"}


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ([], "Deployment {} is rolling out: 0 of 1 replicas are updated and available"),
        ([UNAVAILABLE], "Deployment {} is rolling out: 0 of 1 replicas are updated and available"),
        ([UNAVAILABLE, LATE], "Deployment {} does not progress: timed out"),
    ],
    ids=["no conditions", "unavailable", "late"],
)
@pytest.mark.parametrize("name", ["demo-kserve", "demo-kserve-router-scheduler"])
def test_ready_names_the_workload_of_which_no_more_is_known(name: str, conditions: list[Json], message: str) -> None:
    """KServe's own conditions quote the Deployment, which does not name itself."""
    parent = service(router={"route": {}, "gateway": {}, "scheduler": {}})
    cluster = Cluster(parent, gateway(), optional=OPTIONAL_KINDS | RBAC_KINDS)
    cluster.settle()
    for other in ("demo-kserve", "demo-kserve-router-scheduler"):
        cluster.report("Deployment", other, **AVAILABLE)
    counts = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1}
    cluster.report("Deployment", name, **counts, conditions=conditions)
    cluster.report("HTTPRoute", "demo-kserve-route", **accepted(DEFAULT_PARENT))
    cluster.report("InferencePool", "demo-inference-pool", **accepted(DEFAULT_PARENT))
    cluster.settle()
    found = cluster.condition("Ready")
    assert found is not None
    assert found["message"] == message.format(name)


@pytest.mark.parametrize("form", [{}, GROUP], ids=["Deployment", "LeaderWorkerSet"])
@pytest.mark.parametrize("uri", ["hf://a/b", "s3://bucket/a", "gs://bucket/a", "hdfs://host/a"])
def test_a_deleted_default_account_restarts_nothing(form: Json, uri: str) -> None:
    """Kubernetes makes it again at once, and no pod can be created before; the pods read its Secrets."""
    metadata = {"name": "default", "namespace": "default"}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata, "secrets": [{"name": "hub"}]}
    cluster = settled(service(uri=uri, **form), account)
    before = {child["metadata"]["name"]: child.get("spec") for child in cluster.children}
    cluster.related = []
    cluster.settle()
    assert {child["metadata"]["name"]: child.get("spec") for child in cluster.children} == before
    assert "ServiceAccount default does not exist in namespace default" in str(cluster.condition("Ready"))
    cluster.related = [account]
    cluster.settle()
    assert {child["metadata"]["name"]: child.get("spec") for child in cluster.children} == before


def test_a_new_service_does_not_wait_for_the_default_account() -> None:
    cluster = settled(service())
    assert ("Deployment", "demo-kserve") in cluster.names
    assert "ServiceAccount" not in str(cluster.condition("Ready"))


def test_a_group_on_a_lost_node() -> None:
    """``Ready`` names the missing worker, then the pods that wait for their node to be gone."""

    def group_pod(name: str, **metadata: str) -> Json:
        labels = {"app.kubernetes.io/name": "demo", "app.kubernetes.io/part-of": "llminferenceservice"}
        labels["leaderworkerset.sigs.k8s.io/name"] = "demo-kserve-mn"
        metadata_ = {"name": name, "namespace": "default", "labels": labels, **metadata}
        ready = {"type": "Ready", "status": "True"}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata_,
            "spec": {"nodeName": "gpu-1"},
            "status": {"phase": "Running", "conditions": [ready]},
        }

    def reported() -> Json:
        found = cluster.condition("Ready")
        assert found is not None
        return found

    cluster = settled(service(**GROUP), group_pod("leader"))
    size = cluster.child("LeaderWorkerSet", "demo-kserve-mn")["spec"]["leaderWorkerTemplate"]["size"]
    assert size == 2
    stale = {"type": "Available", "status": "False", "reason": "AllGroupsReady", "message": "All replicas are ready"}
    now = {"type": "Progressing", "status": "True", "reason": "GroupsProgressing"}
    cluster.report("LeaderWorkerSet", "demo-kserve-mn", conditions=[stale, now], replicas=1)
    cluster.settle()
    assert reported()["message"].startswith("LeaderWorkerSet demo-kserve-mn does not have all its pods")
    deleted = {"deletionTimestamp": "2030-01-01T00:00:00Z"}
    cluster.related = [group_pod("leader", **deleted), group_pod("worker", **deleted)]
    cluster.settle()
    assert reported()["message"].startswith("2 pods: is being deleted; if this lasts, node gpu-1 does not respond")
    assert (reported()["reason"], cluster.says("PodsReady")) == ("GroupsProgressing", "PodTerminating")
    cluster.report("LeaderWorkerSet", "demo-kserve-mn", conditions=[{**stale, "status": "True"}], replicas=1)
    cluster.settle()
    assert (cluster.says("Ready"), cluster.says("PodsReady")) == ("True", None)


@pytest.mark.parametrize(
    ("router", "missing"),
    [
        ({"route": {}, "gateway": {"refs": [{"name": "mine", "namespace": "infra"}]}}, gateway("mine", "infra")),
        (
            {"route": {"http": {"refs": [{"name": "mine"}]}}},
            {
                "apiVersion": "gateway.networking.k8s.io/v1",
                "kind": "HTTPRoute",
                "metadata": {"name": "mine", "namespace": "default"},
                "spec": {"parentRefs": [{"name": "kserve-ingress-gateway", "namespace": "kserve"}]},
            },
        ),
    ],
)
def test_a_reference_that_is_made_later(router: Json, missing: Json) -> None:
    cluster = settled(service(router=router), gateway())
    assert cluster.says("RouterReady") == "RefsInvalid"
    cluster.related.append(missing)
    cluster.settle()
    assert cluster.says("RouterReady") != "RefsInvalid"


@pytest.mark.parametrize("part", ["worker", "prefill"])
def test_a_part_that_is_removed_goes_with_its_condition(part: str) -> None:
    """Removing a part removes its object and its condition."""
    spec = GROUP if part == "worker" else {"prefill": {}}
    condition = "WorkerWorkloadReady" if part == "worker" else "PrefillWorkloadReady"
    gone = ("LeaderWorkerSet", "demo-kserve-mn") if part == "worker" else ("Deployment", "demo-kserve-prefill")
    cluster = settled(service(**spec))
    assert gone in cluster.names
    assert cluster.condition(condition) is not None
    cluster.parent = {**service(), "status": cluster.parent["status"]}
    cluster.settle()
    assert gone not in cluster.names
    assert cluster.condition(condition) is None


def test_kueues_labels_and_annotations_reach_object_and_pods() -> None:
    parent = service(notes={"kueue.x-k8s.io/job-min-parallelism": "1"})
    parent["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q"}
    deployment = settled(parent).child("Deployment", "demo-kserve")
    for metadata in (deployment["metadata"], deployment["spec"]["template"]["metadata"]):
        assert metadata["labels"]["kueue.x-k8s.io/queue-name"] == "q"
        assert metadata["annotations"]["kueue.x-k8s.io/job-min-parallelism"] == "1"
    assert "kueue.x-k8s.io/queue-name" not in deployment["spec"]["selector"]["matchLabels"]
