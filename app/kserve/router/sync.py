"""Routing of requests to a service: the scheduler, its pool, the route, and its URLs. Source: KS-4.

The steps run in upstream's order (KS-4.2). After one that fails, other objects and conditions stay as they are.
"""

from collections.abc import Iterable, Mapping

import msgspec

from app.hooks.kept import keep_child
from app.hooks.protocol import get, sorted_values
from app.kserve import tls
from app.kserve.constants import MAIN, PUBLIC_PORT
from app.kserve.llminferenceservice.observed import ReconcileContext
from app.kserve.llminferenceservice.types import LLMCondition, LLMReason, ServedModel, ServiceAddress
from app.kserve.names import Names
from app.kserve.results import CONDITION_TRUE, PhaseError, RouterResult, fails, progress_causes
from app.kserve.router import scheduler, status
from app.kserve.router.objectives import inference_objective
from app.kserve.router.urls import MODEL_ROUTING, choose, discover, named_models
from app.kserve.router.view import RouterView, check_references
from app.kserve.spec.effective import EffectiveSpec
from app.kserve.spec.pickerconfig import picker_config
from app.kserve.workload.children import accounts, outlived
from app.kserve.workload.plan import AccountPlan, missing_credentials
from app.kube.base import Json
from app.kube.objects import ObservedObject, ObservedTemplate
from app.workload.readiness.cause import Cause, Stage
from app.workload.readiness.ready import deployment_causes
from app.workload.readiness.rollout import rollout

INSTALL_RBAC = (
    "the endpoint picker's account needs to watch pods, inference pools and endpoint slices, and to write leases: "
    "install the component scheduler-rbac"
)


def route_requests(spec: EffectiveSpec, context: ReconcileContext) -> RouterResult:
    """The router's children, conditions and addresses, for a service that is not stopped."""
    view, result = RouterView(spec, context), RouterResult()
    try:
        check_references(view, result.states)
        _schedule(view, result)
        result.children += [inference_objective(o, view.names, view.namespace, view.pool) for o in view.objectives]
        result.states[LLMCondition.CRITICALITY_APPLIED] = status.criticality_state(view)
        _expose(view, result)
        result.parts = status.router_parts(view)
        _judge(view, result)
    except PhaseError as error:
        result.failed = True
        result.states[error.condition] = error.state
        result.children += _kept_children(context, result.children)
    return result


def _kept_children(context: ReconcileContext, created: Iterable[Json]) -> list[Json]:
    """The observed children of the router as they are, except those of ``created``."""
    present = {(child["apiVersion"], child["kind"], child["metadata"]["name"]) for child in created}
    children = context.children
    rbac = (children.service_accounts, children.roles, children.role_bindings)
    groups: list[Mapping[str, ObservedObject] | None] = [children.deployments, children.services, children.pools]
    groups += [children.routes, *rbac, children.objectives, children.destination_rules]
    return [
        keep_child(child)
        for group in groups
        for child in sorted_values(group)
        if _is_router_child(child, context.names)
        and (child.api_version, child.kind, child.metadata.name) not in present
    ]


def _is_router_child(child: ObservedObject, names: Names) -> bool:
    """Report whether the router made a child: a pool may give the endpoint picker's Service any name."""
    if child.kind == "Service":
        return child.metadata.name != names.workload_service
    return child.kind in ("InferenceObjective", "DestinationRule") or (child.kind, child.metadata.name) in {
        ("Deployment", names.scheduler),
        ("InferencePool", names.pool),
        ("HTTPRoute", names.route),
        ("ServiceAccount", names.scheduler_account),
        ("Role", names.scheduler_role),
        ("RoleBinding", names.scheduler_role_binding),
    }


