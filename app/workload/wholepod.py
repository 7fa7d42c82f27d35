"""Rules for a pod that lasts, as a whole: what the API server would refuse in a Deployment's or LeaderWorkerSet's pods.

As in :mod:`app.workload.podrules`, types were checked before, and ``null`` counts as absent.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

from app.kube import field
from app.kube.names import is_dns1123_label
from app.kube.quantity import parse
from app.workload import placement, podrules, volumes
from app.workload.podrules import Json, object_name

_LISTS = ("initContainers", "containers")


def check(pod: Json, path: field.Path) -> Iterator[field.Error]:
    """What is wrong with what is there. Of a pod that is still to be merged, what is required may come later."""
    yield from _long_running(pod, path)
    yield from _references(pod, path)
    yield from _container_names(pod, path)
    yield from podrules.tolerations(_objects(pod, "tolerations"), path.child("tolerations"))
    yield from podrules.node_selector(pod.get("nodeSelector") or {}, path.child("nodeSelector"))
    yield from placement.affinity(pod.get("affinity") or {}, path.child("affinity"))
    spread = "topologySpreadConstraints"
    yield from placement.topology_spread(_objects(pod, spread), path.child(spread))
    yield from podrules.pod_security_context(pod.get("securityContext") or {}, path.child("securityContext"))
    yield from _names(pod, path)
    for position, volume in enumerate(_objects(pod, "volumes")):
        yield from volumes.volume(volume, path.child("volumes").index(position))
    for name in _LISTS:
        for position, container in enumerate(pod.get(name) or ()):
            yield from _container(container or {}, path.child(name).index(position), initial=name == _LISTS[0])
    yield from _host_ports(pod, path)


def _objects(owner: Json, name: str) -> list[Json]:
    """The items of a list, without what says how they merge."""
    return [{key: value for key, value in (item or {}).items() if key != "$patch"} for item in owner.get(name) or ()]


def _container(container: Json, path: field.Path, *, initial: bool) -> Iterator[field.Error]:
    name = container.get("name")
    if name and not is_dns1123_label(name):
        yield field.invalid(path.child("name"), name, "must be at most 63 lower case letters, digits and '-'")
    for key, values in _ENUMS.items():
        if container.get(key) and container[key] not in values:
            yield field.not_supported(path.child(key), container[key], values)
    yield from _ports(container, path.child("ports"))
    yield from podrules.env(container.get("env") or [], path.child("env"))
    yield from podrules.container_security_context(
        container.get("securityContext") or {}, path.child("securityContext")
    )
    yield from podrules.lifecycle(container.get("lifecycle") or {}, path.child("lifecycle"))
    for purpose in ("startup", "liveness", "readiness"):
        probe, here = container.get(f"{purpose}Probe"), path.child(f"{purpose}Probe")
        if probe is not None:
            yield from podrules.probe(probe, here, purpose)
    lasting = [key for key in _OF_LASTING if container.get(key) is not None]
    if initial and lasting and not container.get("restartPolicy"):
        error = field.required(
            path.child("restartPolicy"), f"{lasting[0]} is for init containers that go on: set Always"
        )
        yield replace(error, against=path.child(lasting[0]))
    mounts = _objects(container, "volumeMounts")
    yield from volumes.mounts(mounts, path.child("volumeMounts"), {mount.get("name") or "" for mount in mounts})


_OF_LASTING = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
_ENUMS = {
    "imagePullPolicy": ("Always", "IfNotPresent", "Never"),
    "terminationMessagePolicy": ("File", "FallbackToLogsOnError"),
}


def _long_running(pod: Json, path: field.Path) -> Iterator[field.Error]:
    """Such pods are kept running, and only pods that are made by themselves can end or be debugged from within."""
    if pod.get("restartPolicy") not in (None, "", "Always"):
        yield field.not_supported(path.child("restartPolicy"), pod["restartPolicy"], ["Always"])
    for name in ("activeDeadlineSeconds", "ephemeralContainers"):
        if pod.get(name):
            yield field.forbidden(path.child(name), "only a standalone pod may set it; remove it")


def _references(pod: Json, path: field.Path) -> Iterator[field.Error]:
    """The account and the pull secrets, by names that objects can have; an empty one names none."""
    yield from object_name(pod.get("serviceAccountName") or "", path.child("serviceAccountName"))
    for position, reference in enumerate(pod.get("imagePullSecrets") or ()):
        here = path.child("imagePullSecrets").index(position).child("name")
        yield from object_name((reference or {}).get("name") or "", here)


def _container_names(pod: Json, path: field.Path) -> Iterator[field.Error]:
    """Containers and init containers share their names; two of one list are found by :mod:`app.hooks.sendable`."""
    names = {_name(one): position for position, one in enumerate(pod.get("containers") or ())}
    for position, container in enumerate(pod.get("initContainers") or ()):
        name, here = _name(container), path.child("initContainers").index(position).child("name")
        if name and name in names:
            detail = "another container of the pod has this name; choose a different one"
            other = path.child("containers").index(names[name]).child("name")
            yield replace(field.duplicate(here, name, detail), against=other)


# Ports.

_PROTOCOLS = ("TCP", "UDP", "SCTP")


def _ports(container: Json, path: field.Path) -> Iterator[field.Error]:
    seen: dict[str, field.Path] = {}
    for position, port in enumerate(container.get("ports") or ()):
        here, given = path.index(position), port or {}
        name, protocol = given.get("name") or "", given.get("protocol")
        for key, lowest in (("containerPort", 1), ("hostPort", 0)):
            if given.get(key) is not None and not lowest <= given[key] <= 65535:
                yield field.invalid(here.child(key), given[key], f"must be between {lowest} and 65535, inclusive")
        if protocol and protocol not in _PROTOCOLS:
            yield field.not_supported(here.child("protocol"), protocol, _PROTOCOLS)
        if name and (problem := podrules.port_name_problem(name)):
            yield field.invalid(here.child("name"), name, problem)
        elif name in seen:
            error = field.duplicate(here.child("name"), name, "another port of the container has this name")
            yield replace(error, against=seen[name])
        if name:
            seen.setdefault(name, here.child("name"))


def _host_ports(pod: Json, path: field.Path) -> Iterator[field.Error]:
    """On the node's network a port is the node's, and each of the node's can be taken once."""
    taken: dict[tuple[Any, ...], field.Path] = {}
    for position, container in enumerate(pod.get("containers") or ()):
        for number, port in enumerate((container or {}).get("ports") or ()):
            here = path.child("containers").index(position).child("ports").index(number).child("hostPort")
            given = port or {}
            host = given.get("hostPort")
            if not host:
                continue
            if pod.get("hostNetwork") and host != given.get("containerPort"):
                detail = "must be the containerPort, as the pod has the node's network"
                yield replace(field.invalid(here, host, detail), against=path.child("hostNetwork"))
            key = (host, given.get("protocol") or "TCP", given.get("hostIP") or "")
            if key in taken:
                yield replace(field.duplicate(here, host, "another port of the pod takes it"), against=taken[key])
            taken.setdefault(key, here)


