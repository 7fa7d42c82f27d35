"""A real Gateway on the node: what comes to the `status.url` of a service is answered by its pods."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import yaml

from tests.e2e import binaries
from tests.e2e.processes import Process
from tests.node import machine, samples
from tests.node.images import ROOT
from tests.node.world import World
from tests.world import programs

pytestmark = [pytest.mark.node, pytest.mark.world("traefik")]

LLM_SERVICES = "llminferenceservices"
PORT = 8088
ACCESS_LOG = machine.SERVED / "gateway" / "access.log"
_CLASS = "traefik"


def gateway(name: str, namespaces: str) -> dict[str, Any]:
    """A Gateway that takes routes of these namespaces: `All`, or `Same` for its own."""
    routes = {"namespaces": {"from": namespaces}}
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"name": name},
        "spec": {
            "gatewayClassName": _CLASS,
            "listeners": [{"name": "http", "port": PORT, "protocol": "HTTP", "allowedRoutes": routes}],
        },
    }


@pytest.fixture(scope="module")
def routed(installed: World) -> Iterator[World]:
    """Traefik with KServe's Gateway and one that takes nobody's routes, and the component gateway-api."""
    cluster, folder = installed.cluster, ACCESS_LOG.parent
    folder.mkdir()
    standard = binaries.module_directory("crds", "sigs.k8s.io/gateway-api") / "config" / "crd" / "standard"
    cluster.install_crds(*(path for path in sorted(standard.glob("*.yaml")) if "Definition" in path.read_text()))
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(ROOT / "manifests" / "overlays" / "quickstart", folder)],
        "components": [os.path.relpath(ROOT / "metacontroller" / "components" / "gateway-api", folder)],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    cluster.kubectl("apply", "--server-side", "-k", folder)
    process = Process(
        "traefik",
        [
            programs.program("traefik"),
            f"--entrypoints.web.address={machine.ADDRESS}:{PORT}",
            "--providers.kubernetesgateway",
            f"--providers.kubernetesgateway.statusaddress.ip={machine.ADDRESS}",
            *("--accesslog", "--accesslog.format=json", f"--accesslog.filepath={ACCESS_LOG}"),
        ],
        folder / "traefik.log",
        os.environ | {"KUBECONFIG": str(cluster.kubeconfig)},
    )
    class_ = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "GatewayClass",
        "metadata": {"name": _CLASS},
        "spec": {"controllerName": "traefik.io/gateway-controller"},
    }
    cluster.create_namespace("kserve")
    installed.apply("kserve", class_, gateway("kserve-ingress-gateway", "All"), gateway("closed", "Same"))
    yield installed
    process.check()
    process.stop()


@pytest.fixture(scope="module")
def weights(routed: World, namespace: str) -> str:
    """The address of the tiny model on a volume of the module's namespace."""
    folder = routed.host_model.parent
    routed.apply(namespace, samples.volume("routed", folder.parent), samples.claim("weights", "routed"))
    return f"pvc://weights/{folder.name}"


def service(name: str, uri: str, **route: Any) -> dict[str, Any]:
    """A service of the model `chat` behind the Gateway."""
    found = samples.llm_service(name, uri)
    found["spec"]["model"]["name"] = "chat"
    found["spec"]["router"] = {"gateway": {}, "route": route}
    return found


def test_the_url_of_a_service_answers(routed: World, namespace: str, weights: str) -> None:
    routed.apply(namespace, service("routed", weights))
    routed.wait_true(LLM_SERVICES, "routed", namespace)
    found = routed.find(LLM_SERVICES, "routed", namespace)
    assert found is not None
    assert found["status"]["url"] == f"http://{machine.ADDRESS}:{PORT}/{namespace}/routed"
    assert routed.ask(found["status"]["url"], model="chat")["model"] == "chat"


def test_a_canary_gets_one_request_in_ten(routed: World, namespace: str, weights: str) -> None:
    """Of those below the group's path; each member answers below its own, too."""
    rule = {
        "matches": [{"path": {"type": "PathPrefix", "value": "/shared"}}],
        "filters": [
            {"type": "URLRewrite", "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}}}
        ],
        "backendRefs": [{"name": "stable-kserve-workload-svc", "port": 8000}],
    }
    routed.apply(namespace, service("stable", weights, group="shared", weight=90, http={"spec": {"rules": [rule]}}))
    routed.apply(namespace, service("canary", weights, group="shared", weight=10))
    for name in ("stable", "canary"):
        routed.wait_true(LLM_SERVICES, name, namespace)

    def counted() -> Counter[str]:
        """The members that ten requests go to."""
        already = len(ACCESS_LOG.read_text().splitlines())
        for _ in range(10):
            httpx.get(f"http://{machine.ADDRESS}:{PORT}/shared/health", trust_env=False)
        lines = routed.wait_for(
            "access log", ACCESS_LOG.read_text().splitlines, lambda found: len(found) >= already + 10
        )
        return Counter(member(json.loads(line)) for line in lines[already:])

    def member(line: dict[str, str]) -> str:
        address = line.get("ServiceAddr", "").partition(":")[0]
        pods = {pod["status"]["podIP"]: pod["metadata"]["labels"] for pod in routed.pods(namespace)}
        return str(pods.get(address, {}).get("app.kubernetes.io/name", line["DownstreamStatus"]))

    routed.wait_for("nine requests of ten", counted, lambda found: found == {"stable": 9, "canary": 1})


@pytest.mark.parametrize(
    ("name", "route", "words"),
    [
        ("refused", {"parentRefs": [{"name": "closed", "namespace": "kserve"}]}, "NotAllowedByListeners"),
        ("misled", {"rules": [{"backendRefs": [{"name": "nowhere", "port": 80}]}]}, "BackendNotFound"),
    ],
)
def test_ready_has_the_gateways_own_words(
    routed: World, namespace: str, weights: str, name: str, route: dict[str, Any], words: str
) -> None:
    """Of a route that it refuses, and of one that leads nowhere."""
    routed.apply(namespace, service(name, weights, http={"spec": route}))
    routed.wait_not_ready(LLM_SERVICES, name, namespace, words)


def test_ready_names_a_route_that_is_missing(routed: World, namespace: str, weights: str) -> None:
    routed.apply(namespace, service("lost", weights, http={"refs": [{"name": "missing"}]}))
    routed.wait_not_ready(LLM_SERVICES, "lost", namespace, "missing does not exist")
