"""What the pool, the gateways and the routes say of themselves. Source: kserve spec 4.7 and 6.2.

What was asked for and is not observed yet counts as not ready.
"""

from __future__ import annotations

from app.hooks.protocol import one
from app.kserve.llminferenceservice import conditions
from app.kserve.llminferenceservice.findings import READY, Finding, is_pool_ready, is_programmed, is_route_ready
from app.kserve.llminferenceservice.objects import ObservedPool, ObservedRoute
from app.kserve.llminferenceservice.routerview import RouterError, RouterView
from app.kserve.names import COMPONENT_WORKLOAD, ROLE_BOTH, ROLE_DECODE, workload_labels
from app.workload.cause import Cause, Stage

INSTALL_GATEWAY_API = (
    "HTTPRoutes are not declared to Metacontroller: install the CRDs of the Gateway API and the component gateway-api"
)
INSTALL_POOLS = (
    "InferencePools are not declared to Metacontroller: install the CRDs of the Gateway API inference extension and "
    "the component inference-extension"
)


def pool_finding(view: RouterView) -> Finding | None:
    """Of the managed pool or the user's own; ``None`` without a scheduler. Raises :class:`RouterError`."""
    wanted = view.scheduler
    if wanted is None:
        return None
    if view.children.pools is None:
        return Finding(False, conditions.INFERENCE_POOL_FETCH_ERROR, INSTALL_POOLS, Stage.SPEC)
    if view.pool_ref:
        pool = one(view.related.pools, view.pool_ref, view.namespace)
        if pool is None:
            text = f"InferencePool {view.namespace}/{view.pool_ref} does not exist"
            raise RouterError(conditions.INFERENCE_POOL_READY, conditions.INFERENCE_POOL_FETCH_ERROR, text)
        return _judged_pool(pool)
    name = view.names.pool
    if wanted.template is None or wanted.pool is None or wanted.pool.spec is None:
        text = f"there is nothing to make InferencePool {name} of: the scheduler has no template or no pool.spec"
        return Finding(False, conditions.INFERENCE_POOL_FETCH_ERROR, text, Stage.SPEC)
    managed = one(view.children.pools, name, view.namespace)
    if managed is None:
        return Finding(False, conditions.WAITING_FOR_GATEWAY, f"InferencePool {name} is not there yet")
    return _judged_pool(managed)


def _judged_pool(pool: ObservedPool) -> Finding:
    name = f"InferencePool {pool.metadata.name}"
    if is_pool_ready(pool):
        return READY
    if not pool.status.parents:
        return Finding(False, conditions.WAITING_FOR_GATEWAY, f"{name}: no gateway has looked at it yet")
    return Finding(False, conditions.INFERENCE_POOL_NOT_READY, f"{name} is not accepted by every gateway")


def stranger_causes(view: RouterView) -> list[Cause]:
    """A pool of the user's own that selects other pods than ours (7.6)."""
    pool = one(view.related.pools, view.pool_ref, view.namespace) if view.pool_ref else None
    if pool is None:
        return []
    role = ROLE_DECODE if view.spec.prefill is not None else ROLE_BOTH
    labels = {**workload_labels(view.names.service, COMPONENT_WORKLOAD, role), **(view.spec.labels or {})}
    wanted = pool.spec.selector.match_labels or {}
    missing = [f"{key}={wanted[key]}" for key in sorted(wanted) if labels.get(key) != wanted[key]]
    if not missing:
        return []
    name = pool.metadata.name
    text = f"InferencePool {name} does not select the service's pods: set {', '.join(missing)} in spec.labels"
    return [Cause(Stage.SPEC, text, conditions.INFERENCE_POOL_NOT_READY)]


def gateways_finding(view: RouterView) -> Finding | None:
    """Of the Gateways that the user names, with the parents of their routes. Raises :class:`RouterError`."""
    references = view.gateway_refs
    if not references:
        return None
    if view.children.routes is None:
        return Finding(False, conditions.KIND_NOT_INSTALLED, INSTALL_GATEWAY_API, Stage.SPEC)
    references += [parent for route in view.referenced_routes() for parent in route.spec.parent_refs or ()]
    found = [(reference, view.gateway(reference)) for reference in references]
    missing = [reference for reference, gateway in found if gateway is None]
    if missing:
        text = f"{view.gateway_text(missing)} does not exist"
        raise RouterError(conditions.GATEWAYS_READY, conditions.GATEWAY_FETCH_ERROR, text)
    waiting = [ref for ref, gateway in found if gateway is not None and not is_programmed(gateway.status.conditions)]
    if not waiting:
        return READY
    return Finding(False, conditions.GATEWAYS_NOT_READY, f"{view.gateway_text(waiting)} is not programmed yet")


def routes_finding(view: RouterView) -> Finding | None:
    """Of the managed route and the user's own."""
    if view.http is None:
        return None
    if view.children.routes is None:
        return Finding(False, conditions.KIND_NOT_INSTALLED, INSTALL_GATEWAY_API, Stage.SPEC)
    routes: dict[str, ObservedRoute | None] = {
        name: one(view.related.routes, name, view.namespace) for name in view.route_refs
    }
    if not routes and view.http.spec is not None:
        routes[view.names.route] = one(view.children.routes, view.names.route, view.namespace)
    waiting = [name for name, route in routes.items() if route is None or not is_route_ready(route)]
    if not waiting:
        return READY
    text = f"HTTPRoute {', '.join(waiting)} is not accepted, with all it refers to, by every Gateway it names"
    return Finding(False, conditions.HTTP_ROUTES_NOT_READY, text)