# The rest of a pod.


def _names(pod: Json, path: field.Path) -> Iterator[field.Error]:
    for key in ("runtimeClassName", "priorityClassName"):
        yield from object_name(pod.get(key) or "", path.child(key))
    for key in ("hostname", "subdomain"):
        if pod.get(key) and not is_dns1123_label(pod[key]):
            yield field.invalid(path.child(key), pod[key], "must be at most 63 lower case letters, digits and '-'")
    if pod.get("shareProcessNamespace") and pod.get("hostPID"):
        error = field.invalid(path.child("shareProcessNamespace"), value=True, detail="hostPID is true; remove one")
        yield replace(error, against=path.child("hostPID"))
    yield from _dns(pod, path)


_DNS_POLICIES = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
_MAX_NAMESERVERS = 3


def _dns(pod: Json, path: field.Path) -> Iterator[field.Error]:
    policy, here = pod.get("dnsPolicy"), path.child("dnsConfig", "nameservers")
    servers = (pod.get("dnsConfig") or {}).get("nameservers") or ()
    if policy and policy not in _DNS_POLICIES:
        yield field.not_supported(path.child("dnsPolicy"), policy, _DNS_POLICIES)
    if policy == "None" and not servers:
        yield replace(field.required(here, "dnsPolicy None needs at least one"), against=path.child("dnsPolicy"))
    if len(servers) > _MAX_NAMESERVERS:
        yield field.too_many(here, len(servers), _MAX_NAMESERVERS)
    for position, server in enumerate(servers):
        if not _is_address(server):
            yield field.invalid(here.index(position), server, "must be an IP address")


