"""The sync hook of Playground. Source: LZ-4.1, LZ-4.5 and LZ-5.2."""

from datetime import datetime

from app.hooks.kept import is_scaled_to_zero, with_kept_templates
from app.hooks.protocol import SyncResponse, get
from app.hooks.template import inputs
from app.llmaz.names import FAMILY, INFERENCE_API
from app.llmaz.playground import status
from app.llmaz.playground.children import horizontal_pod_autoscaler, service
from app.llmaz.playground.observed import PlaygroundChildren, PlaygroundRelated, Request, template_inputs
from app.llmaz.playground.plan import plan
from app.llmaz.playground.types import Playground, PlaygroundReason
from app.llmaz.status import aborted, outstanding_causes
from app.settings import Settings
from app.workload.autoscaler import scaling_state
from app.workload.readiness.cause import Cause, Stage
from app.workload.readiness.waiting import RESYNC, left_behind, sent_replicas


def sync(playground: Playground, request: Request, settings: Settings, now: datetime) -> SyncResponse:
    """Return the inference Service and the autoscaler, or the observed children if these cannot be decided."""
    related = request.related
    decided = _conflict(playground, request.children, related) or plan(playground, related, settings)
    if isinstance(decided, Cause):
        return aborted(playground, decided, request, counts(request), now)
    autoscaler = horizontal_pod_autoscaler(playground, decided)
    built = service(playground, decided)
    parts = [built, *([autoscaler] if autoscaler else [])]
    children = with_kept_templates(parts, request, inputs(request.parent, FAMILY, template_inputs(request), settings))
    metadata, outstanding = playground.metadata, outstanding_causes(children, request, playground, now)
    observed = get(request.children.services, metadata.name, metadata.namespace)
    scaling = scaling_state(get(request.children.autoscalers, metadata.name, metadata.namespace), now)
    notes = [*decided.notes, *([scaling.idle] if scaling.idle else [])]
    return SyncResponse(
        status=status.build_status(
            playground.status, observed, outstanding, scaling.cause, notes, now, wanted=sent_replicas(built)
        ),
        children=children,
        resync_after_seconds=RESYNC if outstanding or scaling.recent else None,
    )


def counts(request: Request) -> list[str]:
    """Say how many replicas of a Playground that keeps its Service are ready; nothing of one that its spec stops."""
    metadata = request.parent.metadata
    observed = get(request.children.services, metadata.name, metadata.namespace)
    return [] if is_scaled_to_zero(request.parent.spec) else status.counts(observed)


def _conflict(playground: Playground, children: PlaygroundChildren, related: PlaygroundRelated) -> Cause | None:
    """Return a cause if another object, or none, controls the Service of this name (row 1)."""
    metadata = playground.metadata
    if get(children.services, metadata.name, metadata.namespace) is not None:
        return None
    other = get(related.services, metadata.name, metadata.namespace)
    if other is None or any(o.controller and o.uid == metadata.uid for o in other.metadata.owner_references or ()):
        return None
    desired = {"apiVersion": INFERENCE_API, "kind": "Service", "metadata": {"name": metadata.name}}
    restored = left_behind(desired, other.metadata, metadata)
    foreign = "exists and does not belong to this Playground; delete it, or rename the Playground"
    text = f"Service {metadata.name} {restored or foreign}"
    return Cause(Stage.SPEC, text, PlaygroundReason.SERVICE_CONFLICT)
