"""The status of a Model: phase, conditions, and why it is not ready (LK-2.3 to LK-2.9)."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from app.hooks.readystatus import judged
from app.kube import field, quantity, resource
from app.kube.base import Json
from app.kube.conditions import Conditions, is_true, rfc3339, seconds_since, since
from app.kube.field import SPEC
from app.kube.objects import ObservedClaim, ObservedJob, ObservedPod
from app.llmkube.inferenceservice.types import InferenceServiceStatus
from app.llmkube.model.observed import DownloadJob, ObservedNode, failed_at, refreshed, report, wrong_sha256
from app.llmkube.model.plan import ModelPlan
from app.llmkube.model.types import Model, ModelCondition, ModelPhase, ModelReason, ModelSpec, ModelStatus
from app.llmkube.names import attempt_name
from app.llmkube.source import SOURCE, SourceClass, recorded_key
from app.settings import variable_name
from app.workload.readiness.cause import Cause, Stage
from app.workload.readiness.pods import failures
from app.workload.readiness.ready import claim_cause, job_causes, ordered, ready_message, ready_reason
from app.workload.readiness.waiting import RESYNC, deletion_causes, missing_causes, timed_out

WATCH_SECONDS = 15
CLAIM_MISSING_SECONDS = 30
CLAIM_PENDING_SECONDS = 10
MOUNT_SECONDS = 120
"""Maximum time that a scheduled pod waits for its volumes; after it the file to copy is missing."""


class ModelObservation(msgspec.Struct, frozen=True):
    job: DownloadJob | None
    """The current Job; one that is being deleted counts as absent."""
    attempt: int
    """Number of Jobs for this file, the current one included."""
    pods: Sequence[ObservedPod]
    """Pods of that Job; empty where pods are not watched."""
    serving: Sequence[ObservedPod]
    """Pods of services that download the Model's file themselves: when it changes (``OnChange``), or all of them."""
    claim: ObservedClaim | None
    binds_late: bool
    """The source's claim gets its volume with its first pod (``WaitForFirstConsumer``)."""
    by_first_pod: bool
    """True if that pod downloads, without a Job."""
    nodes: Sequence[ObservedNode] | None
    """All nodes; ``None`` where they are not watched."""
    problem: Cause | None = None
    notes: Sequence[str] = ()
    """Further sentences of the message of ``Ready``."""


class PhaseOutcome(msgspec.Struct, frozen=True):
    phase: ModelPhase
    reason: ModelReason
    message: str
    causes: tuple[Cause, ...] = ()
    resync: float | None = None


def outcome(plan: ModelPlan, observed: ModelObservation, now: datetime) -> PhaseOutcome:
    if problem := observed.problem:
        return PhaseOutcome(ModelPhase.FAILED, ModelReason(problem.reason), problem.text, (problem,))
    if plan.source.kind is SourceClass.PVC:
        return _claim_outcome(plan, observed)
    if plan.download is not None and observed.by_first_pod:
        return _first_pod_outcome(plan, observed, now)
    if plan.download is not None:
        return _job_outcome(plan, observed, now)
    if plan.source.kind is SourceClass.REPOSITORY:
        message = f"the serving runtime fetches {plan.source.repository} when it starts"
        return _ready(ModelReason.RUNTIME_RESOLVED, message)
    if not plan.model.spec.on_metal:
        return _ready(ModelReason.WORKLOAD_RESOLVED, "each pod fetches the file when it starts")
    if plan.source.kind is SourceClass.LOCAL:
        return _ready(ModelReason.METAL_AGENT_MANAGED, "the metal agent opens the file on its own disk")
    return _ready(ModelReason.WORKLOAD_RESOLVED, "the metal agent fetches the file into its own store")


def _ready(reason: ModelReason, message: str) -> PhaseOutcome:
    return PhaseOutcome(ModelPhase.READY, reason, message)


