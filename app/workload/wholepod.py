"""Rules for a pod as a whole: between its containers, and what it must have once nothing is merged with it any more.

Types are checked before, and ``null`` counts as absent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

from app.kube import field
from app.kube.quantity import parse
from app.workload.fieldrules import Errors, Json, object_name

_LISTS = ("initContainers", "containers")


def name_servers(pod: Json, path: field.Path) -> Errors:
    """A pod without a DNS policy of the cluster names its own servers."""
    if pod.get("dnsPolicy") == "None" and not (pod.get("dnsConfig") or {}).get("nameservers"):
        error = field.required(path.child("dnsConfig", "nameservers"), "dnsPolicy None needs at least one")
        yield replace(error, against=path.child("dnsPolicy"))


def shared_processes(pod: Json, path: field.Path) -> Errors:
    if pod.get("shareProcessNamespace") and pod.get("hostPID"):
        error = field.invalid(path.child("shareProcessNamespace"), value=True, detail="hostPID is true; remove one")
        yield replace(error, against=path.child("hostPID"))


def pull_secret(reference: Json, path: field.Path) -> Errors:
    return object_name(reference.get("name") or "", path.child("name"))


def container_names(pod: Json, path: field.Path) -> Errors:
    """Containers and init containers share their names; two of one list are found by :mod:`app.hooks.sendable`."""
    positions = {_name(container): position for position, container in enumerate(pod.get("containers") or ())}
    for position, container in enumerate(pod.get("initContainers") or ()):
        name, here = _name(container), path.child("initContainers").index(position).child("name")
        if name and name in positions:
            detail = "another container of the pod has this name; choose a different one"
            other = path.child("containers").index(positions[name]).child("name")
            yield replace(field.duplicate(here, name, detail), against=other)


def host_ports(pod: Json, path: field.Path) -> Errors:
    """On the node's network a port is the node's, and each of the node's can be taken once."""
    first: dict[tuple[int, str, str], field.Path] = {}
    for position, container in enumerate(pod.get("containers") or ()):
        for number, port in enumerate((container or {}).get("ports") or ()):
            here = path.child("containers").index(position).child("ports").index(number).child("hostPort")
            host = (port or {}).get("hostPort")
            if not host:
                continue
            if pod.get("hostNetwork") and host != port.get("containerPort"):
                detail = "must be the containerPort, as the pod has the node's network"
                yield replace(field.invalid(here, host, detail), against=path.child("hostNetwork"))
            key = (host, port.get("protocol") or "TCP", port.get("hostIP") or "")
            if key in first:
                yield replace(field.duplicate(here, host, "another port of the pod takes it"), against=first[key])
            first.setdefault(key, here)


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
