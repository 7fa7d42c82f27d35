"""The workload that runs the pods, and its settings (LZ-4.3 to LZ-4.8, 9)."""

from __future__ import annotations

from typing import Any

import pytest

from app.hooks.template import INPUTS
from app.kube.base import Json
from tests.hookcalls import unnoted
from tests.llmaz.world import SERVICE, child, condition, model, names, observed, pods, runner, service, state, sync

GROUP_OF_TWO: Json = {"size": 2}


def group(answer: Json) -> Json:
    spec: Json = child(answer, "LeaderWorkerSet")["spec"]
    return spec


def test_one_pod_for_each_replica_makes_a_deployment() -> None:
    """With one pod per replica it is a Deployment whose rollout needs no spare GPU."""
    answer = sync(SERVICE, service(replicas=2), model())
    deployment = child(answer, "Deployment")
    assert unnoted([deployment])[0]["metadata"] == {"name": "chat", "namespace": "team"}
    spec = deployment["spec"]
    assert spec["replicas"] == 2
    assert spec["selector"] == {"matchLabels": {"llmaz.io/inference-service": "chat"}}
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}


ROLLOUTS: dict[str, tuple[Json, Json]] = {
    "without numbers": ({"type": "RollingUpdate"}, {"maxUnavailable": 1, "maxSurge": 0}),
    "the user's": (
        {"rollingUpdateConfiguration": {"maxUnavailable": "25%", "maxSurge": 2}},
        {"maxUnavailable": "25%", "maxSurge": 2},
    ),
    "half of them": ({"rollingUpdateConfiguration": {"maxSurge": 1}}, {"maxUnavailable": 1, "maxSurge": 1}),
}


@pytest.mark.parametrize(("given", "want"), ROLLOUTS.values(), ids=ROLLOUTS.keys())
def test_rollout(given: Json, want: Json) -> None:
    """The user's numbers are used; absent ones get LeaderWorkerSet's defaults."""
    deployment = child(sync(SERVICE, service(rolloutStrategy=given), model()), "Deployment")
    assert deployment["spec"]["strategy"]["rollingUpdate"] == want


def test_rollout_that_cannot_move() -> None:
    """It is allowed for a service of zero replicas, but not sent to the Deployment, which would refuse it."""
    given = {"rollingUpdateConfiguration": {"maxUnavailable": 0, "maxSurge": 0}}
    deployment = child(sync(SERVICE, service(replicas=0, rolloutStrategy=given), model()), "Deployment")
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 1, "maxSurge": 0}


def test_load_balancer() -> None:
    """Either workload has a Service in front of its pods."""
    alone = child(sync(SERVICE, service(), model()), "Service")
    assert alone["metadata"]["name"] == "chat-lb"
    assert alone["metadata"]["annotations"] == {"activator.llmaz.io/model-name": "opt"}
    assert alone["spec"]["selector"] == {"llmaz.io/inference-service": "chat"}
    assert alone["spec"]["ports"] == [{"name": "http", "protocol": "TCP", "port": 8080, "targetPort": 8080}]
    grouped = child(sync(SERVICE, service(workload=GROUP_OF_TWO), model()), "Service")
    assert grouped["spec"]["selector"] == {
        "leaderworkerset.sigs.k8s.io/name": "chat",
        "leaderworkerset.sigs.k8s.io/worker-index": "0",
    }


def test_several_pods_for_each_replica_make_a_group() -> None:
    """Workers start with their leader (LZ-T07), and policies are passed on (LZ-T06)."""
    policy = {"subGroupPolicyType": "LeaderExcluded", "subGroupSize": 2}
    workload = {"size": 5, "restartPolicy": "None", "subGroupPolicy": policy}
    spec = group(sync(SERVICE, service(replicas=3, workload=workload), model()))
    assert (spec["replicas"], spec["startupPolicy"]) == (3, "LeaderCreated")
    template = spec["leaderWorkerTemplate"]
    assert (template["size"], template["restartPolicy"], template["subGroupPolicy"]) == (5, "None", policy)
    assert "leaderTemplate" not in template
    assert template["workerTemplate"]["metadata"]["labels"]["llmaz.io/model-name"] == "opt"


@pytest.mark.parametrize(
    ("given", "sent"), [("Default", "None"), ("None", "None"), (None, "RecreateGroupOnPodRestart")]
)
def test_restart_policy(given: str | None, sent: str) -> None:
    """The policy is passed on in the form that LeaderWorkerSet stores."""
    answer = sync(SERVICE, service(workload={"size": 2, "restartPolicy": given}), model())
    assert group(answer)["leaderWorkerTemplate"]["restartPolicy"] == sent


