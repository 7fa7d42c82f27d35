"""The status of an LLMInferenceService as KServe has it (KS-6): conditions, their aggregates, and its addresses."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from app.kserve import devices, kvcache, lora
from app.kserve.constants import MAIN, TOKENIZER
from app.kserve.llminferenceservice import observed, types
from app.kserve.llminferenceservice.podview import MODEL_URI
from app.kserve.operator import NO_TLS
from app.kserve.results import ConditionLedger, ConditionState, Outcome, PhaseResult, fails
from app.kserve.spec.effective import EffectiveSpec
from app.kserve.spec.pickerconfig import PRECISE, PREDICTED_LATENCY, plugin_types
from app.kube import field
from app.kube.base import Json
from app.workload.readiness.cause import Cause, Stage
from app.workload.readiness.ready import ready_message, ready_reason
from app.workload.readiness.waiting import CHANGE_REFUSED, waiting_causes

_ADVISORY = (
    types.LLMCondition.CRITICALITY_APPLIED,
    types.LLMCondition.GROUP_READY,
    types.LLMCondition.GROUP_DEGRADED,
    types.LLMCondition.FEATURES_APPLIED,
    types.LLMCondition.PODS_READY,
)
"""Conditions that decide nothing, and that a stopped service has not."""
_WITHOUT_PODS = (
    types.LLMCondition.GATEWAYS_READY,
    types.LLMCondition.HTTP_ROUTES_READY,
    types.LLMCondition.INFERENCE_POOL_READY,
)
"""Conditions of routing, of which no pod is the cause."""
_SIDECARS = {PRECISE: "tokenizer", "token-producer": "tokenizer", PREDICTED_LATENCY: "latency predictor"}
"""Plugins of the endpoint picker that ask another server, by their type, and what they ask."""
_STOPPED = fails(types.LLMReason.STOPPED, "the service is stopped by its annotation serving.kserve.io/stop")


def status(
    previous: types.LLMInferenceServiceStatus, generation: int | None, outcome: Outcome, now: datetime
) -> types.LLMInferenceServiceStatus:
    """Build the status after a sync; ``previous`` has transition times and the conditions of phases not reached."""
    ledger = ConditionLedger(previous.conditions, now)
    if outcome.presets is not None:
        ledger.set(types.LLMCondition.PRESETS_COMBINED, outcome.presets)
    if outcome.stopped:
        for condition in (*types.WORKLOAD_CONDITIONS, *types.ROUTER_CONDITIONS):
            ledger.set(condition, _STOPPED)
        ledger.remove(*types.SCALING_CONDITIONS, *_ADVISORY)
    absent = _judge_children(ledger, outcome, now)
    _judge_phases(ledger, outcome)
    _judge_pods(ledger, outcome)
    if outcome.features is not None:
        ledger.set(types.LLMCondition.FEATURES_APPLIED, outcome.features)
    elif outcome.router is not None:
        ledger.remove(types.LLMCondition.FEATURES_APPLIED)
    ledger.set(types.LLMCondition.READY, _ready(ledger, outcome, absent))
    url, addresses, workloads, router = previous.url, previous.addresses, previous.workloads, previous.router
    if outcome.stopped:
        url, addresses, workloads, router = "", [], None, None
    elif outcome.router is not None:
        if outcome.router.addresses is not None:
            url, addresses = outcome.router.url, outcome.router.addresses
        workloads = workloads if outcome.router.failed else outcome.parts
        router = outcome.router.parts or (router if outcome.router.failed else None)
    applied = list(outcome.applied) if outcome.presets is not None else previous.applied_configs
    return types.LLMInferenceServiceStatus(
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
    """Blame the workload for an unusable model address (KS-7.5), else ``PresetsCombined``, as KServe does."""
    state = fails(types.LLMReason.INVALID_SPEC, field.aggregate(errors), Stage.SPEC)
    if any(error.path != MODEL_URI for error in errors):
        return Outcome(pins, fails(types.LLMReason.COMBINE_BASE_ERROR, state.message), None, None, state)
    condition = types.LLMCondition.WORKER_WORKLOAD_READY if multi_node else types.LLMCondition.MAIN_WORKLOAD_READY
    reason = types.LLMReason.RECONCILE_MULTI_NODE_ERROR if multi_node else types.LLMReason.RECONCILE_SINGLE_NODE_ERROR
    workloads = PhaseResult(states={condition: fails(reason, state.message)}, failed=True)
    return Outcome(pins, None, workloads, None, state)


def features_state(spec: EffectiveSpec, context: observed.ReconcileContext) -> ConditionState | None:
    """Return the state of ``FeaturesApplied`` if something has no effect, with the reason of the first."""
    scheduler = spec.made_scheduler
    config = scheduler.config if scheduler is not None else None
    lacks_tls = context.operator.ingress.tls and not context.encrypts
    reported = [(types.LLMReason.TLS_NOT_SUPPORTED, NO_TLS)] if lacks_tls else []
    if context.children.claim_templates is None and devices.device_request(context.metadata) is not None:
        reported.append((types.LLMReason.DEVICES_NOT_SUPPORTED, devices.NO_CLAIM))
    if scheduler is not None and config is not None:
        problems = _picker_problems(spec, config.inline, scheduler.template)
        reported += [(types.LLMReason.PLUGIN_SERVER_MISSING, problem) for problem in problems]
    if any(kvcache.lacks_flag(w.kv_cache_offloading, w.template, w.worker) for w, _ in spec.workloads()):
        reported.append((types.LLMReason.OFFLOADING_NOT_SUPPORTED, kvcache.NO_FLAG))
    return fails(reported[0][0], "; ".join(message for _, message in reported)) if reported else None


def _picker_problems(spec: EffectiveSpec, config: object, pod: Json | None) -> Iterator[str]:
    """Yield what plugins of the endpoint picker lack: a server in its pod, or the model's files for the tokenizer."""
    types_ = plugin_types(config)
    names = {container.get("name") for container in (pod or {}).get("containers") or ()}
    for type_ in types_ if names <= {MAIN, TOKENIZER} else ():
        server = _SIDECARS.get(type_)
        if server is not None and server not in names:
            yield f"{type_} needs a {server}, and no container has one; add one to scheduler.template"
    if PRECISE in types_ and TOKENIZER in names and not lora.is_loaded(spec):
        yield "the tokenizer gets no files of the model: storageInitializer.enabled is false"


