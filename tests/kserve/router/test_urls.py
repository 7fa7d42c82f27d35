"""URL discovery (KS-4.8)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from app.kserve.llminferenceservice.observed import LLMRelated, ObservedGateway, ObservedRouteSpec
from app.kserve.llminferenceservice.types import ObjectIdentity, ServiceAddress
from app.kserve.operator import Ingress
from app.kserve.router.urls import URLError, choose, discover, host_name
from app.kube.base import Json
from app.kube.objects import RelatedMeta
from tests.kserve.objects import context

HTTP: Json = {"name": "http", "port": 80, "protocol": "HTTP"}
HTTPS: Json = {"name": "https", "port": 443, "protocol": "HTTPS"}
PUBLIC = "203.0.113.1"
PARENT: Json = {"name": "g", "namespace": "gw"}


def gateway(*listeners: Json, values: list[str] | None = None) -> ObservedGateway:
    return msgspec.convert(
        {
            "metadata": {"name": "g", "namespace": "gw"},
            "spec": {"listeners": list(listeners)},
            "status": {"addresses": [{"value": value} for value in ([PUBLIC] if values is None else values)]},
        },
        ObservedGateway,
    )


def urls(
    *listeners: Json,
    values: list[str] | None = None,
    scheme: str = "",
    services: list[Json] | None = None,
    parents: list[Json] | None = None,
    **route: Any,
) -> list[str]:
    """Return the URLs of a route at one Gateway."""
    spec = msgspec.convert({"parentRefs": parents or [PARENT], **route}, ObservedRouteSpec)
    related = {
        f"{meta['namespace']}/{meta['name']}": msgspec.convert({"metadata": meta}, RelatedMeta)
        for meta in services or []
    }
    cluster = LLMRelated(gateways={"gw/g": gateway(*(listeners or (HTTP,)), values=values)}, services=related)
    return [address.url for address in discover(spec, context(cluster, ingress=Ingress(url_scheme=scheme)))]


def rule(*paths: str | None, pool: bool = False) -> Json:
    matches: list[Json] = [{"path": {"value": path}} if path is not None else {"headers": []} for path in paths]
    backend = {"name": "b", "kind": "InferencePool"} if pool else {"name": "b"}
    return {"matches": matches, "backendRefs": [backend]}


VECTORS: dict[str, tuple[list[str], list[str]]] = {
    "an address": (urls(), ["http://203.0.113.1/"]),
    "several addresses": (
        urls(values=["203.0.113.200", "203.0.113.100"]),
        ["http://203.0.113.100/", "http://203.0.113.200/"],
    ),
    "hostnames of the route": (
        urls({**HTTP, "hostname": "*.example.com"}, hostnames=["api.example.com", "alt.example.com"]),
        ["http://alt.example.com/", "http://api.example.com/"],
    ),
    "a route for any host": (urls(hostnames=["*"]), ["http://203.0.113.1/"]),
    "pools and a service": (
        urls(rules=[rule("/n/s/v1/completions", pool=True), rule("/n/s/v1/chat", pool=True), rule("/n/s")]),
        ["http://203.0.113.1/n/s"],
    ),
    "pools alone": (
        urls(rules=[rule("/n/s/v1/completions", pool=True), rule("/n/s/v1/chat/completions", pool=True)]),
        ["http://203.0.113.1/n/s/v1/chat/completions", "http://203.0.113.1/n/s/v1/completions"],
    ),
    "a match without a path": (urls(rules=[rule(None, "/n/s")]), ["http://203.0.113.1/n/s"]),
    "several paths": (
        urls(rules=[rule("/long"), rule("/ab")]),
        ["http://203.0.113.1/ab", "http://203.0.113.1/long"],
    ),
    "https": (urls(HTTPS), ["https://203.0.113.1/"]),
    "TLS": (urls({**HTTPS, "protocol": "TLS"}), ["https://203.0.113.1/"]),
    "IPv6": (urls(values=["2001:db8::1"]), ["http://[2001:db8::1]/"]),
    "hostname of the listener": (urls({**HTTP, "hostname": "listener.example.com"}), ["http://listener.example.com/"]),
    "a wildcard listener": (
        urls({**HTTP, "hostname": "*.example.com", "port": 8080}),
        ["http://inference.example.com:8080/"],
    ),
    "https comes first": (urls(HTTP, HTTPS), ["https://203.0.113.1/", "http://203.0.113.1/"]),
    "https is preferred": (urls(HTTP, HTTPS, scheme="https"), ["https://203.0.113.1/", "http://203.0.113.1/"]),
    "http is preferred": (urls(HTTPS, HTTP, scheme="http"), ["http://203.0.113.1/", "https://203.0.113.1/"]),
    "one listener by name": (
        urls(HTTP, HTTPS, scheme="https", parents=[{**PARENT, "sectionName": "http"}]),
        ["http://203.0.113.1/"],
    ),
    "listeners of other protocols are passed over": (
        urls({"name": "t", "port": 9, "protocol": "TCP"}, HTTP),
        ["http://203.0.113.1/"],
    ),
    "no address and no service": (urls(values=[]), []),
    "the service before the gateway": (
        urls(services=[{"name": "gs", "namespace": "gw", "labels": {"gateway.networking.k8s.io/gateway-name": "g"}}]),
        ["http://203.0.113.1/", "http://gs.gw.svc.cluster.local/"],
    ),
    "the first of several services": (
        urls(
            {**HTTP, "port": 8080},
            values=[],
            services=[
                {"name": name, "namespace": "gw", "labels": {"gateway.networking.k8s.io/gateway-name": "g"}}
                for name in ("z", "a")
            ],
        ),
        ["http://a.gw.svc.cluster.local:8080/"],
    ),
    "a service called like the gateway": (
        urls(values=[], services=[{"name": "g", "namespace": "gw"}]),
        ["http://g.gw.svc.cluster.local/"],
    ),
    "a service of another gateway": (
        urls(
            values=[],
            services=[{"name": "x", "namespace": "gw", "labels": {"gateway.networking.k8s.io/gateway-name": "h"}}],
        ),
        [],
    ),
    "the same gateway twice": (urls(parents=[PARENT, {**PARENT, "sectionName": "http"}]), ["http://203.0.113.1/"]),
}  # fmt: skip


@pytest.mark.parametrize("case", VECTORS)
def test_urls_are_in_the_order_of_discovery(case: str) -> None:
    """URLs are listed in the order of discovery."""
    got, expected = VECTORS[case]
    assert got == expected


@pytest.mark.parametrize(
    ("listeners", "parent", "named"),
    [
        ([HTTP], {**PARENT, "sectionName": "nope"}, "gw/g has no listener nope"),
        ([{"name": "t", "port": 9, "protocol": "TCP"}], PARENT, "gw/g has no listener for"),
        ([{"name": "t", "port": 9, "protocol": "TCP"}], {**PARENT, "sectionName": "t"}, "protocol TCP"),
        ([HTTP], {"name": "g"}, "default/g does not exist"),
    ],
)
def test_what_makes_urls_impossible(listeners: list[Json], parent: Json, named: str) -> None:
    """The error names the Gateway."""
    with pytest.raises(URLError, match=named):
        urls(*listeners, parents=[parent])


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("203.0.113.1", "gateway-external"),
        ("api.example.com", "gateway-external"),
        ("[2001:db8::1]", "gateway-external"),
        ("127.0.0.1", "gateway-external"),
        ("192.168.1.100", "internal"),
        ("10.0.0.50:8080", "internal"),
        ("[fd00::1]:8080", "internal"),
        ("localhost", "internal"),
        ("a.LOCAL", "internal"),
        ("vm.internal", "internal"),
        ("g.gw.svc.cluster.local", "gateway-internal"),
    ],
)
def test_what_a_url_is_called(host: str, name: str) -> None:
    """An address is named by who can reach it; a loopback IP does not count as internal."""
    assert host_name(host.rpartition(":")[0] if host.endswith(":8080") else host, "cluster.local") == name


def test_url_of_a_service() -> None:
    """External URLs come first, then the service's own path, then the shortest path, then the order of the list."""
    listed = [
        ServiceAddress("internal", "http://192.168.1.1/default/demo"),
        ServiceAddress("gateway-external", "http://a.example.com/x/y"),
        ServiceAddress("gateway-external", "http://b.example.com/x"),
        ServiceAddress("gateway-external-model-routing", "http://c.example.com/"),
    ]
    assert choose(listed, "/default/demo") == "http://c.example.com/"
    of_the_service = ServiceAddress("gateway-external", "http://d.example.com/default/demo")
    assert choose([*listed, of_the_service], "/default/demo") == of_the_service.url
    assert choose(listed[:3], "/default/demo") == "http://b.example.com/x"
    assert choose(listed[:1], "/default/demo") == listed[0].url


