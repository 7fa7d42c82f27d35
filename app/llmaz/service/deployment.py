"""The workload of a service with one pod per replica. Source: LZ-9."""

from __future__ import annotations

from app.llmaz.embedded import Json
from app.llmaz.service.plan import Plan
from app.llmaz.service.types import RollingUpdateConfiguration
from app.llmaz.service.validation import is_nothing


def deployment(plan: Plan, template: Json, selector: dict[str, str]) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": plan.name, "namespace": plan.namespace},
        "spec": {
            "replicas": plan.replicas,
            "selector": {"matchLabels": selector},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": _rolling_update(plan)},
            "template": template,
        },
    }


def _rolling_update(plan: Plan) -> Json:
    """One missing, none in addition, unless said otherwise: a pod in addition needs a GPU to spare.

    Both 0 is allowed for a service of no replicas, and a Deployment refuses it even then.
    """
    config = plan.rollout.rolling_update_configuration or RollingUpdateConfiguration()
    stuck = is_nothing(config.max_unavailable) and is_nothing(config.max_surge)
    return {"maxUnavailable": 1 if stuck else config.max_unavailable, "maxSurge": config.max_surge}