def test_leader_and_workers() -> None:
    """Leader and workers get the model; only the leader gets the labels."""
    flavors = {"flavors": [{"name": "a", "limits": {"nvidia.com/gpu": 1}}]}
    item = service(workload={"size": 2, "leaderTemplate": pods()})
    template = group(sync(SERVICE, item, model(inferenceConfig=flavors)))["leaderWorkerTemplate"]
    for pod in (template["leaderTemplate"], template["workerTemplate"]):
        assert names(pod["spec"]["initContainers"]) == ["model-loader"]
        assert runner(pod)["resources"]["limits"] == {"nvidia.com/gpu": "1"}
    assert "metadata" not in template["workerTemplate"]
    assert template["leaderTemplate"]["metadata"]["labels"]["llmaz.io/model-family-name"] == "opt"


@pytest.mark.parametrize("workload", [GROUP_OF_TWO, {"leaderTemplate": pods()}], ids=["size 2", "a leader"])
def test_group_without_leaderworkerset(workload: Json) -> None:
    """If the kind is not installed, Ready reports it and the children are kept."""
    before = observed(child(sync(SERVICE, service(), model()), "Deployment"))
    answer = sync(SERVICE, service(workload=workload), model(), children=[before], optional=False)
    assert [c["kind"] for c in answer["children"]] == ["Deployment"]
    assert state(answer, "Progressing") == ("False", "AbortProcessing")
    assert state(answer, "Ready") == ("False", "LeaderWorkerSetRequired")
    assert "component leaderworkerset" in condition(answer, "Ready")["message"]


SHARES: dict[str, tuple[int, int | str, int | str, int | str]] = {
    "a percentage that comes to none": (3, "10%", 0, 1),
    "a percentage that comes to one": (10, "10%", 0, "10%"),
    "none, and some in addition": (3, "10%", "1%", "10%"),
    "no replicas": (0, "10%", 0, "10%"),
    "none of no replicas": (0, 0, 0, 0),
    "a number": (3, 2, 0, 2),
}


@pytest.mark.parametrize(("replicas", "missing", "surge", "want"), SHARES.values(), ids=SHARES.keys())
def test_rollout_of_groups(replicas: int, missing: int | str, surge: int | str, want: int | str) -> None:
    """A rollout that LeaderWorkerSet would refuse replaces one replica at a time, as a Deployment does."""
    strategy = {"rollingUpdateConfiguration": {"maxUnavailable": missing, "maxSurge": surge}}
    spec = group(sync(SERVICE, service(replicas=replicas, rolloutStrategy=strategy, workload=GROUP_OF_TWO), model()))
    sent = spec["rolloutStrategy"]["rollingUpdateConfiguration"]
    assert sent == {"maxUnavailable": want, "maxSurge": surge}


def running_group(**template: Any) -> Json:
    """Return a LeaderWorkerSet that the Go operator created for a single-node service."""
    objects = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "chat", "namespace": "team"},
        "spec": {"replicas": 1, "leaderWorkerTemplate": {"size": 1, **template}},
    }
    return observed(objects, status={"replicas": 1, "hpaPodSelector": "leaderworkerset.sigs.k8s.io/name=chat"})


def test_taking_over_restarts_nothing() -> None:
    """A single-node service keeps an existing LeaderWorkerSet; otherwise it gets a Deployment."""
    answer = sync(SERVICE, service(), model(), children=[running_group()])
    assert {c["kind"] for c in answer["children"]} == {"LeaderWorkerSet", "Service"}
    assert group(answer)["startupPolicy"] == "LeaderReady"
    assert "llmaz.io/inference-service" not in str(group(answer))
    assert answer["status"]["selector"] == "leaderworkerset.sigs.k8s.io/name=chat"
    assert child(sync(SERVICE, service(), model()), "Deployment")


def test_what_a_group_cannot_change() -> None:
    """The size stays, no subgroups are added, and Ready reports both."""
    workload = {"size": 4, "subGroupPolicy": {"subGroupSize": 2}}
    answer = sync(SERVICE, service(workload=workload), model(), children=[running_group(size=3)])
    template = group(answer)["leaderWorkerTemplate"]
    assert template["size"] == 3
    assert "subGroupPolicy" not in template
    message = condition(answer, "Ready")["message"]
    assert "keeps its size of 3" in message
    assert "subGroupPolicy is ignored" in message


