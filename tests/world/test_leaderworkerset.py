"""Services of several nodes beside the real controller of LeaderWorkerSets, their pods on kwok's nodes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from app.kube.base import Json
from app.kube.names import LAST_APPLIED
from tests.contract.recordings import cases
from tests.e2e.controlplane import ControlPlane
from tests.e2e.installation import ROOT, Installation, quiet
from tests.e2e.processes import wait_until
from tests.e2e.test_llmaz import global_config
from tests.e2e.test_release import NEXT, PRESENT
from tests.world import leaderworkerset

pytestmark = pytest.mark.world("lws")

KSERVE = "llminferenceservices.serving.kserve.io"
LLMAZ = "services.inference.llmaz.io"
SETS = "leaderworkersets.leaderworkerset.x-k8s.io"
EXAMPLES = {
    KSERVE: ("experts", ROOT / "examples" / "kserve" / "multi-node.yaml"),
    LLMAZ: ("llama-large", ROOT / "examples" / "llmaz" / "multi-node.yaml"),
}
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "experts-weights"},
    "spec": {"accessModes": ["ReadOnlyMany"], "resources": {"requests": {"storage": "1Gi"}}},
}


@pytest.fixture(scope="module")
def cluster(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    process = leaderworkerset.start(installation.cluster, tmp_path_factory.mktemp("world") / "lws")
    yield installation.cluster
    process.check()
    process.stop()
    installation.cluster.kubectl("delete", "openmodels", "--all")


class Service:
    """The example of several nodes of a family, applied in a namespace."""

    def __init__(self, cluster: ControlPlane, namespace: str, kind: str, name: str = "") -> None:
        self.cluster, self.namespace, self.kind = cluster, namespace, kind
        example, file = EXAMPLES[kind]
        self.name = name or example
        cluster.kubectl("apply", "-n", namespace, "-f", "-", input=json.dumps(CLAIM))
        named = file.read_text().replace(f"  name: {example}\n", f"  name: {self.name}\n")
        cluster.kubectl("apply", "-n", namespace, "-f", "-", input=named)
        self.wait_ready()

    def ready(self) -> Json:
        return condition(self.cluster.get(self.kind, self.name, "-n", self.namespace))

    def wait_ready(self, pods: int = 2) -> None:
        def all_ready() -> bool:
            return self.ready().get("status") == "True" and len(self.pods()) == pods

        try:
            wait_until(all_ready, f"{self.name} ready with {pods} pods", 60, 0.5)
        except TimeoutError:
            pytest.fail(f"{self.ready()}, pods {sorted(self.pods())}\n{self.events()}")

    def events(self) -> str:
        return self.cluster.kubectl("get", "events", "-n", self.namespace).stdout

    def pods(self) -> dict[str, Json]:
        return pods(self.cluster, self.namespace)

    def uids(self) -> set[str]:
        return {pod["metadata"]["uid"] for pod in self.pods().values()}

    def patch(self, spec: Json) -> None:
        patch = json.dumps({"spec": spec})
        self.cluster.kubectl("patch", self.kind, self.name, "-n", self.namespace, "--type=merge", "-p", patch)

    def change_variable(self, value: str) -> None:
        """Give the server of every pod a variable."""
        variable = {"env": [{"name": "EXAMPLE", "value": value}]}
        if self.kind == KSERVE:
            containers = [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "8"}}, **variable}]
            self.patch({"template": {"containers": containers}, "worker": {"containers": containers}})
            return
        stored = self.cluster.get(self.kind, self.name, "-n", self.namespace)["spec"]["workloadTemplate"]
        for template in (stored["leaderTemplate"], stored["workerTemplate"]):
            template["spec"]["containers"][0].update(variable)
        self.patch({"workloadTemplate": stored})

    def variables(self) -> list[dict[str, str]]:
        """Those of the server, of each pod."""
        return [
            {e["name"]: e.get("value", "") for e in pod["spec"]["containers"][0].get("env", [])}
            for pod in self.pods().values()
        ]


def condition(item: Json, type_: str = "Ready") -> Json:
    return next((c for c in item.get("status", {}).get("conditions", []) if c["type"] == type_), {})


def pods(cluster: ControlPlane, namespace: str) -> dict[str, Json]:
    """The pods of groups by name, without those that are being deleted."""
    items = cluster.get("pods", "-n", namespace, "-l", "leaderworkerset.sigs.k8s.io/name")["items"]
    return {i["metadata"]["name"]: i for i in items if "deletionTimestamp" not in i["metadata"]}


@pytest.fixture(params=[KSERVE, LLMAZ], ids=["kserve", "llmaz"])
def service(cluster: ControlPlane, namespace: str, request: pytest.FixtureRequest) -> Service:
    return Service(cluster, namespace, request.param)


def test_a_group_comes_up_scales_and_stops(service: Service) -> None:
    """With the address of its leader in every pod; without replicas it has no pods, and with them it is back."""
    before, after = quiet(service.cluster, service.namespace, f"{service.kind},{SETS}", 3)
    assert before == after
    addresses = {found["LWS_LEADER_ADDRESS"] for found in service.variables()}
    assert len(addresses) == 1
    assert service.namespace in addresses.pop()
    first = service.uids()
    service.patch({"replicas": 2})
    service.wait_ready(4)
    assert first < service.uids()
    service.patch({"replicas": 1})
    service.wait_ready(2)
    assert service.uids() == first
    service.patch({"replicas": 0})
    wait_until(lambda: not service.pods(), "no pods", 60, 0.5)
    service.patch({"replicas": 1})
    service.wait_ready(2)


def test_a_change_rolls_out_group_by_group(service: Service) -> None:
    """`Ready` is RollingOut until both pods of both groups are new."""
    service.patch({"replicas": 2})
    service.wait_ready(4)
    before = service.uids()
    service.change_variable("changed")
    wait_until(lambda: service.ready().get("status") == "False", "a rollout is seen", 30, 0.2)
    service.wait_ready(4)
    assert not before & service.uids()
    assert [found["EXAMPLE"] for found in service.variables()] == ["changed"] * 4


def test_a_lost_pod_restarts_its_group_and_no_other(service: Service) -> None:
    service.patch({"replicas": 2})
    service.wait_ready(4)
    before = {name: pod["metadata"]["uid"] for name, pod in service.pods().items()}
    lost = next(name for name in before if name.endswith("-0-1"))
    service.cluster.kubectl("delete", "pod", lost, "-n", service.namespace)

    def restarted() -> set[str]:
        return {name for name, pod in service.pods().items() if pod["metadata"]["uid"] != before.get(name)}

    group = {lost, lost.removesuffix("-1")}
    wait_until(lambda: restarted() == group, "both pods of the group are new", 60, 0.5)
    service.wait_ready(4)
    assert restarted() == group


def test_another_release_restarts_no_group(installation: Installation, service: Service) -> None:
    """Its template is kept, through every write, until the user changes something."""
    before = service.uids()
    installation.stop_service()
    installation.start_service(("-c", NEXT))
    try:
        service.cluster.kubectl("label", service.kind, service.name, "-n", service.namespace, "example.com/looked=1")
        wait_until(lambda: "a newer pod template waits" in service.ready()["message"], "what waits is told", 30, 0.5)
        service.patch({"replicas": 2})
        service.wait_ready(4)
        assert before < service.uids()
        service.change_variable("changed")
        wait_until(lambda: not before & service.uids(), "the change rolls out", 60, 0.5)
        service.wait_ready(4)
    finally:
        installation.stop_service()
        installation.start_service(PRESENT)


def test_the_stop_of_kserve(cluster: ControlPlane, namespace: str) -> None:
    """The annotation takes the group away and brings it back."""
    service = Service(cluster, namespace, KSERVE)
    stop = ("annotate", KSERVE, service.name, "-n", namespace)
    cluster.kubectl(*stop, "serving.kserve.io/stop=true")
    wait_until(lambda: not service.pods() and not cluster.get(SETS, "-n", namespace)["items"], "nothing", 60, 0.5)
    wait_until(lambda: service.ready().get("reason") == "Stopped", "reason Stopped", 30, 0.5)
    cluster.kubectl(*stop, "serving.kserve.io/stop-")
    service.wait_ready(2)


class Left:
    """A recorded case's groups in a namespace as the Go operator left them, with the label of docs/migration.md."""

    def __init__(self, cluster: ControlPlane, case: Json) -> None:
        self.name = case["name"]
        self._cluster = cluster
        self._namespace = cluster.create_namespace()
        text = json.dumps(case)
        for model in (item["metadata"]["name"] for item in case["objects"] if item["kind"] == "OpenModel"):
            text = text.replace(model, f"{model}-{self._namespace}")  # no namespace holds them
        known = json.loads(text)
        written = [item for item in known["objects"] if _is_written(item)]
        self._apply(*(_as_written(item, {}, "") for item in written))
        (parent,) = (item for item in written if item["kind"] in ("LLMInferenceService", "Service"))
        kind = KSERVE if parent["kind"] == "LLMInferenceService" else LLMAZ
        uid = cluster.get(kind, parent["metadata"]["name"], "-n", self._namespace)["metadata"]["uid"]
        children = [c for c in known["expect"]["children"] if c["kind"] in ("LeaderWorkerSet", "ServiceAccount")]
        self._apply(*(_as_written(child, {"controller-uid": uid}, uid) for child in children))

    def _apply(self, *items: Json) -> None:
        together = {"apiVersion": "v1", "kind": "List", "items": items}
        self._cluster.kubectl("apply", "-n", self._namespace, "--validate=false", "-f", "-", input=json.dumps(together))

    def sets(self) -> list[Json]:
        found: list[Json] = self._cluster.get(SETS, "-n", self._namespace)["items"]
        return found

    def is_up(self) -> bool:
        """Whether every group has its leader; its workers may wait for GPUs of which the node has too few."""
        return all(item.get("status", {}).get("replicas") == item["spec"]["replicas"] for item in self.sets())

    def is_taken(self) -> bool:
        """Whether Metacontroller has noted what it was asked for."""
        return all(LAST_APPLIED in item["metadata"].get("annotations", {}) for item in self.sets())

    def pods(self) -> set[tuple[str, str]]:
        items = pods(self._cluster, self._namespace)
        return {(name, item["metadata"]["uid"]) for name, item in items.items()}

    def revisions(self) -> int:
        """How many templates the groups' controller has noted for each set, at most."""
        sets = {item["metadata"]["uid"] for item in self.sets()}
        items = self._cluster.get("controllerrevisions", "-n", self._namespace)["items"]
        owners = [item["metadata"]["ownerReferences"][0]["uid"] for item in items]
        return max(owners.count(uid) for uid in sets)

    def delete(self) -> None:
        self._cluster.kubectl("delete", "namespace", self._namespace, "--wait=false")


