"""Metrics about models, produced by the real kube-state-metrics from resources in a real API server."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tests.e2e import binaries
from tests.e2e.controlplane import TIMEOUT, ControlPlane
from tests.e2e.installation import ROOT, Installation, clear
from tests.e2e.processes import Process, free_ports, wait_until
from tests.e2e.test_model_monitoring import COMPONENT, RULES, STATE, document
from tests.e2e.test_monitoring import asked

pytestmark = pytest.mark.e2e

ACCOUNT, NAMESPACE = "kube-state-metrics", "model-state-metrics"
LONELY = {
    "apiVersion": "inference.llmkube.dev/v1alpha1",
    "kind": "InferenceService",
    "metadata": {"name": "lonely"},
    "spec": {"modelRef": "nowhere"},
}
QUERIES = [
    target["expr"].replace("$namespace", ".*")
    for panel in json.loads(document("dashboard.yaml")["data"]["models.json"])["panels"]
    for target in panel["targets"]
]


def kubeconfig(cluster: ControlPlane, path: Path) -> Path:
    """Write the kubeconfig of the component's account, which has only the component's rights."""
    text = cluster.kubectl("kustomize", COMPONENT).stdout
    rights = [
        o for o in yaml.safe_load_all(text) if o["kind"] in ("Namespace", "ServiceAccount") or "Role" in o["kind"]
    ]
    cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(rights))
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    token = cluster.kubectl("create", "token", ACCOUNT, "-n", NAMESPACE).stdout.strip()
    config["users"][0]["user"] = {"token": token}
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.fixture(scope="module")
def address(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The metrics address of kube-state-metrics, run with the component's arguments and configuration."""
    if shutil.which("go") is None and os.environ.get("MODELHOOKS_E2E") != "required":
        pytest.skip("kube-state-metrics: there is no Go toolchain to build it")
    program = binaries.kube_state_metrics()
    folder = tmp_path_factory.mktemp("kube-state-metrics")
    documents = yaml.safe_load_all((COMPONENT / "kube-state-metrics.yaml").read_text())
    (deployment,) = (document for document in documents if document["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    config = folder / "config.yaml"
    config.write_text(document("custom-resource-state.yaml")["data"]["config.yaml"])
    port, telemetry = free_ports(2)
    places = {
        "/etc/kube-state-metrics/config.yaml": str(config),
        "--port=8080": f"--port={port}",
        "--telemetry-port=8081": f"--telemetry-port={telemetry}",
    }
    arguments = container["args"]
    for name, place in places.items():
        arguments = [argument.replace(name, place) for argument in arguments]
    account = kubeconfig(installation.cluster, folder / "kubeconfig.yaml")
    argv = [program, *arguments, f"--kubeconfig={account}", "--host=127.0.0.1"]
    process = Process(ACCOUNT, argv, folder / "log", os.environ)
    probes = {name: container[name]["httpGet"]["path"] for name in ("readinessProbe", "livenessProbe")}
    ready, live = (
        f"http://127.0.0.1:{telemetry}{probes['readinessProbe']}",
        f"http://127.0.0.1:{port}{probes['livenessProbe']}",
    )
    process.wait_ready(lambda: all(answers(url) for url in (ready, live)))
    yield f"http://127.0.0.1:{port}/metrics"
    process.check()
    process.stop()


def answers(url: str) -> bool:
    """Report whether a probe succeeds."""
    try:
        return httpx.get(url, timeout=5, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def read(address: str) -> str:
    return httpx.get(address, timeout=30, trust_env=False).raise_for_status().text


def samples(text: str) -> list[Sample]:
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


def find(text: str, metric: str, /, **labels: str) -> list[Sample]:
    """Return the samples of a metric with these labels."""
    return [s for s in samples(text) if s.name == metric and labels.items() <= s.labels.items()]


def kept(text: str, namespace: str) -> list[str]:
    """Return the Deployments of a namespace with a newer template waiting."""
    annotated = find(text, "kube_deployment_annotations", namespace=namespace)
    return [s.labels["deployment"] for s in annotated if s.labels.get("annotation_modelhooks_dev_kept_template")]


@pytest.fixture(scope="module")
def metrics(installation: Installation, address: str) -> Iterator[tuple[str, str]]:
    """The metrics of a ready service, one that is not ready, and a Playground; with their namespace."""
    cluster = installation.cluster
    namespace = cluster.create_namespace()
    cluster.kubectl("apply", "-k", ROOT / "manifests/llmaz-runtimes")
    for path in ("llmkube/quickstart.yaml", "llmaz/cpu.yaml", "kserve/quickstart.yaml"):
        cluster.kubectl("apply", "-n", namespace, "-f", ROOT / "examples" / path)
    cluster.kubectl("apply", "-n", namespace, "-f", "-", input=yaml.safe_dump(LONELY))
    ready = ("inferenceservice.inference.llmkube.dev/smollm-chat", "model.inference.llmkube.dev/smollm")
    cluster.kubectl("wait", "-n", namespace, "--for=condition=Ready", *ready, TIMEOUT)
    cluster.kubectl("wait", "-n", namespace, "--for=condition=Ready", "playgrounds", "--all", TIMEOUT)
    cluster.kubectl("annotate", "deployment", "smollm-chat", "-n", namespace, "modelhooks.dev/kept-template=0123")

    text = ""

    def complete() -> bool:
        nonlocal text
        text = read(address)
        told = find(text, "modelhooks_condition", namespace=namespace, type="Ready")
        values = {(sample.labels["customresource_kind"], sample.labels["name"]): sample.value for sample in told}
        expected = {("InferenceService", "smollm-chat"): 1, ("InferenceService", "lonely"): 0, ("Model", "smollm"): 1}
        expected |= {("Playground", "qwen-chat"): 1, ("Service", "qwen-chat"): 1}
        kinds = {sample.labels["customresource_kind"] for sample in find(text, "modelhooks_condition")}
        wanted = {resource["groupVersionKind"]["kind"] for resource in STATE} - {"LeaderWorkerSet"}  # none exists here
        return expected.items() <= values.items() and wanted <= kinds and kept(text, namespace) != []

    wait_until(complete, "the metrics of every kind")
    yield text, namespace
    clear(cluster, namespace)


def test_a_condition_has_its_reason_and_its_time(metrics: tuple[str, str]) -> None:
    text, namespace = metrics
    lonely = {"namespace": namespace, "name": "lonely", "type": "Ready"}
    (condition,) = find(text, "modelhooks_condition", **lonely)
    assert (condition.value, condition.labels["reason"]) == (0, "ModelNotFound")
    assert "owner" not in condition.labels
    (since,) = find(text, "modelhooks_condition_since_seconds", **lonely)
    assert 0 <= time.time() - since.value < 600


def test_a_service_of_a_playground_has_an_owner(metrics: tuple[str, str]) -> None:
    """The owner label prevents a second alert."""
    text, namespace = metrics
    told = {
        sample.labels["customresource_kind"]: sample.labels
        for sample in find(text, "modelhooks_condition", namespace=namespace, type="Ready")
        if sample.labels["customresource_kind"] in ("Playground", "Service")
    }
    assert told["Service"]["owner"] == told["Playground"]["name"]
    assert "owner" not in told["Playground"]


def test_a_deployment_that_waits_is_told(metrics: tuple[str, str]) -> None:
    text, namespace = metrics
    assert kept(text, namespace) == ["smollm-chat"]


def test_alerts_and_dashboard_ask_for_what_is_served(metrics: tuple[str, str]) -> None:
    """Metrics of engines are not checked, because the engines serve them."""
    emitted: dict[str, set[str]] = {}
    for sample in samples(metrics[0]):
        emitted.setdefault(sample.name, set()).update(sample.labels)
    emitted["modelhooks_kept_template_info"] = {"name"}  # of LeaderWorkerSets, which do not exist here
    ours = [query for query in (*(rule["expr"] for rule in RULES.values()), *QUERIES) if "modelhooks_" in query]
    assert len(ours) > 8
    for expression in ours:
        query = asked(expression)
        assert query.chosen.keys() <= emitted.keys(), expression
        assert all(labels <= emitted[name] for name, labels in query.chosen.items()), expression
        assert query.kept <= {"workload"}.union(*(emitted[name] for name in query.chosen)), expression
