"""Conditions of the pool, the gateways and the routes, and ``status.router``. Source: KS-4.7, KS-6.2 and KS-6.5."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec.structs import replace

from app.hooks.protocol import get
from app.kserve import constants
from app.kserve.llminferenceservice import types
from app.kserve.llminferenceservice.observed import (
    ObservedGateway,
    ObservedParentReference,
    ObservedPool,
    ObservedRoute,
    ParentsStatus,
)
from app.kserve.llminferenceservice.types import LLMCondition, LLMReason
from app.kserve.names import workload_labels
from app.kserve.results import CONDITION_TRUE, ConditionState, PhaseError, by_condition, fails
from app.kserve.router.objectives import criticalities, priorities, unnamed
from app.kserve.router.scheduler import picker_serves_tls
from app.kserve.router.urls import named_models
from app.kserve.router.view import RouterView
from app.kube.conditions import Condition, find, is_true
from app.kube.objects import ChildMeta, ObservedDeployment
from app.limits import MAX_QUOTE_CHARACTERS, MAX_READY_CHARACTERS
from app.workload.readiness.cause import Cause, Stage, bounded, steady
from app.workload.readiness.ready import no_progress
from app.workload.readiness.rollout import Rollout, rolling_out, rollout

INSTALL_GATEWAY_API = (
    "HTTPRoutes are not declared to Metacontroller: install the CRDs of the Gateway API and the component gateway-api"
)
INSTALL_POOLS = (
    "InferencePools are not declared to Metacontroller: install the CRDs of the Gateway API inference extension and "
    "the component inference-extension"
)
INSTALL_OBJECTIVES = (
    "InferenceObjectives are not declared to Metacontroller: install the CRDs of the Gateway API inference extension "
    "and the component inference-objectives"
)
_ISTIO = "istio.io/"
"""Beginning of the names of Istio's controllers."""
_OVERLAP = "RouteRulesOverlap"
"""Condition of Envoy Gateway; true is bad news."""
_NO_EFFECT = "criticality has no effect"
_GATEWAY = constants.GATEWAY_GROUP


def pool_state(view: RouterView) -> ConditionState | None:
    """Of the managed pool or the user's own; ``None`` without a scheduler. Raises :class:`PhaseError`."""
    scheduler = view.spec.scheduler
    if scheduler is None:
        return None
    if view.children.pools is None:
        return fails(LLMReason.INFERENCE_POOL_FETCH_ERROR, INSTALL_POOLS, Stage.SPEC)
    if view.spec.pool_ref:
        if view.related.pools is None:  # a preset names it, so it was not asked for
            return CONDITION_TRUE
        pool = get(view.related.pools, view.spec.pool_ref, view.namespace)
        if pool is None:
            text = f"InferencePool {view.namespace}/{view.spec.pool_ref} does not exist"
            raise PhaseError(LLMCondition.INFERENCE_POOL_READY, LLMReason.INFERENCE_POOL_FETCH_ERROR, text)
        return _judged_pool(pool)
    name = view.names.pool
    if scheduler.template is None or view.spec.pool_spec is None:
        text = f"InferencePool {name} cannot be created: the scheduler has no template or no pool.spec"
        return fails(LLMReason.INFERENCE_POOL_FETCH_ERROR, text, Stage.SPEC)
    managed = get(view.children.pools, name, view.namespace)
    if managed is None:
        return fails(LLMReason.WAITING_FOR_GATEWAY, f"InferencePool {name} does not exist yet")
    state = _judged_pool(managed)
    return replace(state, message=_istio_tls_note(view)) if state.ok else state


def _istio_tls_note(view: RouterView) -> str:
    """Return a note about a picker that Istio cannot reach. Nothing else reports it: the pool lets requests pass."""
    routes = [get(view.children.routes, view.names.route, view.namespace), *view.referenced_routes()]
    parents = [parent for route in routes if route is not None for parent in route.status.parents or ()]
    by_istio = any(parent.controller_name.startswith(_ISTIO) for parent in parents)
    scheduler = view.spec.made_scheduler
    if (
        not by_istio
        or scheduler is None
        or view.children.destination_rules is not None
        or not picker_serves_tls(scheduler.template)
    ):
        return ""
    return (
        "note: Istio reaches the endpoint picker only where a DestinationRule for Service "
        f"{view.picker_service} says TLS; the component istio makes one"
    )


