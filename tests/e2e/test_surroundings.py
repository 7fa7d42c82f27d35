"""llmaz' surroundings: the gateway that lists and routes models, and the components in manifests (LZ-11)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.controlplane import TIMEOUT, ControlPlane
from tests.e2e.installation import ROOT, Installation, clear, settle
from tests.e2e.processes import wait_until
from tests.e2e.test_llmaz import (
    EXAMPLES,
    PLAYGROUNDS,
    RUNTIMES,
    SERVICES,
    apply,
    model,
    playground,
    ready,
    revision,
    wait_ready,
)
from tests.e2e.test_monitoring import ON_PAGE, promtool
from tests.node import images, prometheus

pytestmark = pytest.mark.e2e

COMPONENTS = [
    path
    for path in sorted((ROOT / "manifests" / "components").iterdir())
    if yaml.safe_load((path / "kustomization.yaml").read_text())["resources"]
]
"""Components that add objects. test_chart.py tests those that remove a family, and test_certs.py the one for GitOps."""
ROUTES = "aigatewayroutes.aigateway.envoyproxy.io"
BACKENDS = "backends.gateway.envoyproxy.io"
AI_BACKENDS = "aiservicebackends.aigateway.envoyproxy.io"
OBJECTS = f"{ROUTES},{AI_BACKENDS},{BACKENDS}"


@pytest.fixture
def cluster(installation: Installation) -> Iterator[ControlPlane]:
    """The control plane with the engines and without models of other tests."""
    cluster = installation.cluster
    cluster.kubectl("apply", "-k", str(RUNTIMES))
    cluster.kubectl("wait", "--for=condition=Ready", "backendruntimes", "--all", TIMEOUT)
    yield cluster
    cluster.kubectl("delete", "-k", str(RUNTIMES))
    cluster.kubectl("delete", "openmodels", "--all")


def rule(cluster: ControlPlane, namespace: str, name: str) -> dict[str, Any]:
    (only,) = cluster.get(ROUTES, f"{name}-llmaz", "-n", namespace)["spec"]["rules"]
    assert isinstance(only, dict)
    return only


def test_a_model_is_behind_the_gateway(cluster: ControlPlane, namespace: str) -> None:
    """A Playground and a Service both get the objects for the gateway's model list and routing."""
    cluster.kubectl("apply", "-n", namespace, "-f", str(EXAMPLES / "gateway.yaml"))
    wait_ready(cluster, namespace, f"{PLAYGROUNDS}/opt-public", f"{SERVICES}/opt-by-hand")
    told = rule(cluster, namespace, "opt-public")
    assert told["matches"][0]["headers"] == [{"name": "x-ai-eg-model", "type": "Exact", "value": "opt-public"}]
    assert (told["modelsOwnedBy"], told["modelsCreatedAt"]) == ("research", "2025-03-01T00:00:00Z")
    created = cluster.get("openmodel", "opt-by-hand")["metadata"]["creationTimestamp"]
    assert rule(cluster, namespace, "opt-by-hand")["modelsCreatedAt"] == created
    backend = cluster.get(AI_BACKENDS, "opt-public-llmaz", "-n", namespace)["spec"]
    assert (backend["schema"]["name"], backend["backendRef"]["name"]) == ("OpenAI", "opt-public-llmaz")
    (endpoint,) = cluster.get(BACKENDS, "opt-public-llmaz", "-n", namespace)["spec"]["endpoints"]
    assert endpoint["fqdn"] == {"hostname": f"opt-public-lb.{namespace}.svc.cluster.local", "port": 8080}
    settle(cluster, namespace, f"{PLAYGROUNDS},{SERVICES},{OBJECTS}", 3)
    cluster.kubectl("delete", PLAYGROUNDS, "opt-public", "-n", namespace)
    wait_until(lambda: len(cluster.get(OBJECTS, "-n", namespace)["items"]) == 3, "those of the Service are left")


