"""The typed request of a Service, and the rules of its related objects. Source: LZ-10."""

import msgspec

from app.hooks.protocol import ByName, RelatedResource, RelatedRule, SyncRequest, objects_of, specs
from app.kube import objects
from app.kube.base import Json
from app.kube.names import is_label_value
from app.kube.objects import ObservedConditions
from app.llmaz import names
from app.llmaz.service.types import Service
from app.settings import Settings
from app.workload.readiness.pods import LWS_NAME

LWS_PLURAL = "leaderworkersets.leaderworkerset.x-k8s.io"
ROUTE_PLURAL = "aigatewayroutes.aigateway.envoyproxy.io"


class ServiceChildren(msgspec.Struct):
    deployments: ByName[objects.ObservedDeployment] = objects_of("Deployment.apps/v1")
    leaderworkersets: ByName[objects.ObservedLeaderWorkerSet] = objects_of(f"LeaderWorkerSet.{names.LWS_API}")
    services: ByName[objects.ObservedObject] = objects_of("Service.v1")
    backends: ByName[objects.ObservedObject] = objects_of(f"Backend.{names.ENVOY_API}")
    ai_backends: ByName[ObservedConditions] = objects_of(f"AIServiceBackend.{names.AI_GATEWAY_API}")
    routes: ByName[ObservedConditions] = objects_of(f"AIGatewayRoute.{names.AI_GATEWAY_API}")


class ServiceRelated(msgspec.Struct):
    models: ByName[RelatedResource] = objects_of(f"OpenModel.{names.MODEL_API}")
    configmaps: ByName[objects.ObservedConfigMap] = objects_of("ConfigMap.v1")
    pods: ByName[objects.ObservedPod] = objects_of("Pod.v1")
    routes: ByName[ObservedConditions] = objects_of(f"AIGatewayRoute.{names.AI_GATEWAY_API}")


Request = SyncRequest[ServiceChildren, ServiceRelated]


def template_inputs(request: Request) -> Json:
    related, metadata = request.related, request.parent.metadata
    data = {key: configmap.data for key, configmap in (related.configmaps or {}).items()}
    return {"models": specs(related.models), "configMaps": data, "skipsLoader": names.skips_loader(metadata)}


def customize(service: Service, declared: frozenset[str], settings: Settings) -> list[RelatedRule]:
    """Select the claimed models, the family's ConfigMap, the pods, and the model's routes, never a whole kind."""
    metadata, models = service.metadata, service.spec.claims.names
    rules = RelatedRule.by_name(names.MODEL_API, "openmodels", *models)
    rules += RelatedRule.by_name("v1", "configmaps", names.CONFIG_MAP, namespace=settings.llmaz_system_namespace)
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
