"""The sync hook of Model."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from app.hooks.kept import keep, keep_child, with_kept_templates
from app.hooks.protocol import SyncRequest, SyncResponse, get, sorted_values
from app.kube.base import Json
from app.kube.objects import ObservedClaim
from app.llmkube import names, source
from app.llmkube.model import observed
from app.llmkube.model import status as judge
from app.llmkube.model.children import claim, job, keys_to_keep, size_problem
from app.llmkube.model.observed import DownloadJob, ModelChildren, ModelRelated
from app.llmkube.model.plan import ModelPlan, operator_claim, plan
from app.llmkube.model.status import ModelObservation
from app.llmkube.model.types import Model, ModelReason
from app.settings import Settings
from app.workload.readiness.cause import Cause, Stage

Request = SyncRequest[ModelChildren, ModelRelated]


def sync(model: Model, request: Request, settings: Settings, now: datetime) -> SyncResponse:
    model_plan = _plan(model, request, settings)
    observation = _observe(model_plan, request, settings)
    outcome = judge.outcome(model_plan, observation, now)
    status = judge.status(model_plan, observation, outcome, now)
    if model.metadata.deletion_timestamp:
        return SyncResponse(status, keep(request.children))
    if observation.problem:
        return SyncResponse(status, keep(request.children), outcome.resync)
    desired = _job(model_plan, observation, request, settings, now)
    return SyncResponse(status, _children(model_plan, request, desired, settings), outcome.resync)


def assumes(model: Model, request: Request, settings: Settings) -> Iterator[str]:
    """Say who downloads in a cluster whose StorageClass binds late, where no class is known (LK-2.9.13)."""
    model_plan = _plan(model, request, settings)
    observation = _observe(model_plan, request, settings)
    depends = model_plan.download is not None and model_plan.awaits_pod is None and observation.job is None
    if depends and request.related.classes is None and not observed.is_shared(observation.claim, settings):
        yield (
            f"no StorageClass is among the files: a Job downloads Model {model.metadata.name}; where the class of "
            f"claim {model_plan.claim} has volumeBindingMode WaitForFirstConsumer, the first pod of a service does, "
            "and no Job"
        )


def _plan(model: Model, request: Request, settings: Settings) -> ModelPlan:
    """Return the plan, with a claim of another name if the plain one is an earlier Model's, or as chosen before."""
    metadata, children, related = model.metadata, request.children, request.related
    claim = operator_claim(model.spec, settings)
    shared = claim if get(related.claims, claim, metadata.namespace) is not None else ""
    default = plan(model, settings, shared)
    if not default.makes_claim:
        return default
    second = plan(model, settings, shared, taken=True)
    chosen = get(children.claims, second.claim, metadata.namespace)
    plain = get(related.claims, default.claim, metadata.namespace)
    is_taken = plain is not None and observed.is_earlier_models(plain, metadata)
    return second if chosen or is_taken or observed.attempts(sorted_values(children.jobs), second.job) else default


def _observe(plan: ModelPlan, request: Request, settings: Settings) -> ModelObservation:
    children, related, pods = request.children, request.related, sorted_values(request.related.pods)
    namespace = plan.model.metadata.namespace
    attempts = observed.attempts(sorted_values(children.jobs), plan.job)
    remaining = (item for item in attempts if not item[1].metadata.deletion_timestamp)
    attempt, current = next(remaining, (1, None))
    if plan.source.kind is source.SourceClass.PVC:
        claim = get(related.claims, plan.source.claim, namespace)
    else:
        claim = get(children.claims if plan.makes_claim else related.claims, plan.claim, namespace)
    observable = plan.makes_claim and related.pods is not None  # pods of other Models may use the operator's claim
    if current is not None and observed.is_outlived(current, claim, pods if observable else None):
        attempt, current = attempt + 1, None
    binds_late = observed.binds_late(claim, related.classes, settings.llmkube_model_cache_storage_class)
    by_first_pod = _is_by_first_pod(plan, current, claim, settings, binds_late=binds_late)
    if by_first_pod:
        current = None
    watched = plan.download.path if plan.download and (plan.download.refresh or by_first_pod) else ""
    return ModelObservation(
        job=current,
        attempt=attempt,
        pods=observed.pods_of(names.attempt_name(plan.job, attempt), pods) if plan.job else (),
        serving=observed.fetching(watched, pods) if watched else (),
        claim=claim,
        binds_late=binds_late,
        by_first_pod=by_first_pod,
        nodes=None if related.nodes is None else sorted_values(related.nodes),
        problem=_problem(plan, current, claim, settings),
        notes=tuple(_notes(plan, claim, related)),
    )


def _is_by_first_pod(
    plan: ModelPlan, current: DownloadJob | None, claim: ObservedClaim | None, settings: Settings, *, binds_late: bool
) -> bool:
    """Return whether no Job is made: its pod would choose the node of a volume that other pods need (LK-2.9.13).

    Without a word of the user, a Job that exists stays, and so does one whose claim all nodes can mount.
    """
    if plan.download is None or plan.awaits_pod is not None:
        return plan.download is not None and plan.awaits_pod is True
    return current is None and binds_late and not observed.is_shared(claim, settings)


def _notes(plan: ModelPlan, claim: ObservedClaim | None, related: ModelRelated) -> Iterator[str]:
    model, pods = plan.model.metadata, sorted_values(related.pods)
    plain = get(related.claims, names.claim_name(model.name), model.namespace)
    if plan.second_claim and plain is not None:
        yield f"the claim of an earlier Model of this name: {observed.going(plain.metadata.name, pods)}"
    if claim is not None and claim.metadata.deletion_timestamp:
        yield observed.going(claim.metadata.name, pods)
    if plan.refused:
        yield f"a new Model with this source would be refused: {plan.refused}"


def _problem(
    plan: ModelPlan, current: DownloadJob | None, claim: ObservedClaim | None, settings: Settings
) -> Cause | None:
    """Return the problem that the operator must solve before children are created. Existing ones are kept."""
    exists = current is not None or plan.model.status.cache_key == plan.source.cache_key
    if plan.refused and not exists:
        return Cause(Stage.MODEL, plan.refused, ModelReason.SOURCE_NOT_ALLOWED)
    message = size_problem(settings) if plan.makes_claim and claim is None else ""
    return Cause(Stage.CLAIM, message, ModelReason.INVALID_SETTINGS) if message else None


def _job(
    plan: ModelPlan, observation: ModelObservation, request: Request, settings: Settings, now: datetime
) -> Json | None:
    """Return the desired Job, or its next attempt after the pause. An existing Job keeps its cache keys."""
    if plan.download is None or observation.by_first_pod:
        return None
    current, attempt, previous = observation.job, observation.attempt, plan.model.status
    if current is not None and not judge.retry_due(current, attempt, previous, now):
        return job(plan, plan.download, attempt, observed.kept_keys(current), settings)
    pods = None if request.related.pods is None else sorted_values(request.related.pods)
    keys = keys_to_keep(plan, current, pods, settings)
    return job(plan, plan.download, attempt + (current is not None), keys, settings)


def _children(plan: ModelPlan, request: Request, desired: Json | None, settings: Settings) -> Sequence[Json]:
    """Return the desired Job and every claim: one that the source no longer needs may be mounted, and holds data."""
    observed_claims = request.children.claims
    claims: list[Json] = [keep_child(child) for child in sorted_values(observed_claims)]
    if plan.makes_claim and get(observed_claims, plan.claim, plan.model.metadata.namespace) is None:
        claims.append(claim(plan, settings))
    return with_kept_templates([*claims, *([desired] if desired else [])], request)
