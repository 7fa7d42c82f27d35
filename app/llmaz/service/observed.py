"""The objects a Service's hooks deal with, and the rules that ask for them. Source: LZ-10."""

from __future__ import annotations

import msgspec

from app.hooks.protocol import RelatedResource, RelatedRule, SyncRequest
from app.kube.conditions import Condition
from app.kube.names import is_label_value
from app.kube.objects import (
    Observed,
    ObservedConfigMap,
    ObservedDeployment,
    ObservedLeaderWorkerSet,
    ObservedObject,
    ObservedPod,
)
from app.llmaz.claims import ModelClaims, main_first
from app.llmaz.names import (
    AI_GATEWAY_API,
    CONFIG_MAP,
    ENVOY_API,
    LWS_API,
    LWS_NAME,
    MODEL_API,
    MODEL_NAME,
    deployment_selector,
)
from app.llmaz.service.types import Service
from app.settings import Settings

LWS_PLURAL = "leaderworkersets.leaderworkerset.x-k8s.io"


ROUTE_PLURAL = "aigatewayroutes.aigateway.envoyproxy.io"


class GatewayStatus(Observed):
    """What the gateway says of an object of ours."""

    conditions: list[Condition] | None = None


class ObservedRoute(ObservedObject):
    """An AIGatewayRoute or an AIServiceBackend."""

    status: GatewayStatus = msgspec.field(default_factory=GatewayStatus)


class Children(
    msgspec.Struct,
    rename={
        "backends": f"Backend.{ENVOY_API}",
        "ai_backends": f"AIServiceBackend.{AI_GATEWAY_API}",
        "routes": f"AIGatewayRoute.{AI_GATEWAY_API}",
        "deployments": "Deployment.apps/v1",
        "leaderworkersets": f"LeaderWorkerSet.{LWS_API}",
        "services": "Service.v1",
    },
):
    """Observed children; ``None`` for a kind that is not declared."""

    deployments: dict[str, ObservedDeployment] | None = None
    leaderworkersets: dict[str, ObservedLeaderWorkerSet] | None = None
    services: dict[str, ObservedObject] | None = None
    backends: dict[str, ObservedObject] | None = None
    ai_backends: dict[str, ObservedRoute] | None = None
    routes: dict[str, ObservedRoute] | None = None


class Related(
    msgspec.Struct,
    rename={
        "models": f"OpenModel.{MODEL_API}",
        "configmaps": "ConfigMap.v1",
        "pods": "Pod.v1",
        "routes": f"AIGatewayRoute.{AI_GATEWAY_API}",
    },
):
    """What the customize hook asked for."""

    models: dict[str, RelatedResource] | None = None
    configmaps: dict[str, ObservedConfigMap] | None = None
    pods: dict[str, ObservedPod] | None = None
    routes: dict[str, ObservedRoute] | None = None
    """Those of all Services with the same main model."""


Request = SyncRequest[Children, Related]


def customize(service: Service, declared: frozenset[str], settings: Settings) -> list[RelatedRule]:
    """The models it claims, the family's ConfigMap, its pods, and its model's routes. Never everything of a kind."""
    metadata, claims = service.metadata, service.spec.model_claims or ModelClaims()
    models = [model.name for model in main_first(claims.models or [])]
    claimed = tuple(dict.fromkeys(name for name in models if name))
    rules = [RelatedRule(MODEL_API, "openmodels", names=claimed)] if claimed else []
    rules.append(RelatedRule("v1", "configmaps", namespace=settings.llmaz_system_namespace, names=(CONFIG_MAP,)))
    if settings.watch_pods and service.spec.replicas and is_label_value(metadata.name):
        # A group that runs a service of one pod already is kept (LZ-9).
        single = [deployment_selector(metadata.name)] if service.spec.workload_template.is_single else []
        groups = [{LWS_NAME: metadata.name}] if LWS_PLURAL in declared else []
        rules += [_pods(metadata.namespace, labels) for labels in (*single, *groups)]
    if ROUTE_PLURAL in declared and models and is_label_value(models[0]):
        same = {"matchLabels": {MODEL_NAME: models[0]}}
        rules.append(RelatedRule(AI_GATEWAY_API, "aigatewayroutes", label_selector=same))
    return rules


def _pods(namespace: str, labels: dict[str, str]) -> RelatedRule:
    return RelatedRule("v1", "pods", namespace=namespace, label_selector={"matchLabels": labels})
