"""Rules for a pod that lasts, as a whole: what the API server would refuse in a Deployment's or LeaderWorkerSet's pods.

As in :mod:`app.workload.podrules`, types were checked before, and ``null`` counts as absent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from app.kube import field
from app.workload.podrules import Json, object_name


def check(pod: Json, path: field.Path) -> Iterator[field.Error]:
    """Every rule of this module."""
    yield from _lasting(pod, path)
    yield from _references(pod, path)
    yield from _container_names(pod, path)
    for name in ("initContainers", "containers"):
        for position, container in enumerate(pod.get(name) or ()):
            yield from _pull_policy(container or {}, path.child(name).index(position))


def _lasting(pod: Json, path: field.Path) -> Iterator[field.Error]:
    """Such pods are kept running, and only pods that are made by themselves can end or be debugged from within."""
    if pod.get("restartPolicy") not in (None, "", "Always"):
        yield field.not_supported(path.child("restartPolicy"), pod["restartPolicy"], ["Always"])
    for name in ("activeDeadlineSeconds", "ephemeralContainers"):
        if pod.get(name):
            yield field.forbidden(path.child(name), "only a pod that is made by itself may have it; remove it")


def _references(pod: Json, path: field.Path) -> Iterator[field.Error]:
    """The account and the pull secrets, by names that objects can have; an empty one names none."""
    yield from object_name(pod.get("serviceAccountName") or "", path.child("serviceAccountName"))
    for position, reference in enumerate(pod.get("imagePullSecrets") or ()):
        here = path.child("imagePullSecrets").index(position).child("name")
        yield from object_name((reference or {}).get("name") or "", here)


def _container_names(pod: Json, path: field.Path) -> Iterator[field.Error]:
    """Containers and init containers share their names; two of one list are found by :mod:`app.workload.sendable`."""
    names = {_name(container) for container in pod.get("containers") or ()} - {""}
    for position, container in enumerate(pod.get("initContainers") or ()):
        if _name(container) in names:
            detail = "a container of the pod has that name already; choose another"
            yield field.duplicate(path.child("initContainers").index(position).child("name"), _name(container), detail)


_PULL_POLICIES = ("Always", "IfNotPresent", "Never")


def _pull_policy(container: Json, path: field.Path) -> Iterator[field.Error]:
    policy = container.get("imagePullPolicy")
    if policy and policy not in _PULL_POLICIES:
        yield field.not_supported(path.child("imagePullPolicy"), policy, _PULL_POLICIES)


def _name(container: Any) -> str:
    """Empty also for what is no container but a merge directive."""
    given = container or {}
    return "" if "$patch" in given else str(given.get("name") or "")
