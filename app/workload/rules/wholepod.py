"""Rules for a pod as a whole: between its containers, and its requirements after merging."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from decimal import Decimal

from app.kube import field, quantity
from app.kube.names import key_problem
from app.workload.rules.containers import is_native
from app.workload.rules.fieldrules import Errors, Json

LISTS = ("initContainers", "containers")


def name_servers(pod: Json, path: field.Path) -> Errors:
    """Require a name server with ``dnsPolicy: None``."""
    if pod.get("dnsPolicy") == "None" and not (pod.get("dnsConfig") or {}).get("nameservers"):
        error = field.required(path.child("dnsConfig", "nameservers"), "dnsPolicy None needs at least one")
        yield replace(error, against=path.child("dnsPolicy"))


def shared_processes(pod: Json, path: field.Path) -> Errors:
    """Reject ``shareProcessNamespace`` beside ``hostPID``."""
    if pod.get("shareProcessNamespace") and pod.get("hostPID"):
        error = field.invalid(path.child("shareProcessNamespace"), value=True, detail="hostPID is true; remove one")
        yield replace(error, against=path.child("hostPID"))


def container_names(pod: Json, path: field.Path) -> Errors:
    """Reject a name of both a container and an init container. :mod:`app.hooks.sendable` finds others."""
    others = path.child("containers").each(pod.get("containers") or ())
    named = {_name(container): container_path.child("name") for container_path, container in others}
    for init_path, container in path.child("initContainers").each(pod.get("initContainers") or ()):
        name, detail = _name(container), "another container of the pod has this name; choose a different one"
        if name and name in named:
            yield replace(field.duplicate(init_path.child("name"), name, detail), against=named[name])


def host_ports(pod: Json, path: field.Path) -> Errors:
    """Reject duplicate host ports, and on the node's network those that differ from the container port."""
    first: dict[tuple[int, str, str], field.Path] = {}
    for container_path, container in path.child("containers").each(pod.get("containers") or ()):
        for item_path, port in container_path.child("ports").each((container or {}).get("ports") or ()):
            host, port_path = (port or {}).get("hostPort"), item_path.child("hostPort")
            if not host:
                continue
            if pod.get("hostNetwork") and host != port.get("containerPort"):
                detail = "must be the containerPort, as the pod has the node's network"
                yield replace(field.invalid(port_path, host, detail), against=path.child("hostNetwork"))
            key = (host, port.get("protocol") or "TCP", port.get("hostIP") or "")
            if key in first:
                yield replace(field.duplicate(port_path, host, "another port of the pod takes it"), against=first[key])
            first.setdefault(key, port_path)


HOOKS = ("postStart", "preStop")


def hook_sleeps(pod: Json, path: field.Path) -> Errors:
    """Reject hooks that sleep longer than the pod has to end; a base may set how long that is."""
    grace = pod.get("terminationGracePeriodSeconds")
    for name in LISTS:
        for container_path, container in path.child(name).each(pod.get(name) or ()):
            yield from long_sleeps((container or {}).get("lifecycle") or {}, container_path.child("lifecycle"), grace)


def long_sleeps(lifecycle: Json, path: field.Path, grace: int | None) -> Errors:
    """Reject hooks of a container that sleep longer than its pod has to end, which is ``grace`` seconds."""
    for name in HOOKS:
        seconds = ((lifecycle.get(name) or {}).get("sleep") or {}).get("seconds") or 0
        if grace is not None and 0 <= grace < seconds:
            detail = f"must be at most terminationGracePeriodSeconds, which is {grace}"
            yield field.invalid(path.child(name, "sleep", "seconds"), seconds, detail)


