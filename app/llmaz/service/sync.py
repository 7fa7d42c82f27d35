"""The hooks of Service. Source: llmaz spec 4.3 to 4.9, 5.3 and 9."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from app.hooks.keep import keep
from app.hooks.protocol import SyncRequest, SyncResponse, every, one
from app.kube import field
from app.kube.resource import Resource
from app.llmaz.absent import missing_children
from app.llmaz.embedded import Json
from app.llmaz.names import load_balancer
from app.llmaz.service import status, template
from app.llmaz.service.deployment import deployment, kept_selector
from app.llmaz.service.leaderworkerset import leader_worker_set
from app.llmaz.service.plan import Plan, Workload, plan
from app.llmaz.service.related import Children, Related
from app.llmaz.service.service import load_balancing_service
from app.llmaz.service.types import Reason, ServiceSpec, ServiceStatus
from app.llmaz.service.validation import Service
from app.settings import Settings
from app.workload import sendable
from app.workload.absent import RESYNC
from app.workload.cause import Cause, Stage

Request = SyncRequest[Children, Related]


def sync(service: Service, request: Request, settings: Settings, now: datetime) -> SyncResponse:
    """The workload and the Service before it; or everything as it is, when they cannot be known."""
    related = request.related or Related()
    decided = plan(service, request.children, related, settings)
    if isinstance(decided, Cause):
        return _aborted(service, decided, request, now)
    workload, selector, observed = _BUILDERS[decided.workload](decided, request.children)
    conflict = _conflict(workload)
    if conflict is not None:
        return _aborted(service, conflict, request, now)
    missing = _missing(service, decided, request.children, now)
    return SyncResponse(
        status=status.judged(service.status, observed, every(related.pods), missing, decided.notes, now),
        children=[workload, load_balancing_service(decided, selector)],
        resync_after_seconds=RESYNC if missing else None,
    )


def invalid(
    service: Resource[ServiceSpec | None, ServiceStatus],  # type: ignore[type-var]
    errors: Sequence[field.Error],
    now: datetime,
) -> ServiceStatus:
    return status.invalid(service.status, errors, now)


def _aborted(service: Service, cause: Cause, request: Request, now: datetime) -> SyncResponse:
    return SyncResponse(status=status.aborted(service.status, cause, now), children=keep(request.children))


Built = tuple[Json, dict[str, str], status.Observed]
"""A workload, what finds its pods that take requests, and how it was observed."""


def _deployment(decided: Plan, children: Children) -> Built:
    observed = one(children.deployments, decided.name, decided.namespace)
    pods = template.single(decided)
    selector = kept_selector(decided, pods, observed)
    return deployment(decided, pods, selector), selector, status.of_deployment(observed, selector)


def _leader_worker_set(decided: Plan, children: Children) -> Built:
    observed = one(children.leaderworkersets, decided.name, decided.namespace)
    built = leader_worker_set(decided, template.worker(decided), template.leader(decided))
    return built, decided.selector, status.of_group(observed)


_BUILDERS = {Workload.DEPLOYMENT: _deployment, Workload.LEADER_WORKER_SET: _leader_worker_set}


def _conflict(workload: dict[str, Any]) -> Cause | None:
    """What the user's template and the model put into it cannot both have, such as one mount path."""
    found = next(sendable.check(workload["spec"], field.Path("spec")), None)
    return None if found is None else Cause(Stage.SPEC, f"the pods cannot be made: {found}", Reason.TEMPLATE_CONFLICT)


def _missing(service: Service, decided: Plan, children: Children, now: datetime) -> list[Cause]:
    """Children that are asked for and not there."""
    groups = {Workload.DEPLOYMENT: children.deployments, Workload.LEADER_WORKER_SET: children.leaderworkersets}
    wanted = [
        (decided.workload.value, groups[decided.workload], decided.name),
        ("Service", children.services, load_balancer(decided.name)),
    ]
    absent = [f"{kind} {name}" for kind, group, name in wanted if one(group, name, decided.namespace) is None]
    return missing_children(absent, service.status.conditions, now)
