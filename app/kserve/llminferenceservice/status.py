"""The status of an LLMInferenceService: conditions, their aggregates, and its addresses (KS-6).

Types, order, severities and reasons are those of KServe. The message of ``Ready`` lists every cause in the order of a
pod's life.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from app.kserve import features, kvcache
from app.kserve.devices import NO_CLAIM, device_request
from app.kserve.llminferenceservice.checks import MODEL_URI
from app.kserve.llminferenceservice.observed import ReconcileContext
from app.kserve.llminferenceservice.types import (
    ROUTER_CONDITIONS,
    SCALING_CONDITIONS,
    WORKLOAD_CONDITIONS,
    ConditionType,
    LLMInferenceServiceStatus,
    Reason,
)
from app.kserve.results import CONDITION_TRUE, ConditionLedger, ConditionState, Outcome, WorkloadResult, fails
from app.kserve.spec.effective import EffectiveSpec
from app.kube import field
from app.kube.conditions import since
from app.workload.cause import Cause, Stage
from app.workload.ready import ready_message
from app.workload.waiting import CHANGE_REFUSED, waiting_causes

_ADVISORY = (
    ConditionType.CRITICALITY_APPLIED,
    ConditionType.GROUP_READY,
    ConditionType.GROUP_DEGRADED,
    ConditionType.FEATURES_APPLIED,
)
"""Conditions that decide nothing, and that a stopped service has not."""
_STOPPED = fails(Reason.STOPPED, "the service is stopped by its annotation serving.kserve.io/stop")


def status(
    previous: LLMInferenceServiceStatus, generation: int | None, outcome: Outcome, now: datetime
) -> LLMInferenceServiceStatus:
    """Build the status after a sync; ``previous`` has transition times and the conditions of phases not reached."""
    ledger = ConditionLedger(previous.conditions, now)
    if outcome.presets is not None:
        ledger.set(ConditionType.PRESETS_COMBINED, outcome.presets)
    if outcome.stopped:
        ledger.set_all((*WORKLOAD_CONDITIONS, *ROUTER_CONDITIONS), _STOPPED)
        for condition in (*SCALING_CONDITIONS, *_ADVISORY):
            ledger.remove(condition)
    absent = _judge_children(ledger, outcome, now)
    _judge_workloads(ledger, outcome)
    _judge_router(ledger, outcome)
    if outcome.features is not None:
        ledger.set(ConditionType.FEATURES_APPLIED, outcome.features)
    elif outcome.router is not None:
        ledger.remove(ConditionType.FEATURES_APPLIED)
    ledger.set(ConditionType.READY, _ready(ledger, outcome, absent))
    url, addresses, workloads, router = previous.url, previous.addresses, previous.workloads, previous.router
    if outcome.stopped:
        url, addresses, workloads, router = "", [], None, None
    elif outcome.router is not None:
        if outcome.router.addresses is not None:
            url, addresses = outcome.router.url, list(outcome.router.addresses)
        if not outcome.router.failed:
            workloads, router = outcome.parts, outcome.router.parts
    applied = list(outcome.applied) if outcome.presets is not None else previous.applied_configs
    return LLMInferenceServiceStatus(
        url=url,
        addresses=addresses,
        annotations=dict(outcome.pins),
        applied_configs=applied,
        workloads=workloads,
        router=router,
        conditions=ledger.conditions(),
        observed_generation=generation,
    )


def refused(pins: Mapping[str, str], errors: Sequence[field.Error], *, multi_node: bool) -> Outcome:
    """Return the outcome for an invalid spec: the errors in ``Ready`` and in the condition that KServe uses.

    That is the workload's condition for a model address that cannot be fetched (KS-7.5), else ``PresetsCombined``.
    """
    state = fails(Reason.INVALID_SPEC, field.aggregate(errors), Stage.SPEC)
    if any(error.path != MODEL_URI for error in errors):
        return Outcome(pins, fails(Reason.COMBINE_BASE_ERROR, state.message), None, None, state)
    condition = ConditionType.WORKER_WORKLOAD_READY if multi_node else ConditionType.MAIN_WORKLOAD_READY
    reason = Reason.RECONCILE_MULTI_NODE_ERROR if multi_node else Reason.RECONCILE_SINGLE_NODE_ERROR
    workloads = WorkloadResult([], {condition: fails(reason, state.message)}, failed=True)
    return Outcome(pins, None, workloads, None, state)


def features_state(spec: EffectiveSpec, context: ReconcileContext) -> ConditionState | None:
    """Return the state of ``FeaturesApplied`` if something has no effect, with the reason of the first."""
    scheduler = spec.scheduler
    config = scheduler.config if scheduler is not None else None
    reported = [(Reason.TLS_NOT_SUPPORTED, features.NO_TLS)] if context.operator.ingress.tls else []
    if context.children.claim_templates is None and device_request(context.metadata) is not None:
        reported.append((Reason.DEVICES_NOT_SUPPORTED, NO_CLAIM))
    if scheduler is not None and config is not None:
        problems = features.plugins_without_server(config.inline, scheduler.template)
        reported += [(Reason.PLUGIN_SERVER_MISSING, problem) for problem in problems]
        if features.tokenizer_lacks_files(spec):
            reported.append((Reason.PLUGIN_SERVER_MISSING, features.NO_FILES))
    workloads = [workload for workload in (spec, spec.prefill) if workload is not None]
    if any(kvcache.lacks_flag(side.kv_cache_offloading, side.template, side.worker) for side in workloads):
        reported.append((Reason.OFFLOADING_NOT_SUPPORTED, kvcache.NO_FLAG))
    return fails(reported[0][0], "; ".join(message for _, message in reported)) if reported else None


def _judge_workloads(ledger: ConditionLedger, outcome: Outcome) -> None:
    result = outcome.workloads
    if result is not None:
        for condition in (*WORKLOAD_CONDITIONS, *SCALING_CONDITIONS):
            state = result.states.get(condition)
            if state is not None:
                ledger.set(condition, state)
            elif not result.failed:
                ledger.remove(condition)
    if result is not None and result.failed:  # a stale condition of the previous topology may still be False; ignore it
        ledger.set(ConditionType.WORKLOADS_READY, next(iter(result.states.values())))
    elif result is not None or outcome.stopped:
        ledger.set(ConditionType.WORKLOADS_READY, ledger.first_false((*WORKLOAD_CONDITIONS, *SCALING_CONDITIONS)))
    else:
        ledger.set_unknown(ConditionType.WORKLOADS_READY)


def _judge_router(ledger: ConditionLedger, outcome: Outcome) -> None:
    result = outcome.router
    for condition, state in result.states.items() if result is not None else ():
        if state is None:
            ledger.remove(condition)
        else:
            ledger.set(condition, state)
    if result is not None or outcome.stopped:
        ledger.set(ConditionType.ROUTER_READY, ledger.first_false(ROUTER_CONDITIONS))
    else:
        ledger.set_unknown(ConditionType.ROUTER_READY)


def _judge_children(ledger: ConditionLedger, outcome: Outcome, now: datetime) -> list[Cause]:
    """Report children that are missing or unchanged; ``ChildrenCreated`` has the time since when."""
    if not outcome.outstanding:
        ledger.remove(ConditionType.CHILDREN_CREATED)
        return []
    waited = since(ledger.conditions(), ConditionType.CHILDREN_CREATED, "False")
    causes = waiting_causes(outcome.outstanding, waited, now)
    ledger.set(ConditionType.CHILDREN_CREATED, fails(causes[0].reason, ready_message(causes)))
    return causes


# Ready.


def _ready(ledger: ConditionLedger, outcome: Outcome, absent: Sequence[Cause]) -> ConditionState | None:
    """``None`` is unknown."""
    early = outcome.error or outcome.presets
    error = early.message if early is not None and not early.ok else ""
    if outcome.stopped:
        return fails(Reason.STOPPED, f"{_STOPPED.message}; it cannot start: {error}") if error else _STOPPED
    if early is not None and not early.ok:
        return fails(early.reason, early.message)
    conflict = next((cause for cause in absent if cause.reason in (Reason.NAME_CONFLICT, CHANGE_REFUSED)), None)
    types = [ConditionType.ROUTER_READY, ConditionType.WORKLOADS_READY]
    if outcome.workloads is not None and outcome.workloads.failed:
        types.reverse()
    deciding = next((f for type_ in types if (f := ledger.false(type_)) is not None), None)
    if conflict is None and deciding is None:
        return CONDITION_TRUE if all(map(ledger.is_true, types)) else None
    message = ready_message(_causes(outcome, absent))
    if conflict is not None:
        return fails(conflict.reason, message)
    if deciding is None:
        return None
    explanation = message or deciding.message or f"not ready yet ({deciding.reason or 'no reason is known'})"
    return fails(deciding.reason, explanation)


def _causes(outcome: Outcome, absent: Sequence[Cause]) -> Iterable[Cause]:
    """List everything that keeps the service from serving. Pods explain a workload that is only starting."""
    workloads, router = outcome.workloads, outcome.router
    all_causes = [*absent, *(workloads.causes if workloads is not None else ())]
    if workloads is not None:
        causes = (state.cause for state in workloads.states.values() if state.stage < Stage.STARTING)
        all_causes += [cause for cause in causes if cause is not None]
    if router is not None:
        all_causes += router.causes
        causes = (state.cause for type_ in ROUTER_CONDITIONS if (state := router.states.get(type_)) is not None)
        all_causes += [cause for cause in causes if cause is not None]
    return all_causes