def _judge_phases(ledger: ConditionLedger, outcome: Outcome) -> None:
    """Set the conditions of both phases, and the two that sum them up."""
    of_workloads: Iterable[str] = (*types.WORKLOAD_CONDITIONS, *types.SCALING_CONDITIONS)
    if outcome.workloads is not None and outcome.workloads.failed:
        of_workloads = outcome.workloads.states  # a condition of the previous topology may still be False; ignore it
    for result, total, conditions in (
        (outcome.workloads, types.LLMCondition.WORKLOADS_READY, of_workloads),
        (outcome.router, types.LLMCondition.ROUTER_READY, types.ROUTER_CONDITIONS),
    ):
        for condition, state in result.states.items() if result is not None else ():
            if state is None:
                ledger.remove(condition)
            else:
                ledger.set(condition, state)
        if result is not None or outcome.stopped:
            ledger.set(total, ledger.first_false(conditions))
        else:
            ledger.set_unknown(total)


def _judge_pods(ledger: ConditionLedger, outcome: Outcome) -> None:
    """Report the first cause of pods, which ``Ready`` has in its message alone: its reason is KServe's."""
    if outcome.workloads is None:
        return
    causes = [*outcome.workloads.causes, *(outcome.router.causes if outcome.router is not None else ())]
    of_pods = [cause for cause in causes if cause.stage is not Stage.SPEC]
    if of_pods:
        ledger.set(types.LLMCondition.PODS_READY, fails(ready_reason(of_pods), ready_message(of_pods)))
    else:
        ledger.remove(types.LLMCondition.PODS_READY)


def _judge_children(ledger: ConditionLedger, outcome: Outcome, now: datetime) -> list[Cause]:
    """Report children that are missing or unchanged."""
    if not outcome.outstanding:
        ledger.remove(types.LLMCondition.CHILDREN_CREATED)
        return []
    causes = waiting_causes(outcome.outstanding, ledger.conditions(), now)
    ledger.set(types.LLMCondition.CHILDREN_CREATED, fails(causes[0].reason, ready_message(causes)))
    return causes


def _ready(ledger: ConditionLedger, outcome: Outcome, absent: Sequence[Cause]) -> ConditionState | None:
    early = outcome.error or outcome.presets
    error = early.message if early is not None and not early.ok else ""
    if outcome.stopped:
        return fails(types.LLMReason.STOPPED, f"{_STOPPED.message}; it cannot start: {error}") if error else _STOPPED
    if early is not None and not early.ok:
        return fails(early.reason, "; ".join([early.message, *outcome.counts]))
    refusals = (types.LLMReason.NAME_CONFLICT, types.LLMReason.CREATE_REFUSED, CHANGE_REFUSED)
    conflict = next((cause for cause in absent if cause.reason in refusals), None)
    order = [types.LLMCondition.ROUTER_READY, types.LLMCondition.WORKLOADS_READY]
    if outcome.workloads is not None and outcome.workloads.failed:
        order.reverse()
    deciding = next((f for type_ in order if (f := ledger.false(type_)) is not None), None)
    if conflict is None and deciding is None:
        conflict = next(iter(absent), None)
    if conflict is None and deciding is None:
        return ConditionState(True, message=_idle(ledger)) if all(map(ledger.is_true, order)) else None
    counted = outcome.workloads.counted if outcome.workloads is not None else ()
    causes = [*_causes(outcome, absent)]
    if conflict is not None:
        return fails(conflict.reason, ready_message(causes, counted))
    if deciding is None:
        return None
    message = deciding.message or f"not ready yet ({deciding.reason or 'no reason is known'})"
    causes = causes or [Cause(Stage.STARTING, message, deciding.reason)]
    return fails(deciding.reason, ready_message(causes, counted))


def _idle(ledger: ConditionLedger) -> str:
    """Return the message of a service that is ready and runs no model server."""
    conditions = (ledger.get(type_) for type_ in types.WORKLOAD_CONDITIONS)
    return next((c.message for c in conditions if c is not None and c.status == "True" and c.message), "")


def _causes(outcome: Outcome, absent: Sequence[Cause]) -> Iterable[Cause]:
    """List everything that keeps the service from serving. Pods explain a workload that is only starting."""
    causes = [*absent]
    for result in filter(None, (outcome.workloads, outcome.router)):
        causes += result.causes
        if all(cause.stage is Stage.SPEC for cause in result.causes):
            causes += result.progress
        states = [s for type_, s in result.states.items() if s and (s.stage < Stage.STARTING or type_ in _WITHOUT_PODS)]
        causes += [state.cause for state in states if state.cause is not None]
    return causes
