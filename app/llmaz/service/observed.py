"""The typed request of a Service, and the rules of its related objects. Source: LZ-10."""

import msgspec

from app.hooks.protocol import ByName, RelatedResource, RelatedRule, SyncRequest, specs
from app.kube import objects
from app.kube.base import Json
from app.kube.names import is_label_value
from app.kube.objects import ObservedConditions
from app.llmaz import names
from app.llmaz.service.types import Service
from app.settings import Settings
from app.workload.pods import LWS_NAME

LWS_PLURAL = "leaderworkersets.leaderworkerset.x-k8s.io"
ROUTE_PLURAL = "aigatewayroutes.aigateway.envoyproxy.io"


class ServiceChildren(msgspec.Struct):
    """Observed children; ``None`` for a kind that is not declared."""

    deployments: ByName[objects.ObservedDeployment] = msgspec.field(name="Deployment.apps/v1", default=None)
    leaderworkersets: ByName[objects.ObservedLeaderWorkerSet] = msgspec.field(
        name=f"LeaderWorkerSet.{names.LWS_API}", default=None
    )
    services: ByName[objects.ObservedObject] = msgspec.field(name="Service.v1", default=None)
    backends: ByName[objects.ObservedObject] = msgspec.field(name=f"Backend.{names.ENVOY_API}", default=None)
    ai_backends: ByName[ObservedConditions] = msgspec.field(
        name=f"AIServiceBackend.{names.AI_GATEWAY_API}", default=None
    )
    routes: ByName[ObservedConditions] = msgspec.field(name=f"AIGatewayRoute.{names.AI_GATEWAY_API}", default=None)


class ServiceRelated(msgspec.Struct):
    """Related objects, as the customize hook requests them."""

    models: ByName[RelatedResource] = msgspec.field(name=f"OpenModel.{names.MODEL_API}", default=None)
    configmaps: ByName[objects.ObservedConfigMap] = msgspec.field(name="ConfigMap.v1", default=None)
    pods: ByName[objects.ObservedPod] = msgspec.field(name="Pod.v1", default=None)
    routes: ByName[ObservedConditions] = msgspec.field(name=f"AIGatewayRoute.{names.AI_GATEWAY_API}", default=None)


Request = SyncRequest[ServiceChildren, ServiceRelated]


def template_inputs(_service: Service, request: Request, _settings: Settings) -> Json:
    related, metadata = request.related, request.parent.metadata
    data = {key: configmap.data for key, configmap in (related.configmaps or {}).items()}
    return {"models": specs(related.models), "configMaps": data, "skipsLoader": names.skips_loader(metadata)}


def customize(service: Service, declared: frozenset[str], settings: Settings) -> list[RelatedRule]:
    """Select the claimed models, the family's ConfigMap, the pods, and the model's routes, never a whole kind."""
    metadata, models = service.metadata, service.spec.claims.names
    claimed = tuple(dict.fromkeys(name for name in models if name))
    rules = [RelatedRule(names.MODEL_API, "openmodels", names=claimed)] if claimed else []
    rules.append(RelatedRule("v1", "configmaps", namespace=settings.llmaz_system_namespace, names=(names.CONFIG_MAP,)))
    if settings.watch_pods and service.spec.replicas and is_label_value(metadata.name):
        # A LeaderWorkerSet that already runs a service of one pod stays (LZ-9).
        single = [names.deployment_selector(metadata.name)] if service.spec.workload_template.is_single else []
        groups = [{LWS_NAME: metadata.name}] if LWS_PLURAL in declared else []
        rules += [
            RelatedRule("v1", "pods", namespace=metadata.namespace, label_selector={"matchLabels": labels})
            for labels in (*single, *groups)
        ]
    if ROUTE_PLURAL in declared and models and is_label_value(models[0]):
        same = {"matchLabels": {names.MODEL_NAME: models[0]}}
        rules.append(RelatedRule(names.AI_GATEWAY_API, "aigatewayroutes", label_selector=same))
    return rules
