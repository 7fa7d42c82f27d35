"""Traefik as the Gateway on the node: it routes `status.url` and canaries to the pods, and Ready has its refusals.

Traefik does not support InferencePools, so the services here have no scheduler.
"""

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

SERVICES = "llminferenceservices"
PORT = 8088
ADDRESS = f"http://{machine.ADDRESS}:{PORT}"
ACCESS_LOG = machine.SERVED / "gateway" / "access.log"
_API = "gateway.networking.k8s.io/v1"
_CLASS = "traefik"
_GATEWAY_CLASS = {
    "apiVersion": _API,
    "kind": "GatewayClass",
    "metadata": {"name": _CLASS},
    "spec": {"controllerName": "traefik.io/gateway-controller"},
}


def gateway(name: str, namespaces: str) -> dict[str, Any]:
    """Return a Gateway that accepts routes of all namespaces (`All`) or only of its namespace (`Same`)."""
    routes = {"namespaces": {"from": namespaces}}
    listener = {"name": "http", "port": PORT, "protocol": "HTTP", "allowedRoutes": routes}
    spec = {"gatewayClassName": _CLASS, "listeners": [listener]}
    return {"apiVersion": _API, "kind": "Gateway", "metadata": {"name": name}, "spec": spec}


@pytest.fixture(scope="module")
def routed(installed: World) -> Iterator[World]:
    """Install Traefik, KServe's Gateway, one that is closed to other namespaces, and the component gateway-api."""
    cluster, folder = installed.cluster, ACCESS_LOG.parent
    folder.mkdir()
    standard = binaries.module_directory("crds", "sigs.k8s.io/gateway-api") / "config" / "crd" / "standard"
    cluster.install_crds(*sorted(standard.glob("gateway.networking.k8s.io_*.yaml")))
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
    cluster.create_namespace("kserve")
    installed.apply("kserve", _GATEWAY_CLASS, gateway("kserve-ingress-gateway", "All"), gateway("closed", "Same"))
    yield installed
    process.check()
    process.stop()


@pytest.fixture(scope="module")
def weights(routed: World, namespace: str) -> str:
    """The URI of the tiny model on a volume of the module's namespace."""
    folder = routed.host_model.parent
    routed.apply(namespace, samples.volume("routed", folder.parent), samples.claim("weights", "routed"))
    return f"pvc://weights/{folder.name}"


def service(name: str, uri: str, **route: Any) -> dict[str, Any]:
    """Return a service of the model `chat` behind the Gateway."""
    document = samples.llm_service(name, uri, replicas=1, router={"gateway": {}, "route": route})
    document["spec"]["model"]["name"] = "chat"
    return document


def test_the_url_of_a_service_answers(routed: World, namespace: str, weights: str) -> None:
    routed.apply(namespace, service("routed", weights))
    routed.wait_true(SERVICES, "routed", namespace)
    document = routed.find(SERVICES, "routed", namespace)
    assert document is not None
    assert document["status"]["url"] == f"{ADDRESS}/{namespace}/routed"
    health = f"{document['status']['url']}/health"
    routed.wait_for("Traefik knows the pod", lambda: httpx.get(health, trust_env=False).is_success, bool)
    assert routed.ask(document["status"]["url"], model="chat")["model"] == "chat"


def test_a_canary_gets_one_request_in_ten(routed: World, namespace: str, weights: str) -> None:
    """Of ten requests below the path of the group, nine go to the stable service."""
    rewrite = {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}}
    rule = {
        "matches": [{"path": {"type": "PathPrefix", "value": "/shared"}}],
        "filters": [{"type": "URLRewrite", "urlRewrite": rewrite}],
        "backendRefs": [{"name": "stable-kserve-workload-svc", "port": 8000}],
    }
    routed.apply(namespace, service("stable", weights, group="shared", weight=90, http={"spec": {"rules": [rule]}}))
    routed.apply(namespace, service("canary", weights, group="shared", weight=10))
    for name in ("stable", "canary"):
        routed.wait_true(SERVICES, name, namespace)

    def members() -> Counter[str]:
        """Send ten requests; return how many each service received."""
        pods = {pod["status"].get("podIP"): pod["metadata"]["labels"] for pod in routed.pods(namespace)}
        before = len(ACCESS_LOG.read_text().splitlines())
        for _ in range(10):
            httpx.get(f"{ADDRESS}/shared/health", timeout=30, trust_env=False)
        lines = routed.wait_for(
            "access log", lambda: ACCESS_LOG.read_text().splitlines()[before:], lambda lines: len(lines) >= 10
        )
        addresses = [json.loads(line).get("ServiceAddr", "").partition(":")[0] for line in lines]
        return Counter(pods.get(address, {}).get("app.kubernetes.io/name", "nobody") for address in addresses)

    routed.wait_for("nine requests of ten", members, lambda received: received == {"stable": 9, "canary": 1})


@pytest.mark.parametrize(
    ("name", "route", "words"),
    [
        ("refused", {"parentRefs": [{"name": "closed", "namespace": "kserve"}]}, "NotAllowedByListeners"),
        ("misled", {"rules": [{"backendRefs": [{"name": "nowhere", "port": 80}]}]}, "BackendNotFound"),
        (
            "pooled",
            {
                "rules": [
                    {"backendRefs": [{"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": "p"}]}
                ]
            },
            "InvalidKind",
        ),
    ],
)
def test_ready_has_the_gateways_own_words(
    routed: World, namespace: str, weights: str, name: str, route: dict[str, Any], words: str
) -> None:
    """The cases: the Gateway refuses the route, a Service does not exist, and a kind is not supported."""
    routed.apply(namespace, service(name, weights, http={"spec": route}))
    routed.wait_not_ready(SERVICES, name, namespace, words)


def test_a_users_route_is_missing_until_the_gateway_accepts_it(routed: World, namespace: str, weights: str) -> None:
    of_user = service("own", weights, http={"refs": [{"name": "mine"}]})
    del of_user["spec"]["router"]["gateway"]
    routed.apply(namespace, of_user)
    routed.wait_not_ready(SERVICES, "own", namespace, "mine does not exist")
    spec = {
        "parentRefs": [{"name": "kserve-ingress-gateway", "namespace": "kserve"}],
        "rules": [{"backendRefs": [{"name": "own-kserve-workload-svc", "port": 8000}]}],
    }
    routed.apply(namespace, {"apiVersion": _API, "kind": "HTTPRoute", "metadata": {"name": "mine"}, "spec": spec})
    routed.wait_true(SERVICES, "own", namespace)
