"""Model servers: objects of each topology, their labels, and the content of their pods."""

from __future__ import annotations

from typing import Any

import pytest

from app.desk.cluster.offline import desired
from app.kube.base import Json
from tests.kserve.objects import AVAILABLE, OPTIONAL_KINDS, RBAC_KINDS, Cluster, service

DP: Json = {"data": 4, "dataLocal": 2}
NAME, PART_OF, COMPONENT = (f"app.kubernetes.io/{key}" for key in ("name", "part-of", "component"))
BASE = {NAME: "demo", PART_OF: "llminferenceservice"}
SIDECAR: Json = {"initContainers": [{"name": "llm-d-routing-sidecar", "image": "s"}]}


def account(name: str, **fields: Any) -> Json:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}, **fields}


def labels(component: str, role: str) -> dict[str, str]:
    """Return the labels of a model server's pod."""
    return {**BASE, COMPONENT: component, "kserve.io/component": "workload", "llm-d.ai/role": role}


def synced(parent: Json, *related: Json, optional: frozenset[str] = OPTIONAL_KINDS) -> Cluster:
    cluster = Cluster(parent, *related, optional=optional)
    cluster.sync()
    return cluster


def template(cluster: Cluster, name: str = "demo-kserve") -> Json:
    rendered: Json = cluster.child("Deployment", name)["spec"]["template"]
    return rendered


def group(cluster: Cluster, name: str = "demo-kserve-mn") -> Json:
    spec: Json = cluster.child("LeaderWorkerSet", name)["spec"]
    return spec


# Topology.

SVC = ("Service", "demo-kserve-workload-svc")
MAIN, PREFILL = ("Deployment", "demo-kserve"), ("Deployment", "demo-kserve-prefill")
GROUP, PREFILL_GROUP = ("LeaderWorkerSet", "demo-kserve-mn"), ("LeaderWorkerSet", "demo-kserve-mn-prefill")
MULTI: Json = {"worker": {}, "parallelism": DP}


@pytest.mark.parametrize(
    ("spec", "children", "conditions"),
    [
        ({}, {MAIN}, {"MainWorkloadReady"}),
        (MULTI, {GROUP}, {"WorkerWorkloadReady"}),
        ({"prefill": {}}, {MAIN, PREFILL}, {"MainWorkloadReady", "PrefillWorkloadReady"}),
        ({"prefill": {}, **MULTI}, {GROUP, PREFILL}, {"WorkerWorkloadReady", "PrefillWorkloadReady"}),
        ({"prefill": MULTI}, {MAIN, PREFILL_GROUP}, {"MainWorkloadReady", "PrefillWorkerWorkloadReady"}),
        (
            {"prefill": MULTI, **MULTI},
            {GROUP, PREFILL_GROUP},
            {"WorkerWorkloadReady", "PrefillWorkerWorkloadReady"},
        ),
    ],
)
def test_each_topology_has_its_children_and_conditions(
    spec: Json, children: set[tuple[str, str]], conditions: set[str]
) -> None:
    """Each topology has the objects and conditions in the table of KS-3.12."""
    cluster = synced(service(**spec))
    assert cluster.names == {SVC, *children}
    types = {c["type"] for c in cluster.answer["status"]["conditions"] if c["type"].endswith("WorkloadReady")}
    assert types == conditions


def test_topology_changes_replace_the_object() -> None:
    """A service that becomes multi-node has a LeaderWorkerSet instead of a Deployment."""
    cluster = synced(service())
    cluster.parent = service(**MULTI)
    cluster.sync()
    assert cluster.names == {SVC, GROUP}


def test_without_leader_worker_sets_the_rest_works() -> None:
    """The condition names what to install."""
    cluster = synced(service(**MULTI), optional=frozenset())
    assert cluster.names == {SVC}
    condition = cluster.condition("WorkerWorkloadReady")
    assert condition is not None
    assert condition["reason"] == "KindNotInstalled"
    assert "leaderworkerset" in condition["message"]


@pytest.mark.parametrize(
    ("parallelism", "size"),
    [
        ({"data": 4, "dataLocal": 1}, 4),
        ({"data": 10, "dataLocal": 2}, 5),
        ({"data": 1, "dataLocal": 8}, 1),
        ({"data": 32, "dataLocal": 8}, 4),
    ],
)
def test_group_sizes(parallelism: Json, size: int) -> None:
    assert group(synced(service(worker={}, parallelism=parallelism)))["leaderWorkerTemplate"]["size"] == size


