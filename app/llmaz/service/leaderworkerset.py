"""The workload of a service with several pods per replica. Source: llmaz spec 4.3, 4.4 and 4.8."""

from __future__ import annotations

from app.llmaz.embedded import Json
from app.llmaz.names import LWS_API
from app.llmaz.service.plan import Plan


def leader_worker_set(plan: Plan, worker: Json, leader: Json | None) -> Json:
    group: Json = {
        "size": plan.size,
        "restartPolicy": plan.template.restart_policy,
        "workerTemplate": worker,
    }
    if leader is not None:
        group["leaderTemplate"] = leader
    if plan.sub_groups is not None:
        policy = plan.sub_groups
        group["subGroupPolicy"] = {
            "subGroupPolicyType": policy.sub_group_policy_type,
            "subGroupSize": policy.sub_group_size,
        }
    return {
        "apiVersion": LWS_API,
        "kind": "LeaderWorkerSet",
        "metadata": {"name": plan.name, "namespace": plan.namespace},
        "spec": {
            "replicas": plan.replicas,
            "startupPolicy": _startup_policy(plan),
            "rolloutStrategy": _rollout(plan),
            "leaderWorkerTemplate": group,
        },
    }


def _startup_policy(plan: Plan) -> str:
    """Workers start with their leader: many engines' leaders are ready only after the workers joined (T7).

    A group of one has no workers, and keeps upstream's value so that taking over changes nothing.
    """
    return "LeaderCreated" if plan.size > 1 else "LeaderReady"


def _rollout(plan: Plan) -> Json:
    rollout: Json = {"type": plan.rollout.type}
    config = plan.rollout.rolling_update_configuration
    if config is not None:
        rollout["rollingUpdateConfiguration"] = {
            "maxUnavailable": config.max_unavailable,
            "maxSurge": config.max_surge,
        }
    return rollout