def test_reports_the_gateways_message(cluster: ControlPlane, namespace: str) -> None:
    """A refused route, or a model that an older route already has, is reported up to the Playground."""
    apply(cluster, namespace, model("wanted"), playground("first", "wanted"))
    wait_ready(cluster, namespace, f"{PLAYGROUNDS}/first")
    wait_until(lambda: aged(cluster, namespace), "a second route that is younger")
    apply(cluster, namespace, playground("second", "wanted"))
    expect(cluster, namespace, "second", f"to AIGatewayRoute {namespace}/first-llmaz, which is older")
    refused = {
        "type": "NotAccepted",
        "status": "True",
        "reason": "NotAccepted",
        "message": "no such Gateway",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    patch = json.dumps({"status": {"conditions": [refused]}})
    patched = ("patch", ROUTES, "first-llmaz", "-n", namespace, "--type=merge", "-p", patch, "--subresource=status")
    cluster.kubectl(*patched)
    expect(cluster, namespace, "first", "does not accept AIGatewayRoute first-llmaz: no such Gateway")
    wait_ready(cluster, namespace, f"{PLAYGROUNDS}/first", f"{PLAYGROUNDS}/second")


def aged(cluster: ControlPlane, namespace: str) -> bool:
    """Report whether the API server's clock is at a later second than the first route's creation."""
    created = cluster.get(ROUTES, "first-llmaz", "-n", namespace)["metadata"]["creationTimestamp"]
    probe = ("create", "configmap", "now", "-n", namespace, "--dry-run=server", "-o", "json")
    return bool(json.loads(cluster.kubectl(*probe).stdout)["metadata"]["creationTimestamp"] > created)


def expect(cluster: ControlPlane, namespace: str, name: str, words: str) -> None:
    wait_until(lambda: words in ready(cluster, namespace, PLAYGROUNDS, name).get("message", ""), words)


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda path: path.name)
def test_a_component_is_accepted(installation: Installation, tmp_path: Path, component: Path) -> None:
    """A strict dry run on a server with its kinds accepts it; only its namespace is really created."""
    cluster = installation.cluster
    chosen = [component] if component.name != "open-webui-persistent" else [component.parent / "open-webui", component]
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "components": [os.path.relpath(path, tmp_path) for path in chosen],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    built = list(yaml.safe_load_all(cluster.kubectl("kustomize", str(tmp_path)).stdout))
    namespaces = [o for o in built if o["kind"] == "Namespace"]
    if namespaces:
        cluster.kubectl("apply", "--server-side", "-f", "-", input=yaml.safe_dump_all(namespaces))
    text = yaml.safe_dump_all(built)
    accepted = cluster.kubectl("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-", input=text)
    assert accepted.stdout.count("serverside-applied (server dry run)") == len(built)
    assert "Warning" not in accepted.stderr


def test_all_components_go_together(installation: Installation, tmp_path: Path) -> None:
    """They can be combined with the service and Metacontroller's objects, without duplicates."""
    registered = sorted((ROOT / "metacontroller" / "components").iterdir())
    folders = [*registered, *COMPONENTS]
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(ROOT / "manifests" / "overlays" / "quickstart", tmp_path)],
        "components": [os.path.relpath(path, tmp_path) for path in folders],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    built = list(yaml.safe_load_all(installation.cluster.kubectl("kustomize", str(tmp_path)).stdout))
    names = [(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) for o in built]
    assert len(names) == len(set(names))


def test_the_manifests_of_the_page_on_autoscaling(installation: Installation, namespace: str, tmp_path: Path) -> None:
    """A strict dry run accepts them, and the kustomization builds in the documented directory."""
    page = (ROOT / "docs/howto/autoscale.md").read_text()
    blocks = [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)]
    objects = [block for block in blocks if block["kind"] != "Kustomization"]
    (overlay,) = (block for block in blocks if block["kind"] == "Kustomization")
    assert {block["kind"] for block in objects} == {
        "InferenceService",
        "LLMInferenceService",
        "Playground",
        "ScaledObject",
    }
    kubectl = installation.cluster.kubectl
    text = yaml.safe_dump_all(objects)
    kubectl("apply", "-n", namespace, "--dry-run=server", "--validate=strict", "-f", "-", input=text)
    for kind in ("resources", "components"):
        overlay[kind] = [os.path.relpath(ROOT / "manifests/overlays/own" / path, tmp_path) for path in overlay[kind]]
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    assert "prometheus-adapter" in kubectl("kustomize", tmp_path).stdout