def _is_written(item: Json) -> bool:
    """Whether a recorded object belongs to the service's namespace or to none, and is not its child."""
    return (
        item["metadata"].get("namespace", "default") == "default"
        and "ownerReferences" not in item["metadata"]
        and item["kind"] != "GatewayClass"
    )


def _as_written(item: Json, labels: dict[str, str], owner: str) -> Json:
    """A recorded object before the API server had it, with more labels and the uid of its owner."""
    recorded = item["metadata"]
    metadata = {key: recorded[key] for key in ("name", "annotations") if key in recorded}
    metadata["labels"] = {**recorded.get("labels", {}), **labels}
    metadata["ownerReferences"] = [{**each, "uid": owner} for each in recorded.get("ownerReferences", [])]
    return {key: value for key, value in item.items() if key != "status"} | {"metadata": metadata}


def test_taking_over_restarts_no_pod(installation: Installation, cluster: ControlPlane) -> None:
    """All recorded groups of several pods; nothing of a group's template changes either."""
    recorded = {family: [case for case in cases(family) if has_groups(case)] for family in ("kserve", "llmaz")}
    config = next(item for case in recorded["llmaz"] for item in case["objects"] if item["kind"] == "ConfigMap")
    with global_config(cluster, config):
        installation.metacontroller.stop()
        try:
            left = [Left(cluster, case) for case in recorded["kserve"]]
            left += [Left(cluster, case) for case in recorded["llmaz"] if config in case["objects"]]
            wait_until(lambda: all(each.is_up() for each in left), "every group has its leader", 120, 1)
            before = {each.name: each.pods() for each in left}
        finally:
            installation.metacontroller.restart()
        wait_until(lambda: all(each.is_taken() for each in left), "every group is taken over", 120, 1)
        time.sleep(5)
        assert {each.name: before[each.name] - each.pods() for each in left} == {each.name: set() for each in left}
        assert {each.name: each.revisions() for each in left} == {each.name: 1 for each in left}
        for each in left:
            each.delete()


def has_groups(case: Json) -> bool:
    """Whether the recorded answer has a group of several pods."""
    sets = [child for child in case["expect"].get("children", []) if child["kind"] == "LeaderWorkerSet"]
    return any(item["spec"]["leaderWorkerTemplate"].get("size", 1) > 1 for item in sets)


@pytest.mark.parametrize("length", [40, 41, 53])
def test_groups_of_a_long_name_come_up(cluster: ControlPlane, namespace: str, length: int) -> None:
    """Labels of their pods hold the name of the LeaderWorkerSet, two numbers and a hash."""
    service = Service(cluster, namespace, KSERVE, "a" * length)
    assert len(service.pods()) == 2