def test_shape_of_a_group() -> None:
    """Groups start with their leader and restart as a whole; only prefill has subgroups."""
    cluster = synced(service(**MULTI, prefill=MULTI, replicas=3))
    main, prefill = group(cluster), group(cluster, "demo-kserve-mn-prefill")
    assert main["replicas"] == 3
    assert main["startupPolicy"] == "LeaderCreated"
    assert main["rolloutStrategy"] == {"type": "RollingUpdate"}
    assert main["leaderWorkerTemplate"]["restartPolicy"] == "RecreateGroupOnPodRestart"
    assert "subGroupPolicy" not in main["leaderWorkerTemplate"]
    assert prefill["leaderWorkerTemplate"]["subGroupPolicy"] == {"subGroupSize": 2}
    assert "replicas" not in prefill


# Labels.


@pytest.mark.parametrize(
    ("spec", "name", "component", "role"),
    [
        ({}, "demo-kserve", "llminferenceservice-workload", "both"),
        ({"prefill": {}}, "demo-kserve", "llminferenceservice-workload", "decode"),
        ({"prefill": {}}, "demo-kserve-prefill", "llminferenceservice-workload-prefill", "prefill"),
    ],
)
def test_labels_of_deployments(spec: Json, name: str, component: str, role: str) -> None:
    """Deployment, selector and pods have the same five labels (KS-3.3)."""
    deployment = synced(service(**spec)).child("Deployment", name)
    wanted = labels(component, role)
    assert desired(deployment)["metadata"]["labels"] == wanted
    assert deployment["spec"]["selector"]["matchLabels"] == wanted
    assert deployment["spec"]["template"]["metadata"]["labels"] == wanted


def test_the_service_selects_the_leaders_of_groups() -> None:
    """The Service selects only leaders, as workers take no requests."""
    cluster = synced(service(**MULTI, prefill=MULTI))
    for name, suffix, role in (("demo-kserve-mn", "", "decode"), ("demo-kserve-mn-prefill", "-prefill", "prefill")):
        worker = {**BASE, COMPONENT: f"llminferenceservice-workload-worker{suffix}"}
        templates = group(cluster, name)["leaderWorkerTemplate"]
        assert desired(cluster.child("LeaderWorkerSet", name))["metadata"]["labels"] == worker
        assert templates["workerTemplate"]["metadata"]["labels"] == worker
        leader = labels(f"llminferenceservice-workload-leader{suffix}", role)
        assert templates["leaderTemplate"]["metadata"]["labels"] == leader


def test_workload_service() -> None:
    """The Service in front of all model servers has plain HTTP on port 8000."""
    spec = synced(service()).child(*SVC)["spec"]
    assert spec == {
        "type": "ClusterIP",
        "selector": {**BASE, "kserve.io/component": "workload"},
        "ports": [{"name": "http", "protocol": "TCP", "appProtocol": "http", "port": 8000, "targetPort": 8000}],
    }


