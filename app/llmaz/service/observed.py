"""The objects a Service's hooks deal with, and the rules that ask for them. Source: LZ-10."""

from __future__ import annotations

import msgspec

from app.hooks.protocol import RelatedResource, RelatedRule, SyncRequest
from app.kube.names import is_label_value
from app.kube.objects import (
    ObservedConfigMap,
    ObservedDeployment,
    ObservedLeaderWorkerSet,
    ObservedObject,
    ObservedPod,
)
from app.llmaz.names import CONFIG_MAP, LWS_API, LWS_NAME, MODEL_API, deployment_selector
from app.llmaz.service.types import Service
from app.settings import Settings

LWS_PLURAL = "leaderworkersets.leaderworkerset.x-k8s.io"


class Children(
    msgspec.Struct,
    rename={
        "deployments": "Deployment.apps/v1",
        "leaderworkersets": f"LeaderWorkerSet.{LWS_API}",
        "services": "Service.v1",
    },
):
    """Observed children; ``None`` for a kind that is not declared."""

    deployments: dict[str, ObservedDeployment] | None = None
    leaderworkersets: dict[str, ObservedLeaderWorkerSet] | None = None
    services: dict[str, ObservedObject] | None = None


class Related(
    msgspec.Struct,
    rename={"models": f"OpenModel.{MODEL_API}", "configmaps": "ConfigMap.v1", "pods": "Pod.v1"},
):
    """What the customize hook asked for."""

    models: dict[str, RelatedResource] | None = None
    configmaps: dict[str, ObservedConfigMap] | None = None
    pods: dict[str, ObservedPod] | None = None


Request = SyncRequest[Children, Related]


def customize(service: Service, declared: frozenset[str], settings: Settings) -> list[RelatedRule]:
    """The models it claims, the family's ConfigMap, and its pods. Never everything of a kind."""
    metadata, claims = service.metadata, service.spec.model_claims
    claimed = tuple(dict.fromkeys(model.name for model in (claims.models if claims else None) or () if model.name))
    rules = [RelatedRule(MODEL_API, "openmodels", names=claimed)] if claimed else []
    rules.append(RelatedRule("v1", "configmaps", namespace=settings.llmaz_system_namespace, names=(CONFIG_MAP,)))
    if settings.watch_pods and is_label_value(metadata.name):
        selectors = [deployment_selector(metadata.name)]
        if LWS_PLURAL in declared:
            selectors.append({LWS_NAME: metadata.name})
        rules += [_pods(metadata.namespace, labels) for labels in selectors]
    return rules


def _pods(namespace: str, labels: dict[str, str]) -> RelatedRule:
    return RelatedRule("v1", "pods", namespace=namespace, label_selector={"matchLabels": labels})
