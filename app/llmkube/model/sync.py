"""The Model's hooks: what is composed from what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from app.hooks.kept import as_json, keep, keep_child
from app.hooks.protocol import SyncRequest, SyncResponse, get, sorted_values
from app.kube import field
from app.kube.base import Json
from app.kube.desired import Job
from app.kube.objects import ObservedClaim
from app.kube.resource import Resource
from app.llmkube import names
from app.llmkube.model import status as judge
from app.llmkube.model.children import claim, job, keys_to_keep, size_problem
from app.llmkube.model.observed import (
    Children,
    DownloadJob,
    Related,
    attempts,
    fetching,
    going,
    is_earlier_models,
    pods_of,
    told,
)
from app.llmkube.model.plan import Plan, operator_claim, plan
from app.llmkube.model.status import Observation
from app.llmkube.model.types import Model, ModelSpec, ModelStatus, Reason
from app.llmkube.source import SourceClass
from app.settings import Settings
from app.workload.cause import Cause, Stage

Request = SyncRequest[Children, Related]


def sync(model: Model, request: Request, settings: Settings, now: datetime) -> SyncResponse:
    """The Job and the claim a Model needs, and how far it is."""
    related = request.related or Related()
    shared = get(related.claims, operator_claim(model.spec, settings), model.metadata.namespace)
    decided = _plan(model, shared is not None, request.children, related, settings)
    observed = _observe(decided, request.children, related, model.status, settings)
    judged = judge.outcome(decided, observed, model.status, now)
    status = judge.status(decided, model.metadata, observed, judged, model.status, now)
    if model.metadata.deletion_timestamp:
        return SyncResponse(status, keep(request.children))
    fetching_job = _job(decided, observed, related, model.status, settings, now)
    children = _children(decided, observed, request.children, fetching_job, settings)
    return SyncResponse(status, children, judged.resync)


def _plan(model: Model, shared: bool, children: Children, related: Related, settings: Settings) -> Plan:
    """The decisions, with a claim of another name while the plain one is an earlier Model's, and as long as it exists.

    A claim or a Job of the other name shows that it was chosen: that outlives the reason for it.
    """
    metadata = model.metadata
    usual = plan(metadata, model.spec, shared, settings)
    if not usual.makes_claim:
        return usual
    other = plan(metadata, model.spec, shared, settings, taken=True)
    chosen = get(children.claims, other.claim, other.namespace) or attempts(sorted_values(children.jobs), other.job)
    plain = get(related.claims, usual.claim, usual.namespace)
    return other if chosen or (plain and is_earlier_models(plain, metadata)) else usual


def _observe(
    plan: Plan, children: Children, related: Related, previous: ModelStatus, settings: Settings
) -> Observation:
    tried = [
        found for found in attempts(sorted_values(children.jobs), plan.job) if not found[1].metadata.deletion_timestamp
    ]
    attempt, wanted = tried[0] if tried else (1, None)
    if plan.source.kind is SourceClass.PVC:
        claim = get(related.claims, plan.source.claim, plan.namespace)
    else:
        claim = get(children.claims if plan.makes_claim else related.claims, plan.claim, plan.namespace)
    storage_class = (claim.spec.storage_class_name if claim else None) or ""
    bound_by = get(related.classes, storage_class)
    return Observation(
        job=wanted,
        attempt=attempt,
        pods=pods_of(names.attempt_name(plan.job, attempt), sorted_values(related.pods)) if plan.job else (),
        serving=fetching(plan.download.path, sorted_values(related.pods))
        if plan.download and plan.download.refresh
        else (),
        refreshes=plan.download is not None and plan.download.refresh,
        claim=claim,
        binds_late=bound_by is not None and bound_by.binding_mode == "WaitForFirstConsumer",
        nodes=None if related.nodes is None else sorted_values(related.nodes),
        problem=_problem(plan, wanted, claim, previous, settings),
        notes=tuple(_notes(plan, claim, related)),
    )


def _notes(plan: Plan, claim: ObservedClaim | None, related: Related) -> Iterator[str]:
    """What is worth knowing of the Model's claims, and of a source that is only kept."""
    plain, pods = get(related.claims, names.claim_name(plan.name), plan.namespace), sorted_values(related.pods)
    if plan.second_claim and plain is not None:
        yield f"the claim of an earlier Model of this name: {going(plain.metadata.name, pods)}"
    if claim is not None and claim.metadata.deletion_timestamp:
        yield going(claim.metadata.name, pods)
    if plan.refused:
        yield f"a new Model could not be made: {plan.refused}"


def _problem(
    plan: Plan, wanted: DownloadJob | None, claim: ObservedClaim | None, previous: ModelStatus, settings: Settings
) -> Cause | None:
    """What the operator has to change before anything is made. What was made earlier goes on."""
    known = wanted is not None or previous.cache_key == plan.source.cache_key
    if plan.refused and not known:
        return Cause(Stage.MODEL, plan.refused, Reason.SOURCE_NOT_ALLOWED)
    wrong = size_problem(settings) if plan.makes_claim and claim is None else ""
    return Cause(Stage.CLAIM, wrong, Reason.INVALID_SETTINGS) if wrong else None


def _job(
    plan: Plan, observed: Observation, related: Related, previous: ModelStatus, settings: Settings, now: datetime
) -> Job | None:
    """The wanted Job, or the next one where it failed long enough ago. One that is there keeps what it was told."""
    if plan.download is None:
        return None
    there = observed.job
    if there is not None and not judge.retry_due(there, observed.attempt, previous, now):
        return job(plan, plan.download, observed.attempt, told(there), settings)
    pods = None if related.pods is None else sorted_values(related.pods)
    kept = keys_to_keep(plan, previous.cache_key, there, pods, settings)
    return job(plan, plan.download, observed.attempt + (there is not None), kept, settings)


def _children(
    plan: Plan, observed: Observation, present: Children, wanted: Job | None, settings: Settings
) -> Sequence[Json]:
    """The wanted Job, and every claim: a claim is never taken away.

    Jobs of earlier sources go; a claim that the source does not need any more may still be mounted, and holds data.
    """
    if observed.problem:
        return keep(present)
    children: list[Any] = [
        keep_child(kept) for kept in sorted_values(present.claims) if kept.metadata.name != plan.claim
    ]
    if wanted is None:
        return as_json(children)
    if plan.makes_claim:
        children.append(claim(plan, settings))
    return as_json([*children, wanted])


def invalid(
    model: Resource[ModelSpec | None, ModelStatus],
    errors: Sequence[field.Error],
    now: datetime,
) -> ModelStatus:
    """The status of a Model with errors; its children stay."""
    return judge.invalid(model.metadata, model.status, errors, now)