def _claim_outcome(plan: ModelPlan, observed: ModelObservation) -> PhaseOutcome:
    """Return the outcome of a pvc source. Its claim needs a volume, unless it gets one with its first pod (LK-T-20)."""
    name, claim = plan.source.claim, observed.claim
    cause = claim_cause(name, claim)
    if claim is None and cause is not None:
        message = f"PersistentVolumeClaim {name} does not exist in namespace {plan.model.metadata.namespace}"
        return PhaseOutcome(ModelPhase.FAILED, ModelReason.PVC_NOT_FOUND, message, (cause,), CLAIM_MISSING_SECONDS)
    if cause is None:
        return _ready(ModelReason.PVC_MODEL_READY, f"the model is on PersistentVolumeClaim {name}")
    phase = claim.status.phase if claim is not None else ""
    if observed.binds_late and phase in ("", "Pending"):
        message = f"PersistentVolumeClaim {name} gets its volume with the first pod that uses it"
        return _ready(ModelReason.PVC_MODEL_READY, message)
    message = f"PersistentVolumeClaim {name} is {phase or 'new'}, not Bound"
    return PhaseOutcome(ModelPhase.PENDING, ModelReason.PVC_NOT_BOUND, message, (cause,), CLAIM_PENDING_SECONDS)


def _first_pod_outcome(plan: ModelPlan, observed: ModelObservation, now: datetime) -> PhaseOutcome:
    """Return the outcome of a Model whose claim is filled by the first pod that mounts it: it only needs the claim."""
    claim = observed.claim
    if claim is None and plan.makes_claim:
        causes = tuple(_absent([_claim(plan)], plan, now))
        return PhaseOutcome(_busy(plan), _started(plan), ready_message(causes), causes, RESYNC)
    cause = claim_cause(plan.claim, claim)
    if cause is not None and claim is not None and claim.status.phase in ("", "Pending"):
        message = (
            f"the first pod of a service fetches the file onto {plan.claim}, which gets its volume where that runs"
        )
        return _ready(ModelReason.WORKLOAD_RESOLVED, message)
    if cause is None:
        return _ready(ModelReason.WORKLOAD_RESOLVED, f"each pod fetches the file onto {plan.claim} unless it is there")
    return PhaseOutcome(ModelPhase.PENDING, ModelReason.PVC_NOT_BOUND, cause.text, (cause,), CLAIM_PENDING_SECONDS)


def _job_outcome(plan: ModelPlan, observed: ModelObservation, now: datetime) -> PhaseOutcome:
    job = observed.job
    missing = [_claim(plan)] if plan.makes_claim and observed.claim is None else []
    if job is None:
        desired = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": attempt_name(plan.job, observed.attempt)},
        }
        causes = tuple(_absent([desired, *missing], plan, now))
        return PhaseOutcome(_busy(plan), _started(plan), ready_message(causes), causes, RESYNC)
    if is_true(job.status.conditions, "Complete"):
        return _fetched(plan, job, observed.claim, _absent(missing, plan, now))
    if failed_at(job) is not None:
        causes = tuple(job_causes(job, observed.pods))
        reason = ModelReason.COPY_FAILED if plan.copies else ModelReason.DOWNLOAD_FAILED
        if wrong_sha256(job, observed.pods):
            reason = ModelReason.INTEGRITY_CHECK_FAILED
        wait = max(1.0, pause(observed.attempt) - failure_age(job, plan.model.status, now))
        return PhaseOutcome(ModelPhase.FAILED, reason, ready_message(causes), causes, wait)
    if plan.copies and cannot_mount(observed.pods, now):
        text = f"the node has no file {plan.source.path}: Job {job.metadata.name} cannot mount it"
        cause = Cause(Stage.MODEL, text, ModelReason.COPY_FAILED)
        return PhaseOutcome(ModelPhase.FAILED, ModelReason.COPY_FAILED, text, (cause,), WATCH_SECONDS)
    doing = "copies" if plan.copies else "downloads"
    running = Cause(Stage.MODEL, f"Job {job.metadata.name} {doing} the file", _started(plan))
    causes = (*last_failure(observed.pods), *_absent(missing, plan, now))
    causes += (*_held_up(plan, observed, job), *_without_pods(job, now))
    if all(cause.stage in (Stage.MODEL, Stage.STARTING) for cause in causes):  # else it is held up
        causes = (running, *causes)
    return PhaseOutcome(_busy(plan), _started(plan), ready_message(causes), causes, WATCH_SECONDS)