def missing(pod: Json, path: field.Path, base: Json, added: Collection[str] = ()) -> Iterator[field.Error]:
    """Require the parts of a pod that Kubernetes requires, in the pod or in ``base`` below it.

    Volumes and claims with the names in ``added`` are there too.
    """
    names = {_name(volume) for side in (base, pod) for volume in side.get("volumes") or ()}.union(added)
    claims = {_name(claim) for side in (base, pod) for claim in side.get("resourceClaims") or ()}.union(added)
    for name in LISTS:
        bases = {_name(container): container for container in base.get(name) or ()}
        for container_path, container in path.child(name).each(item or {} for item in pod.get(name) or ()):
            if "$patch" in container:
                continue
            yield from _incomplete(container, bases.get(_name(container)) or {}, container_path)
            for mount_path, mount in container_path.child("volumeMounts").each(container.get("volumeMounts") or ()):
                volume, detail = _name(mount), "no volume of the pod has this name; add it to volumes"
                if volume and volume not in names:
                    yield field.invalid(mount_path.child("name"), volume, detail)
            used = (container.get("resources") or {}).get("claims") or ()
            for claim_path, claim in container_path.child("resources", "claims").each(used):
                detail = "no claim of the pod has this name; add it to resourceClaims"
                if _name(claim) not in claims:
                    yield field.invalid(claim_path.child("name"), _name(claim), detail)


def _incomplete(container: Json, base: Json, path: field.Path) -> Iterator[field.Error]:
    """Require an image, and a limit equal to the request of an extended resource."""
    if not container.get("image") and not base.get("image"):
        yield field.required(path.child("image"), "name the image that the container runs")
    resources, lower = container.get("resources") or {}, base.get("resources") or {}
    limits = {**(lower.get("limits") or {}), **(resources.get("limits") or {})}
    for name in resources.get("requests") or {}:
        if _is_not_overcommitted(name) and limits.get(name) is None:
            limit_path, detail = path.child("resources", "limits").key(name), "must be set to the same as the request"
            yield replace(field.required(limit_path, detail), against=path.child("resources", "requests").key(name))


def _is_not_overcommitted(name: str) -> bool:
    """Return whether the limit must equal the request, as for extended resources and huge pages."""
    return ("/" in name and "kubernetes.io/" not in name) or name.startswith("hugepages-")


def amounts(pod: Json, path: field.Path) -> Iterator[field.Error]:
    for name in LISTS:
        for container_path, container in path.child(name).each(pod.get(name) or ()):
            yield from _resources((container or {}).get("resources") or {}, container_path.child("resources"))


def check_amount(name: str, amount: Decimal, written: object, path: field.Path) -> Iterator[field.Error]:
    """Require an amount of a resource that a container can request."""
    if "/" not in name and not is_native(name):
        detail = "must be cpu, memory, ephemeral-storage, or have a domain, as in nvidia.com/gpu"
        yield field.invalid(path, name, detail)
    elif "/" in name and (problem := key_problem(name)):
        yield field.invalid(path, name, f"must be the name of a resource: {problem}")
    elif amount < 0:
        yield field.invalid(path, written, "must be 0 or more")
    elif "/" in name and amount % 1:
        yield field.invalid(path, written, "must be a whole number: extended resources cannot be divided")


def _resources(resources: Json, path: field.Path) -> Iterator[field.Error]:
    """Reject a request above its limit, or other than its limit for an extended resource or huge pages."""
    parts = {part: _amounts(resources.get(part) or {}) for part in ("limits", "requests")}
    for part, quantities in parts.items():
        for name, amount in quantities.items():
            amount_path = path.child(part).key(name)
            yield from check_amount(name, amount, resources[part][name], amount_path)
    for name in sorted(parts["requests"].keys() & parts["limits"].keys()):
        request_path, limit = path.child("requests").key(name), resources["limits"][name]
        detail = ""
        if _is_not_overcommitted(name) and parts["requests"][name] != parts["limits"][name]:
            detail = f"must be the same as the limit, which is {limit}: {name} cannot be overcommitted"
        elif parts["requests"][name] > parts["limits"][name]:
            detail = f"must be at most the limit, which is {limit}"
        if detail:
            error = field.invalid(request_path, resources["requests"][name], detail)
            yield replace(error, against=path.child("limits").key(name))


def _amounts(quantities: Json) -> dict[str, Decimal]:
    return {name: quantity.parse(str(amount)) for name, amount in quantities.items() if amount is not None}


def _name(item: Json | None) -> str:
    """Return the name of a container, volume or mount; empty for a merge directive."""
    return "" if not item or "$patch" in item else str(item.get("name") or "")