def _is_address(text: Any) -> bool:
    try:
        ipaddress.ip_address(str(text))
    except ValueError:
        return False
    return True


# What a pod has to have once nothing is merged with it any more.


def missing(pod: Json, path: field.Path, below: Json, volumes: Collection[str] = ()) -> Iterator[field.Error]:
    """What no container of the pod says, nor ``below``, the pod that it is laid over.

    ``volumes``: names of those that will be there, too.
    """
    known = {_name(one) for side in (below, pod) for one in side.get("volumes") or ()}.union(volumes)
    for name in _LISTS:
        under = {_name(one): one for one in below.get(name) or ()}
        for position, container in enumerate(pod.get(name) or ()):
            given, here = container or {}, path.child(name).index(position)
            if "$patch" in given:
                continue
            yield from _incomplete(given, under.get(_name(given)) or {}, here)
            for number, mount in enumerate(given.get("volumeMounts") or ()):
                volume = (mount or {}).get("name")
                if volume and volume not in known and "$patch" not in (mount or {}):
                    place = here.child("volumeMounts").index(number).child("name")
                    yield field.invalid(place, volume, "no volume of the pod has this name; add it to volumes")


def _incomplete(container: Json, under: Json, path: field.Path) -> Iterator[field.Error]:
    if not container.get("image") and not under.get("image"):
        yield field.required(path.child("image"), "name the image that the container runs")
    resources, lower = container.get("resources") or {}, under.get("resources") or {}
    limits = {**(lower.get("limits") or {}), **(resources.get("limits") or {})}
    for name in resources.get("requests") or {}:
        if _is_reserved_whole(name) and limits.get(name) is None:
            here, detail = path.child("resources", "limits").key(name), "must be set to the same as the request"
            yield replace(field.required(here, detail), against=path.child("resources", "requests").key(name))


def _is_reserved_whole(name: str) -> bool:
    """Whether what is requested is what is had: of extended resources and huge pages."""
    return ("/" in name and "kubernetes.io/" not in name) or name.startswith("hugepages-")


def amounts(pod: Json, path: field.Path) -> Iterator[field.Error]:
    """What the API server says of every container's requests and limits."""
    for name in _LISTS:
        for position, container in enumerate(pod.get(name) or ()):
            here = path.child(name).index(position)
            yield from _resources((container or {}).get("resources") or {}, here.child("resources"))


def _resources(resources: Json, path: field.Path) -> Iterator[field.Error]:
    parts = {part: _amounts(resources.get(part) or {}) for part in ("limits", "requests")}
    for part, given in parts.items():
        for name, amount in given.items():
            here = path.child(part).key(name)
            if "/" not in name and name not in _NATIVE and not name.startswith("hugepages-"):
                detail = "must be cpu, memory, ephemeral-storage, or have a domain, as in nvidia.com/gpu"
                yield field.invalid(here, name, detail)
            elif amount < 0:
                yield field.invalid(here, resources[part][name], "must be 0 or more")
            elif "/" in name and amount % 1:
                detail = "must be a whole number: extended resources cannot be divided"
                yield field.invalid(here, resources[part][name], detail)
    for name in sorted(parts["requests"].keys() & parts["limits"].keys()):
        here, limit = path.child("requests").key(name), resources["limits"][name]
        detail = ""
        if _is_reserved_whole(name) and parts["requests"][name] != parts["limits"][name]:
            detail = f"must be the same as the limit, which is {limit}: {name} cannot be overcommitted"
        elif parts["requests"][name] > parts["limits"][name]:
            detail = f"must be at most the limit, which is {limit}"
        if detail:
            error = field.invalid(here, resources["requests"][name], detail)
            yield replace(error, against=path.child("limits").key(name))


_NATIVE = ("cpu", "memory", "ephemeral-storage")


def _amounts(given: Json) -> dict[str, Decimal]:
    return {name: parse(str(amount)) for name, amount in given.items() if amount is not None}


def _name(container: Any) -> str:
    """Empty also for what is no container but a merge directive."""
    given = container or {}
    return "" if "$patch" in given else str(given.get("name") or "")
