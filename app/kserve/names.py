"""Names of every object of a service, the labels that select them, and their form. Source: KS-3.1 to KS-3.3."""

from __future__ import annotations

import hashlib
import re
from typing import Literal

import msgspec

from app.kserve.constants import COMPONENT, KSERVE_COMPONENT, KSERVE_COMPONENT_VALUE, NAME, PART_OF, PART_OF_VALUE, ROLE
from app.kube.names import LABEL_MAX

AutoscalerKind = Literal["va", "hpa", "keda"]
"""End of the name of a VariantAutoscaling, a HorizontalPodAutoscaler, a ScaledObject."""

_HASH = 32
_GROUP_MAX = 50
"""Longest name of a LeaderWorkerSet with pods: one of their labels has it, the group's number and a hash of 10."""
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_NO_LABEL = re.compile(r"[^a-z0-9-]")


def child_name(parent: str, suffix: str, longest: int = LABEL_MAX) -> str:
    """``parent`` and ``suffix`` in at most 63 characters: KServe's ``ChildName`` (KS-3.1)."""
    if len(parent) + len(suffix) <= longest:
        return parent + suffix
    room = longest - _HASH
    if len(suffix) < room:
        return parent[: room - len(suffix)] + _md5(parent) + suffix
    name = parent[:room] + _md5(parent + suffix)
    return (name + suffix)[:longest].rstrip("-._")


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


class _ChildName:
    """The name of a child: the service's own, with a suffix."""

    def __init__(self, suffix: str) -> None:
        self._suffix = suffix

    def __get__(self, names: Names, owner: type[Names]) -> str:
        return child_name(names.service, self._suffix)


class _GroupName(_ChildName):
    """The name of a LeaderWorkerSet: KServe's, or where that has no pods one with room for 1,000 groups."""

    def __get__(self, names: Names, owner: type[Names]) -> str:
        name = super().__get__(names, owner)
        return name if len(name) <= _GROUP_MAX else child_name(names.service, self._suffix, _GROUP_MAX - 2)


class Names(msgspec.Struct, frozen=True):
    """Names of the objects of one service (KS-3.2)."""

    service: str

    main = _ChildName("-kserve")
    """The main or decode Deployment, and its ServiceAccount."""
    prefill = _ChildName("-kserve-prefill")
    multi_node = _GroupName("-kserve-mn")
    """The main or decode LeaderWorkerSet, and its ServiceAccount."""
    multi_node_prefill = _GroupName("-kserve-mn-prefill")
    workload_service = _ChildName("-kserve-workload-svc")
    certificates = _ChildName("-kserve-self-signed-certs")
    ca_bundle = _ChildName("-kserve-ca-bundle")
    """The service's own copy of the operator's CA bundle."""
    claim_template = _ChildName("-managed-dra")
    """The ResourceClaimTemplate of the devices that annotations ask for."""
    role = _ChildName("-kserve-role")
    role_binding = _ChildName("-kserve-rb")
    multi_node_role = _ChildName("-kserve-mn-role")
    multi_node_role_binding = _ChildName("-kserve-mn-rb")
    scheduler = _ChildName("-kserve-router-scheduler")
    scheduler_service = _ChildName("-epp-service")
    scheduler_account = _ChildName("-epp-sa")
    scheduler_role = _ChildName("-epp-role")
    scheduler_role_binding = _ChildName("-epp-rb")
    pool = _ChildName("-inference-pool")
    route = _ChildName("-kserve-route")

    def autoscaler(self, kind: AutoscalerKind, *, prefill: bool) -> str:
        return child_name(self.service, f"-kserve-{'prefill-' if prefill else ''}{kind}")

    def objective(self, adapter: str = "") -> str:
        return child_name(self.service, f"-inference-objective{'-' if adapter else ''}{adapter}")


def adapter_volume(adapter: str) -> str:
    """Return the volume name of a claim with an adapter; an invalid name gets a hash."""
    if _LABEL.fullmatch(adapter):
        return child_name("lora-pvc-", adapter)
    return child_name("lora-pvc-", f"{_NO_LABEL.sub('-', adapter.lower()).strip('-')}-{_md5(adapter)[:8]}".lstrip("-"))


def base_labels(service: str) -> dict[str, str]:
    return {NAME: service, PART_OF: PART_OF_VALUE}


def component_labels(service: str, component: str) -> dict[str, str]:
    return {**base_labels(service), COMPONENT: component}


def workload_labels(service: str, component: str, role: str) -> dict[str, str]:
    """Of a model server's pods: what the workload selector looks for, and the role the scheduler filters by."""
    return {**workload_selector(service), COMPONENT: component, ROLE: role}


def workload_selector(service: str) -> dict[str, str]:
    """Selects all model-server pods of a service, decode and prefill alike (KS-3.3)."""
    return {**base_labels(service), KSERVE_COMPONENT: KSERVE_COMPONENT_VALUE}
