"""ScaledObjects of LLMInferenceServices beside KEDA's webhook, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pytest

from app.kube.base import Json
from tests.e2e.controlplane import ControlPlane
from tests.e2e.installation import ROOT, Installation
from tests.e2e.processes import wait_until
from tests.world import keda

pytestmark = [pytest.mark.e2e, pytest.mark.world("keda")]

EXAMPLES = ROOT / "examples" / "kserve"
SERVICE = "llminferenceservices.serving.kserve.io"
WORKLOAD = "keda-chat-kserve"
SCALED_OBJECT = f"ScaledObject/{WORKLOAD}-keda"
PREFILL = f"ScaledObject/{WORKLOAD}-prefill-keda"
AUTOSCALER = f"HorizontalPodAutoscaler/{WORKLOAD}-hpa"
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": WORKLOAD}
TRIGGER = {
    "type": "cron",
    "name": "night",
    "metadata": {"timezone": "UTC", "start": "0 1 * * *", "end": "0 2 * * *", "desiredReplicas": "1"},
}
BEHAVIOR = {
    "scaleDown": {"stabilizationWindowSeconds": 3600, "policies": [{"type": "Pods", "value": 1, "periodSeconds": 1800}]}
}
FALLBACKS = ("static", "currentReplicas", "currentReplicasIfHigher", "currentReplicasIfLower")


@pytest.fixture(scope="module")
def cluster(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    process = keda.start(installation.cluster, tmp_path_factory.mktemp("world") / "keda")
    installation.cluster.create_namespace("kserve")
    installation.cluster.kubectl("apply", "-f", EXAMPLES / "cluster")
    yield installation.cluster
    process.check()
    installation.cluster.kubectl("delete", "validatingwebhookconfiguration", keda.CONFIGURATION)
    process.stop()
    installation.cluster.kubectl("delete", "namespace", "kserve")


def scaled_object(*triggers: Json, target: str = WORKLOAD) -> Json:
    spec = {"scaleTargetRef": {**TARGET, "name": target}, "triggers": triggers}
    return {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "other"}, "spec": spec}


OTHERS = {
    "ScaledObject": scaled_object(TRIGGER),
    "hpa": {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "other"},
        "spec": {"scaleTargetRef": TARGET, "maxReplicas": 2},
    },
}
"""Autoscalers of a user for the same workload, by KEDA's word for them."""


def wait_until_refused(cluster: ControlPlane, namespace: str, item: Json, words: str) -> None:
    """Wait until KEDA refuses an object with these words. It decides by its cache, which may be late."""
    dry = ("apply", "-n", namespace, "--dry-run=server", "-f", "-")
    wait_until(lambda: words in cluster.kubectl(*dry, input=json.dumps(item), check=False).stderr, words)


def managed_by(kind: str) -> str:
    """Return KEDA's words about a workload that another autoscaler has."""
    return f"the workload '{WORKLOAD}' of type 'apps/v1.Deployment' is already managed by the {kind} 'other'"


def add_other(cluster: ControlPlane, namespace: str, kind: str, refused: str) -> None:
    """Create the other autoscaler, and wait until KEDA refuses a ScaledObject of a name because of it."""
    cluster.kubectl("create", "-n", namespace, "-f", "-", input=json.dumps(OTHERS[kind]))
    item = {**scaled_object(TRIGGER), "metadata": {"name": refused}}
    wait_until_refused(cluster, namespace, item, managed_by(kind))


def apply_example(cluster: ControlPlane, namespace: str) -> None:
    cluster.kubectl("apply", "-n", namespace, "-f", EXAMPLES / "scaled-keda.yaml")


def patch(cluster: ControlPlane, namespace: str, spec: Json) -> None:
    where = ("-n", namespace, "--type=merge")
    cluster.kubectl("patch", SERVICE, "keda-chat", *where, "-p", json.dumps({"spec": spec}))


def scalers(cluster: ControlPlane, namespace: str) -> dict[str, Json]:
    """Return the specs of all autoscalers."""
    items = cluster.get("horizontalpodautoscalers,scaledobjects", "-n", namespace)["items"]
    return {f"{item['kind']}/{item['metadata']['name']}": item["spec"] for item in items}


def wait_refused(cluster: ControlPlane, namespace: str, kind: str, reason: str, message: str) -> None:
    """Wait until an event has KEDA's words, and ``Ready`` the reason and a message that refers to the events."""

    def in_events() -> bool:
        events = cluster.get("events", "-n", namespace, "--field-selector=involvedObject.name=keda-chat")["items"]
        return any(managed_by(kind) in event["message"] for event in events)

    def in_ready() -> bool:
        conditions = cluster.get(SERVICE, "keda-chat", "-n", namespace)["status"]["conditions"]
        ready = next(condition for condition in conditions if condition["type"] == "Ready")
        parts = (message, "see the events of this object")
        return ready.get("reason") == reason and all(part in ready["message"] for part in parts)

    wait_until(in_events, f"an event that says: {managed_by(kind)}")
    wait_until(in_ready, f"Ready with {reason}", interval=1)


def wait_for_example(cluster: ControlPlane, namespace: str) -> None:
    """Apply the example, and wait for its ScaledObject."""
    apply_example(cluster, namespace)
    wait_until(lambda: scalers(cluster, namespace).keys() == {SCALED_OBJECT}, "a ScaledObject")


