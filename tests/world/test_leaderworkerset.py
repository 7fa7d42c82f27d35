"""Multi-node services beside the real LeaderWorkerSet controller, with their pods on kwok's nodes."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from app.kube.base import Json
from app.kube.names import groups_with_workers
from tests.e2e.controlplane import ControlPlane
from tests.e2e.installation import ROOT, Installation, settle
from tests.e2e.processes import wait_until
from tests.e2e.test_release import NEXT, PRESENT
from tests.world import leaderworkerset

pytestmark = [pytest.mark.e2e, pytest.mark.world("lws")]

KSERVE = "llminferenceservices.serving.kserve.io"
LLMAZ = "services.inference.llmaz.io"
SETS = "leaderworkersets.leaderworkerset.x-k8s.io"
_LWS = "leaderworkerset.sigs.k8s.io"
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
    """A family's multi-node example, applied in a namespace."""

    def __init__(self, cluster: ControlPlane, namespace: str, kind: str, name: str = "") -> None:
        self.cluster, self.namespace, self.kind = cluster, namespace, kind
        example, file = EXAMPLES[kind]
        self.name = name or example
        cluster.kubectl("apply", "-n", namespace, "-f", "-", input=json.dumps(CLAIM))
        named = file.read_text().replace(f"  name: {example}\n", f"  name: {self.name}\n")
        cluster.kubectl("apply", "-n", namespace, "-f", "-", input=named)
        self.wait_ready()

    def ready(self, type_: str = "Ready") -> Json:
        return condition(self.cluster.get(self.kind, self.name, "-n", self.namespace), type_)

    def wait_ready(self, pods: int = 2) -> None:
        def all_ready() -> bool:
            return self.ready().get("status") == "True" and len(self.pods()) == pods

        try:
            wait_until(all_ready, f"{self.name} ready with {pods} pods")
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

    def keep_pod(self, pod: str, finalizers: list[str]) -> None:
        """Set the finalizers of a pod: with one, the pod stays after its deletion."""
        patch = json.dumps({"metadata": {"finalizers": finalizers}})
        self.cluster.kubectl("patch", "pod", pod, "-n", self.namespace, "--type=merge", "-p", patch)

    def change_variable(self, value: str) -> None:
        """Set an environment variable in the server container of every pod."""
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
        """Return the server container's environment variables of each pod."""
        return [
            {e["name"]: e.get("value", "") for e in pod["spec"]["containers"][0].get("env", [])}
            for pod in self.pods().values()
        ]


def condition(item: Json, type_: str = "Ready") -> Json:
    return next((c for c in item.get("status", {}).get("conditions", []) if c["type"] == type_), {})


def pods(cluster: ControlPlane, namespace: str) -> dict[str, Json]:
    """Return the pods of groups by name, without terminating ones."""
    items = cluster.get("pods", "-n", namespace, "-l", leaderworkerset.POD_LABEL)["items"]
    return {i["metadata"]["name"]: i for i in items if "deletionTimestamp" not in i["metadata"]}


@pytest.fixture(params=[KSERVE, LLMAZ], ids=["kserve", "llmaz"])
def service(cluster: ControlPlane, namespace: str, request: pytest.FixtureRequest) -> Service:
    return Service(cluster, namespace, request.param)


def test_a_group_comes_up_scales_and_stops(service: Service) -> None:
    """Every pod has its leader's address. Scaling to 0 removes the pods, and scaling up again brings them back."""
    settle(service.cluster, service.namespace, f"{service.kind},{SETS}", 3)
    addresses = {environment["LWS_LEADER_ADDRESS"] for environment in service.variables()}
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
    wait_until(lambda: not service.pods(), "no pods")
    service.patch({"replicas": 1})
    service.wait_ready(2)


def test_a_change_rolls_out_group_by_group(service: Service) -> None:
    """A change makes the service not ready, and both pods of both groups are replaced before it stays ready.

    Version 0.7 of the controller has no ``observedGeneration``: until it has seen a change, its status is that of the
    old pods. So what counts is ``Ready`` after the last old pod is gone.
    """
    service.patch({"replicas": 2})
    service.wait_ready(4)
    before = service.uids()
    service.change_variable("changed")
    wait_until(lambda: service.ready().get("status") == "False", "a rollout is seen")
    wait_until(lambda: not before & service.uids(), "both groups are replaced")
    service.wait_ready(4)
    assert [environment["EXAMPLE"] for environment in service.variables()] == ["changed"] * 4


