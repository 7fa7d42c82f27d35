"""The objects around a service's pods: Service, autoscaler and PodMonitor. Source: LK-4.1 to LK-4.3."""

from app.kube import desired
from app.kube.base import Json
from app.llmkube import names
from app.llmkube.inferenceservice.plan import PORT_NAME, InferencePlan


def service(plan: InferencePlan) -> desired.Service:
    """Build the Service. It finds the container's port by name, so the two numbers may differ (LK-T-44)."""
    return desired.Service(
        metadata=desired.ObjectMeta(name=plan.service_name, namespace=plan.namespace, labels=plan.selector),
        spec=desired.CoreServiceSpec(
            selector=plan.selector,
            type=plan.service_type,
            ports=[
                desired.ServicePort(
                    name=PORT_NAME, port=plan.service_port, target_port=PORT_NAME, node_port=plan.node_port
                )
            ],
        ),
    )


def horizontal_pod_autoscaler(plan: InferencePlan) -> desired.HorizontalPodAutoscaler | None:
    if plan.scaling is None:
        return None
    metadata = desired.ObjectMeta(name=plan.name, namespace=plan.namespace, labels=plan.selector)
    return desired.HorizontalPodAutoscaler(metadata=metadata, spec=plan.scaling)


def _meta(key: str) -> str:
    return "".join(character if character.isalnum() else "_" for character in key)


_TARGETS = {
    "model": f"__meta_kubernetes_pod_label_{_meta(names.LABEL_MODEL)}",
    "namespace": "__meta_kubernetes_namespace",
    "runtime": f"__meta_kubernetes_pod_label_{_meta(names.LABEL_RUNTIME)}",
    "service": f"__meta_kubernetes_pod_label_{_meta(names.LABEL_SERVICE)}",
}
_RELABELINGS: list[Json] = [
    {"action": "replace", "sourceLabels": [source], "targetLabel": target} for target, source in _TARGETS.items()
]
"""Label each series with its service, model and runtime. ``action`` is the API's default: lists replace."""


def pod_monitor(plan: InferencePlan) -> Json | None:
    """Build the PodMonitor; ``None`` for a runtime without ``/metrics``. Only clusters that have the kind get one."""
    if not plan.runtime.scraped:
        return None
    return {
        "apiVersion": names.POD_MONITOR_API,
        "kind": "PodMonitor",
        "metadata": {"name": plan.name, "namespace": plan.namespace, "labels": plan.selector},
        "spec": {
            "selector": {"matchLabels": plan.selector},
            "podMetricsEndpoints": [
                {"port": PORT_NAME, "path": "/metrics", "interval": "30s", "relabelings": _RELABELINGS}
            ],
        },
    }
