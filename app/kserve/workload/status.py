"""Conditions from the statuses of Deployments and LeaderWorkerSets. Source: KS-6.2."""

from app.hooks.protocol import get
from app.kserve.llminferenceservice.observed import ReconcileContext
from app.kserve.llminferenceservice.types import LLMReason, WorkloadIdentity, Workloads, WorkloadSpec
from app.kserve.results import CONDITION_TRUE, ConditionState, by_condition, fails
from app.kserve.spec.effective import EffectiveSpec
from app.kube.conditions import find
from app.kube.objects import GroupStatus, ObservedDeployment, ObservedLeaderWorkerSet
from app.kube.resource import LEADER_WORKER_SETS
from app.workload.readiness.cause import Stage
from app.workload.readiness.ready import group_causes, ready_message
from app.workload.readiness.rollout import Rollout, group_rollout, rolling_out, rollout

_IDLE = ConditionState(True, message="replicas is 0, so no model server runs")
"""KServe calls that ready."""


def deployment_state(
    deployment: ObservedDeployment | None, wanted: int | None = None, *, was_ready: bool = False
) -> ConditionState:
    """Of a main or prefill Deployment, which must have seen its latest change (KS-6.2).

    ``wanted``: the number of replicas that the answer asks for.
    """
    if deployment is None:
        return fails(LLMReason.PROGRESSING, "the Deployment does not exist yet")
    name = deployment.metadata.name
    available = find(deployment.status.conditions, "Available")
    if available is None:
        text = f"Deployment {name} has no status yet; if this lasts, the controller of Deployments is not running"
        return fails(LLMReason.PROGRESSING, text)
    if available.status != "True":
        return by_condition(available)
    progress = rollout(deployment, wanted, was_ready=was_ready)
    if not progress.up_to_date:
        return fails(LLMReason.PROGRESSING, f"Deployment {name}: the latest change is not rolled out")
    return _rolled_out("Deployment", name, progress)


def leader_worker_set_state(workload: ObservedLeaderWorkerSet | None, wanted: int | None = None) -> ConditionState:
    available = find(workload.status.conditions, "Available") if workload is not None else None
    if workload is None or available is None:
        causes = [] if workload is None else group_causes(workload)
        return fails(LLMReason.PROGRESSING, ready_message(causes) or "the LeaderWorkerSet is not available yet")
    if available.status != "True":
        # A condition that another one has replaced keeps its reason and message: "All replicas are ready".
        return by_condition(next((c for c in workload.status.conditions or () if c.status == "True"), available))
    return _rolled_out("LeaderWorkerSet", workload.metadata.name, group_rollout(workload, wanted))


def _rolled_out(kind: str, name: str, progress: Rollout) -> ConditionState:
    """Judge a workload that is available, even during an update that fails."""
    if progress.current:
        return CONDITION_TRUE if progress.desired else _IDLE
    cause = rolling_out(kind, name, progress)
    return fails(cause.reason, cause.text, Stage.PROBE)


def workload_parts(spec: EffectiveSpec, context: ReconcileContext) -> Workloads:
    names, prefill = context.names, spec.prefill
    prefill_names = (names.multi_node_prefill, names.prefill)
    return Workloads(
        primary=_model_servers(spec, context, names.multi_node, names.main),
        prefill=_model_servers(prefill, context, *prefill_names) if prefill is not None else None,
        scheduler=_deployment(context, names.scheduler) if spec.made_scheduler is not None else None,
        service=WorkloadIdentity("Service", names.workload_service),
    )


def _model_servers(spec: WorkloadSpec, context: ReconcileContext, group: str, name: str) -> WorkloadIdentity:
    if spec.worker is None:
        return _deployment(context, name)
    observed = get(context.children.leader_worker_sets, group, context.metadata.namespace)
    status = observed.status if observed is not None else GroupStatus()
    api_group = LEADER_WORKER_SETS.api_version.partition("/")[0]
    return WorkloadIdentity("LeaderWorkerSet", group, api_group, status.ready_replicas, status.hpa_pod_selector)


def _deployment(context: ReconcileContext, name: str) -> WorkloadIdentity:
    observed = context.deployment(name)
    if observed is None:
        return WorkloadIdentity("Deployment", name, "apps")
    labels = (observed.spec.selector.match_labels or {}).items()
    selector = ",".join(f"{key}={value}" for key, value in sorted(labels))
    return WorkloadIdentity("Deployment", name, "apps", observed.status.available_replicas, selector)