def test_labels_on_objects(cluster: ControlPlane, namespace: str) -> None:
    """Labels are written soon after the objects, restored if changed, and restart no pod."""
    name = f"labelled-{namespace}"
    apply(cluster, namespace, model(name, familyName="opt"), playground("labelled", name))
    wait_ready(cluster, namespace, f"{PLAYGROUNDS}/labelled")
    wanted = {
        "openmodels": (name, {"llmaz.io/model-family-name": "opt"}),
        PLAYGROUNDS: ("labelled", {"llmaz.io/model-name": name}),
        SERVICES: ("labelled", {"llmaz.io/model-name": name}),
    }

    def labelled() -> bool:
        labels_by_kind = {kind: labels(cluster, namespace, kind, name) for kind, (name, _) in wanted.items()}
        return all(expected.items() <= labels_by_kind[kind].items() for kind, (_, expected) in wanted.items())

    wait_until(labelled, "the labels")
    cluster.kubectl("label", PLAYGROUNDS, "labelled", "-n", namespace, "--overwrite", "llmaz.io/model-name=other")
    apply(cluster, namespace, model(name, familyName="elder"))
    wanted["openmodels"] = (name, {"llmaz.io/model-family-name": "elder"})
    wait_until(labelled, "the labels as they should be")
    wait_ready(cluster, namespace, f"{PLAYGROUNDS}/labelled")
    assert "createdAt" not in cluster.get("openmodel", name)["spec"]


def labels(cluster: ControlPlane, namespace: str, kind: str, name: str) -> dict[str, str]:
    return dict(cluster.get(kind, name, "-n", namespace)["metadata"].get("labels") or {})


def test_labels_replace_no_pods(cluster: ControlPlane, namespace: str) -> None:
    """Nothing is written continuously, either."""
    name = f"calm-{namespace}"
    apply(cluster, namespace, model(name), playground("calm", name))
    wait_ready(cluster, namespace, f"{PLAYGROUNDS}/calm")
    wait_until(lambda: "llmaz.io/model-name" in labels(cluster, namespace, SERVICES, "calm"), "the label")
    settle(cluster, namespace, f"{PLAYGROUNDS},{SERVICES},deployments,{OBJECTS}", 3)
    assert revision(cluster, namespace, "calm") == "1"


def test_the_pod_monitor_of_the_page_finds_metacontroller(installation: Installation, tmp_path: Path) -> None:
    """Its container declares no port, so its address is made from the pod's; the alert goes by the job's name."""
    cluster, monitor = installation.cluster, ON_PAGE["PodMonitor"]
    namespace = cluster.create_namespace(monitor["metadata"]["namespace"])
    for item in ON_PAGE.values():
        cluster.kubectl("apply", "--dry-run=server", "-f", "-", input=json.dumps(item))
    labels = {"app.kubernetes.io/name": "metacontroller"}
    container = {"name": "metacontroller", "image": images.METACONTROLLER}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "metacontroller-0", "labels": labels}}
    cluster.kubectl("apply", "-n", namespace, "-f", "-", input=json.dumps({**pod, "spec": {"containers": [container]}}))
    cluster.kubectl("wait", "-n", namespace, "--for=condition=Ready", "pod/metacontroller-0", TIMEOUT)
    (config,) = prometheus.scrape_configs([monitor])
    config["kubernetes_sd_configs"] = [{"role": "pod", "kubeconfig_file": str(cluster.kubeconfig)}]
    file = tmp_path / "prometheus.yaml"
    file.write_text(yaml.safe_dump({"scrape_configs": [config]}))
    discovered = json.loads(promtool("check", "service-discovery", "--timeout=5s", file, config["job_name"]))
    (labels,) = (target["labels"] for target in discovered if target["labels"])
    address = cluster.get("pod", "metacontroller-0", "-n", namespace)["status"]["podIP"]
    assert (labels["instance"], labels["__metrics_path__"]) == (f"{address}:9999", "/metrics")
    assert f'job="{labels["job"]}"' in ON_PAGE["PrometheusRule"]["spec"]["groups"][0]["rules"][0]["expr"]
    clear(cluster, namespace)
