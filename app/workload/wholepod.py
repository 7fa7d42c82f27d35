"""Rules for a pod that lasts, as a whole: what the API server would refuse in a Deployment's or LeaderWorkerSet's pods.

As in :mod:`app.workload.podrules`, types were checked before, and ``null`` counts as absent.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from app.kube import field
from app.kube.quantity import parse
from app.workload import placement, volumes
from app.workload.podrules import Json, object_name


def check(pod: Json, path: field.Path) -> Iterator[field.Error]:
    """Every rule of this module."""
    yield from _lasting(pod, path)
    yield from _references(pod, path)
    yield from _container_names(pod, path)
    yield from placement.affinity(pod.get("affinity") or {}, path.child("affinity"))
    for position, volume in enumerate(pod.get("volumes") or ()):
        yield from volumes.files(volume or {}, path.child("volumes").index(position))
    for name in ("initContainers", "containers"):
        for position, container in enumerate(pod.get(name) or ()):
            here = path.child(name).index(position)
            yield from _pull_policy(container or {}, here)


def _lasting(pod: Json, path: field.Path) -> Iterator[field.Error]:
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
    names = {_name(container) for container in pod.get("containers") or ()} - {""}
    for position, container in enumerate(pod.get("initContainers") or ()):
        if _name(container) in names:
            detail = "another container of the pod has this name; choose a different one"
            yield field.duplicate(path.child("initContainers").index(position).child("name"), _name(container), detail)


_PULL_POLICIES = ("Always", "IfNotPresent", "Never")


def _pull_policy(container: Json, path: field.Path) -> Iterator[field.Error]:
    policy = container.get("imagePullPolicy")
    if policy and policy not in _PULL_POLICIES:
        yield field.not_supported(path.child("imagePullPolicy"), policy, _PULL_POLICIES)


def amounts(pod: Json, path: field.Path) -> Iterator[field.Error]:
    """What the API server says of every container's requests and limits."""
    for name in ("initContainers", "containers"):
        for position, container in enumerate(pod.get(name) or ()):
            here = path.child(name).index(position)
            yield from _resources((container or {}).get("resources") or {}, here.child("resources"))


def _resources(resources: Json, path: field.Path) -> Iterator[field.Error]:
    parts = {part: _amounts(resources.get(part) or {}) for part in ("limits", "requests")}
    for part, given in parts.items():
        for name, amount in given.items():
            here = path.child(part).key(name)
            if amount < 0:
                yield field.invalid(here, resources[part][name], "must be 0 or more")
            elif "/" in name and amount % 1:
                detail = "must be a whole number: extended resources cannot be divided"
                yield field.invalid(here, resources[part][name], detail)
    for name in sorted(parts["requests"].keys() & parts["limits"].keys()):
        here, limit = path.child("requests").key(name), resources["limits"][name]
        if "/" in name and parts["requests"][name] != parts["limits"][name]:
            detail = f"must be the same as the limit, which is {limit}: {name} cannot be overcommitted"
            yield field.invalid(here, resources["requests"][name], detail)
        elif parts["requests"][name] > parts["limits"][name]:
            yield field.invalid(here, resources["requests"][name], f"must be at most the limit, which is {limit}")


def _amounts(given: Json) -> dict[str, Decimal]:
    return {name: parse(str(amount)) for name, amount in given.items() if amount is not None}


def _name(container: Any) -> str:
    """Empty also for what is no container but a merge directive."""
    given = container or {}
    return "" if "$patch" in given else str(given.get("name") or "")
