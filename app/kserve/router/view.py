"""The router part of a spec, and the objects that it names."""

from collections.abc import Iterable
from functools import cached_property

import msgspec

from app.hooks.protocol import get, sorted_values
from app.kserve import constants, lora
from app.kserve.llminferenceservice.observed import (
    ObservedParentReference,
    ObservedRoute,
    ObservedRouteSpec,
    ReconcileContext,
)
from app.kserve.llminferenceservice.types import LLMCondition, LLMReason, RouterMember
from app.kserve.results import ConditionState, PhaseError
from app.kserve.router.objectives import Objective, objectives, with_objectives
from app.kserve.router.route import (
    Group,
    group_of,
    has_weight,
    http_route,
    member_backend,
    pool_group,
    shared,
    unshared,
)
from app.kserve.spec.effective import EffectiveSpec
from app.kube.base import Json
from app.limits import MAX_CAUSE_CHARACTERS
from app.workload.readiness.cause import bounded


class RouterView:
    def __init__(self, spec: EffectiveSpec, context: ReconcileContext) -> None:
        self.spec, self.context = spec, context
        self.names, self.namespace = context.names, context.metadata.namespace
        self.children, self.related = context.children, context.related

    @property
    def adapters(self) -> list[str]:
        """Names of the LoRA adapters that the servers load."""
        listed = self.spec.model.lora.adapters if self.spec.model.lora is not None else None
        return lora.adapter_names(listed) if lora.is_loaded(self.spec) else []

    @cached_property
    def objectives(self) -> list[Objective]:
        used = self.spec.scheduler is not None and self.children.objectives is not None
        return objectives(self.spec.model, self.names, self.context.settings) if used else []

    @property
    def route_refs(self) -> list[str]:
        return [ref.name for ref in (self.spec.http.refs if self.spec.http is not None else None) or ()]

    @cached_property
    def managed_route(self) -> Json | None:
        """The HTTPRoute to make, unless the user has their own. The API group of a managed pool is ours to choose."""
        spec, group = self.spec.route_spec, self.group
        if self.route_refs or spec is None:
            return None
        managed_pool = self.spec.scheduler is not None and not self.spec.pool_ref
        observed = get(self.children.routes, self.names.route, self.namespace)
        if group is not None:
            spec = shared(spec, self.own_path, self._backends, group.part.members)
        route = http_route(self.names, self.namespace, spec, pool_group(observed) if managed_pool else None)
        if group is not None:
            route["metadata"]["labels"][constants.ROUTING_GROUP] = group.part.name
        return with_objectives(route, self.objectives, self.pool) if self.objectives else route

    @property
    def model_header(self) -> str:
        return self.context.operator.ingress.model_based_routing_header_name

    @property
    def own_path(self) -> str:
        return f"/{self.namespace}/{self.names.service}"

    @property
    def _backends(self) -> tuple[str, str]:
        return self.names.workload_service, self.pool

    @property
    def addressed(self) -> Json | None:
        """The managed route as it is before a group divides it, without rules that the group leads nowhere."""
        spec = self.spec.route_spec
        if spec is None or self.group is None or has_weight(self.group.part.members):
            return spec
        return unshared(spec, self.own_path, self._backends)

    @cached_property
    def group(self) -> Group | None:
        """The services that share requests with this one; ``None`` where it is in no group."""
        route = self.spec.route
        if route is None or not route.group or route.weight is None:
            return None
        backend = member_backend(self.names, None if self.spec.scheduler is None else self.pool)
        return group_of(
            RouterMember(self.names.service, route.weight, backend_ref=backend),
            route.group,
            frozenset((self.spec.model.name or self.names.service, *self.adapters)),
            sorted_values(self.related.peers),
            get(self.children.routes, self.names.route, self.namespace),
        )

    @cached_property
    def managed_spec(self) -> ObservedRouteSpec | None:
        return None if self.managed_route is None else self.as_observed(self.managed_route["spec"])

    def as_observed(self, spec: Json | None) -> ObservedRouteSpec:
        """Return a managed route's spec in the form in which observed ones are judged. Raises :class:`PhaseError`."""
        try:
            return msgspec.convert(spec, ObservedRouteSpec, strict=False)
        except msgspec.ValidationError as error:
            text = f"HTTPRoute {self.names.route} cannot be created: {error}"
            raise PhaseError(LLMCondition.HTTP_ROUTES_READY, LLMReason.HTTP_ROUTE_RECONCILE_ERROR, text) from None

    def referenced_routes(self) -> list[ObservedRoute]:
        routes = (get(self.related.routes, name, self.namespace) for name in self.route_refs)
        return [route for route in routes if route is not None]

    @property
    def gateway_refs(self) -> list[ObservedParentReference]:
        gateway = self.spec.router.gateway if self.spec.router is not None else None
        refs = (gateway.refs if gateway is not None else None) or ()
        return [ObservedParentReference(name=ref.name or "", namespace=ref.namespace) for ref in refs]

    def gateway_text(self, references: Iterable[ObservedParentReference]) -> str:
        places = ((self.namespace if ref.namespace is None else ref.namespace, ref.name) for ref in references)
        text = ", ".join(dict.fromkeys(f"Gateway {namespace}/{name}" for namespace, name in places))
        return bounded(text, MAX_CAUSE_CHARACTERS)

    @property
    def pool(self) -> str:
        return self.spec.pool_ref or self.names.pool

    @property
    def picker_service(self) -> str:
        """Name of the endpoint picker's Service: the one that the pool refers to."""
        picker = (self.spec.pool_spec or {}).get("endpointPickerRef") or {}
        is_service = (picker.get("group", ""), picker.get("kind", "Service")) == ("", "Service")
        return (picker.get("name") if is_service else "") or self.names.scheduler_service

    @property
    def rbac_declared(self) -> bool:
        return None not in (self.children.service_accounts, self.children.roles, self.children.role_bindings)


