"""Moments in which a status must not say that all is well, for every situation of the families."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

import orjson
import pytest

from app.desk.cluster.simulate import Cluster
from app.desk.cluster.store import key_of
from app.hooks.kind import AnyKind
from app.kube.base import Json
from tests.hookcalls import NOW
from tests.statuses import worlds
from tests.statuses.happenings import changed, condition, deleted
from tests.statuses.worlds import CLOCK, FAMILIES

pytestmark = pytest.mark.no_cover

SCALED_BY_OTHERS = ("autoscaling", "elasticConfig", "scaling")
WORKLOADS = ("Deployment", "LeaderWorkerSet")


def ready(answer: Json) -> Json:
    found: Json = next(c for c in answer["status"]["conditions"] if c["type"] == "Ready")
    return found


def ask(cluster: Cluster, kind: AnyKind, request: Json) -> Json:
    answer: Json = orjson.loads(cluster.send(f"{kind.resource.hook_path}/sync", orjson.dumps(request)))
    return answer


def request_of(cluster: Cluster, kind: AnyKind, parent: Json) -> Json:
    request: Json = orjson.loads(cluster.request(kind, parent))
    return request


def ready_parents(*families: str) -> Iterator[tuple[Cluster, AnyKind, Json]]:
    """Yield the objects that are ready, each in a cluster of its own."""
    for family in families:
        for number in worlds.chosen(family):
            cluster = worlds.at_rest(family, number)
            for kind, parent in list(cluster.parents()) if cluster is not None else ():
                conditions = (parent.get("status") or {}).get("conditions") or ()
                if any(c["type"] == "Ready" and c["status"] == "True" for c in conditions):
                    assert cluster is not None
                    yield cluster.copy(), kind, parent


def written(request: Json, answer: Json) -> Json:
    status = {**answer["status"], "observedGeneration": request["parent"]["metadata"]["generation"]}
    return {**request, "parent": {**request["parent"], "status": status}}


def settle(cluster: Cluster, changes: Json) -> None:
    cluster.put(changes)
    for _ in range(8):
        for kind, parent in list(cluster.parents()):
            cluster.sync(kind, cluster.objects[key_of(parent)])
        cluster.play(cluster.objects.values())


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("before", "wanted"), [(0, 1), (1, 3)])
def test_replicas_that_are_not_there_are_not_ready(family: str, before: int, wanted: int) -> None:
    """Neither in the first answer for the new generation, nor while the API server refuses the change."""
    judged = 0
    for cluster, kind, parent in ready_parents(family):
        scalable = parent["kind"] in ("InferenceService", "Playground", "Service", "LLMInferenceService")
        if not scalable or parent["metadata"].get("ownerReferences") or parent["spec"].keys() & {*SCALED_BY_OTHERS}:
            continue
        settle(cluster, changed(parent, replicas=before))
        scaled = changed(cluster.objects[key_of(parent)], replicas=wanted)
        cluster.put(scaled)
        if not any(child["kind"] in WORKLOADS for child in cluster.objects.values()):
            continue  # it runs on metal, or its spec is invalid
        request = request_of(cluster, kind, scaled)
        first = ask(cluster, kind, request)
        assert ready(first)["status"] == "False", key_of(parent)
        CLOCK.now = NOW + timedelta(minutes=10)
        refused = ready(ask(cluster, kind, written(request, first)))
        CLOCK.now = NOW
        assert refused["status"] == "False"
        told = rf"\d of {wanted} (replicas|groups) are ready"
        assert wanted == 1 or re.search(told, refused["message"])
        if any(c["reason"] == "RollingOut" for c in first["status"]["conditions"] if c["type"] == "ChildrenCreated"):
            assert (refused["reason"], "API server refuses" in refused["message"]) == ("ChangeRefused", True)
        judged += 1
    assert judged


@pytest.mark.parametrize("family", FAMILIES)
def test_what_cannot_be_changed_says_how_many_replicas_are_ready(family: str) -> None:
    """A service whose spec is invalid goes on serving with the pods that it has."""
    judged = set()
    for cluster, kind, parent in ready_parents(family):
        scalable = parent["kind"] in ("InferenceService", "Playground", "Service", "LLMInferenceService")
        written_by_others = parent["spec"].keys() & {*SCALED_BY_OTHERS, "prefill"}
        if not scalable or parent["metadata"].get("ownerReferences") or written_by_others:
            continue
        settle(cluster, changed(parent, replicas=3))
        for workload in [d for d in cluster.objects.values() if d["kind"] in WORKLOADS]:
            if not workload["metadata"]["name"].endswith("-scheduler"):
                cluster.put({**workload, "status": {**workload["status"], "readyReplicas": 2}})
        for other, owner in list(cluster.parents()):
            cluster.sync(other, cluster.objects[key_of(owner)])
        if not any(child["kind"] in (*WORKLOADS, "Service") for child in cluster.children(parent)):
            continue
        wrong = changed(cluster.objects[key_of(parent)], replicas="three")
        invalid = ready(ask(cluster, kind, request_of(cluster, kind, wrong)))
        assert invalid["reason"] == "InvalidSpec"
        assert re.search(r"; 2 of 3 (replicas|groups) are ready$", invalid["message"]), invalid
        judged.add(parent["kind"])
    assert len(judged) == (2 if family == "llmaz" else 1)


PROBE_FIELDS = {
    "InferenceService": "set spec.probeOverrides.startup, the whole probe, with a higher failureThreshold",
    "Playground": "raise spec.startupProbe.failureThreshold of the BackendRuntime",
    "Service": "raise startupProbe.failureThreshold of container {} in spec.workloadTemplate",
    "LLMInferenceService": "raise startupProbe.failureThreshold of container {} in spec.template",
}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_server_that_its_probe_ended_names_the_field_of_its_kind(family: str) -> None:
    """A Service of a Playground has what the author of the BackendRuntime writes."""
    judged = set()
    for cluster, kind, parent in ready_parents(family):
        request = request_of(cluster, kind, parent)
        deployed = [d for d in request["children"].get("Deployment.apps/v1", {}).values() if d["spec"].get("replicas")]
        if parent["kind"] == "Model" or "Pod.v1" not in request["related"] or not deployed:
            continue
        template = deployed[0]["spec"]["template"]
        server = template["spec"]["containers"][0]["name"]
        ended = {"terminated": {"exitCode": 137, "reason": "Error"}}
        running: Json = {"name": server, "started": False, "state": {"running": {}}, "lastState": ended}
        place = {"name": "p", "namespace": parent["metadata"]["namespace"]}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**template["metadata"], **place},
            "status": {"phase": "Running", "containerStatuses": [running]},
        }
        request["related"]["Pod.v1"] = {f"{place['namespace']}/p": pod}
        for workload in deployed:
            workload["status"] = {"conditions": [condition("Available", "False")], "observedGeneration": 99}
        owners = parent["metadata"].get("ownerReferences")
        told = PROBE_FIELDS["Playground" if owners else parent["kind"]].format(server)
        assert f"then {told}" in ready(ask(cluster, kind, request))["message"]
        judged.add(bool(owners))
    assert judged == ({True, False} if family == "llmaz" else {False})


@pytest.mark.parametrize("phase", [None, "Lost"])
def test_a_model_without_its_claim_is_not_ready(phase: str | None) -> None:
    """The Job that filled it says nothing about it."""
    judged = 0
    for cluster, kind, parent in ready_parents("llmkube"):
        request = request_of(cluster, kind, parent)
        groups = [(part, g) for part in ("children", "related") for g in request[part] if g.startswith("Persistent")]
        if parent["kind"] != "Model" or not any(request["children"].get(group) for _, group in groups):
            continue
        for part, group in groups:
            lost = {name: {**claim, "status": {"phase": phase}} for name, claim in request[part][group].items()}
            request[part][group] = lost if phase else {}
        reasons = []
        for minutes in (0, 10):
            CLOCK.now = NOW + timedelta(minutes=minutes)
            answer = ask(cluster, kind, request)
            assert ready(answer)["status"] == "False"
            assert answer["status"]["phase"] != "Ready"
            reasons.append(ready(answer)["reason"])
            request = written(request, answer)
        CLOCK.now = NOW
        assert reasons == (["ClaimLost", "ClaimLost"] if phase else ["Creating", "CreateRefused"])
        judged += 1
    assert judged


@pytest.mark.parametrize("family", FAMILIES)
def test_a_child_that_is_absent_or_being_deleted_is_not_ready(family: str) -> None:
    """Whatever it is: the Service, an account, a route, the Deployment."""
    judged = set()
    for cluster, kind, parent in ready_parents(family):
        for child in cluster.children(parent):
            if child["kind"] in ("Job", "PersistentVolumeClaim"):
                continue  # a Model's, which has its own rules
            without, going = cluster.copy(), cluster.copy()
            without.objects.pop(key_of(child))
            going.put(deleted(child, None))  # type: ignore[arg-type]
            gone = ready(ask(without, kind, request_of(without, kind, parent)))
            leaving = ready(ask(going, kind, request_of(going, kind, parent)))
            assert gone["status"] == leaving["status"] == "False", key_of(child)
            assert child["metadata"]["name"] in leaving["message"]
            judged.add(child["kind"])
    assert {"Deployment", "Service"} <= judged


NOTES = {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/r", "serving.kserve.io/s3-endpoint": "minio.example"}


@pytest.mark.parametrize("secrets", [[], [{"name": "creds"}]], ids=["role", "secret"])
def test_a_lost_default_account_changes_no_pod(secrets: list[Json]) -> None:
    """What it gave to downloads stays until it is there again."""
    judged = 0
    for cluster, kind, parent in ready_parents("kserve"):
        metadata = {"name": "default", "namespace": parent["metadata"]["namespace"], "annotations": NOTES}
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata, "secrets": secrets}
        again = cluster.objects[key_of(parent)]
        settle(cluster, changed(again))
        settle(cluster, account)
        settle(cluster, changed(cluster.objects[key_of(parent)]))
        now = cluster.objects[key_of(parent)]
        before = _templates(ask(cluster, kind, request_of(cluster, kind, now)))
        judged += "minio.example" in str(before)
        cluster.objects.pop(key_of(account))
        assert _templates(ask(cluster, kind, request_of(cluster, kind, now))) == before, key_of(parent)
    assert judged


def _templates(answer: Json) -> dict[str, object]:
    workloads = (child for child in answer["children"] if child["kind"] in WORKLOADS)
    return {
        child["metadata"]["name"]: child["spec"].get("template") or child["spec"]["leaderWorkerTemplate"]
        for child in workloads
    }