def _schedule(view: RouterView, result: RouterResult) -> None:
    requested = view.spec.made_scheduler
    if requested is None:
        result.states[LLMCondition.SCHEDULER_WORKLOAD_READY] = None
        return
    observed = get(view.children.deployments, view.names.scheduler, view.namespace)
    pod, picker = scheduler.with_tokenizer(view.spec, requested, view.context, observed)
    running = observed.spec.template if observed is not None else ObservedTemplate()
    plan, account = scheduler.plan_scheduler(
        view.names,
        requested.model_copy(update={"template": pod}),
        picker_config(
            requested.config.inline if requested.config is not None else None,
            picker,
            disaggregated=view.spec.prefill is not None,
            adapters=bool(view.adapters),
            running=running.container(MAIN).args or (),
        ),
        managed_account=view.rbac_declared,
        traced=view.spec.tracing is not None,
        observed=observed,
    )
    _require_account(view, account)
    if text := missing_credentials(view.context, pod, running):
        raise PhaseError(LLMCondition.SCHEDULER_WORKLOAD_READY, LLMReason.SCHEDULER_RECONCILE_ERROR, text)
    if view.rbac_declared:
        result.children += accounts(account, view.namespace)
    if outlived(observed, plan.selector):
        observed = None
    else:
        result.children.append(scheduler.scheduler_deployment(plan, view.namespace))
    result.children.append(scheduler.scheduler_service(plan, view.picker_service, view.namespace))
    if view.children.destination_rules is not None and scheduler.picker_serves_tls(plan.pod.spec):
        domain = view.context.settings.cluster_domain
        result.children.append(scheduler.destination_rule(plan, view.picker_service, view.namespace, domain))
    if view.spec.pool_spec is not None and view.children.pools is not None:
        result.children.append(scheduler.inference_pool(view.names, view.namespace, view.spec.pool_spec))
    state = status.scheduler_state(observed, plan.replicas, was_ready=view.context.was_ready)
    if not state.ok and not view.rbac_declared:
        state = fails(state.reason, f"{state.message}; {INSTALL_RBAC}".removeprefix("; "))
        result.causes.append(Cause(Stage.SPEC, INSTALL_RBAC, LLMReason.KIND_NOT_INSTALLED))
    result.states[LLMCondition.SCHEDULER_WORKLOAD_READY] = state
    if observed is not None:
        result.causes += deployment_causes(observed)
        result.progress += progress_causes(
            state, "Deployment", observed.metadata.name, rollout(observed, plan.replicas)
        )


def _require_account(view: RouterView, plan: AccountPlan) -> None:
    """A ServiceAccount that the user names is the user's to make."""
    account = plan.account
    if account and not plan.managed and view.context.account(account) is None:
        text = f"ServiceAccount {view.namespace}/{account}, which the scheduler's template names, does not exist"
        raise PhaseError(LLMCondition.SCHEDULER_WORKLOAD_READY, LLMReason.SCHEDULER_RECONCILE_ERROR, text)


def _expose(view: RouterView, result: RouterResult) -> None:
    if view.spec.route is None or view.children.routes is None:
        _within(view, result)
        return
    specs = [route.spec for route in view.referenced_routes()]
    if view.managed_route is not None:
        specs = [view.as_observed(view.addressed), *specs]
        result.children.append(view.managed_route)
    if view.related.gateways is None:  # the URLs are what they were
        return
    addresses = {address.url: address for spec in specs for address in discover(spec, view.context)}
    if not addresses:
        _within(view, result)
        return
    listed = [addresses[url] for url in sorted(addresses)]
    result.url = choose(listed, view.own_path)
    routed = named_models(specs, view.model_header)
    result.addresses = [msgspec.structs.replace(address, models=_models(view, address, routed)) for address in listed]


def _within(view: RouterView, result: RouterResult) -> None:
    """The address of the workload Service inside the cluster, which every service has."""
    host = f"{view.names.workload_service}.{view.namespace}.svc.{view.context.settings.cluster_domain}"
    result.url = f"{tls.scheme(view.spec, view.context)}://{host}:{PUBLIC_PORT}"
    result.addresses = [ServiceAddress(url=result.url)]


def _models(view: RouterView, address: ServiceAddress, routed: frozenset[str] | None) -> list[ServedModel]:
    """Return the names that requests may use at an address; where services share a path, only qualified ones.

    Of these only the ones that the route has rules for: ``routed``, ``None`` if it needs none.
    """
    prefix = f"publishers/{view.namespace}/models/"
    is_shared = address.name.endswith(MODEL_ROUTING)
    return [
        ServedModel(name)
        for model in (view.spec.model.name or view.names.service, *view.adapters)
        for name in (prefix + model, *(() if is_shared else (model,)))
        if not is_shared or routed is None or name in routed
    ]


def _judge(view: RouterView, result: RouterResult) -> None:
    result.causes += status.stranger_causes(view)
    result.states[LLMCondition.INFERENCE_POOL_READY] = status.pool_state(view)
    result.states[LLMCondition.GATEWAYS_READY] = status.gateways_state(view)
    result.states[LLMCondition.HTTP_ROUTES_READY] = status.routes_state(view)
    result.states[LLMCondition.GROUP_READY] = CONDITION_TRUE if view.group is not None else None
    result.states[LLMCondition.GROUP_DEGRADED] = view.group.degraded if view.group is not None else None
