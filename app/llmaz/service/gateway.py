"""The objects that put a Service's main model behind the Envoy AI Gateway, each with its own route (LZ-4.11)."""

from collections.abc import Iterator

from app.hooks.protocol import get, sorted_values
from app.kube.base import Json
from app.kube.child import child, metadata, without_none
from app.kube.conditions import find
from app.kube.objects import ObservedConditions
from app.llmaz import names
from app.llmaz.service.observed import ServiceChildren, ServiceRelated
from app.llmaz.service.plan import ServicePlan
from app.settings import Settings
from app.workload.readiness.cause import steady

MODEL_HEADER = "x-ai-eg-model"
"""Header in which the gateway puts the ``model`` of a request's body."""


def objects(plan: ServicePlan, children: ServiceChildren, settings: Settings) -> list[Json]:
    """Build backend and route; none without the component ``envoy-ai-gateway``."""
    if children.backends is None or children.ai_backends is None or children.routes is None:
        return []
    host = f"{names.load_balancer(plan.name)}.{plan.namespace}.svc.{settings.cluster_domain}"
    reference = {"group": names.ENVOY_GROUP, "kind": "Backend", "name": names.gateway_objects(plan.name)}
    service: Json = {"schema": {"name": "OpenAI"}, "backendRef": reference}
    return [
        _object(plan, names.ENVOY_API, "Backend", {"endpoints": [{"fqdn": {"hostname": host, "port": names.PORT}}]}),
        _object(plan, names.AI_GATEWAY_API, "AIServiceBackend", service),
        _route(plan, settings),
    ]


def _route(plan: ServicePlan, settings: Settings) -> Json:
    """Build the route, with the API server's defaults: a list of rules is replaced as a whole (MC-3.2)."""
    namespace, _, name = settings.llmaz_gateway.partition("/")
    gateway = {"group": names.GATEWAY_GROUP, "kind": "Gateway", "namespace": namespace, "name": name}
    model = plan.models[0]
    override = None if model.served_name == model.name else model.served_name
    backend = without_none(name=names.gateway_objects(plan.name), priority=0, weight=1, modelNameOverride=override)
    rule = without_none(
        matches=[{"headers": [{"name": MODEL_HEADER, "type": "Exact", "value": model.name}]}],
        backendRefs=[backend],
        timeouts={"request": settings.llmaz_gateway_timeout},
        modelsOwnedBy=model.owned_by,
        modelsCreatedAt=model.created_at,
    )
    return _object(plan, names.AI_GATEWAY_API, "AIGatewayRoute", {"parentRefs": [gateway], "rules": [rule]})


def _object(plan: ServicePlan, api_version: str, kind: str, spec: Json) -> Json:
    labels = {names.MODEL_NAME: plan.models[0].name}
    return child(api_version, kind, metadata(names.gateway_objects(plan.name), plan.namespace, labels), spec=spec)


def notes(plan: ServicePlan, children: ServiceChildren, related: ServiceRelated) -> Iterator[str]:
    """Return why requests by the model's name may not reach a Service that works."""
    for group in (children.ai_backends, children.routes):
        observed = get(group, names.gateway_objects(plan.name), plan.namespace)
        refused = None if observed is None else find(observed.status.conditions, "NotAccepted")
        if observed is not None and refused is not None and refused.status == "True":
            yield f"the gateway does not accept {observed.kind} {observed.metadata.name}: {steady(refused.message)}"
    route = get(children.routes, names.gateway_objects(plan.name), plan.namespace)
    if route is not None and not route.status.conditions:
        yield (
            f"no controller has reported on AIGatewayRoute {route.metadata.name}; if this lasts, the Envoy AI Gateway "
            "does not run"
        )
    first = min(sorted_values(related.routes), key=_precedence, default=None)
    if route is not None and first is not None and _precedence(first) < _precedence(route):
        yield (
            f"the gateway sends requests for model {plan.models[0].name} to AIGatewayRoute "
            f"{first.metadata.namespace}/{first.metadata.name}, which is older"
        )


def _precedence(route: ObservedConditions) -> tuple[str, str, str]:
    """Sort key of routes with equal matches: the Gateway API prefers the oldest, then the first by name."""
    metadata = route.metadata
    return metadata.creation_timestamp or "", metadata.namespace, metadata.name