def criticality_state(view: RouterView) -> ConditionState | None:
    """Return whether ``criticality`` has its effect; None if it is not set."""
    written, defined = criticalities(view.spec.model), priorities(view.context.settings)
    if not written:
        return None
    if view.spec.scheduler is None:
        return fails(LLMReason.NO_SCHEDULER, f"{_NO_EFFECT}: without router.scheduler no endpoint picker sees requests")
    if view.children.objectives is None:
        return fails(LLMReason.KIND_NOT_INSTALLED, f"{_NO_EFFECT}: {INSTALL_OBJECTIVES}")
    if strange := sorted({text for text in written.values() if text not in defined}):
        text = f"criticality is one of {', '.join(defined)}, and not {', '.join(strange)}"
        return fails(LLMReason.UNKNOWN_CRITICALITY, text)
    missed = unnamed(view.managed_route, view.objectives) if view.managed_route is not None else []
    if missed:
        text = (
            f"HTTPRoute {view.names.route} does not set {constants.OBJECTIVE_HEADER} to "
            f"{', '.join(objective.name for objective in missed)}: its rules set that header already, or the route is "
            "full; clients have to send the header"
        )
        return fails(LLMReason.NOT_ROUTED, text)
    return CONDITION_TRUE


def _judged_pool(pool: ObservedPool) -> ConditionState:
    name = f"InferencePool {pool.metadata.name}"
    if is_pool_ready(pool):
        return CONDITION_TRUE
    if not pool.status.parents:
        return fails(LLMReason.WAITING_FOR_GATEWAY, f"{name}: no Gateway has reported on it yet")
    return fails(LLMReason.INFERENCE_POOL_NOT_READY, f"{name} {_refusal(pool.status, pool.metadata, ('Accepted',))}")


def stranger_causes(view: RouterView) -> list[Cause]:
    """Return the cause for a user's pool that does not select the service's pods (KS-7.6)."""
    pool = get(view.related.pools, view.spec.pool_ref, view.namespace) if view.spec.pool_ref else None
    if pool is None:
        return []
    role = constants.ROLE_DECODE if view.spec.prefill is not None else constants.ROLE_BOTH
    labels = {**workload_labels(view.names.service, constants.COMPONENT_WORKLOAD, role), **(view.spec.labels or {})}
    selector = pool.spec.selector.match_labels or {}
    missing = [f"{key}={selector[key]}" for key in sorted(selector) if labels.get(key) != selector[key]]
    if not missing:
        return []
    name = pool.metadata.name
    text = f"InferencePool {name} does not select the service's pods: set {', '.join(missing)} in spec.labels"
    return [Cause(Stage.SPEC, text, LLMReason.INFERENCE_POOL_NOT_READY)]


def gateways_state(view: RouterView) -> ConditionState | None:
    """Of the Gateways that the user names, with the parents of their routes. Raises :class:`PhaseError`."""
    references = view.gateway_refs
    if not references:
        return None
    if view.children.routes is None:
        return fails(LLMReason.KIND_NOT_INSTALLED, INSTALL_GATEWAY_API, Stage.SPEC)
    references += [parent for route in view.referenced_routes() for parent in route.spec.parent_refs or ()]
    gateways = [(reference, view.context.gateway(reference)) for reference in references]
    missing = [reference for reference, gateway in gateways if gateway is None]
    if missing:
        text = f"{view.gateway_text(missing)} does not exist"
        raise PhaseError(LLMCondition.GATEWAYS_READY, LLMReason.GATEWAY_FETCH_ERROR, text)
    waiting = [
        (ref, gateway)
        for ref, gateway in gateways
        if gateway is not None and not is_true(gateway.status.conditions, "Programmed")
    ]
    if not waiting:
        return CONDITION_TRUE
    reported = [find(gateway.status.conditions, t) for _, gateway in waiting for t in ("Accepted", "Programmed")]
    why = next((f": {c.reason}: {steady(c.message)}" for c in reported if c is not None and c.status != "True"), "")
    text = f"{view.gateway_text(ref for ref, _ in waiting)} is not programmed yet{why}"
    if classes := _classes((gateway for _, gateway in waiting), taken=False):
        text = f"{text}; {_NOT_TAKEN.format(classes)}"
    return fails(LLMReason.GATEWAYS_NOT_READY, text)


def routes_state(view: RouterView) -> ConditionState | None:
    """Of the managed route and the user's own."""
    if view.spec.http is None:
        return None
    if view.children.routes is None:
        return fails(LLMReason.KIND_NOT_INSTALLED, INSTALL_GATEWAY_API, Stage.SPEC)
    routes: dict[str, ObservedRoute | None] = {
        name: get(view.related.routes, name, view.namespace)
        for name in view.route_refs
        if view.related.routes is not None  # else a preset names it, so it was not asked for
    }
    if not view.route_refs and view.spec.http.spec is not None:
        routes[view.names.route] = get(view.children.routes, view.names.route, view.namespace)
    waiting = {name: route for name, route in routes.items() if route is None or not is_route_ready(route)}
    if not waiting:
        return replace(CONDITION_TRUE, message=_notes(view, [route for route in routes.values() if route is not None]))
    text = "; ".join(_route_problem(name, route, view) for name, route in waiting.items())
    return fails(LLMReason.HTTP_ROUTES_NOT_READY, bounded(text, MAX_READY_CHARACTERS))


