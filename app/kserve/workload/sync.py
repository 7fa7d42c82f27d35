"""The workload phase: model servers, their conditions, and why they are not ready. Source: KS-3 and KS-6.2."""

from app.hooks.kept import keep_child
from app.hooks.protocol import get, sorted_values
from app.kserve.constants import (
    COMPONENT,
    COMPONENT_SCHEDULER,
    COMPONENT_WORKLOAD,
    PART_OF,
    PART_OF_VALUE,
    STORAGE_INITIALIZER,
)
from app.kserve.devices import asks_for, claim_template
from app.kserve.llminferenceservice.observed import ReconcileContext
from app.kserve.llminferenceservice.types import SCALING_CONDITIONS, WORKLOAD_CONDITIONS, LLMCondition, LLMReason
from app.kserve.names import Names
from app.kserve.results import PhaseError, PhaseResult, fails, progress_causes
from app.kserve.spec.effective import EffectiveSpec
from app.kserve.tls import scheme
from app.kserve.workload.cabundle import ca_bundle
from app.kserve.workload.children import accounts, deployment, leader_worker_set, outlived, workload_service
from app.kserve.workload.plan import DeploymentPlan, GroupPlan, workload_plan
from app.kserve.workload.scaling import scaling_children, scaling_plans, scaling_state
from app.kserve.workload.status import deployment_state, leader_worker_set_state
from app.kube.base import Json
from app.kube.objects import ObservedPod
from app.workload.readiness.cause import Stage
from app.workload.readiness.pods import LWS_NAME, Remedies
from app.workload.readiness.ready import deployment_causes, group_causes, missing_pods, pod_causes
from app.workload.readiness.rollout import Rollout, group_rollout, rollout

_NO_GROUPS = fails(
    LLMReason.KIND_NOT_INSTALLED,
    "worker needs LeaderWorkerSets: install leaderworkerset.x-k8s.io and the kustomize component leaderworkerset",
    Stage.SPEC,
)


_MEMORY = {
    STORAGE_INITIALIZER: "raise memoryLimit in the document storageInitializer of ConfigMap inferenceservice-config, "
    "or resources.limits.memory of the container of that name in your template"
}
"""The field to raise for an init container that runs out of memory."""


def make_workloads(spec: EffectiveSpec, context: ReconcileContext) -> PhaseResult:
    """Return the model servers of a service that is not stopped, their conditions, and why they are not ready."""
    try:
        plan = workload_plan(spec, context)
    except PhaseError as error:
        return PhaseResult(states={error.condition: error.state}, failed=True)
    namespace = context.metadata.namespace
    copies, causes = ca_bundle(context) if plan.ca_bundle else ([], [])
    result = PhaseResult(states=dict.fromkeys((*WORKLOAD_CONDITIONS, *SCALING_CONDITIONS)), causes=causes)
    for deployed in plan.deployments:
        _make_deployment(deployed, context, result)
    for group in plan.groups:
        _make_group(group, context, result)
    result.children.append(workload_service(context.names, namespace, spec, scheme(spec, context)))
    result.children += [child for account in plan.accounts for child in accounts(account, namespace)]
    result.children += [*copies, *_claim_templates(context)]
    complete = all(state is None or state.ok for state in result.states.values())
    of_pods = [
        cause
        for workload, pods in pods_by_workload(context, scheduler=False).items()
        for cause in pod_causes(pods, terminating=not complete, remedies=_remedies(workload, context.names))
    ]
    result.causes += [*of_pods, *(plan.hints if of_pods else ())]
    for scaled in scaling_plans(spec, context.names):
        result.children += scaling_children(scaled, context)
        result.states[scaled.condition] = scaling_state(scaled, context)
    return result


def _remedies(workload: str, names: Names) -> Remedies:
    """Return what to write for the pods of a LeaderWorkerSet of that name, or a Deployment with that component."""
    places = {
        names.multi_node: "spec.template or spec.worker",
        names.multi_node_prefill: "spec.prefill.template or spec.prefill.worker",
        f"{COMPONENT_WORKLOAD}-prefill": "spec.prefill.template",
    }
    place = places.get(workload, "spec.template")
    return Remedies(_MEMORY, f"raise {{probe}}Probe.failureThreshold of container {{container}} in {place}")


def _make_deployment(plan: DeploymentPlan, context: ReconcileContext, result: PhaseResult) -> None:
    observed, is_main = context.deployment(plan.name), plan.name == context.names.main
    if outlived(observed, plan.selector):
        observed = None
    else:
        result.children.append(deployment(plan, context.metadata.namespace))
    condition = LLMCondition.MAIN_WORKLOAD_READY if is_main else LLMCondition.PREFILL_WORKLOAD_READY
    result.states[condition] = state = deployment_state(observed, plan.replicas, was_ready=context.was_ready)
    _count(result, "Deployment", plan.name, rollout(observed, plan.replicas))
    if observed is not None:
        result.causes += deployment_causes(observed)
        result.progress += progress_causes(state, "Deployment", plan.name, rollout(observed, plan.replicas))


def _make_group(plan: GroupPlan, context: ReconcileContext, result: PhaseResult) -> None:
    groups, is_main = context.children.leader_worker_sets, plan.name == context.names.multi_node
    condition = LLMCondition.WORKER_WORKLOAD_READY if is_main else LLMCondition.PREFILL_WORKER_WORKLOAD_READY
    if groups is None:
        result.states[condition] = _NO_GROUPS
        return
    result.children.append(leader_worker_set(plan, context.metadata.namespace))
    observed = get(groups, plan.name, context.metadata.namespace)
    result.states[condition] = state = leader_worker_set_state(observed, plan.replicas)
    _count(result, "LeaderWorkerSet", plan.name, group_rollout(observed, plan.replicas))
    if observed is not None and not state.ok:
        watched = context.related.pods is not None
        pods = pods_by_workload(context, scheduler=False).get(plan.name, []) if watched else None
        result.causes += missing_pods(observed, pods)
        progress = progress_causes(state, "LeaderWorkerSet", plan.name, group_rollout(observed, plan.replicas))
        result.progress += group_causes(observed) or progress


def _count(result: PhaseResult, kind: str, name: str, progress: Rollout) -> None:
    if counted := progress.counted(kind):
        result.counted.append(f"{kind} {name}: {counted}")


def _claim_templates(context: ReconcileContext) -> list[Json]:
    """Return the template of the devices' claims. Its spec cannot change: another one is made after its deletion."""
    if context.device_request is None:
        return []
    desired = claim_template(context.device_request, context.names, context.metadata.namespace)
    observed = get(context.children.claim_templates, context.names.claim_template, context.metadata.namespace)
    if observed is None or observed.record is None:
        return [desired]
    return [keep_child(observed)] if asks_for(observed.record, context.device_request) else []


def pods_by_workload(context: ReconcileContext, *, scheduler: bool) -> dict[str, list[ObservedPod]]:
    """Pods of the endpoint picker, or of each model server by its LeaderWorkerSet's name or Deployment's component."""
    grouped: dict[str, list[ObservedPod]] = {}
    for pod in sorted_values(context.related.pods):
        labels = pod.metadata.labels or {}
        if labels.get(PART_OF) != PART_OF_VALUE:  # somebody else's of the same name
            continue
        component = labels.get(COMPONENT, "")
        if (component == COMPONENT_SCHEDULER) is scheduler:
            grouped.setdefault(labels.get(LWS_NAME, component), []).append(pod)
    return grouped
