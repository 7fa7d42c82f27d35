"""The workload phase: model servers, their conditions, and why they are not ready. Source: KS-3 and KS-6.2."""

from app.hooks.protocol import get, sorted_values
from app.kserve.constants import COMPONENT, COMPONENT_SCHEDULER, PART_OF, PART_OF_VALUE
from app.kserve.devices import claim_template
from app.kserve.llminferenceservice.observed import ReconcileContext
from app.kserve.llminferenceservice.types import SCALING_CONDITIONS, WORKLOAD_CONDITIONS, LLMCondition, LLMReason
from app.kserve.results import ConditionState, PhaseError, PhaseResult, fails
from app.kserve.spec.effective import EffectiveSpec
from app.kserve.workload.cabundle import ca_bundle_causes, ca_bundle_children
from app.kserve.workload.children import accounts, current, deployment, leader_worker_set, outlived, workload_service
from app.kserve.workload.plan import WorkloadPlan, workload_plan
from app.kserve.workload.scaling import scaling_children, scaling_plans, scaling_state
from app.kserve.workload.status import deployment_state, leader_worker_set_state
from app.kube.base import Json
from app.kube.objects import ObservedPod
from app.workload.cause import Cause, Stage
from app.workload.pods import LWS_NAME
from app.workload.ready import deployment_causes, pod_causes

_NO_GROUPS = fails(
    LLMReason.KIND_NOT_INSTALLED,
    "worker needs LeaderWorkerSets: install leaderworkerset.x-k8s.io and the kustomize component leaderworkerset",
    Stage.SPEC,
)


def make_workloads(spec: EffectiveSpec, context: ReconcileContext) -> PhaseResult:
    """Return the model servers of a service that is not stopped, and their conditions."""
    try:
        plan = workload_plan(spec, context)
    except PhaseError as error:
        return PhaseResult(states={error.condition: error.state}, failed=True)
    children, states = _workload_children(spec, plan, context), _workload_states(plan, context)
    result = PhaseResult(children, states, _workload_causes(plan, context))
    for scaled in scaling_plans(spec, context.names):
        result.children += scaling_children(scaled, context)
        result.states[scaled.condition] = scaling_state(scaled, context)
    return result


def _workload_children(spec: EffectiveSpec, plan: WorkloadPlan, context: ReconcileContext) -> list[Json]:
    namespace = context.metadata.namespace
    installed = context.children.leader_worker_sets is not None
    return [
        *(deployment(p, namespace) for p in plan.deployments if not outlived(context.deployment(p.name), p.selector)),
        *(leader_worker_set(group, namespace) for group in plan.groups if installed),
        workload_service(context.names, namespace, spec),
        *(child for account in plan.accounts for child in accounts(account, namespace)),
        *(ca_bundle_children(context) if plan.ca_bundle else []),
        *_claim_templates(context),
    ]


def _claim_templates(context: ReconcileContext) -> list[Json]:
    """Return the template of the devices' claims. Its spec cannot change: another one is made after its deletion."""
    if context.device_request is None:
        return []
    desired = claim_template(context.device_request, context.names, context.metadata.namespace)
    observed = get(context.children.claim_templates, context.names.claim_template, context.metadata.namespace)
    record = observed.record if observed is not None else None
    return [desired] if record is None or record.get("spec") == desired["spec"] else []


def _workload_states(plan: WorkloadPlan, context: ReconcileContext) -> dict[str, ConditionState | None]:
    """One state for each workload of the topology; the others' conditions do not apply."""
    names = context.names
    states: dict[str, ConditionState | None] = dict.fromkeys((*WORKLOAD_CONDITIONS, *SCALING_CONDITIONS))
    for one_ in plan.deployments:
        main = one_.name == names.main
        condition = LLMCondition.MAIN_WORKLOAD_READY if main else LLMCondition.PREFILL_WORKLOAD_READY
        deployed = current(context.deployment(one_.name), one_.selector)
        states[condition] = deployment_state(deployed, was_ready=context.was_ready)
    for group in plan.groups:
        main = group.name == names.multi_node
        condition = LLMCondition.WORKER_WORKLOAD_READY if main else LLMCondition.PREFILL_WORKER_WORKLOAD_READY
        groups = context.children.leader_worker_sets
        observed = get(groups, group.name, context.metadata.namespace)
        states[condition] = _NO_GROUPS if groups is None else leader_worker_set_state(observed)
    return states


def _workload_causes(plan: WorkloadPlan, context: ReconcileContext) -> list[Cause]:
    observed = [current(context.deployment(one_.name), one_.selector) for one_ in plan.deployments]
    causes = [cause for child in observed if child is not None for cause in deployment_causes(child)]
    of_pods = [cause for pods in pods_by_workload(context, scheduler=False) for cause in pod_causes(pods)]
    bundle = ca_bundle_causes(context) if plan.ca_bundle else []
    return [*bundle, *causes, *of_pods, *(plan.hints if of_pods else ())]


def pods_by_workload(context: ReconcileContext, *, scheduler: bool) -> list[list[ObservedPod]]:
    """Pods of the endpoint picker, or those of each model server: a LeaderWorkerSet's, or a Deployment's."""
    grouped: dict[str, list[ObservedPod]] = {}
    for pod in sorted_values(context.related.pods):
        labels = pod.metadata.labels or {}
        if labels.get(PART_OF) != PART_OF_VALUE:  # somebody else's of the same name
            continue
        component = labels.get(COMPONENT, "")
        if (component == COMPONENT_SCHEDULER) is scheduler:
            grouped.setdefault(labels.get(LWS_NAME, component), []).append(pod)
    return list(grouped.values())