def propagating(**spec: Any) -> Json:
    parent = service(**spec)
    parent["metadata"]["annotations"] = {
        "k8s.v1.cni.cncf.io/networks": "roce",
        "kueue.x-k8s.io/queue-name": "q",
        "prometheus.io/scrape": "true",
        "leaderworkerset.sigs.k8s.io/exclusive-topology": "rack",
        "random/foo": "x",
        "internal.serving.kserve.io/model-criticality": "Critical",
    }
    parent["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "meta-val", NAME: "other"}
    return parent


PASSED = {"k8s.v1.cni.cncf.io/networks": "roce", "kueue.x-k8s.io/queue-name": "q", "prometheus.io/scrape": "true"}


def test_metadata_that_workloads_get() -> None:
    """Only three prefixes of annotations and one of labels are copied to the Deployment and its pods."""
    deployment = synced(propagating()).child("Deployment", "demo-kserve")
    for metadata in (deployment["metadata"], deployment["spec"]["template"]["metadata"]):
        passed_on = {
            k: v for k, v in metadata["annotations"].items() if not k.startswith(("metacontroller", "modelhooks.dev"))
        }
        assert passed_on == PASSED
        assert metadata["labels"]["kueue.x-k8s.io/queue-name"] == "meta-val"
        assert metadata["labels"][NAME] == "demo"
    assert "kueue.x-k8s.io/queue-name" not in deployment["spec"]["selector"]["matchLabels"]


def test_groups_get_leader_worker_set_annotations_too() -> None:
    cluster = synced(propagating(**MULTI))
    wanted = {**PASSED, "leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"}
    assert wanted.items() <= cluster.child("LeaderWorkerSet", "demo-kserve-mn")["metadata"]["annotations"].items()
    assert group(cluster)["leaderWorkerTemplate"]["workerTemplate"]["metadata"]["annotations"] == wanted


def test_labels_of_the_spec_reach_pods_only() -> None:
    """Each workload has its labels; the selector has the base keys, with the pods' values."""
    parent = propagating(
        labels={"team": "ml", "kueue.x-k8s.io/queue-name": "spec-val", NAME: "shared"},
        annotations={"note": "a"},
        prefill={"labels": {"team": "prefill"}, "annotations": {"more": "b"}},
    )
    cluster = synced(parent)
    main = cluster.child("Deployment", "demo-kserve")
    assert main["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "meta-val"
    assert "team" not in main["metadata"]["labels"]
    assert main["metadata"]["labels"][NAME] == "demo"
    assert main["spec"]["selector"]["matchLabels"][NAME] == "shared"
    assert "team" not in main["spec"]["selector"]["matchLabels"]
    pod = main["spec"]["template"]["metadata"]
    assert pod["labels"]["kueue.x-k8s.io/queue-name"] == "spec-val"
    assert pod["annotations"]["note"] == "a"
    prefill = template(cluster, "demo-kserve-prefill")["metadata"]
    assert prefill["labels"]["team"] == "prefill"
    assert prefill["annotations"]["more"] == "b"
    assert "note" not in prefill["annotations"]


def test_an_observed_selector_stays_while_the_pods_fit() -> None:
    """A selector is immutable, so one that another operator made wider is kept.

    A Deployment whose selector no longer matches is deleted and recreated.
    """
    cluster = synced(service(labels={"team": "ml"}))
    leaked = {**labels("llminferenceservice-workload", "both"), "team": "ml"}
    cluster.child("Deployment", "demo-kserve")["spec"]["selector"] = {"matchLabels": leaked}
    cluster.sync()
    assert cluster.child("Deployment", "demo-kserve")["spec"]["selector"]["matchLabels"] == leaked
    cluster.parent = service(labels={"team": "other"})
    cluster.sync()
    assert MAIN not in cluster.names
    assert cluster.says("MainWorkloadReady") == "Progressing"
    cluster.sync()
    assert "team" not in cluster.child("Deployment", "demo-kserve")["spec"]["selector"]["matchLabels"]


def test_getting_prefill_makes_the_deployment_anew() -> None:
    """The role label of its pods changes, so its immutable selector no longer matches."""
    cluster = synced(service())
    cluster.parent = service(prefill={})
    cluster.sync()
    assert MAIN not in cluster.names
    assert ("Deployment", "demo-kserve-prefill") in cluster.names
    cluster.sync()
    selector = cluster.child("Deployment", "demo-kserve")["spec"]["selector"]["matchLabels"]
    assert selector["llm-d.ai/role"] == "decode"


# Replicas.


def test_replicas_are_left_alone_when_not_set() -> None:
    """Replicas are not sent, so another controller can own the field."""
    cluster = synced(service())
    assert "replicas" not in cluster.child("Deployment", "demo-kserve")["spec"]
    cluster.child("Deployment", "demo-kserve")["spec"]["replicas"] = 5
    cluster.sync()
    assert "replicas" not in next(c for c in cluster.answer["children"] if c["kind"] == "Deployment")["spec"]


def test_replicas_that_were_sent_are_sent_on_as_observed() -> None:
    """If the field were removed after being sent, the API server would reset it to 1."""
    cluster = synced(service(replicas=3))
    cluster.child("Deployment", "demo-kserve")["spec"]["replicas"] = 7
    cluster.parent = service()
    cluster.sync()
    assert cluster.child("Deployment", "demo-kserve")["spec"]["replicas"] == 7


def test_replicas_that_are_set_are_enforced() -> None:
    cluster = synced(service(replicas=3, prefill={"replicas": 0}))
    cluster.child("Deployment", "demo-kserve")["spec"]["replicas"] = 7
    cluster.sync()
    assert cluster.child("Deployment", "demo-kserve")["spec"]["replicas"] == 3
    assert cluster.child("Deployment", "demo-kserve-prefill")["spec"]["replicas"] == 0


# The routing sidecar and accounts.


def sidecar(pod: Json) -> Json:
    container: Json = next(c for c in pod["spec"]["initContainers"] if c["name"] == "llm-d-routing-sidecar")
    return container


@pytest.mark.parametrize(
    ("router", "pool"),
    [({}, "demo-inference-pool"), ({"scheduler": {"pool": {"ref": {"name": "mine"}}}}, "mine"), (None, None)],
)
def test_the_sidecar_knows_its_pool(router: Json | None, pool: str | None) -> None:
    """With a router, the variable is appended."""
    spec: Json = {} if router is None else {"router": router}
    env = sidecar(template(synced(service(prefill={}, **spec))))["env"]
    names = [variable["name"] for variable in env]
    assert names == ["INFERENCE_POOL_NAMESPACE", "SSL_CERT_DIR", *(["INFERENCE_POOL_NAME"] if pool else [])]
    assert pool is None or env[-1]["value"] == pool


def test_init_containers_in_order() -> None:
    """The sidecar starts before the download."""
    pod = template(synced(service(prefill={})))["spec"]
    assert [c["name"] for c in pod["initContainers"]] == ["llm-d-routing-sidecar", "storage-initializer"]


@pytest.mark.parametrize(
    ("spec", "accounts", "roles", "used"),
    [
        ({}, set(), set(), None),
        ({"prefill": {}}, {"demo-kserve"}, {"demo-kserve-role"}, "demo-kserve"),
        (MULTI, {"demo-kserve-mn"}, set(), None),
        ({**MULTI, "prefill": {}}, {"demo-kserve-mn"}, {"demo-kserve-mn-role"}, None),
        (
            {**MULTI, "prefill": MULTI},
            {"demo-kserve-mn", "demo-kserve-mn-prefill"},
            {"demo-kserve-mn-role"},
            None,
        ),
    ],
)
def test_managed_accounts(spec: Json, accounts: set[str], roles: set[str], used: str | None) -> None:
    """Each topology has its accounts; Roles exist only if the sidecar uses the API server (KS-3.5, KS-3.6)."""
    cluster = synced(service(**spec), optional=OPTIONAL_KINDS | RBAC_KINDS)
    assert {name for kind, name in cluster.names if kind == "ServiceAccount"} == accounts
    assert {name for kind, name in cluster.names if kind == "Role"} == roles
    if used:
        assert template(cluster)["spec"]["serviceAccountName"] == used
    for kind, name in cluster.names:
        if kind == "RoleBinding":
            binding = cluster.child(kind, name)
            assert binding["subjects"][0]["name"] in accounts
            assert binding["roleRef"]["name"] in roles


def test_an_account_of_the_users_own() -> None:
    """The account is used and bound, but not created."""
    parent = service(prefill={}, template={"serviceAccountName": "mine"})
    cluster = synced(parent, account("mine"), optional=OPTIONAL_KINDS | RBAC_KINDS)
    assert not {name for kind, name in cluster.names if kind == "ServiceAccount"}
    assert cluster.child("RoleBinding", "demo-kserve-rb")["subjects"][0]["name"] == "mine"
    assert template(cluster)["spec"]["serviceAccountName"] == "mine"


def test_group_accounts() -> None:
    """Both pods use the leader's account, or the workers' if the leader has none."""
    worker: Json = {"worker": {"serviceAccountName": "w"}, "parallelism": DP}
    templates = group(synced(service(**worker), account("w")))["leaderWorkerTemplate"]
    assert templates["leaderTemplate"]["spec"]["serviceAccountName"] == "w"
    assert templates["workerTemplate"]["spec"]["serviceAccountName"] == "w"


def test_resets_an_account_that_is_no_longer_set() -> None:
    """Without the field the API server would restore the old name, so the default account is sent at every sync."""
    cluster = synced(service(template={"serviceAccountName": "mine"}), account("mine"))
    del cluster.parent["spec"]["template"]
    for _ in range(2):
        cluster.sync()
        assert template(cluster)["spec"]["serviceAccountName"] == "default"
    cluster.parent["spec"]["template"] = {"serviceAccountName": "mine"}
    cluster.sync()
    assert template(cluster)["spec"]["serviceAccountName"] == "mine"


@pytest.mark.parametrize(("declared", "sent"), [(True, "default"), (False, None)])
def test_resets_a_managed_account_that_is_not_needed(declared: bool, sent: str | None) -> None:
    """If the account is a child, it is deleted and the pods leave it; if not, it stays in use."""
    init = [{"name": "llm-d-routing-sidecar", "image": "r:1"}]
    cluster = synced(service(template={"initContainers": init}), optional=OPTIONAL_KINDS | RBAC_KINDS)
    assert template(cluster)["spec"]["serviceAccountName"] == "demo-kserve"
    del cluster.parent["spec"]["template"]
    if not declared:
        cluster.optional -= RBAC_KINDS
        cluster.children = [child for child in cluster.children if child["kind"] not in RBAC_KINDS]
    cluster.sync()
    assert template(cluster)["spec"].get("serviceAccountName") == sent


def test_an_account_that_another_operator_named_stays() -> None:
    """A field that was never sent is not removed: an adopted service keeps its account."""
    cluster = synced(service())
    child = cluster.child("Deployment", "demo-kserve")
    child["spec"]["template"]["spec"]["serviceAccountName"] = "theirs"
    cluster.sync()
    assert template(cluster)["spec"]["serviceAccountName"] == "theirs"


def test_only_the_account_that_is_used_must_exist() -> None:
    """The workers' account is ignored if the leader has one."""
    spec: Json = {"template": {"serviceAccountName": "a"}, "worker": {"serviceAccountName": "gone"}, "parallelism": DP}
    templates = group(synced(service(**spec), account("a")))["leaderWorkerTemplate"]
    assert templates["workerTemplate"]["spec"]["serviceAccountName"] == "a"


def test_a_managed_account_of_another_topology_is_not_made() -> None:
    """Pods with that account could not start, so it must be the user's (KS-3.5)."""
    parent = service(template={"serviceAccountName": "demo-kserve-mn"})
    cluster = synced(parent, optional=OPTIONAL_KINDS | RBAC_KINDS)
    assert cluster.says("MainWorkloadReady") == "ReconcileSingleNodeWorkloadError"


def test_a_managed_account_that_is_named_has_the_default_ones_secrets() -> None:
    """Naming the managed account changes nothing: it has no Secrets, so the default one's are used (KS-3.7)."""
    parent = service(prefill={}, template={"serviceAccountName": "demo-kserve"})
    default = account("default", secrets=[{"name": "token"}])
    cluster = synced(parent, default, optional=OPTIONAL_KINDS | RBAC_KINDS)
    initializer = template(cluster)["spec"]["initContainers"][-1]
    assert initializer["env"][0]["valueFrom"]["secretKeyRef"]["name"] == "token"
    assert ("ServiceAccount", "demo-kserve") in cluster.names


def test_without_the_rbac_component_no_account_is_named() -> None:
    """Pods then run under the namespace's default account."""
    cluster = synced(service(prefill={}, **MULTI))
    assert "serviceAccountName" not in group(cluster)["leaderWorkerTemplate"]["leaderTemplate"]["spec"]


def test_groups_keep_their_account_without_the_rbac_component() -> None:
    """It is not deleted, and a change of it would restart every group."""
    cluster = synced(service(prefill=dict(MULTI), **MULTI), optional=OPTIONAL_KINDS | RBAC_KINDS)
    before = [group(cluster), group(cluster, "demo-kserve-mn-prefill")]
    assert before[0]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["serviceAccountName"] == "demo-kserve-mn"
    cluster.optional -= RBAC_KINDS
    cluster.children = [child for child in cluster.children if child["kind"] not in RBAC_KINDS]
    cluster.settle()
    assert [group(cluster), group(cluster, "demo-kserve-mn-prefill")] == before


@pytest.mark.parametrize(
    ("spec", "condition", "reason"),
    [
        ({"template": {"serviceAccountName": "gone"}}, "MainWorkloadReady", "ReconcileSingleNodeWorkloadError"),
        (
            {"worker": {"serviceAccountName": "gone"}, "parallelism": DP},
            "WorkerWorkloadReady",
            "ReconcileMultiNodeWorkloadError",
        ),
        ({"model": {"uri": ""}}, "MainWorkloadReady", "ReconcileSingleNodeWorkloadError"),
    ],
)
def test_what_cannot_be_made_keeps_what_is_there(spec: Json, condition: str, reason: str) -> None:
    """Children are kept, and the router is not evaluated."""
    cluster = synced(service())
    before = cluster.settle()["children"]
    cluster.parent = {**service(**spec), "status": cluster.parent["status"]}
    if "model" in spec:
        cluster.parent["spec"] = {"baseRefs": [{"name": "kserve-config-llm-template"}]}
    cluster.sync()
    assert cluster.answer["children"] == before
    assert cluster.says(condition) == reason
    assert cluster.says("Ready") == reason


def test_stop_removes_everything_and_starting_brings_it_back() -> None:
    """Only the annotation decides; its value is case-insensitive."""
    cluster = synced(service())
    cluster.report("Deployment", "demo-kserve", **AVAILABLE)
    cluster.sync()
    before = cluster.names
    for value, running in (("TRUE", False), ("false", True), ("true", False)):
        cluster.parent["metadata"]["annotations"] = {"serving.kserve.io/stop": value}
        cluster.sync()
        assert cluster.names == (before if running else set())
    assert (cluster.says("Ready"), cluster.says("Stopped")) == (None, "True")
    assert "addresses" not in cluster.answer["status"]


@pytest.mark.parametrize(
    "mistake", [{"replicas": -1}, {"replicas": "two"}, {"worker": {}}, {"model": {"uri": "ftp://host/model"}}]
)
def test_stop_counts_for_more_than_a_mistake(mistake: Json) -> None:
    """Stopping frees the hardware even if the spec is invalid; the error is still reported."""
    cluster = synced(service())
    cluster.parent["spec"] |= mistake
    before = cluster.names
    cluster.sync()
    assert cluster.names == before
    assert cluster.says("Ready") == "InvalidSpec"
    cluster.parent["metadata"]["annotations"] = {"serving.kserve.io/stop": "true"}
    cluster.sync()
    assert cluster.names == set()
    assert (cluster.says("Ready"), cluster.says("MainWorkloadReady")) == (None, "Stopped")
    condition = cluster.condition("Stopped")
    assert condition is not None
    assert "it cannot start: spec." in condition["message"]


def test_stop_works_where_nothing_can_be_combined() -> None:
    """A service whose base was deleted can still be stopped."""
    cluster = synced(service(baseRefs=[{"name": "gone"}], notes={"serving.kserve.io/stop": "true"}))
    assert (cluster.says("Ready"), cluster.says("PresetsCombined")) == (None, "Stopped")
    condition = cluster.condition("Stopped")
    assert condition is not None
    assert "LLMInferenceServiceConfig 'gone' is neither" in condition["message"]


def test_a_stopped_service_lists_its_configs() -> None:
    """The status lists the configs with which the service would start."""
    cluster = synced(service(notes={"serving.kserve.io/stop": "true"}))
    assert [config["name"] for config in cluster.answer["status"]["appliedConfigs"]] == ["kserve-config-llm-template"]


def test_the_routing_sidecar_asks_for_the_pool_that_is_made() -> None:
    """KServe's preset names the older API group; the created pool is of the newer one."""
    older = ["/app/pd-sidecar", "--pool-group=inference.networking.x-k8s.io"]
    pod = {"initContainers": [{"name": "llm-d-routing-sidecar", "command": older}]}
    cluster = Cluster(service(prefill={}, router={"scheduler": {}}, template=pod))
    cluster.sync()
    assert sidecar(template(cluster))["command"] == ["/app/pd-sidecar", "--pool-group=inference.networking.k8s.io"]


def test_the_routing_sidecar_keeps_the_group_of_a_users_pool() -> None:
    """The pool of `scheduler.pool.ref` is not made here, and may be of the older API group."""
    older = ["/app/pd-sidecar", "--pool-group=inference.networking.x-k8s.io"]
    pod = {"initContainers": [{"name": "llm-d-routing-sidecar", "command": older}]}
    cluster = Cluster(service(prefill={}, router={"scheduler": {"pool": {"ref": {"name": "mine"}}}}, template=pod))
    cluster.sync()
    assert sidecar(template(cluster))["command"] == older


def test_a_download_without_memory_says_where_its_limit_is() -> None:
    """The storage initializer's limit is in the settings of the operator."""
    cluster = synced(service())
    step = {"name": "storage-initializer", "resources": {"limits": {"memory": "1Gi"}}}
    ended = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "demo-1", "namespace": "default", "labels": template(cluster)["metadata"]["labels"]},
        "spec": {"initContainers": [step]},
        "status": {"phase": "Pending", "initContainerStatuses": [{"name": "storage-initializer", "state": ended}]},
    }
    told = synced(service(), pod).condition("PodsReady")
    assert told is not None
    assert told["reason"] == "OOMKilled"
    for words in ("at its limit of 1Gi", "memoryLimit", "inferenceservice-config"):
        assert words in told["message"]