def _notes(view: RouterView, routes: Iterable[ObservedRoute]) -> str:
    """Return notes about requests by the model's name, which may fail though the routes are accepted."""
    notes = [f"note: {text}" for text in (_overlap(routes), _unrouted(view)) if text]
    return bounded("; ".join(notes), MAX_READY_CHARACTERS)


def _overlap(routes: Iterable[ObservedRoute]) -> str:
    """Another route's matches are the same, and the older route gets the requests: Envoy Gateway reports that."""
    parents = [parent for route in routes for parent in route.status.parents or ()]
    conditions = (find(parent.conditions, _OVERLAP) for parent in parents)
    return next((steady(c.message) for c in conditions if c is not None and c.status == "True"), "")


def _unrouted(view: RouterView) -> str:
    """A route that selects the model by a header, and not its adapters, has no room for them."""
    routed = named_models([view.managed_spec], view.model_header) if view.managed_spec is not None else None
    prefix = f"publishers/{view.namespace}/models/"
    if not routed or all(prefix + adapter in routed for adapter in view.adapters):
        return ""
    return "the route has no room for all adapters, so the model's header selects none; the service's own path does"


def _route_problem(name: str, route: ObservedRoute | None, view: RouterView) -> str:
    if route is None:
        return f"HTTPRoute {name} does not exist"
    text = f"HTTPRoute {name} {_refusal(route.status, route.metadata, _REFUSALS, route.spec.parent_refs or ())}"
    return text if route.status.parents else f"{text}; {_no_controller(route, view)}"


def _no_controller(route: ObservedRoute, view: RouterView) -> str:
    """Return what to look at if no controller ever reports on a route."""
    references = (view.context.gateway(reference) for reference in route.spec.parent_refs or ())
    gateways = [gateway for gateway in references if gateway is not None]
    if classes := _classes(gateways, taken=False):
        return _NOT_TAKEN.format(classes)
    if not (classes := _classes(gateways, taken=True)):
        return "if this lasts, see whether its Gateway exists and the controller of its GatewayClass runs"
    return f"if this lasts, no controller of GatewayClass {classes} runs, or it does not know HTTPRoutes"


_NOT_TAKEN = "no controller has taken the Gateway: GatewayClass {} does not exist, or its controller does not run"


def _classes(gateways: Iterable[ObservedGateway], *, taken: bool) -> str:
    """Return the GatewayClasses of Gateways that a controller has, or has not, ``taken``.

    ``Accepted`` of a new Gateway is ``Unknown`` by the default of its CRD; only a controller decides it.
    """
    classes = {gateway.spec.gateway_class_name for gateway in gateways if _is_taken(gateway) is taken}
    return bounded(", ".join(sorted(classes - {""})), MAX_QUOTE_CHARACTERS)


def _is_taken(gateway: ObservedGateway) -> bool:
    accepted = find(gateway.status.conditions, "Accepted")
    return accepted is None or accepted.status != "Unknown"


_REFUSALS = {"Accepted": "is refused by Gateway {}", "ResolvedRefs": "has references that Gateway {} cannot resolve"}
"""The meaning of conditions that a Gateway reports as false."""


def _refusal(
    status: ParentsStatus,
    metadata: ChildMeta,
    required: Collection[str],
    references: Sequence[ObservedParentReference] = (),
) -> str:
    """Describe why a route or pool is not ready: the first refusal of a Gateway, or the Gateways that are waited for.

    ``required`` are the conditions that have to be true, ``references`` the Gateways that it names.
    """
    reported = [parent for parent in status.parents or () if find(parent.conditions, "Accepted") is not None]
    for parent in reported:
        for type_, words in _REFUSALS.items():
            condition = find(parent.conditions, type_)
            if condition is not None and condition.status == "False":
                return f"{words.format(parent.parent_ref.name)}: {condition.reason}: {steady(condition.message)}"
    present = {_identity(parent.parent_ref, metadata.namespace) for parent in reported}
    waiting = [reference.name for reference in references if _identity(reference, metadata.namespace) not in present]
    waiting += [
        parent.parent_ref.name
        for parent in reported
        if not all(_holds(parent.conditions, type_, metadata.generation) for type_ in required)
    ]
    names = bounded(", ".join(dict.fromkeys(waiting)), MAX_QUOTE_CHARACTERS)
    return f"is not yet accepted by {f'Gateway {names}' if waiting else 'any Gateway'}"


