"""Parts that the statuses of several kinds share. Source: LZ-5.1, LZ-5.4, LZ-10."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from app.hooks.kept import is_scaled_to_zero, keep_or_stop
from app.hooks.kind import Hooks
from app.hooks.protocol import AnyRequest, Kept, NoObjects, SyncResponse
from app.hooks.readystatus import with_counts
from app.kube import field
from app.kube.base import Int32, Json
from app.kube.conditions import Condition, Conditions
from app.kube.resource import Resource
from app.settings import Settings
from app.workload.readiness.cause import Cause
from app.workload.readiness.waiting import deletion_causes, outstanding, waiting_causes


class LlmazCondition(StrEnum):
    """The condition types of the family's kinds; definitions have ``Ready`` alone."""

    AVAILABLE = "Available"
    """All replicas are ready with the present template."""
    PROGRESSING = "Progressing"
    """Children are being created or changed. Upstream never removes it; only an abort does."""
    READY = "Ready"
    """The one condition all families have; while not True its message lists why."""
    CHILDREN_CREATED = "ChildrenCreated"
    """False while a child is not there, or not as it was asked for, absent otherwise. Its time tells how long."""


class LlmazReason(StrEnum):
    """Reasons that several kinds have."""

    VALID = "Valid"
    INVALID_SPEC = "InvalidSpec"
    """The spec is invalid; running pods are unchanged."""
    ABORT_PROCESSING = "AbortProcessing"
    """A dependency is missing or invalid; running pods are unchanged."""


class Status(msgspec.Struct, rename="camel", omit_defaults=True):
    """Fields of every status of the family."""

    conditions: Annotated[list[Condition], Meta(description="Conditions of the object, by type.")] = []


class ScaledStatus(Status):
    """Fields of the statuses of workloads. A default of 0 would be omitted, and ``replicas`` must not be (LZ-T27)."""

    replicas: Annotated[Int32, Meta(description="Number of existing replicas, ready or not.")] = msgspec.field(
        default_factory=lambda: 0
    )
    selector: Annotated[str, Meta(description="Label selector of the pods that take requests, for an autoscaler.")] = ""


class ServiceStatus(ScaledStatus):
    """The status of a Service, whose ready replicas its Playground tells, too."""

    ready_replicas: Annotated[Int32, Meta(description="Number of replicas, or groups, that are ready.")] = (
        msgspec.field(default_factory=lambda: 0)
    )


def definition_hooks(usable: str) -> Hooks[Any, Status]:
    """Return the hooks of a kind without children, whose status only has its validity.

    ``usable`` is the message of a valid object.
    """

    def invalid(resource: Resource[Any, Status], errors: Sequence[field.Error], now: datetime) -> Status:
        conditions = Conditions(resource.status.conditions, None, now)
        if errors:
            conditions.set(LlmazCondition.READY, False, LlmazReason.INVALID_SPEC, field.aggregate(errors))
        else:
            conditions.set(LlmazCondition.READY, True, LlmazReason.VALID, usable)
        return msgspec.structs.replace(resource.status, conditions=conditions.list())

    def sync(resource: Resource[Any, Status], _: AnyRequest, __: Settings, now: datetime) -> SyncResponse:
        return SyncResponse(status=invalid(resource, (), now), children=[])

    return Hooks(children=NoObjects, related=NoObjects, sync=sync, invalid=invalid)


def invalid(resource: Resource[Any, Any], errors: Sequence[field.Error], now: datetime) -> ScaledStatus:
    return _stopped(resource.status, LlmazReason.INVALID_SPEC, field.aggregate(errors), now)


def aborted(
    resource: Resource[Any, Any], cause: Cause, request: AnyRequest, counts: Sequence[str], now: datetime
) -> SyncResponse:
    """Build the answer for an object whose children stay unchanged, except that ``replicas: 0`` stops them.

    ``counts`` tell how many replicas are ready.
    """
    cause = next(iter(deletion_causes(resource.metadata)), cause)
    stopped = "replicas is 0, so everything is stopped"
    effect = "running pods are left unchanged" if resource.spec.replicas else stopped
    status = _stopped(resource.status, cause.reason, f"{cause.text}; {effect}", now)
    return SyncResponse(status=with_counts(status, counts), children=kept_children(request))


def _stopped(previous: ScaledStatus, reason: str, message: str, now: datetime) -> ScaledStatus:
    """Build the status while children, and the fields copied from them, stay unchanged (LZ-5.4)."""
    conditions = Conditions(previous.conditions, None, now)
    conditions.set(LlmazCondition.PROGRESSING, False, LlmazReason.ABORT_PROCESSING, message)
    conditions.set(LlmazCondition.READY, False, reason, message)
    conditions.remove(LlmazCondition.CHILDREN_CREATED)
    return msgspec.structs.replace(previous, conditions=conditions.list())


def with_notes(message: str, notes: Sequence[str]) -> str:
    return "; ".join([*([message] if message else []), *(f"note: {note}" for note in notes)])


def kept_children(request: AnyRequest) -> list[Kept]:
    """Return the children as observed, scaled to zero if the spec has ``replicas: 0``; the spec may be invalid."""
    return keep_or_stop(request.children, stop=is_scaled_to_zero(request.parent.spec))


def outstanding_causes(
    desired: Sequence[Json], request: AnyRequest, resource: Resource[Any, Any], now: datetime
) -> list[Cause]:
    """Return why the observed children differ from the desired ones.

    Of an object that is being deleted it is that alone.
    """
    if resource.metadata.deletion_timestamp:
        return deletion_causes(resource.metadata)
    return waiting_causes(outstanding(desired, request), resource.status.conditions, now)
