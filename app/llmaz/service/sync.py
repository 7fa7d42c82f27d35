"""The sync hook of Service. Source: LZ-4.3 to LZ-4.8, LZ-5.3, LZ-9."""

from datetime import datetime

from app.hooks.kept import is_scaled_to_zero, kept_selector, with_kept_templates
from app.hooks.protocol import SyncResponse, get
from app.hooks.sendable import clashes
from app.hooks.template import inputs
from app.kube import field
from app.kube.base import Json
from app.kube.conditions import was_ready
from app.kube.objects import ObservedDeployment
from app.llmaz.names import FAMILY, INFERENCE_API
from app.llmaz.service import gateway, pods, status
from app.llmaz.service.children import deployment, leader_worker_set, load_balancing_service
from app.llmaz.service.observed import Request, template_inputs
from app.llmaz.service.plan import ServicePlan, plan
from app.llmaz.service.types import Service, ServiceReason
from app.llmaz.status import aborted, outstanding_causes
from app.settings import Settings
from app.workload.parts import account_in_place
from app.workload.readiness.cause import Cause, Stage
from app.workload.readiness.pods import Remedies
from app.workload.readiness.rollout import replica_counts
from app.workload.readiness.waiting import RESYNC


def sync(service: Service, request: Request, settings: Settings, now: datetime) -> SyncResponse:
    """Return the workload and its core Service, or the observed children if these cannot be decided."""
    related, children, spec = request.related, request.children, service.spec
    decided = plan(service, children, related, settings)
    if isinstance(decided, Cause):
        return aborted(service, decided, request, counts(request), now)
    if not decided.grouped:
        deployed = get(children.deployments, decided.name, decided.namespace)
        workload, selector = _deployment(decided, deployed)
        ready = was_ready(service.status.conditions, service.metadata.generation)
        observed = status.of_deployment(decided.name, deployed, selector, spec.replicas, was_ready=ready)
    else:
        selector, group = decided.selector, get(children.leaderworkersets, decided.name, decided.namespace)
        workload = leader_worker_set(decided, pods.worker(decided), pods.leader(decided))
        observed = status.of_group(decided.name, group, related.pods, spec.replicas)
    if conflict := _conflict(workload):
        return aborted(service, conflict, request, counts(request), now)
    built = [workload, load_balancing_service(decided, selector), *gateway.objects(decided, children, settings)]
    desired = with_kept_templates(built, request, inputs(request.parent, FAMILY, template_inputs(request), settings))
    outstanding = outstanding_causes(desired, request, service, now)
    notes = [*decided.notes, *gateway.notes(decided, children, related)]
    return SyncResponse(
        status=status.build_status(
            service.status, observed, related.pods, outstanding, notes, now, remedies=_remedies(service)
        ),
        children=desired,
        resync_after_seconds=RESYNC if outstanding else None,
    )


def _remedies(service: Service) -> Remedies:
    controllers = [owner for owner in service.metadata.owner_references or () if owner.controller]
    is_made = any((owner.api_version, owner.kind) == (INFERENCE_API, "Playground") for owner in controllers)
    return status.OF_PLAYGROUND if is_made else status.OF_SERVICE


def counts(request: Request) -> list[str]:
    """Say how many replicas of a Service that keeps its workload are ready; nothing of one that its spec stops."""
    return [] if is_scaled_to_zero(request.parent.spec) else replica_counts(request)


def _deployment(decided: ServicePlan, observed: ObservedDeployment | None) -> tuple[Json, dict[str, str]]:
    """Build the Deployment and return it with its selector, which keeps what cannot change of an observed one."""
    template, running = pods.single(decided), None
    if observed is not None:
        named = (decided.spec.workload_template.worker_template.get("spec") or {}).get("serviceAccountName")
        account = "" if named else account_in_place(observed, observed.spec.template.spec.service_account_name)
        if account:
            template["spec"]["serviceAccountName"] = account
        running = observed.spec.selector.match_labels
    selector = kept_selector(decided.selector, running, template["metadata"]["labels"])
    return deployment(decided, template, selector), selector


def _conflict(workload: Json) -> Cause | None:
    """Return a cause if the user's template and the model's parts conflict, for example in a mount path."""
    clash = next(iter(clashes(workload["spec"], field.SPEC)), None)
    if clash is None:
        return None
    return Cause(Stage.SPEC, f"the pod template cannot be used: {clash}", ServiceReason.TEMPLATE_CONFLICT)