def test_addresses_of_all_rules() -> None:
    """There is one address per path prefix of the rules, each with the Gateway that serves it."""
    header = {"path": {"value": "/"}, "headers": [{"name": "X-Model", "value": "m"}]}
    rules = [rule("/n/s"), rule("/n/s/v1/chat"), rule("/publishers/n/models/m"), {**rule(), "matches": [header]}]
    spec = msgspec.convert({"parentRefs": [PARENT], "rules": rules}, ObservedRouteSpec)
    listed = discover(spec, context(LLMRelated(gateways={"gw/g": gateway(HTTP)}), namespace="n"))
    assert [(address.name, address.url.removeprefix("http://203.0.113.1")) for address in listed] == [
        ("gateway-external-model-routing", "/"),
        ("gateway-external", "/n/s"),
        ("gateway-external", "/publishers/n/models/m"),
    ]
    assert {address.origin for address in listed} == {ObjectIdentity("gateway.networking.k8s.io", "Gateway", "g", "gw")}


@pytest.mark.parametrize(
    "host", ["*", "evil/<script>", "a\x1b[31m", "javascript:alert(1)", "user:pass@host", "a." * 50_000, ""]
)
def test_hosts_that_no_url_can_have(host: str) -> None:
    """Hosts of listeners and addresses are untrusted: another team writes the Gateway, perhaps without a schema."""
    usable = {"port": 80, "protocol": "HTTP"}
    assert urls({**usable, "hostname": host}, values=["203.0.113.1"]) == ["http://203.0.113.1/"]
    assert urls(usable, values=[host, "203.0.113.1"]) == ["http://203.0.113.1/"]


def test_addresses_are_bounded() -> None:
    values = [f"10.0.{i // 256}.{i % 256}" for i in range(3000)]
    assert len(urls({"port": 80, "protocol": "HTTP"}, values=values)) == 16


def test_without_urls_none_is_chosen() -> None:
    assert choose([], "/default/demo") == ""
