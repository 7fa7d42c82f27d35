"""Children that an answer desires and that are absent or outdated in the cluster, and since when.

Metacontroller reports nothing about a child whose name belongs to another object, and no event follows (MC-3.1). If the
API server refuses a child or an update, the reason is in an event of the parent, which hooks do not see. So a child
that is still missing after a minute is reported. An update is made when the last-applied record is the desired child.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.hooks.protocol import AnyRequest, Applied, InterimTemplate
from app.kube.base import Json
from app.kube.conditions import seconds_since
from app.kube.objects import ObservedMeta
from app.limits import CHILD_TIMEOUT_SECONDS, MAX_QUOTE_CHARACTERS
from app.workload.cause import Cause, Stage, bounded
from app.workload.rollout import ROLLING_OUT

RESYNC = 65.0
"""Seconds until the next sync (``resyncAfterSeconds``), because no event announces the timeout."""
_NOT_CREATED = (
    "cannot be created: another object has that name (delete or rename it), or the API server rejects it (see the "
    "events of this object)"
)
_REFUSED = "cannot be changed and stays as it was: the API server refuses the change (see the events of this object)"
NAME_CONFLICT = "NameConflict"
"""Reason of ``Ready`` when a child is not created."""
CHANGE_REFUSED = "ChangeRefused"
"""Reason of ``Ready`` when a child stays as it is."""
TERMINATING = "Terminating"
"""Reason of ``Ready`` of an object that is being deleted."""


@dataclass(frozen=True, slots=True)
class Outstanding:
    """Children by kind and name, as in ``Service chat``."""

    absent: Sequence[str] = ()
    """Not observed."""
    pending: Sequence[str] = ()
    """Observed, and different from the answer."""

    def __bool__(self) -> bool:
        return bool(self.absent or self.pending)


NOTHING = Outstanding()


def outstanding(desired: Sequence[Json], request: AnyRequest) -> Outstanding:
    """Compare the desired children with the observed ones; the result has the order of the answer.

    Metadata and ``spec.replicas`` are ignored, because other clients write them. So are children without a record,
    which were just taken over, and children that the answer does not have.
    """
    absent, pending = [], []
    for child in desired:
        identity = child["kind"], child["metadata"]["name"]
        current = request.observed.get(identity)
        if current is None:
            absent.append(" ".join(identity))
        elif isinstance(child, Applied) or (record := current.record) is None:
            continue
        elif isinstance(child, InterimTemplate) or _substance(child) != _substance(record):
            pending.append(" ".join(identity))
    return Outstanding(absent, pending) if absent or pending else NOTHING


def _substance(child: Json) -> Json:
    """Return the fields of a child that only its owner writes."""
    rest = {key: value for key, value in child.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    spec = rest.get("spec")
    if isinstance(spec, dict):
        rest["spec"] = {key: value for key, value in spec.items() if key != "replicas"}
    return rest


def waiting_causes(found: Outstanding, since: str | None, now: datetime) -> list[Cause]:
    """Return the causes for children that are outstanding since then, in RFC 3339; ``None`` for the present answer."""
    return [*absent_causes(found.absent, since, now), *change_causes(found.pending, since, now)]


def absent_causes(absent: Sequence[str], since: str | None, now: datetime) -> list[Cause]:
    """Return a cause for each absent child, such as ``Service chat``; ``since`` as above."""
    if timed_out(since, now):
        return [Cause(Stage.SPEC, f"{child} {_NOT_CREATED}", NAME_CONFLICT) for child in absent]
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
