"""The core Service before the pods that take requests. Source: LZ-4.6."""

from __future__ import annotations

from app.kube import desired
from app.llmaz.names import ACTIVATOR_MODEL, PORT, PORT_NAME, load_balancer
from app.llmaz.service.plan import Plan


def load_balancing_service(plan: Plan, selector: dict[str, str]) -> desired.Service:
    return desired.Service(
        metadata=desired.ObjectMeta(
            name=load_balancer(plan.name),
            namespace=plan.namespace,
            annotations={ACTIVATOR_MODEL: plan.models[0].name},
        ),
        spec=desired.ServiceSpec(
            selector=selector,
            ports=[desired.ServicePort(name=PORT_NAME, port=PORT, target_port=PORT)],
        ),
    )