SUBGROUPS: dict[str, tuple[Json | None, Json, bool]] = {
    "removed": (None, {"subGroupPolicyType": "LeaderWorker", "subGroupSize": 2}, True),
    "of another size": ({"subGroupSize": 4}, {"subGroupPolicyType": "LeaderWorker", "subGroupSize": 2}, True),
    "the same": ({"subGroupSize": 2}, {"subGroupPolicyType": "LeaderWorker", "subGroupSize": 2}, False),
    "of a type that does not divide it": (
        {"subGroupPolicyType": "LeaderExcluded", "subGroupSize": 2},
        {"subGroupPolicyType": "LeaderWorker", "subGroupSize": 2},
        True,
    ),
}


@pytest.mark.parametrize(("asked", "sent", "told"), SUBGROUPS.values(), ids=SUBGROUPS.keys())
def test_subgroups_stay(asked: Json | None, sent: Json, told: bool) -> None:
    """LeaderWorkerSet refuses to remove or resize subgroups, and a refused update would block all other changes."""
    before = running_group(size=4, subGroupPolicy={"subGroupPolicyType": "LeaderWorker", "subGroupSize": 2})
    workload = {"size": 4, **({} if asked is None else {"subGroupPolicy": asked})}
    answer = sync(SERVICE, service(workload=workload), model(), children=[before])
    assert group(answer)["leaderWorkerTemplate"]["subGroupPolicy"] == sent
    assert ("keeps its subgroups" in condition(answer, "Ready")["message"]) == told


def test_subgroups_of_another_type() -> None:
    """The type of the subgroups changes if the user changes it."""
    before = running_group(size=5, subGroupPolicy={"subGroupPolicyType": "LeaderWorker", "subGroupSize": 2})
    before["metadata"]["annotations"][INPUTS] = "others"
    policy = {"subGroupPolicyType": "LeaderExcluded", "subGroupSize": 2}
    answer = sync(SERVICE, service(workload={"size": 5, "subGroupPolicy": policy}), model(), children=[before])
    assert group(answer)["leaderWorkerTemplate"]["subGroupPolicy"] == policy
    assert "subgroups" not in condition(answer, "Ready")["message"]


def test_observed_selector_is_kept() -> None:
    """A Deployment's selector is immutable: the observed one is kept if the pods have its labels."""
    deployment = child(sync(SERVICE, service(), model()), "Deployment")
    for labels, kept in (({"llmaz.io/model-name": "opt"}, True), ({"app": "other"}, False)):
        other = {**deployment, "spec": {**deployment["spec"], "selector": {"matchLabels": labels}}}
        answer = sync(SERVICE, service(), model(), children=[observed(other)])
        selector = labels if kept else {"llmaz.io/inference-service": "chat"}
        assert child(answer, "Deployment")["spec"]["selector"]["matchLabels"] == selector
        assert child(answer, "Service")["spec"]["selector"] == selector


def test_resets_an_account_that_is_no_longer_set() -> None:
    """The default account is set explicitly and stays set, because the API server would restore the old name."""
    named = service(worker=pods(serviceAccountName="mine"))
    before = observed(child(sync(SERVICE, named, model()), "Deployment"))
    later = before
    for _ in range(2):
        deployment = child(sync(SERVICE, service(), model(), children=[later]), "Deployment")
        assert deployment["spec"]["template"]["spec"]["serviceAccountName"] == "default"
        later = observed(deployment)
    kept = child(sync(SERVICE, named, model(), children=[before]), "Deployment")["spec"]["template"]["spec"]
    assert kept["serviceAccountName"] == "mine"


@pytest.mark.parametrize("related", [[], [model("other")]], ids=["no model", "another model"])
def test_a_missing_model_keeps_everything(related: list[Json]) -> None:
    """Children, replicas and selector are kept."""
    children = [observed(c) for c in sync(SERVICE, service(), model())["children"]]
    before = {"conditions": [], "replicas": 1, "selector": "a=b"}
    answer = sync(SERVICE, service(status=before), *related, children=children)
    assert sorted(c["kind"] for c in answer["children"]) == ["Deployment", "Service"]
    assert child(answer, "Deployment")["spec"] == children[0]["spec"]
    assert state(answer, "Ready") == ("False", "ModelNotFound")
    assert (answer["status"]["replicas"], answer["status"]["selector"]) == (1, "a=b")
