"""``replicas: 0`` and a stop always work, even if something else is missing, failing, in progress or invalid.

Every case starts from a running workload whose child is observed, and ends with no desired pods.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from app.desk.cluster.simulate import Cluster
from app.desk.cluster.store import inner_key, outer_key, stored
from app.families import KINDS
from app.hooks.answer import answer_sync
from app.hooks.kind import Kind
from app.kube.base import Json
from app.kube.names import LAST_APPLIED
from app.limits import MAX_DEPTH
from tests.corpus.kinds import SETTINGS, VALID, cluster_of_all, name_of, parent
from tests.hookcalls import NOW, unnoted

KIND: dict[str, Kind[Any, Any]] = {name_of(kind): kind for kind in KINDS}
ISVC, PLAYGROUND = "inference.llmkube.dev/InferenceService", "inference.llmaz.io/Playground"
SERVICE, LLM = "inference.llmaz.io/Service", "serving.kserve.io/LLMInferenceService"
SCALED = ("Deployment", "LeaderWorkerSet", "Service.inference.llmaz.io/v1alpha1")

Break = Callable[[Json], None]


def without_related(request: Json) -> None:
    """Remove all related objects."""
    request["related"] = {outer: {} for outer in request["related"]}


def model_says(phase: str) -> Break:
    def breaks(request: Json) -> None:
        (model,) = request["related"]["Model.inference.llmkube.dev/v1alpha1"].values()
        model["status"] = {**model["status"], "phase": phase}

    return breaks


def invalid_related(request: Json) -> None:
    """Make the specs of related objects unreadable."""
    for group in request["related"].values():
        for related in group.values():
            if "spec" in related:
                related["spec"] = {"source": 5, "image": {}, "model": "x"}


def wrong_type(request: Json) -> None:
    """Give a field of the spec a value that cannot be decoded."""
    for name in ("modelRef", "modelClaim", "modelClaims", "workloadTemplate", "model"):
        if name in request["parent"]["spec"]:
            request["parent"]["spec"][name] = [5]


def broken_rule(request: Json) -> None:
    request["parent"]["spec"] |= {
        "env": [{"name": "A B"}],
        "elasticConfig": {"minReplicas": 5, "maxReplicas": 2},
        "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxSurge": "x"}},
        "baseRefs": [{"name": "does-not-exist"}],
    }


def too_deep(request: Json) -> None:
    """Nest a field of the spec deeper than is read."""
    value: Any = {}
    for _ in range(MAX_DEPTH):
        value = [value]
    request["parent"]["spec"]["tolerations"] = value


def missing_account(request: Json) -> None:
    """Refer to a ServiceAccount that does not exist, so the workloads cannot be built."""
    request["parent"]["spec"]["template"] = {"serviceAccountName": "does-not-exist"}


GROUPS: Json = {"workloadTemplate": {**VALID[SERVICE]["workloadTemplate"], "size": 2}}
WORKERS: Json = {
    "parallelism": {"data": 2, "dataLocal": 1},
    "worker": {"containers": [{"name": "main", "image": "x"}]},
}
BREAKS: list[tuple[str, Json, Break]] = [
    *((ISVC, {}, model_says(phase)) for phase in ("Failed", "Downloading", "Pending")),
    *(
        (name, spec, breaks)
        for name, spec in ((ISVC, {}), (PLAYGROUND, {}), (SERVICE, {}), (SERVICE, GROUPS), (LLM, {}), (LLM, WORKERS))
        for breaks in (without_related, invalid_related, wrong_type, too_deep, broken_rule)
    ),
    (LLM, {}, missing_account),
    (LLM, WORKERS, missing_account),
]


def running(name: str, spec: Json) -> tuple[Cluster, Json]:
    """Return a cluster in which an object of the kind runs, and the object."""
    cluster = cluster_of_all()
    document = stored(parent(KIND[name], {**VALID[name], "replicas": 2, **spec}), "ns")
    document["metadata"]["uid"] = "runs"
    cluster.objects[outer_key(document), inner_key(document)] = document
    cluster.settle()
    return cluster, cluster.objects[outer_key(document), inner_key(document)]


def workloads(children: list[Json]) -> dict[str, int]:
    """Return replicas by kind and name of all children that have replicas, except for the endpoint picker."""
    return {
        f"{child['kind']}/{child['metadata']['name']}": child["spec"]["replicas"]
        for child in children
        if workloads_of(child)
        if child["kind"] in SCALED or outer_key(child) in SCALED
        if "scheduler" not in child["metadata"]["name"]
    }


def stopping(cluster: Cluster, document: Json, breaks: Break, **spec: Any) -> Json:
    """Return the sync request after the user wrote ``spec`` while something is wrong."""
    request: Json = orjson.loads(cluster.request(KIND[of(document)], document))
    request["parent"] = copy.deepcopy(document)
    request["parent"]["spec"] |= spec
    breaks(request)
    return request


def of(document: Json) -> str:
    return f"{document['apiVersion'].partition('/')[0]}/{document['kind']}"


def answered(document: Json, request: Json) -> Json:
    answer: Json = orjson.loads(answer_sync(KIND[of(document)], orjson.dumps(request), SETTINGS, NOW))
    return answer


@pytest.mark.parametrize(("name", "spec", "breaks"), BREAKS)
def test_scales_to_zero_despite_other_errors(name: str, spec: Json, breaks: Break) -> None:
    """The workload stays without pods, and all other children are sent as last applied."""
    cluster, document = running(name, spec)
    before = answered(document, stopping(cluster, document, breaks))
    assert workloads(before["children"])
    assert set(workloads(before["children"]).values()) == {2}, "what runs goes on while nobody stops it"
    after = answered(document, stopping(cluster, document, breaks, replicas=0))
    assert workloads(after["children"]) == dict.fromkeys(workloads(before["children"]), 0)
    without_spec = [[{**child, "spec": {}} for child in unnoted(answer["children"])] for answer in (before, after)]
    assert without_spec[0] == without_spec[1]
    told = next(c for c in after["status"]["conditions"] if c["type"] in ("Ready", "Stopped"))
    assert told["status"] == "True" or told["message"]


def test_an_autoscaled_service_stops_too() -> None:
    """Until then the autoscaler's number of replicas is kept."""
    cluster, document = running(ISVC, {"autoscaling": {"maxReplicas": 3}})
    before = answered(document, stopping(cluster, document, without_related))
    assert workloads(before["children"]) == {"Deployment/x": 2}
    after = answered(document, stopping(cluster, document, without_related, replicas=0))
    assert workloads(after["children"]) == {"Deployment/x": 0}


