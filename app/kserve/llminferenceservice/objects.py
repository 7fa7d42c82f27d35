"""What a service's sync reads: its observed children and its related objects, in as many fields as decisions need."""

from __future__ import annotations

from typing import Any

import msgspec

from app.hooks.protocol import Parent
from app.kserve.conversion import V1ALPHA1, V1ALPHA2, upgrade
from app.kserve.names import GATEWAY_API, LEADER_WORKER_SET_API, POOL_API
from app.kserve.permissions import ObservedAccount, ObservedBinding, ObservedRole
from app.kube.conditions import Condition
from app.kube.objects import (
    ObjectMeta,
    Observed,
    ObservedConfigMap,
    ObservedDeployment,
    ObservedLeaderWorkerSet,
    ObservedObject,
    ObservedPod,
)

# Workloads.


# Gateway API and its inference extension.


class ParentReference(Observed):
    name: str = ""
    namespace: str | None = None
    group: str | None = None
    kind: str | None = None
    section_name: str | None = None
    port: int | None = None


class ParentStatus(Observed):
    """What one gateway says of a route or a pool."""

    parent_ref: ParentReference = msgspec.field(default_factory=ParentReference)
    conditions: list[Condition] | None = None


class ParentsStatus(Observed):
    parents: list[ParentStatus] | None = None


class BackendReference(Observed):
    name: str = ""
    group: str | None = None
    kind: str | None = None


class PathMatch(Observed):
    value: str | None = None


class RouteMatch(Observed):
    path: PathMatch | None = None


class RouteRule(Observed):
    backend_refs: list[BackendReference] | None = None
    matches: list[RouteMatch] | None = None


class RouteSpec(Observed):
    parent_refs: list[ParentReference] | None = None
    hostnames: list[str] | None = None
    rules: list[RouteRule] | None = None


class ObservedRoute(ObservedObject):
    """An HTTPRoute, managed or referenced."""

    spec: RouteSpec = msgspec.field(default_factory=RouteSpec)
    status: ParentsStatus = msgspec.field(default_factory=ParentsStatus)


class PoolSelector(Observed):
    match_labels: dict[str, str] | None = None


class ObservedPoolSpec(Observed):
    selector: PoolSelector = msgspec.field(default_factory=PoolSelector)


class ObservedPool(ObservedObject):
    """An InferencePool, managed or referenced."""

    spec: ObservedPoolSpec = msgspec.field(default_factory=ObservedPoolSpec)
    status: ParentsStatus = msgspec.field(default_factory=ParentsStatus)


class Listener(Observed):
    name: str = ""
    hostname: str | None = None
    port: int = 0
    protocol: str = ""


class GatewayAddress(Observed):
    type: str | None = None
    value: str = ""


class GatewaySpec(Observed):
    listeners: list[Listener] | None = None


class GatewayStatus(Observed):
    addresses: list[GatewayAddress] | None = None
    conditions: list[Condition] | None = None


class Gateway(Observed):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: GatewaySpec = msgspec.field(default_factory=GatewaySpec)
    status: GatewayStatus = msgspec.field(default_factory=GatewayStatus)


# The core group.


class SecretName(Observed):
    name: str = ""


class ServiceAccount(Observed):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    secrets: list[SecretName] | None = None


class RelatedService(Observed):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


# The hook's view.


class Children(
    msgspec.Struct,
    rename={
        "deployments": "Deployment.apps/v1",
        "services": "Service.v1",
        "leader_worker_sets": f"LeaderWorkerSet.{LEADER_WORKER_SET_API}",
        "routes": f"HTTPRoute.{GATEWAY_API}",
        "pools": f"InferencePool.{POOL_API}",
        "service_accounts": "ServiceAccount.v1",
        "roles": "Role.rbac.authorization.k8s.io/v1",
        "config_maps": "ConfigMap.v1",
        "role_bindings": "RoleBinding.rbac.authorization.k8s.io/v1",
    },
):
    """Observed children by kind; ``None`` where the kind is not declared."""

    deployments: dict[str, ObservedDeployment] | None = None
    services: dict[str, ObservedObject] | None = None
    leader_worker_sets: dict[str, ObservedLeaderWorkerSet] | None = None
    routes: dict[str, ObservedRoute] | None = None
    pools: dict[str, ObservedPool] | None = None
    service_accounts: dict[str, ObservedAccount] | None = None
    roles: dict[str, ObservedRole] | None = None
    role_bindings: dict[str, ObservedBinding] | None = None
    config_maps: dict[str, ObservedObject] | None = None


class Related(
    msgspec.Struct,
    rename={
        "configs": f"LLMInferenceServiceConfig.{V1ALPHA2}",
        "older_configs": f"LLMInferenceServiceConfig.{V1ALPHA1}",
        "config_maps": "ConfigMap.v1",
        "service_accounts": "ServiceAccount.v1",
        "gateways": f"Gateway.{GATEWAY_API}",
        "routes": f"HTTPRoute.{GATEWAY_API}",
        "pools": f"InferencePool.{POOL_API}",
        "services": "Service.v1",
        "pods": "Pod.v1",
    },
):
    """Related objects by kind; ``None`` where they were not asked for."""

    configs: dict[str, Parent] | None = None
    older_configs: dict[str, Parent] | None = None
    """For a parent of v1alpha1, instead of the others."""
    config_maps: dict[str, ObservedConfigMap] | None = None
    service_accounts: dict[str, ServiceAccount] | None = None
    gateways: dict[str, Gateway] | None = None
    routes: dict[str, ObservedRoute] | None = None
    pools: dict[str, ObservedPool] | None = None
    services: dict[str, RelatedService] | None = None
    pods: dict[str, ObservedPod] | None = None

    def __post_init__(self) -> None:
        if self.older_configs is not None:
            self.configs = {key: upgrade(config) for key, config in self.older_configs.items()} | (self.configs or {})
            self.older_configs = None


Json = dict[str, Any]
