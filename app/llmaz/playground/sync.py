"""The hooks of Playground. Source: LZ-4.1, LZ-4.5 and LZ-5.2."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from app.hooks.protocol import SyncRequest, SyncResponse, one
from app.kube import field
from app.kube.resource import Resource
from app.llmaz.absent import kept, outstanding_causes
from app.llmaz.playground import status
from app.llmaz.playground.hpa import horizontal_pod_autoscaler
from app.llmaz.playground.plan import plan
from app.llmaz.playground.related import Children, Related
from app.llmaz.playground.service import service
from app.llmaz.playground.types import PlaygroundSpec, PlaygroundStatus, Reason
from app.llmaz.playground.validation import Playground
from app.settings import Settings
from app.workload.cause import Cause, Stage
from app.workload.waiting import RESYNC

Request = SyncRequest[Children, Related]


def sync(playground: Playground, request: Request, settings: Settings, now: datetime) -> SyncResponse:
    """The inference Service and the autoscaler; or everything as it is, when they cannot be known."""
    related = request.related or Related()
    decided = _conflict(playground, request.children, related) or plan(playground, related)
    if isinstance(decided, Cause):
        judged = status.aborted(playground.status, decided, now, replicas=playground.spec.replicas)
        return SyncResponse(status=judged, children=kept(request))
    autoscaler = horizontal_pod_autoscaler(decided)
    children = [service(decided), *([autoscaler] if autoscaler else [])]
    deleted, conditions = playground.metadata.deletion_timestamp, playground.status.conditions
    waited = [] if deleted else outstanding_causes(children, request.children, conditions, now)
    observed = one(request.children.services, decided.name, decided.namespace)
    return SyncResponse(
        status=status.judged(playground.status, observed, waited, decided.notes, now),
        children=children,
        resync_after_seconds=RESYNC if waited else None,
    )


def invalid(
    playground: Resource[PlaygroundSpec | None, PlaygroundStatus],
    errors: Sequence[field.Error],
    now: datetime,
) -> PlaygroundStatus:
    return status.invalid(playground.status, errors, now)


def _conflict(playground: Playground, children: Children, related: Related) -> Cause | None:
    """Row 1: a Service of this name that another object controls, or none does. It is never among our children."""
    metadata = playground.metadata
    if one(children.services, metadata.name, metadata.namespace) is not None:
        return None
    other = one(related.services, metadata.name, metadata.namespace)
    if other is None or any(o.controller and o.uid == metadata.uid for o in other.metadata.owner_references or ()):
        return None
    text = f"a Service {metadata.name} exists that is not this Playground's; delete it or choose another name"
    return Cause(Stage.SPEC, text, Reason.SERVICE_CONFLICT)