@pytest.mark.parametrize("name", [ISVC, PLAYGROUND, SERVICE, LLM])
def test_a_workload_that_was_just_taken_over_stops_too(name: str) -> None:
    """Without a record of the child, only the number of replicas is sent."""
    cluster, document = running(name, {})
    request = stopping(cluster, document, wrong_type, replicas=0)
    for group in request["children"].values():
        for child in group.values():
            child["metadata"]["annotations"].pop(LAST_APPLIED)
    stopped = [child for child in answered(document, request)["children"] if workloads_of(child)]
    assert [child["spec"] for child in stopped] == [{"replicas": 0}] * len(stopped)
    assert stopped


def workloads_of(child: Json) -> bool:
    return "replicas" in child.get("spec", {})


def test_each_half_of_a_disaggregated_service_stops_alone() -> None:
    """``prefill.replicas: 0`` stops the prefill pods only."""
    cluster, document = running(LLM, {"prefill": {"replicas": 2}})
    request = stopping(cluster, document, missing_account, prefill={"replicas": 0})
    assert workloads(answered(document, request)["children"]) == {
        "Deployment/x-kserve": 2,
        "Deployment/x-kserve-prefill": 0,
    }


def test_stops_despite_other_errors() -> None:
    """A stop deletes every child."""
    for breaks in (without_related, invalid_related, wrong_type, too_deep, broken_rule, missing_account):
        cluster, document = running(LLM, {})
        request = stopping(cluster, document, breaks)
        request["parent"]["metadata"]["annotations"] = {"serving.kserve.io/stop": "true"}
        assert answered(document, request)["children"] == []


def test_a_stop_while_nothing_is_wrong() -> None:
    """Replicas are zero."""
    for name in (ISVC, PLAYGROUND, SERVICE, LLM):
        cluster, document = running(name, {})
        answer = answered(document, stopping(cluster, document, lambda _: None, replicas=0))
        assert set(workloads(answer["children"]).values()) == {0}
