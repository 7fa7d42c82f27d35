"""What ``Ready`` says, for programs that wait for any resource by the rules of kstatus, as Helm and Flux do.

For them a false ``Ready`` is something to wait for, whatever its reason. So a status also has ``Stalled`` while waiting
cannot help, and of an object that was stopped on purpose ``Stopped`` in place of ``Ready``. Argo CD's health check has
the same two tables.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from app.kube.base import Json
from app.kube.conditions import MESSAGE_MAX, find, rfc3339

StatusT = TypeVar("StatusT")

READY, STALLED, STOPPED = "Ready", "Stalled", "Stopped"
CAUSES = (READY, "ChildrenCreated", "PodsReady")
"""Conditions whose reasons are looked up: those of an LLMInferenceService's ``Ready`` are KServe's."""

WAITS_NOTE = "note: a newer pod template waits"
KEEPS_NO_NOTE = "note: the API server of this cluster keeps no"
"""Beginnings of the notes at the end of ``Ready``, which no kind writes itself."""

RESTING = frozenset({"ManuallyScaledToZero", "Stopped", "Suspended"})
"""Reasons of ``Ready`` of what was stopped on purpose."""

_SPEC = {
    "ArgumentNotRenderable",
    "BackendRuntimeInvalid",
    "CombineBaseError",
    "DeploymentPaused",
    "FormatNotServable",
    "GlobalConfigInvalid",
    "InvalidFileSet",
    "InvalidGPUSharing",
    "InvalidSettings",
    "InvalidSource",
    "InvalidSpec",
    "KindNotInstalled",
    "LeaderWorkerSetRequired",
    "ModelInvalid",
    "ModelNotLoadable",
    "NoModelNamed",
    "OperatorConfigInvalid",
    "ParallelismContradicted",
    "PresetNotFound",
    "ReconcileScalingError",
    "SourceNotAllowed",
    "SourceNotServable",
    "TemplateConflict",
    "TensorParallelSize",
}
_REFUSED = {
    "ChangeRefused",
    "CreateRefused",
    "FailedCreate",
    "NameConflict",
    "QuotaExceeded",
    "ReplicaSetCreateError",
    "ServiceConflict",
}
_MODEL = {"ClaimLost", "CopyFailed", "DownloadFailed", "IntegrityCheckFailed", "JobFailed"}
_PODS = {
    "ContainerCannotRun",
    "CrashLoopBackOff",
    "CreateContainerError",
    "ErrImageNeverPull",
    "ImageInspectError",
    "ImagePullBackOff",
    "InitContainerFailed",
    "InvalidImageName",
    "OOMKilled",
    "PodFailed",
    "ProgressDeadlineExceeded",
    "SignatureValidationFailed",
    "StartError",
}
LASTING = frozenset(_SPEC | _REFUSED | _MODEL | _PODS)
"""Reasons that a person has to mend. What is missing is none of them: it may be applied a moment later."""


def _conditions(status: Any) -> list[Any]:
    conditions: list[Any] = status.conditions
    return conditions


def judged(status: StatusT, now: datetime) -> StatusT:
    """Return a status with ``Stalled`` or ``Stopped`` if its ``Ready`` asks for one, and else with neither."""
    before = _conditions(status)
    ready, rest = find(before, READY), [c for c in before if c.type not in (STALLED, STOPPED)]
    if ready is not None and ready.status == "False" and ready.reason in RESTING:
        after = [*(c for c in rest if c is not ready), _as(STOPPED, ready, ready, before, now)]
    elif ready is not None and ready.status != "True" and (cause := _lasting(rest)) is not None:
        after = [*rest, _as(STALLED, ready, cause, before, now)]
    else:
        after = rest
    return status if after == before else msgspec.structs.replace(status, conditions=after)  # type: ignore[type-var]  # a struct


def with_counts(status: StatusT, counts: Sequence[str]) -> StatusT:
    """Return a new status with numbers of replicas at the end of the message of its ``Ready``."""
    before = _conditions(status)
    if not counts:
        return status
    after = [_counted(c, counts) if c.type == READY and c.status == "False" else c for c in before]
    return msgspec.structs.replace(status, conditions=after)  # type: ignore[type-var]  # a struct


def _counted(condition: Any, counts: Sequence[str]) -> Any:
    text = "; ".join(counts)
    message = condition.message[: MESSAGE_MAX - len(text) - len("; ")]
    return msgspec.structs.replace(condition, message=f"{message}; {text}")


def with_times(status: StatusT, before: StatusT) -> StatusT:
    """Return a status in which conditions that are as they were ``before`` have the time that they had then."""
    earlier = _conditions(before)
    after = [_timed(c, find(earlier, c.type)) for c in _conditions(status)]
    return msgspec.structs.replace(status, conditions=after)  # type: ignore[type-var]  # a struct


def _timed(condition: Any, before: Any) -> Any:
    if before is None or before.status != condition.status or not before.last_transition_time:
        return condition
    return msgspec.structs.replace(condition, last_transition_time=before.last_transition_time)


def noted(status: object, notes: Sequence[str]) -> Json:
    """Return the status with notes at the end of the message of its ``Ready``."""
    result: Json = msgspec.to_builtins(status)
    text = "; ".join(notes)
    for condition in result.get("conditions") or []:
        if condition["type"] in (READY, STOPPED):
            message = _without_notes(condition.get("message", ""))[: MESSAGE_MAX - len(text) - len("; ")]
            condition["message"] = "; ".join(filter(None, [message, text]))
    return result


def unnoted(status: StatusT) -> StatusT:
    """Return the last status as the kind wrote it, with which it compares the next one."""
    before = _conditions(status)
    if not any(c.message and "note: " in c.message for c in before):
        return status
    after = [_unnoted(c) if c.type in (READY, STOPPED, STALLED) else c for c in before]
    return msgspec.structs.replace(status, conditions=after)  # type: ignore[type-var]  # a struct


def _unnoted(condition: Any) -> Any:
    return msgspec.structs.replace(condition, message=_without_notes(condition.message))


def _without_notes(message: str) -> str:
    for beginning in (WAITS_NOTE, KEEPS_NO_NOTE):
        message = message.partition(beginning)[0].removesuffix("; ")
    return message


def ready_of(conditions: Iterable[Json]) -> Json:
    """Return ``Ready`` of a status; of a stopped object, which has none, what ``Stopped`` says about it."""
    by_type = {condition.get("type"): condition for condition in conditions}
    stopped = by_type.get(STOPPED)
    return by_type.get(READY) or ({**stopped, "type": READY, "status": "False"} if stopped else {})


def _lasting(conditions: list[Any]) -> Any:
    causes = (find(conditions, type_) for type_ in CAUSES)
    return next((c for c in causes if c is not None and c.status == "False" and c.reason in LASTING), None)


def _as(type_: str, ready: Any, cause: Any, before: list[Any], now: datetime) -> Any:
    """Return a true condition with a cause's reason and the message of ``Ready``."""
    old = find(before, type_)
    since = old.last_transition_time if old is not None and old.status == "True" else rfc3339(now)
    changes = {"type": type_, "status": "True", "reason": cause.reason, "last_transition_time": since}
    return msgspec.structs.replace(ready, **changes)