def _fetched(plan: ModelPlan, job: ObservedJob, claim: ObservedClaim | None, absent: Sequence[Cause]) -> PhaseOutcome:
    """Return the outcome of a Job that has completed: its file is where the claim still has its volume."""
    if absent:
        return PhaseOutcome(_busy(plan), _started(plan), ready_message(absent), tuple(absent), RESYNC)
    cause = claim_cause(plan.claim, claim)
    if cause is None:
        return _ready(ModelReason.MODEL_READY, f"Job {job.metadata.name} put the file onto {plan.claim}")
    if plan.makes_claim and cause.reason == "ClaimLost":
        cause = replace(cause, text=f"{cause.text}; once it is deleted, another one is made and the file fetched again")
    return PhaseOutcome(ModelPhase.PENDING, ModelReason.PVC_NOT_BOUND, cause.text, (cause,), CLAIM_PENDING_SECONDS)


def _held_up(plan: ModelPlan, observed: ModelObservation, job: ObservedJob) -> list[Cause]:
    """Return the causes of the Job's claim and pods. A claim may only wait for its pod, which waits for another reason.

    (``WaitForFirstConsumer``: whether a claim does is known from its class, which is not read for a Job's claim.)
    """
    causes, claim = [_with_pull_secrets(cause) for cause in job_causes(job, observed.pods)], observed.claim
    unbound = claim_cause(plan.claim, claim) if claim is not None else None
    explained = any(cause.stage not in (Stage.STARTING, Stage.CLAIM) for cause in causes)
    waits = claim is not None and claim.status.phase in ("", "Pending")
    return causes if unbound is None or (waits and explained) else [unbound, *causes]


def _with_pull_secrets(cause: Cause) -> Cause:
    """Return the cause of an image that a Job cannot pull with what its operator can set."""
    if cause.stage is not Stage.IMAGE:
        return cause
    return replace(cause, text=f"{cause.text}; a private registry needs {variable_name(_PULL_SECRETS)}")


_PULL_SECRETS = "llmkube_download_pull_secrets"


def _claim(plan: ModelPlan) -> Json:
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": plan.claim}}


def _absent(missing: Sequence[Json], plan: ModelPlan, now: datetime) -> list[Cause]:
    requested_at = since(plan.model.status.conditions, ModelCondition.PROGRESSING, "True", (_started(plan),))
    return missing_causes(missing, plan.model.metadata, requested_at, now)


def failure_age(job: ObservedJob, previous: ModelStatus, now: datetime) -> float:
    """Return the seconds since the failure of a Job, or since the condition about it if that is later.

    0 where no condition tells it yet: the present answer does, and the pause begins with it.
    """
    noticed = since(previous.conditions, ModelCondition.DEGRADED, "True")
    if noticed is None:
        return 0.0
    ages = [seconds_since(failed_at(job), now), seconds_since(noticed, now)]
    return min((age for age in ages if age is not None), default=0.0)


def retry_due(job: ObservedJob, attempt: int, previous: ModelStatus, now: datetime) -> bool:
    """Return whether a new Job replaces a failed one, once the failure was in the status."""
    noticed = is_true(previous.conditions, ModelCondition.DEGRADED)
    return failed_at(job) is not None and noticed and failure_age(job, previous, now) >= pause(attempt)


def pause(attempt: int) -> int:
    """Return the seconds between a failed Job and the next: five minutes, doubling up to an hour."""
    return min(300 << min(attempt - 1, 8), 3600)


def _busy(plan: ModelPlan) -> ModelPhase:
    return ModelPhase.COPYING if plan.copies else ModelPhase.DOWNLOADING


def _started(plan: ModelPlan) -> ModelReason:
    return ModelReason.COPY_STARTED if plan.copies else ModelReason.DOWNLOAD_STARTED


# Causes for which a Job has neither completed nor failed: its claim, its pods, or missing pods.


