"""URLs of a route, from its Gateways, and their names. Source: KS-4.8."""

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_network
from urllib.parse import urlsplit

from app.hooks.protocol import get, sorted_values
from app.kserve import constants, gatewayapi, results
from app.kserve.llminferenceservice.observed import (
    GatewayListener,
    ObservedGateway,
    ObservedRouteSpec,
    ReconcileContext,
    RouteMatch,
    RouteRule,
)
from app.kserve.llminferenceservice.types import LLMCondition, LLMReason, ObjectIdentity, ServiceAddress
from app.kube.base import Json
from app.kube.hosts import address_of
from app.kube.names import is_dns1123_subdomain
from app.kube.objects import RelatedMeta

EXTERNAL, GATEWAY_INTERNAL, INTERNAL = "gateway-external", "gateway-internal", "internal"

_SCHEMES = {"HTTP": "http", "HTTPS": "https", "TLS": "https"}
"""URL scheme by a listener's protocol; others have none."""
_DEFAULT_PORTS = {"http": 80, "https": 443}
_PRIVATE = tuple(map(ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")))
MODEL_ROUTING = "-model-routing"
"""End of the name of an address at the root, which all services of a Gateway share (KS-4.8)."""
MAX_ADDRESSES = 16
"""Addresses that a Gateway may have."""


class URLError(results.PhaseError):
    """The URLs of a route cannot be determined; the message names the Gateway."""

    def __init__(self, message: str) -> None:
        super().__init__(LLMCondition.HTTP_ROUTES_READY, LLMReason.HTTP_ROUTE_RECONCILE_ERROR, message)


def discover(route: ObservedRouteSpec, context: ReconcileContext) -> list[ServiceAddress]:
    """Return every address of a route, in the order of its parents. Raises :class:`URLError`."""
    addresses: dict[str, ServiceAddress] = {}
    paths, domain = _paths(route.rules or []), context.settings.cluster_domain
    for reference in route.parent_refs or ():
        gateway = context.gateway(reference)
        if gateway is None:
            namespace = reference.namespace or context.metadata.namespace
            raise URLError(f"Gateway {namespace}/{reference.name} does not exist")
        listeners = _listeners(gateway, reference.section_name, context.operator.ingress.url_scheme)
        hosts = _external(gateway, listeners, route.hostnames or [], context.settings.kserve_wildcard_hostname)
        service = _service_of(gateway, context.related.services)
        if service:
            hosts.append((listeners[0], f"{service}.{gateway.metadata.namespace}.svc.{domain}"))
        origin = ObjectIdentity(constants.GATEWAY_GROUP, "Gateway", gateway.metadata.name, gateway.metadata.namespace)
        for listener, host in hosts:
            name = host_name(host, domain)
            for path in paths:
                url = _url(listener, host, path)
                addresses.setdefault(url, ServiceAddress(name + MODEL_ROUTING * (path == "/"), url, origin=origin))
    return list(addresses.values())


def choose(addresses: Sequence[ServiceAddress], own_path: str) -> str:
    """Return the URL to show: external ones first, then those below the service's own path, then the shortest path."""

    def order(address: ServiceAddress) -> tuple[bool, bool, int, int]:
        path = urlsplit(address.url).path
        is_internal, is_foreign = not address.name.startswith(EXTERNAL), not path.startswith(own_path)
        return is_internal, is_foreign, path.count("/"), len(path)

    return min(addresses, key=order).url if addresses else ""


def _listeners(gateway: ObservedGateway, section: str, preferred: str) -> list[GatewayListener]:
    """The listeners that serve the route, the preferred scheme first, then https, then http."""
    listeners = gateway.spec.listeners or []
    where = f"Gateway {gateway.metadata.namespace}/{gateway.metadata.name}"
    if section:
        chosen = [listener for listener in listeners if listener.name == section]
        if not chosen:
            raise URLError(f"{where} has no listener {section}")
        return chosen
    chosen = [listener for listener in listeners if listener.protocol in _SCHEMES]
    if not chosen:
        raise URLError(f"{where} has no listener for HTTP, HTTPS or TLS")
    order = {"https": 1, "http": 2, preferred: 0}
    return sorted(chosen, key=lambda listener: order[_SCHEMES[listener.protocol]])


def _external(
    gateway: ObservedGateway, listeners: Sequence[GatewayListener], hostnames: Sequence[str], wildcard: str
) -> list[tuple[GatewayListener, str]]:
    if not gateway.status.addresses:
        return []
    values = [address.value for address in gateway.status.addresses if _is_host(address.value)]
    named = [name for name in hostnames if name and name != "*"]
    return [
        (listener, host)
        for listener in listeners
        for host in sorted(named or _listener_host(listener, wildcard) or values[:MAX_ADDRESSES])
    ]


def _is_host(text: str) -> bool:
    """Report whether a string can be a URL's host: a DNS name, or an IP address with or without brackets."""
    address = address_of(text.removeprefix("[").removesuffix("]"))
    return address is not None or is_dns1123_subdomain(text.lower())


def _listener_host(listener: GatewayListener, wildcard: str) -> list[str]:
    name = listener.hostname or ""
    if not _is_host(name.removeprefix("*.")):
        return []
    return [f"{wildcard}.{name.removeprefix('*.')}" if name.startswith("*.") else name]


def _service_of(gateway: ObservedGateway, services: Mapping[str, RelatedMeta] | None) -> str:
    """The Service before a Gateway: the first that carries its name as a label, else the one called like it."""
    name, namespace = gateway.metadata.name, gateway.metadata.namespace
    labelled = [
        service.metadata.name
        for service in sorted_values(services)
        if service.metadata.namespace == namespace
        and is_dns1123_subdomain(service.metadata.name)
        and (service.metadata.labels or {}).get(constants.GATEWAY_NAME_LABEL) == name
    ]
    return min(labelled, default=name if get(services, name, namespace) is not None else "")


def _url(listener: GatewayListener, host: str, path: str) -> str:
    scheme = _SCHEMES.get(listener.protocol)
    if scheme is None:  # chosen by its name
        raise URLError(f"no URL can be made for protocol {listener.protocol} of listener {listener.name}")
    bracketed = f"[{host}]" if ":" in host and not host.startswith("[") else host
    port = "" if listener.port in (0, _DEFAULT_PORTS[scheme]) else f":{listener.port}"
    return f"{scheme}://{bracketed}{port}{path}"


def _paths(rules: Sequence[RouteRule]) -> list[str]:
    """Return the paths that requests go below: of rules with a Service behind them, else of all.

    Rules that look at headers are apart from the others: without the header, requests do not get there.
    """
    plain = [rule for rule in rules if any((b.kind or "Service") == "Service" for b in rule.backend_refs or ())]
    paths = _topmost(plain) or _topmost([rule for rule in rules if rule not in plain])
    return paths or ["/"]


def _topmost(rules: Iterable[RouteRule]) -> list[str]:
    hosts: dict[bool, set[str]] = {False: set(), True: set()}
    for rule in rules:
        for match in rule.matches or ():
            if match.path is not None:
                hosts[bool(match.headers)].add("/" if match.path.value is None else match.path.value)
    topmost = {path for paths in hosts.values() for path in paths if not any(_below(path, o) for o in paths)}
    return sorted(topmost)[: gatewayapi.MAX_RULES]


def named_models(routes: Iterable[ObservedRouteSpec], header: str) -> frozenset[str] | None:
    """Return the values of the header that requests to the root need; ``None`` if a rule takes them without it."""
    matches = [match for route in routes for rule in route.rules or () for match in rule.matches or [RouteMatch()]]
    matched_headers = [[entry for entry in match.headers or () if _is_exactly(entry, header)] for match in matches]
    roots = [match.path is None or match.path.value in (None, "/") for match in matches]
    if not matches or any(at_root and not headers for headers, at_root in zip(matched_headers, roots, strict=True)):
        return None
    return frozenset(str(entry.get("value")) for headers in matched_headers for entry in headers)


def _is_exactly(entry: Json, header: str) -> bool:
    return str(entry.get("name")).lower() == header.lower() and entry.get("type", "Exact") == "Exact"


def _below(path: str, other: str) -> bool:
    return path != other and path.startswith(other.rstrip("/") + "/")


def host_name(host: str, cluster_domain: str) -> str:
    """Return what an address of a host is called, by who can reach it."""
    host = host.removeprefix("[").removesuffix("]").lower()
    if host.endswith(cluster_domain):
        return GATEWAY_INTERNAL
    address = address_of(host)
    if address is None:
        local = host == "localhost" or host.endswith((".local", ".localhost", ".internal"))
        return INTERNAL if local else EXTERNAL
    return INTERNAL if any(address in network for network in _PRIVATE) else EXTERNAL
