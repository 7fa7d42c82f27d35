"""The autoscaler. Source: llmkube spec 4.2."""

from __future__ import annotations

from app.kube.desired import HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec, ObjectMeta, ScaleTarget
from app.llmkube.inferenceservice.plan import Plan


def horizontal_pod_autoscaler(plan: Plan) -> HorizontalPodAutoscaler | None:
    """``None`` for a service that does not autoscale."""
    if plan.scaling is None:
        return None
    return HorizontalPodAutoscaler(
        metadata=ObjectMeta(name=plan.name, namespace=plan.namespace, labels=plan.selector),
        spec=HorizontalPodAutoscalerSpec(
            scale_target_ref=ScaleTarget(api_version="apps/v1", kind="Deployment", name=plan.name),
            min_replicas=plan.scaling.minimum,
            max_replicas=plan.scaling.maximum,
            metrics=list(plan.scaling.metrics),
        ),
    )