def _without_pods(job: ObservedJob, now: datetime) -> Iterator[Cause]:
    """Yield the cause of a Job without pods, which its counts show; only its events have the reason of a rejection."""
    name, status = job.metadata.name, job.status
    if is_true(status.conditions, "Suspended"):
        yield Cause(Stage.QUOTA, f"Job {name} is suspended: its queue has not admitted it", "JobSuspended")
    elif not (status.active or status.failed or status.succeeded) and timed_out(job.metadata.creation_timestamp, now):
        text = f"Job {name} has no pod: a quota or an admission policy rejects it (the Job's events have the reason)"
        yield Cause(Stage.QUOTA, text, "JobWithoutPods")


def last_failure(pods: Sequence[ObservedPod]) -> Iterator[Cause]:
    ended = [pod for pod in pods if pod.status.phase == "Failed"]
    latest = max(ended, key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name), default=None)
    words = "; ".join(failures(latest)) if latest else ""
    if words:
        yield Cause(Stage.MODEL, f"the last attempt failed: {words}", "AttemptFailed")


def cannot_mount(pods: Sequence[ObservedPod], now: datetime) -> bool:
    """Return whether a scheduled pod waits too long for its containers: a missing hostPath file has no exit code."""
    for pod in pods:
        age = seconds_since(since(pod.status.conditions, "PodScheduled", "True"), now)
        waits = [s.state.waiting for s in pod.status.container_statuses or ()]
        if age is not None and age >= MOUNT_SECONDS and any(w and w.reason == "ContainerCreating" for w in waits):
            return True
    return False


def status(plan: ModelPlan, observed: ModelObservation, outcome: PhaseOutcome, now: datetime) -> ModelStatus:
    """Build the status. Foreign conditions and the metadata of the file are kept."""
    model, previous = plan.model, plan.model.status
    key = recorded_key(plan.source, metal=model.spec.on_metal)
    base = previous if previous.cache_key == key else ModelStatus()
    ready = outcome.phase is ModelPhase.READY
    # A claim's file is located when the claim is usable, and stays so; a download knows its place before it starts.
    has_path = ready or previous.cache_key == key or plan.source.kind is not SourceClass.PVC
    has_path = has_path and outcome.reason is not ModelReason.SOURCE_NOT_ALLOWED
    if plan.source.kind is SourceClass.PVC:
        place, size = plan.source.mounted_path, ""
    else:  # the size as upstream has it: 0 without a Job
        place, size = (plan.download.path, base.size) if plan.download else ("", "0")
    # Until the Job of another source exists, which has the old key among those that it keeps, the key is still needed.
    replaced = plan.download is not None and observed.job is None and previous.cache_key not in ("", key)
    conditions = _conditions(model, outcome, () if observed.problem else observed.notes, now)
    fresh = replace(
        base,
        phase=outcome.phase.value,
        cache_key=previous.cache_key if replaced else key if has_path else "",
        cache_claim=plan.second_claim if has_path else "",
        path=place if has_path else "",
        size=size,
        staged_files=list(plan.source.files) if ready else base.staged_files,
        accelerator_ready=accelerator_ready(plan, observed.nodes) if ready else previous.accelerator_ready,
        conditions=conditions.list(),
    )
    completed = observed.job is not None and is_true(observed.job.status.conditions, "Complete")
    if plan.download is not None and (completed or observed.by_first_pod):
        fresh = _with_report(fresh, observed, refreshes=plan.download.refresh)
    quantization = model.spec.quantization or (fresh.gguf.quantization if fresh.gguf else "")
    return with_last_updated(replace(fresh, quantization=quantization), previous, now)


def _with_report(status: ModelStatus, observed: ModelObservation, *, refreshes: bool) -> ModelStatus:
    known_from_pods = refreshes and status.sha256
    latest = refreshed(observed.serving) or (None if known_from_pods else report(observed.pods))
    if latest is None:
        return status
    same_file = status.sha256 in ("", latest.sha256)
    return replace(
        status,
        size=human_size(latest.size),
        sha256=latest.sha256 or status.sha256,
        source_etag=latest.etag or status.source_etag,
        source_content_length=latest.size,
        gguf=latest.gguf.described() if latest.gguf else status.gguf if same_file else None,
    )


