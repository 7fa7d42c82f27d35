"""The LeaderWorkerSet of a workload whose replicas span several nodes. Source: kserve spec 3.6."""

from __future__ import annotations

from typing import Any

from app.kserve.llminferenceservice.deployment import metadata, pod_template
from app.kserve.llminferenceservice.plan import GroupPlan
from app.kserve.names import LEADER_WORKER_SET_API

Json = dict[str, Any]


def leader_worker_set(plan: GroupPlan, namespace: str) -> Json:
    """Groups start with their leader and restart as a whole."""
    template: Json = {
        "workerTemplate": pod_template(plan.worker),
        "restartPolicy": "RecreateGroupOnPodRestart",
    }
    if plan.leader is not None:
        template["leaderTemplate"] = pod_template(plan.leader)
    if plan.size is not None:
        template["size"] = plan.size
    if plan.sub_group_size is not None:
        template["subGroupPolicy"] = {"subGroupSize": plan.sub_group_size}
    spec: Json = {
        "leaderWorkerTemplate": template,
        "rolloutStrategy": {"type": "RollingUpdate"},
        "startupPolicy": "LeaderCreated",
    }
    if plan.replicas is not None:
        spec["replicas"] = plan.replicas
    return {
        "apiVersion": LEADER_WORKER_SET_API,
        "kind": "LeaderWorkerSet",
        "metadata": metadata(plan.name, namespace, plan.labels, plan.annotations),
        "spec": spec,
    }
