"""Children that an answer desires and that are absent, outdated or being deleted in the cluster, and since when.

Metacontroller reports nothing about a child whose name belongs to another object, and no event follows (MC-3.1). If the
API server refuses a child or an update, the reason is in an event of the parent, which hooks do not see. So a child
that is still missing after a minute is reported. An update is made when the last-applied record is the desired child,
and the number of replicas the desired one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import msgspec
from msgspec import Raw

from app.hooks.protocol import AnyRequest, Applied, InterimTemplate, related_object
from app.kube.base import Json
from app.kube.conditions import Conditions, Transition, seconds_since, since
from app.kube.names import CONTROLLER_UID
from app.kube.objects import ObservedMeta, ObservedObject, ReplicasSpec
from app.limits import CHILD_TIMEOUT_SECONDS, MAX_CAUSES, MAX_COMMAND_CHARACTERS, MAX_QUOTE_CHARACTERS
from app.workload.readiness.cause import Cause, Stage, bounded
from app.workload.readiness.rollout import ROLLING_OUT

RESYNC = 65.0
"""Seconds until the next sync (``resyncAfterSeconds``), because no event announces the timeout."""
_NOT_CREATED = (
    "cannot be created: the API server rejects it, for a quota, a policy, a webhook or an older CRD (see the events of "
    "this object); if there is no such event, another object has that name: see who owns it before you change anything"
)
_CONFLICT = "cannot be created: an object of that name exists, and another owner or nobody controls it"
_LEFT_OVER = (
    "if they exist without an owner, as after a restore, they have the label controller-uid of an earlier parent; this "
    "hands them over and restarts nothing"
)
_GOING = "is being deleted, and is made again once it is gone; if this lasts, a finalizer holds it"
_REFUSED = "cannot be changed and stays as it was: the API server refuses the change (see the events of this object)"
CHILDREN_CREATED = "ChildrenCreated"
"""Condition that is false while children are outstanding, and absent otherwise. Its time is when that began."""
CREATE_REFUSED = "CreateRefused"
"""Reason of ``Ready`` when a child is not created."""
NAME_CONFLICT = "NameConflict"
"""Reason of ``Ready`` when another object is seen under the name of a child that is not created."""
CHANGE_REFUSED = "ChangeRefused"
"""Reason of ``Ready`` when a child stays as it is."""
CHILD_TERMINATING = "ChildTerminating"
"""Reason of ``Ready`` when a child is being deleted, and made again afterwards."""
TERMINATING = "Terminating"
"""Reason of ``Ready`` of an object that is being deleted."""


_WHY_ABSENT = {CREATE_REFUSED: _NOT_CREATED, NAME_CONFLICT: _CONFLICT}


@dataclass(frozen=True, slots=True)
class Outstanding:
    """Children by kind and name, as in ``Service chat``."""

    absent: Sequence[str] = ()
    """Not observed."""
    pending: Sequence[str] = ()
    """Observed, and different from the answer."""
    conflicting: Sequence[str] = ()
    """Not observed, while a related object has that name."""
    going: Sequence[str] = ()
    """Observed, and being deleted."""
    hand_over: str = field(default="", compare=False)
    """The command that makes those that are not observed children of the parent, if they exist without an owner."""

    def __bool__(self) -> bool:
        return bool(self.absent or self.pending or self.conflicting or self.going)


NOTHING = Outstanding()


def outstanding(desired: Sequence[Json], request: AnyRequest) -> Outstanding:
    """Compare the desired children with the observed ones; the result has the order of the answer.

    Metadata is ignored, because other clients write it. So are children without a record, which were just taken over,
    and children that the answer does not have. The number of replicas is the observed one, as other clients write it.
    """
    result, missing = _Lists(), list[Json]()
    for child in desired:
        identity = child["kind"], child["metadata"]["name"]
        current, text = request.observed.get(identity), " ".join(identity)
        if current is None:
            is_taken = _is_taken(child, request)
            (result.conflicting if is_taken else result.absent).append(text)
            missing += () if is_taken else (child,)
        elif current.metadata.deletion_timestamp:
            result.going.append(text)
        elif _is_scaled(child, current) or _is_changed(child, current):
            result.pending.append(text)
    hand_over = _hand_over(missing, request.parent.metadata)
    return replace(result.outstanding(), hand_over=hand_over) if missing else result.outstanding()


def _hand_over(children: Sequence[Json], parent: ObservedMeta) -> str:
    """Return the command that gives the children the label by which Metacontroller finds those of the parent."""
    command, label = f"kubectl label --overwrite --namespace {parent.namespace}", f" {CONTROLLER_UID}={parent.uid}"
    room = MAX_COMMAND_CHARACTERS - len(label)
    for number, child in enumerate(children):
        group, slash, _ = child["apiVersion"].rpartition("/")
        longer = f"{command} {child['kind'].lower()}{'.' if slash else ''}{group}/{child['metadata']['name']}"
        if number and len(longer) > room:
            break
        command = longer
    return f"{command}{label}"


class _Lists(msgspec.Struct):
    absent: list[str] = msgspec.field(default_factory=list)
    pending: list[str] = msgspec.field(default_factory=list)
    conflicting: list[str] = msgspec.field(default_factory=list)
    going: list[str] = msgspec.field(default_factory=list)

    def outstanding(self) -> Outstanding:
        return Outstanding(self.absent, self.pending, self.conflicting, self.going) or NOTHING


def _is_taken(child: Json, request: AnyRequest) -> bool:
    """Report whether a related object, which does not belong to the parent, has the name of a child."""
    parent, kind = request.parent.metadata, f"{child['kind']}.{child['apiVersion']}"
    other = related_object(request.related, kind, child["metadata"]["name"], parent.namespace)
    metadata = getattr(other, "metadata", None)
    owners = getattr(metadata, "owner_references", None) or ()
    if metadata is None or _is_left_behind(metadata):
        return False
    return not any(owner.uid == parent.uid for owner in owners)


def _is_changed(child: Json, current: ObservedObject) -> bool:
    if isinstance(child, Applied) or (record := current.record) is None:
        return False
    return isinstance(child, InterimTemplate) or _substance(child) != _substance(record)


def _is_scaled(child: Json, current: ObservedObject) -> bool:
    """Report whether the answer has another number of replicas than the cluster; beside an autoscaler it has the same.

    A child without a record was just taken over.
    """
    spec = getattr(current, "spec", None)
    if not isinstance(spec, ReplicasSpec):
        return False
    desired, present = sent_replicas(child), 1 if spec.replicas is None else spec.replicas
    return desired not in (None, present) and (isinstance(child, Applied) or current.record is not None)


def sent_replicas(child: Json | None) -> int | None:
    """Return the number of replicas of a child in an answer, whose spec may be encoded; ``None`` if it has none."""
    spec = (child or {}).get("spec")
    if isinstance(spec, Raw):
        return _REPLICAS.decode(spec).replicas
    return spec.get("replicas") if isinstance(spec, dict) else None


_REPLICAS = msgspec.json.Decoder(ReplicasSpec)


def _substance(child: Json) -> Json:
    """Return the fields of a child that only its owner writes."""
    rest = {key: value for key, value in child.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    spec = rest.get("spec")
    if isinstance(spec, dict):
        rest["spec"] = {key: value for key, value in spec.items() if key != "replicas"}
    return rest


def waiting_causes(children: Outstanding, conditions: Iterable[Transition] | None, now: datetime) -> list[Cause]:
    """Return the causes for children that are outstanding since the time that the last conditions have."""
    waited = since(conditions, CHILDREN_CREATED, "False")
    return [
        *absent_causes(children.absent, waited, now),
        *absent_causes(children.conflicting, waited, now, NAME_CONFLICT),
        *change_causes(children.pending, waited, now),
        *(Cause(Stage.STARTING, f"{child} {_GOING}", CHILD_TERMINATING) for child in children.going),
        *_left_over(children.hand_over, waited, now),
    ]


def left_behind(child: Json, found: ObservedMeta, parent: ObservedMeta) -> str:
    """Return what to do about an object with a child's name that an earlier parent left; empty for another's."""
    if not _is_left_behind(found):
        return ""
    command = _hand_over([child], parent)
    return f"has no owner and the label {CONTROLLER_UID} of an earlier parent, as after a restore: {command}"


def _is_left_behind(found: ObservedMeta) -> bool:
    return CONTROLLER_UID in (found.labels or {}) and not any(o.controller for o in found.owner_references or ())


def missing_causes(children: Sequence[Json], parent: ObservedMeta, since: str | None, now: datetime) -> list[Cause]:
    """Return the causes of children that are not observed, of whom nothing but kind and name need be known."""
    absent = [f"{child['kind']} {child['metadata']['name']}" for child in children]
    hand_over = _hand_over(children, parent) if children else ""
    return [*absent_causes(absent, since, now), *_left_over(hand_over, since, now)]


def _left_over(hand_over: str, waited: str | None, now: datetime) -> list[Cause]:
    """Return what to do if absent children exist without an owner, which hooks do not see."""
    if not hand_over or not timed_out(waited, now):
        return []
    return [Cause(Stage.SPEC, f"{_LEFT_OVER}: {hand_over}", CREATE_REFUSED)]


def note_children(conditions: Conditions, causes: Sequence[Cause]) -> None:
    """Write the condition whose time tells the next answers since when children are outstanding."""
    waiting = [cause for cause in causes if cause.reason != TERMINATING]
    text = "; ".join(bounded(cause.text, MAX_QUOTE_CHARACTERS) for cause in waiting[:MAX_CAUSES])
    conditions.set_while(waiting, CHILDREN_CREATED, False, waiting[0].reason if waiting else "", text)


def absent_causes(absent: Sequence[str], since: str | None, now: datetime, reason: str = CREATE_REFUSED) -> list[Cause]:
    """Return the causes of absent children, such as ``Service chat``, requested since then (RFC 3339).

    ``since`` is ``None`` for the present answer. The reason is given after a minute, once for all of them.
    """
    if timed_out(since, now) and absent:
        return [Cause(Stage.SPEC, f"{bounded(', '.join(absent), MAX_QUOTE_CHARACTERS)} {_WHY_ABSENT[reason]}", reason)]
    return [Cause(Stage.STARTING, f"{child} is being created", "Creating") for child in absent]


def deletion_causes(metadata: ObservedMeta) -> list[Cause]:
    """Return the cause of an object that was deleted, and exists until its finalizers are removed."""
    if not metadata.deletion_timestamp:
        return []
    names = bounded(", ".join(metadata.finalizers or ()), MAX_QUOTE_CHARACTERS)
    return [Cause(Stage.SPEC, f"this object is being deleted and waits for its finalizers: {names}", TERMINATING)]


def timed_out(since: str | None, now: datetime) -> bool:
    """Report whether a child desired since then should exist by now."""
    age = seconds_since(since, now)
    return age is not None and age > CHILD_TIMEOUT_SECONDS


def change_causes(pending: Iterable[str], since: str | None, now: datetime) -> list[Cause]:
    """Return a cause for each outdated child; ``since`` as above."""
    if timed_out(since, now):
        return [Cause(Stage.SPEC, f"{child} {_REFUSED}", CHANGE_REFUSED) for child in pending]
    return [Cause(Stage.STARTING, "the last change is about to be rolled out", ROLLING_OUT) for _ in pending]
