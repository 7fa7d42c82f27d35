"""The hooks of Service. Source: LZ-4.3 to LZ-4.9, LZ-5.3, LZ-9."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

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
from app.llmaz.status import aborted, kept, outstanding_causes
from app.settings import Settings
from app.workload.cause import Cause, Stage
from app.workload.parts import account_in_place
from app.workload.waiting import RESYNC


def sync(service: Service, request: Request, settings: Settings, now: datetime) -> SyncResponse:
    """The workload and the Service before it; or everything as it is, when they cannot be known."""
    related = request.related or Related()
    decided = plan(service, request.children, related, settings)
    if isinstance(decided, Cause):
        return _aborted(service, decided, request, now)
    made = _made(decided, _kept(decided, request.children))
    if isinstance(made, Cause):
        return _aborted(service, made, request, now)
    ready = was_ready(service.status.conditions, service.metadata.generation)
    observed = _observed(decided, request.children, made.selector, was_ready=ready)
    children = as_json([*made.children, *gateway.objects(decided, request.children, settings)])
    waited = _outstanding(service, children, request, now)
    notes = [*decided.notes, *gateway.notes(decided, request.children, related)]
    return SyncResponse(
        status=status.judged(service.status, observed, related.pods, waited, notes, now),
        children=children,
        resync_after_seconds=RESYNC if waited else None,
    )


def _aborted(service: Service, cause: Cause, request: Request, now: datetime) -> SyncResponse:
    judged = aborted(service.status, cause, now, replicas=service.spec.replicas)
    return SyncResponse(status=judged, children=kept(request))


@dataclass(frozen=True, slots=True)
class Made:
    """The children of a plan, and what finds the pods that take requests."""

    children: list[Any]
    selector: dict[str, str]


@dataclass(frozen=True, slots=True)
class Kept:
    """What a Deployment keeps from the cluster."""

    selector: dict[str, str]
    """The observed selector, which cannot change; nothing where there is none."""
    account: str
    """The account of pods that no longer name one; empty to name none."""


def _made(decided: Plan, kept: Kept) -> Made | Cause:
    """The children, or what keeps them from being made."""
    workload, selector = _BUILDERS[decided.workload](decided, kept)
    conflict = _conflict(workload)
    if conflict is not None:
        return conflict
    return Made([workload, load_balancing_service(decided, selector)], selector)


Built = tuple[Json, dict[str, str]]
"""A workload, and what finds its pods that take requests."""


def _deployment(decided: Plan, kept: Kept) -> Built:
    template = pods.single(decided)
    if kept.account:
        template["spec"]["serviceAccountName"] = kept.account
    selector = kept_selector(decided.selector, kept.selector, template["metadata"]["labels"])
    return deployment(decided, template, selector), selector


def _leader_worker_set(decided: Plan, _kept: Kept) -> Built:
    built = leader_worker_set(decided, pods.worker(decided), pods.leader(decided))
    return built, decided.selector


_BUILDERS = {Workload.DEPLOYMENT: _deployment, Workload.LEADER_WORKER_SET: _leader_worker_set}


def _kept(decided: Plan, children: Children) -> Kept:
    observed = get(children.deployments, decided.name, decided.namespace)
    if observed is None:
        return Kept({}, "")
    named = (decided.template.worker_template.get("spec") or {}).get("serviceAccountName")
    account = "" if named else account_in_place(observed, observed.spec.template.spec.service_account_name)
    return Kept(observed.spec.selector.match_labels or {}, account)


def _observed(decided: Plan, children: Children, selector: dict[str, str], *, was_ready: bool) -> status.WorkloadState:
    if decided.workload is Workload.DEPLOYMENT:
        deployed = get(children.deployments, decided.name, decided.namespace)
        return status.of_deployment(decided.name, deployed, selector, was_ready=was_ready)
    return status.of_group(decided.name, get(children.leaderworkersets, decided.name, decided.namespace))


def _conflict(workload: Json) -> Cause | None:
    """What the user's template and the model put into it cannot both have, such as one mount path."""
    found = next(clashes(workload["spec"], field.Path("spec")), None)
    return (
        None
        if found is None
        else Cause(Stage.SPEC, f"the pod template cannot be used: {found}", Reason.TEMPLATE_CONFLICT)
    )


def _outstanding(service: Service, made: list[Json], request: Request, now: datetime) -> list[Cause]:
    """Children that are not there, or not as asked for; of a Service that goes none is asked for."""
    if service.metadata.deletion_timestamp:
        return []
    return outstanding_causes(made, request, service.status.conditions, now)