_UNITS = "KMGTPE"


def human_size(size: int) -> str:
    """``1.5 KiB``; bytes below 1024 (LK-2.5)."""
    if size < 1024:
        return f"{size} B"
    value, unit = size / 1024, 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.1f} {_UNITS[unit]}iB"


def _conditions(model: Model, outcome: PhaseOutcome, notes: Sequence[str], now: datetime) -> Conditions:
    """Build upstream's three conditions and ``Ready``, which has the notes. Former ones become False."""
    conditions = Conditions(model.status.conditions, model.metadata.generation, now)
    reason, message = outcome.reason, outcome.message
    ready, failed = outcome.phase is ModelPhase.READY, outcome.phase is ModelPhase.FAILED
    over = (ModelReason.SUPERSEDED, "the Model is ready") if ready else (reason, message)
    states = {
        ModelCondition.AVAILABLE: ready,
        ModelCondition.PROGRESSING: not ready and not failed,
        ModelCondition.DEGRADED: failed,
    }
    for type_, holds in states.items():
        if holds:
            conditions.set(type_, True, reason, message)
        else:
            conditions.update(type_, False, *over)
    if deletion := deletion_causes(model.metadata):
        conditions.set(ModelCondition.READY, False, ModelReason.TERMINATING, ready_message(deletion))
    elif ready:
        conditions.set(ModelCondition.READY, True, reason, "; ".join([message, *notes]))
    else:
        causes = ordered(outcome.causes)
        why = reason if failed else ready_reason(causes)
        conditions.set(ModelCondition.READY, False, why, "; ".join([ready_message(causes), *notes]))
    return conditions


def accelerator_ready(plan: ModelPlan, nodes: Sequence[ObservedNode] | None) -> bool:
    """Return whether a node has the accelerator; true if none is needed, or nodes are not watched (LK-2.8)."""
    if not plan.accelerator_resource or nodes is None:
        return True
    amounts = [str((node.status.capacity or {}).get(plan.accelerator_resource, 0)) for node in nodes]
    return any(quantity.is_quantity(amount) and quantity.parse(amount) > 0 for amount in amounts)


StatusT = TypeVar("StatusT", ModelStatus, InferenceServiceStatus)


def with_last_updated(status: StatusT, previous: StatusT, now: datetime) -> StatusT:
    """Return the status with the time of its last change (LK-5.6); the previous one is as it was stored."""
    unchanged = replace(status, last_updated=previous.last_updated)
    if previous.last_updated and judged(unchanged, now) == previous:
        return unchanged
    return replace(status, last_updated=rfc3339(now))


def invalid(
    model: resource.Resource[ModelSpec | None, ModelStatus], errors: Sequence[field.Error], now: datetime
) -> ModelStatus:
    message = field.aggregate(errors)
    reason = _invalid_reason(errors)
    conditions = Conditions(model.status.conditions, model.metadata.generation, now)
    for type_ in (ModelCondition.AVAILABLE, ModelCondition.PROGRESSING):
        conditions.update(type_, False, reason, message)
    conditions.set(ModelCondition.DEGRADED, True, reason, message)
    conditions.set(ModelCondition.READY, False, ModelReason.INVALID_SPEC, message)
    changed = replace(model.status, phase=ModelPhase.FAILED.value, conditions=conditions.list())
    return with_last_updated(changed, model.status, now)


def _invalid_reason(errors: Sequence[field.Error]) -> ModelReason:
    source = [error for error in errors if error.path == SOURCE]
    if any(error.type is field.ErrorType.FORBIDDEN for error in source):
        return ModelReason.SOURCE_NOT_ALLOWED
    if any(error.path.is_within(SPEC.child(name)) for error in errors for name in ("files", "mmproj")):
        return ModelReason.INVALID_FILE_SET
    return ModelReason.INVALID_SOURCE if source else ModelReason.INVALID_SPEC
