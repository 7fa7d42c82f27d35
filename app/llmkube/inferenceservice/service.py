"""The Service before the pods. Source: llmkube spec 4.1."""

from __future__ import annotations

from app.kube.desired import ObjectMeta, Service, ServicePort, ServiceSpec
from app.llmkube.inferenceservice.plan import PORT_NAME, Plan


def service(plan: Plan) -> Service:
    """One port. It leads to the container's port by name, so the two numbers need not be the same (T-44)."""
    return Service(
        metadata=ObjectMeta(name=plan.service_name, namespace=plan.namespace, labels=plan.selector),
        spec=ServiceSpec(
            selector=plan.selector,
            type=plan.service_type,
            ports=[ServicePort(name=PORT_NAME, port=plan.service_port, target_port=PORT_NAME)],
        ),
    )
