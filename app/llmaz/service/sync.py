"""The sync hook of Service. Source: LZ-4.3 to LZ-4.9, LZ-5.3, LZ-9."""

from dataclasses import dataclass
from datetime import datetime

from app.hooks.kept import as_json, kept_selector
from app.hooks.protocol import SyncResponse, get
from app.hooks.sendable import clashes
from app.kube import field
from app.kube.base import Json
from app.kube.conditions import was_ready
from app.llmaz.service import gateway, pods, status
from app.llmaz.service.children import deployment, leader_worker_set, load_balancing_service
from app.llmaz.service.observed import Children, Related, Request
from app.llmaz.service.plan import Plan, Workload, plan
from app.llmaz.service.types import Reason, Service
from app.llmaz.status import aborted, kept_children, outstanding_causes
from app.settings import Settings
from app.workload.cause import Cause, Stage
from app.workload.parts import account_in_place
from app.workload.waiting import RESYNC


def sync(service: Service, request: Request, settings: Settings, now: datetime) -> SyncResponse:
    """Return the workload and its core Service, or the observed children if these cannot be decided."""
    related = request.related or Related()
    decided = plan(service, request.children, related, settings)
    if isinstance(decided, Cause):
        return _aborted(service, decided, request, now)
    built = _build(decided, _observed_fields(decided, request.children))
    if isinstance(built, Cause):
        return _aborted(service, built, request, now)
    ready = was_ready(service.status.conditions, service.metadata.generation)
    observed = _observed(decided, request.children, built.selector, was_ready=ready)
    children = as_json([*built.children, *gateway.objects(decided, request.children, settings)])
    outstanding = _outstanding(service, children, request, now)
    notes = [*decided.notes, *gateway.notes(decided, request.children, related)]
    return SyncResponse(
        status=status.build_status(service.status, observed, related.pods, outstanding, notes, now),
        children=children,
        resync_after_seconds=RESYNC if outstanding else None,
    )


def _aborted(service: Service, cause: Cause, request: Request, now: datetime) -> SyncResponse:
    stopped = aborted(service.status, cause, now, replicas=service.spec.replicas)
    return SyncResponse(status=stopped, children=kept_children(request))


@dataclass(frozen=True, slots=True)
class BuiltChildren:
    """The children of a plan, and the selector of the pods that serve requests."""

    children: list[object]
    selector: dict[str, str]


@dataclass(frozen=True, slots=True)
class ObservedFields:
    """Fields of the observed Deployment that a new one keeps."""

    selector: dict[str, str]
    """The immutable selector; empty without a Deployment."""
    account: str
    """ServiceAccount of the observed pods if the template no longer sets one; otherwise empty."""


def _build(decided: Plan, observed: ObservedFields) -> BuiltChildren | Cause:
    workload, selector = _BUILDERS[decided.workload](decided, observed)
    conflict = _conflict(workload)
    if conflict is not None:
        return conflict
    return BuiltChildren([workload, load_balancing_service(decided, selector)], selector)


Selected = tuple[Json, dict[str, str]]
"""A workload, and the selector of its pods that serve requests."""


def _deployment(decided: Plan, observed: ObservedFields) -> Selected:
    template = pods.single(decided)
    if observed.account:
        template["spec"]["serviceAccountName"] = observed.account
    selector = kept_selector(decided.selector, observed.selector, template["metadata"]["labels"])
    return deployment(decided, template, selector), selector


def _leader_worker_set(decided: Plan, _observed: ObservedFields) -> Selected:
    built = leader_worker_set(decided, pods.worker(decided), pods.leader(decided))
    return built, decided.selector


_BUILDERS = {Workload.DEPLOYMENT: _deployment, Workload.LEADER_WORKER_SET: _leader_worker_set}


def _observed_fields(decided: Plan, children: Children) -> ObservedFields:
    observed = get(children.deployments, decided.name, decided.namespace)
    if observed is None:
        return ObservedFields({}, "")
    named = (decided.template.worker_template.get("spec") or {}).get("serviceAccountName")
    account = "" if named else account_in_place(observed, observed.spec.template.spec.service_account_name)
    return ObservedFields(observed.spec.selector.match_labels or {}, account)


def _observed(decided: Plan, children: Children, selector: dict[str, str], *, was_ready: bool) -> status.WorkloadState:
    if decided.workload is Workload.DEPLOYMENT:
        deployed = get(children.deployments, decided.name, decided.namespace)
        return status.of_deployment(decided.name, deployed, selector, was_ready=was_ready)
    return status.of_group(decided.name, get(children.leaderworkersets, decided.name, decided.namespace))


def _conflict(workload: Json) -> Cause | None:
    """Return a cause if the user's template and the model's parts conflict, for example in a mount path."""
    clash = next(iter(clashes(workload["spec"], field.Path("spec"))), None)
    if clash is None:
        return None
    return Cause(Stage.SPEC, f"the pod template cannot be used: {clash}", Reason.TEMPLATE_CONFLICT)


def _outstanding(service: Service, children: list[Json], request: Request, now: datetime) -> list[Cause]:
    """Return the causes of outstanding children; a Service that is being deleted has none."""
    if service.metadata.deletion_timestamp:
        return []
    return outstanding_causes(children, request, service.status.conditions, now)