def test_a_lost_pod_restarts_its_group_and_no_other(service: Service) -> None:
    """The controller must see the pod being deleted: kwok would end it at once, so a finalizer keeps it."""
    service.patch({"replicas": 2})
    service.wait_ready(4)
    before = {name: pod["metadata"]["uid"] for name, pod in service.pods().items()}
    lost = next(name for name in before if name.endswith("-0-1"))
    leader = lost.removesuffix("-1")
    service.keep_pod(lost, ["example.com/kept"])
    service.cluster.kubectl("delete", "pod", lost, "-n", service.namespace, "--wait=false")
    wait_until(lambda: leader not in service.pods(), "the group's leader is deleted")
    service.keep_pod(lost, [])

    def restarted() -> set[str]:
        return {name for name, pod in service.pods().items() if pod["metadata"]["uid"] != before.get(name)}

    group = {lost, leader}
    wait_until(lambda: restarted() == group, "both pods of the group are new")
    service.wait_ready(4)
    assert restarted() <= group


def test_reports_pods_that_the_api_server_refuses(service: Service) -> None:
    """The controller's condition for ready groups keeps its words while it is false; none of them is reported."""
    cluster, namespace = service.cluster, service.namespace
    cluster.kubectl("create", "quota", "full", "-n", namespace, "--hard=pods=2")
    service.patch({"replicas": 2})
    wait_until(lambda: "does not have all its pods" in service.ready().get("message", ""), "what is missing is told")
    conditions = cluster.get(service.kind, service.name, "-n", namespace)["status"]["conditions"]
    false = [condition for condition in conditions if condition["status"] == "False"]
    assert "Ready" in {condition["type"] for condition in false}
    assert "All replicas are ready" not in {condition.get("message") for condition in false}
    cluster.kubectl("delete", "quota", "full", "-n", namespace)
    service.wait_ready(4)


def test_another_release_restarts_no_group(installation: Installation, service: Service) -> None:
    """The old template is kept through every write until the user changes something."""
    before = service.uids()
    installation.stop_service()
    installation.start_service(("-c", NEXT))
    try:
        service.cluster.kubectl("label", service.kind, service.name, "-n", service.namespace, "example.com/looked=1")
        wait_until(lambda: "a newer pod template waits" in service.ready().get("message", ""), "what waits is told")
        service.patch({"replicas": 2})
        service.wait_ready(4)
        assert before < service.uids()
        service.change_variable("changed")
        wait_until(lambda: not before & service.uids(), "the change rolls out")
        service.wait_ready(4)
    finally:
        installation.stop_service()
        installation.start_service(PRESENT)


def test_the_stop_of_kserve(cluster: ControlPlane, namespace: str) -> None:
    """The stop annotation removes the group; removing the annotation brings it back."""
    service = Service(cluster, namespace, KSERVE)
    stop = ("annotate", KSERVE, service.name, "-n", namespace)
    cluster.kubectl(*stop, "serving.kserve.io/stop=true")
    wait_until(lambda: not service.pods() and not cluster.get(SETS, "-n", namespace)["items"], "nothing")
    wait_until(lambda: service.ready("Stopped").get("status") == "True", "stopped")
    cluster.kubectl(*stop, "serving.kserve.io/stop-")
    service.wait_ready(2)


@pytest.mark.parametrize("length", [40, 41, 53])
def test_groups_of_a_long_name_come_up(cluster: ControlPlane, namespace: str, length: int) -> None:
    """Labels of the pods hold the LeaderWorkerSet's name, two numbers and a hash, and must not become too long."""
    service = Service(cluster, namespace, KSERVE, "a" * length)
    assert len(service.pods()) == 2


def small_set(length: int) -> Json:
    """Return eleven groups of a leader and a worker, with a name of that length."""
    pods: Json = {"spec": {"containers": [{"name": "main", "image": "registry.example/small:1"}]}}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "n" * length},
        "spec": {"replicas": 11, "leaderWorkerTemplate": {"size": 2, "workerTemplate": pods}},
    }


def test_groups_beyond_those_that_their_name_has_room_for_lack_workers(cluster: ControlPlane, namespace: str) -> None:
    """Admission warns by this: the API server refuses pods with a label of more than 63 characters.

    The hash in it may have fewer than ten characters, so that a group beyond them gets its worker by chance.
    """
    lengths = (49, 50, 51)
    sets = {"apiVersion": "v1", "kind": "List", "items": [small_set(length) for length in lengths]}
    cluster.kubectl("apply", "--validate=false", "-n", namespace, "-f", "-", input=json.dumps(sets))

    def workers() -> list[int]:
        labels = [pod["metadata"]["labels"] for pod in pods(cluster, namespace).values()]
        names = [each[leaderworkerset.POD_LABEL] for each in labels if each[f"{_LWS}/worker-index"] != "0"]
        return [names.count("n" * length) for length in lengths]

    rooms = [min(11, groups_with_workers("n" * length)) for length in lengths]
    assert rooms == [11, 10, 0]
    wait_until(lambda: all(running >= room for running, room in zip(workers(), rooms, strict=True)), f"{rooms} workers")
    settle(cluster, namespace, SETS, 5)
    assert workers()[2] < 11
    assert "must be no more than 63" in cluster.kubectl("get", "events", "-n", namespace).stdout
    cluster.kubectl("delete", "-n", namespace, SETS, "--all")