def scheduler_state(
    deployment: ObservedDeployment | None, wanted: int | None = None, *, was_ready: bool = False
) -> ConditionState:
    """Of the endpoint picker: one available pod, without earlier ones, is enough: standbys are never ready (KS-6.4)."""
    progress = rollout(deployment, wanted, was_ready=was_ready)
    if deployment is not None and progress.available:
        return _rolling_out(deployment, progress) if progress.replacing else CONDITION_TRUE
    conditions = deployment.status.conditions if deployment is not None else None
    stuck = no_progress(conditions)
    if stuck is not None and stuck.reason == LLMReason.PROGRESS_DEADLINE_EXCEEDED:
        return by_condition(stuck)
    available = find(conditions, "Available")
    if available is None:
        return fails(LLMReason.PROGRESSING, "the endpoint picker is being rolled out")
    if available.status != "True" or deployment is None:
        return by_condition(available)
    return _rolling_out(deployment, progress) if progress.desired else CONDITION_TRUE


def _rolling_out(deployment: ObservedDeployment, progress: Rollout) -> ConditionState:
    cause = rolling_out("Deployment", deployment.metadata.name, progress)
    return fails(cause.reason, cause.text, Stage.PROBE)


def is_route_ready(route: ObservedRoute) -> bool:
    """Report whether every parent in the spec has accepted the route and resolved its references (KS-4.7)."""
    references = route.spec.parent_refs or []
    # A policy controller's status is without Accepted, and ignored.
    parents = [parent for parent in route.status.parents or () if find(parent.conditions, "Accepted") is not None]
    accepted = {_identity(parent.parent_ref, route.metadata.namespace) for parent in parents}
    if not references or any(_identity(ref, route.metadata.namespace) not in accepted for ref in references):
        return False
    generation = route.metadata.generation
    return all(
        _holds(parent.conditions, "Accepted", generation) and _holds(parent.conditions, "ResolvedRefs", generation)
        for parent in parents
    )


def is_pool_ready(pool: ObservedPool) -> bool:
    parents = pool.status.parents or []
    resolved = [find(parent.conditions, "ResolvedRefs") for parent in parents]
    accepted = all(_holds(parent.conditions, "Accepted", pool.metadata.generation) for parent in parents)
    return bool(parents) and accepted and all(c is None or c.status != "False" for c in resolved)


def _identity(reference: ObservedParentReference, namespace: str) -> tuple[str, str, str, str, str, int]:
    place = namespace if reference.namespace is None else reference.namespace
    return reference.name, reference.group, reference.kind, place, reference.section_name, reference.port


def _holds(conditions: Iterable[Condition] | None, type_: str, generation: int | None) -> bool:
    """Report whether the condition is true for the object's present generation."""
    condition = find(conditions, type_)
    if condition is None or condition.status != "True":
        return False
    observed = condition.observed_generation or 0
    return observed <= 0 or observed >= (generation or 0)


def router_parts(view: RouterView) -> types.Router | None:
    """Build ``status.router`` (KS-6.5); ``None`` without a route that is attached to a Gateway."""
    gateways: dict[tuple[str, str], types.RouterGateway] = {}
    for name, parent in _parents(view):
        namespace = view.namespace if parent.namespace is None else parent.namespace
        new = types.RouterGateway(_GATEWAY, "Gateway", parent.name, namespace)
        gateway = gateways.setdefault((namespace, parent.name), new)
        if parent.section_name and parent.section_name not in gateway.listeners:
            gateway.listeners.append(parent.section_name)
        route = types.ObjectIdentity(_GATEWAY, "HTTPRoute", name, view.namespace)
        if route not in gateway.http_routes:
            gateway.http_routes.append(route)
    if not gateways:
        return None
    scheduler, group = None, view.group.part if view.group is not None else None
    if view.spec.scheduler is not None and not _lacks_pool(view):
        pool = types.ObjectIdentity(constants.POOL_GROUP, "InferencePool", view.pool)
        scheduler = types.RouterScheduler(pool, types.ObjectIdentity("", "Service", view.picker_service))
    return types.Router(list(gateways.values()), scheduler, group)


def _lacks_pool(view: RouterView) -> bool:
    """Report whether the service refers to a pool that does not exist."""
    pools = view.related.pools
    return bool(view.spec.pool_ref) and pools is not None and get(pools, view.spec.pool_ref, view.namespace) is None


def _parents(view: RouterView) -> Iterator[tuple[str, ObservedParentReference]]:
    if view.children.routes is None:
        return
    if view.managed_spec is not None:
        yield from ((view.names.route, parent) for parent in view.managed_spec.parent_refs or ())
    for route in view.referenced_routes():
        yield from ((route.metadata.name, parent) for parent in route.spec.parent_refs or ())