def check_references(view: RouterView, states: dict[str, ConditionState | None]) -> None:
    """Clear each condition whose references exist (KS-4.2). Raises :class:`PhaseError` at the first that lacks some."""
    if view.children.routes is None:  # the conditions say so later
        return
    _require_gateways(view, view.gateway_refs, LLMCondition.GATEWAYS_READY)
    states[LLMCondition.GATEWAYS_READY] = None
    missing = [name for name in view.route_refs if get(view.related.routes, name, view.namespace) is None]
    if missing and view.related.routes is not None:  # those of a preset are not asked for, and nothing waits for them
        text = ", ".join(f"HTTPRoute {view.namespace}/{name}" for name in missing)
        raise PhaseError(LLMCondition.HTTP_ROUTES_READY, LLMReason.REFS_INVALID, f"{text} does not exist")
    states[LLMCondition.HTTP_ROUTES_READY] = None
    managed = view.managed_spec
    if managed is not None:
        _require_gateways(view, managed.parent_refs or (), LLMCondition.HTTP_ROUTES_READY)
    for route in view.referenced_routes():
        if not route.spec.parent_refs:
            text = f"HTTPRoute {view.namespace}/{route.metadata.name} has no parentRefs, so no Gateway serves it"
            raise PhaseError(LLMCondition.HTTP_ROUTES_READY, LLMReason.REFS_INVALID, text)
        _require_gateways(view, route.spec.parent_refs, LLMCondition.HTTP_ROUTES_READY)


def _require_gateways(view: RouterView, references: Iterable[ObservedParentReference], condition: str) -> None:
    if view.related.gateways is None:  # not delivered: what exists is not known, and nothing may wait for it
        return
    missing = [reference for reference in references if view.context.gateway(reference) is None]
    if missing:
        raise PhaseError(condition, LLMReason.REFS_INVALID, f"{view.gateway_text(missing)} does not exist")