@pytest.fixture
def chat(cluster: ControlPlane, namespace: str) -> str:
    """The namespace of the example with a ScaledObject."""
    wait_for_example(cluster, namespace)
    return namespace


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (scaled_object(TRIGGER), f"already managed by the ScaledObject '{WORKLOAD}-keda'"),
        (scaled_object(TRIGGER, TRIGGER, target="free"), 'triggerName "night" is defined multiple times'),
        (scaled_object(target="free"), "no triggers defined"),
    ],
    ids=["second", "same-name", "no-triggers"],
)
def test_the_webhook_refuses_other_scaled_objects(cluster: ControlPlane, chat: str, item: Json, words: str) -> None:
    wait_until_refused(cluster, chat, item, words)


@pytest.mark.parametrize(
    "settings",
    [
        {"pollingInterval": 1, "cooldownPeriod": 0, "initialCooldownPeriod": 0, "idleReplicaCount": 1},
        *({"fallback": {"failureThreshold": 0, "replicas": 0, "behavior": each}} for each in FALLBACKS),
        {"advanced": {"restoreToOriginalReplicaCount": True, "horizontalPodAutoscalerConfig": {"behavior": BEHAVIOR}}},
    ],
    ids=["periods", *FALLBACKS, "advanced"],
)
def test_accepts_every_setting(cluster: ControlPlane, chat: str, settings: Json) -> None:
    """Prefill has a ScaledObject of its own."""
    scaling = {"minReplicas": 2, "maxReplicas": 4, "wva": {"keda": settings}}
    prefill = {"scaling": scaling, "template": {"containers": [{"name": "main"}]}}
    router: Json = {"route": {}, "scheduler": {}}
    patch(cluster, chat, {"scaling": None})
    patch(cluster, chat, {"scaling": scaling, "prefill": prefill, "router": router})

    def stored() -> bool:
        specs = scalers(cluster, chat)
        return specs.keys() == {SCALED_OBJECT, PREFILL} and all(
            settings.items() <= spec.items() for spec in specs.values()
        )

    wait_until(stored, "both ScaledObjects with the settings")


def test_changes_from_one_autoscaler_to_the_other(cluster: ControlPlane, chat: str) -> None:
    """KEDA refuses a workload that still has a HorizontalPodAutoscaler, so that one is deleted first."""
    patch(cluster, chat, {"scaling": {"wva": {"keda": None, "hpa": {}}}})
    wait_until(lambda: scalers(cluster, chat).keys() == {AUTOSCALER}, "a HorizontalPodAutoscaler alone")
    patch(cluster, chat, {"scaling": {"wva": {"hpa": None, "keda": {}}}})
    wait_until(lambda: scalers(cluster, chat).keys() == {SCALED_OBJECT}, "a ScaledObject alone")


def refuse_creation(cluster: ControlPlane, namespace: str, kind: str) -> None:
    """Ready names the ScaledObject that is refused; it is created once the other autoscaler is deleted."""
    add_other(cluster, namespace, kind, "probe")
    apply_example(cluster, namespace)
    wait_refused(cluster, namespace, kind, "CreateRefused", f"ScaledObject {WORKLOAD}-keda cannot be created")
    cluster.kubectl("delete", OTHERS[kind]["kind"], "other", "-n", namespace)
    wait_until(lambda: scalers(cluster, namespace).keys() == {SCALED_OBJECT}, "our ScaledObject alone")


def refuse_change(cluster: ControlPlane, namespace: str) -> None:
    """The stored ScaledObject stays, and changes once the other autoscaler is deleted."""
    wait_for_example(cluster, namespace)
    add_other(cluster, namespace, "hpa", f"{WORKLOAD}-keda")
    patch(cluster, namespace, {"scaling": {"wva": {"keda": {"pollingInterval": 77}}}})
    wait_refused(cluster, namespace, "hpa", "ChangeRefused", f"ScaledObject {WORKLOAD}-keda cannot be changed")
    assert scalers(cluster, namespace)[SCALED_OBJECT]["pollingInterval"] == 15
    cluster.kubectl("delete", "hpa", "other", "-n", namespace)
    wait_until(lambda: scalers(cluster, namespace)[SCALED_OBJECT]["pollingInterval"] == 77, "the change")


REFUSALS: dict[str, Callable[[ControlPlane, str], None]] = {
    **{f"creation-{kind}": partial(refuse_creation, kind=kind) for kind in OTHERS},
    "change": refuse_change,
}


@pytest.fixture(scope="module", autouse=True)
def refusals(cluster: ControlPlane, request: pytest.FixtureRequest) -> Iterator[dict[str, Future[None]]]:
    """All refusals of this session at once, each in its own namespace, because each is reported after two minutes.

    They begin before the first test of the module, and run beside the others.
    """
    wanted = {item.callspec.params.get("name") for item in request.session.items if hasattr(item, "callspec")}
    namespaces = {name: cluster.create_namespace() for name in REFUSALS if name in wanted}
    with ThreadPoolExecutor() as pool:
        yield {name: pool.submit(REFUSALS[name], cluster, namespace) for name, namespace in namespaces.items()}
    for namespace in namespaces.values():
        cluster.client.delete(f"/api/v1/namespaces/{namespace}").raise_for_status()


@pytest.mark.parametrize("name", REFUSALS)
def test_reports_a_refusal(refusals: dict[str, Future[None]], name: str) -> None:
    """Until the other autoscaler is deleted, events and Ready have KEDA's words."""
    refusals[name].result()
