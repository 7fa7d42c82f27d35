"""The children of a service: Deployment, Service, autoscaler and PodMonitor. Source: LK-3.3, LK-4, LK-D.8."""

from app.hooks.kept import desired_replicas, keep_child, kept_selector
from app.hooks.protocol import Kept
from app.kube import merge
from app.kube.base import Json
from app.kube.child import child, metadata, template_metadata, without_none
from app.kube.objects import ObservedAutoscaler, ObservedDeployment
from app.llmkube import names
from app.llmkube.inferenceservice.plan import DEFAULT_ENDPOINT, PORT_NAME, InferencePlan
from app.workload.engines.commandline import variables_of
from app.workload.engines.engine import path_prefix, serves_tls


def deployment(
    plan: InferencePlan, observed: ObservedDeployment | None, autoscaler: ObservedAutoscaler | None = None
) -> Json | None:
    """Build the Deployment; ``None`` while the observed one has an immutable selector that our pods cannot match.

    ``autoscaler`` is the observed one, which may have set the replicas. Where ``Recreate`` cannot replace the observed
    strategy yet, the observed Deployment is kept with its strategy recorded (LK-D.8, LK-D.9).
    """
    if not selectable(plan, observed):
        return None
    if observed is not None and plan.has_gpus and not _strategy_is_ours(observed):
        kept = keep_child(observed)
        strategy = {"type": "RollingUpdate", "rollingUpdate": observed.spec.strategy.rolling_update}
        return Kept(kept, spec={**(kept.get("spec") or {}), "strategy": strategy})
    running = observed.spec.selector.match_labels if observed else None
    spec = without_none(
        replicas=desired_replicas(plan.replicas, _start(plan, observed, autoscaler), observed),
        selector={"matchLabels": kept_selector(plan.selector, running, plan.pod_labels)},
        revisionHistoryLimit=plan.spec.revision_history_limit,
        strategy=plan.strategy,
        template={"metadata": template_metadata(plan.pod_labels, plan.pod_annotations), "spec": plan.pod},
    )
    return child("apps/v1", "Deployment", metadata(plan.name, plan.namespace, plan.labels), spec=spec)


def _start(
    plan: InferencePlan, observed: ObservedDeployment | None, autoscaler: ObservedAutoscaler | None
) -> int | None:
    """Return the initial replicas of an autoscaled service, or its autoscaler's last choice (LK-D.7); else ``None``."""
    if plan.scaling is None:
        return None
    chosen = autoscaler.status.desired_replicas if observed is None and autoscaler is not None else 0
    start: int = min(max(chosen or plan.replicas, plan.scaling["minReplicas"]), plan.scaling["maxReplicas"])
    return start


def selectable(plan: InferencePlan, observed: ObservedDeployment | None) -> bool:
    return observed is None or (observed.spec.selector.match_labels or {}).items() <= plan.pod_labels.items()


def _strategy_is_ours(observed: ObservedDeployment) -> bool:
    """Return whether leaving out ``rollingUpdate`` removes it: it is absent, or recorded, which costs a decoding."""
    rolling = observed.spec.strategy.rolling_update
    return rolling is None or bool(merge.find(observed.record, ("spec", "strategy", "rollingUpdate")))


def service(plan: InferencePlan) -> Json:
    """Build the Service. It finds the container's port by name, so the two numbers may differ (LK-T-44)."""
    name, endpoint = names.service_name(plan.name), plan.spec.endpoint or DEFAULT_ENDPOINT
    node_port = endpoint.node_port if endpoint.type == "NodePort" else None
    port = without_none(name=PORT_NAME, port=endpoint.port, targetPort=PORT_NAME, protocol="TCP", nodePort=node_port)
    spec = {"selector": plan.selector, "type": endpoint.type, "ports": [port]}
    return child("v1", "Service", metadata(name, plan.namespace, plan.selector), spec=spec)


def horizontal_pod_autoscaler(plan: InferencePlan) -> Json | None:
    if plan.scaling is None:
        return None
    meta = metadata(plan.name, plan.namespace, plan.selector)
    return child("autoscaling/v2", "HorizontalPodAutoscaler", meta, spec=plan.scaling)


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
    arguments, variables = plan.spec.extra_args, variables_of(plan.spec.env)
    endpoint: Json = {"port": PORT_NAME, "path": f"{path_prefix(arguments, variables)}/metrics", "interval": "30s"}
    endpoint |= {"relabelings": _RELABELINGS}
    if serves_tls(arguments, variables):  # with a certificate of the user's, whose CA is not known
        endpoint |= {"scheme": "https", "tlsConfig": {"insecureSkipVerify": True}}
    spec = {
        "selector": {"matchLabels": plan.selector},
        "podTargetLabels": [names.LABEL_SERVICE, names.LABEL_MODEL, names.LABEL_RUNTIME],
        "podMetricsEndpoints": [endpoint],
    }
    meta = metadata(plan.name, plan.namespace, plan.selector)
    return child(names.POD_MONITOR_API, "PodMonitor", meta, spec=spec)
