"""The workload of a Service, and the core Service in front of it. Source: LZ-4.3, LZ-4.4, LZ-4.6, LZ-4.8, LZ-9."""

from app.kube.base import Json
from app.kube.child import child, metadata, without_none
from app.llmaz.names import ACTIVATOR_MODEL, LWS_API, PORT, PORT_NAME, load_balancer
from app.llmaz.service.plan import ServicePlan
from app.llmaz.service.types import RollingUpdateConfiguration, is_nothing, percent


def deployment(plan: ServicePlan, template: Json, selector: dict[str, str]) -> Json:
    spec = {
        "replicas": plan.spec.replicas,
        "selector": {"matchLabels": selector},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": _rolling_update(plan)},
        "template": template,
    }
    return child("apps/v1", "Deployment", metadata(plan.name, plan.namespace), spec=spec)


def _rolling_update(plan: ServicePlan) -> Json:
    """Return the rolling update, by default without surge, because an additional pod needs a free GPU.

    A service without replicas may have 0 for both, which a Deployment never accepts.
    """
    config = plan.spec.rollout_strategy.rolling_update_configuration or RollingUpdateConfiguration()
    stuck = is_nothing(config.max_unavailable) and is_nothing(config.max_surge)
    return {"maxUnavailable": 1 if stuck else config.max_unavailable, "maxSurge": config.max_surge}


def leader_worker_set(plan: ServicePlan, worker: Json, leader: Json | None) -> Json:
    policy = plan.spec.workload_template.restart_policy
    kind, each = plan.sub_groups or (None, None)
    group = without_none(
        size=plan.size,
        # LeaderWorkerSet rewrites Default, the old name of None, so it would always differ.
        restartPolicy="None" if policy == "Default" else policy,
        workerTemplate=worker,
        leaderTemplate=leader,
        subGroupPolicy=without_none(subGroupPolicyType=kind, subGroupSize=each) or None,
    )
    spec = {
        "replicas": plan.spec.replicas,
        # Workers start with their leader, which may need them (LZ-T07); a group of one has upstream's value.
        "startupPolicy": "LeaderCreated" if plan.size > 1 else "LeaderReady",
        "rolloutStrategy": _rollout(plan),
        "leaderWorkerTemplate": group,
    }
    return child(LWS_API, "LeaderWorkerSet", metadata(plan.name, plan.namespace), spec=spec)


def _rollout(plan: ServicePlan) -> Json:
    rollout: Json = {"type": plan.spec.rollout_strategy.type}
    config = plan.spec.rollout_strategy.rolling_update_configuration
    if config is not None:
        rollout["rollingUpdateConfiguration"] = {
            "maxUnavailable": 1 if _is_stuck(config, plan.spec.replicas) else config.max_unavailable,
            "maxSurge": config.max_surge,
        }
    return rollout


def _is_stuck(config: RollingUpdateConfiguration, replicas: int) -> bool:
    """Return whether a percentage rounds down to 0 without surge, which LeaderWorkerSet rejects."""
    share = config.max_unavailable
    return isinstance(share, str) and replicas > 0 and is_nothing(config.max_surge) and percent(share) * replicas < 100


def load_balancing_service(plan: ServicePlan, selector: dict[str, str]) -> Json:
    meta = metadata(load_balancer(plan.name), plan.namespace, annotations={ACTIVATOR_MODEL: plan.models[0].name})
    port = {"name": PORT_NAME, "port": PORT, "targetPort": PORT, "protocol": "TCP"}
    return child("v1", "Service", meta, spec={"selector": selector, "ports": [port]})
