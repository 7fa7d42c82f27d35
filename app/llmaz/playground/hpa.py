"""The autoscaler of a Playground: it scales the Playground itself. Source: LZ-4.5."""

from __future__ import annotations

from app.kube.desired import HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec, ObjectMeta, ScaleTarget
from app.llmaz.names import INFERENCE_API
from app.llmaz.playground.plan import Plan
from app.llmaz.scaling import behavior, metrics


def horizontal_pod_autoscaler(plan: Plan) -> HorizontalPodAutoscaler | None:
    """``None`` when the Playground does not scale by load."""
    scaling = plan.scaling
    if scaling is None:
        return None
    return HorizontalPodAutoscaler(
        metadata=ObjectMeta(name=plan.name, namespace=plan.namespace),
        spec=HorizontalPodAutoscalerSpec(
            scale_target_ref=ScaleTarget(api_version=INFERENCE_API, kind="Playground", name=plan.name),
            min_replicas=scaling.least,
            max_replicas=scaling.most,
            metrics=metrics(scaling.trigger),
            behavior=behavior(scaling.trigger),
        ),
    )
