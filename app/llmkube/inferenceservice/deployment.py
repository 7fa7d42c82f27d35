"""The Deployment of a service, and its update from the observed one. Source: LK-3.3 and LK-D.8."""

from app.hooks.kept import desired_replicas, keep_child, kept_selector
from app.hooks.protocol import Kept
from app.kube import desired
from app.kube.base import Json
from app.kube.merge import find
from app.kube.objects import ObservedAutoscaler, ObservedDeployment
from app.llmkube.inferenceservice.plan import InferencePlan

RECREATE: Json = {"type": "Recreate"}
"""With a GPU the old pod is deleted first: the new one might wait for its GPU forever (LK-T-07)."""
ROLLING_UPDATE: Json = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}
"""The API's defaults, written out so that they are recorded as ours and a switch to ``Recreate`` can remove them."""


def deployment(
    plan: InferencePlan, observed: ObservedDeployment | None, autoscaler: ObservedAutoscaler | None = None
) -> desired.Deployment | Json | None:
    """Build the Deployment; ``None`` while the observed one has an immutable selector that our pods cannot match.

    ``autoscaler`` is the observed one, which may have set the replicas. Where ``Recreate`` cannot replace the observed
    strategy yet, the observed Deployment is kept with its strategy recorded (LK-D.8, LK-D.9).
    """
    if not selectable(plan, observed):
        return None
    if observed is not None and plan.has_gpus and not _strategy_is_ours(observed):
        child = keep_child(observed)
        strategy = {"type": "RollingUpdate", "rollingUpdate": observed.spec.strategy.rolling_update}
        return Kept(child, spec={**(child.get("spec") or {}), "strategy": strategy})
    running = observed.spec.selector.match_labels if observed else None
    return desired.Deployment(
        metadata=desired.ObjectMeta(name=plan.name, namespace=plan.namespace, labels=plan.labels),
        spec=desired.DeploymentSpec(
            replicas=desired_replicas(plan.replicas, _start(plan, observed, autoscaler), observed),
            selector=desired.LabelSelector(match_labels=kept_selector(plan.selector, running, plan.pod_labels)),
            revision_history_limit=plan.history_limit,
            strategy=RECREATE if plan.has_gpus else ROLLING_UPDATE,
            template=desired.PodTemplateSpec(
                metadata=desired.TemplateMeta(labels=plan.pod_labels, annotations=plan.pod_annotations or None),
                spec=plan.pod,
            ),
        ),
    )


def _start(
    plan: InferencePlan, observed: ObservedDeployment | None, autoscaler: ObservedAutoscaler | None
) -> int | None:
    """Return the initial replicas of an autoscaled service, or its autoscaler's last choice (LK-D.7); else ``None``."""
    if plan.scaling is None:
        return None
    chosen = autoscaler.status.desired_replicas if observed is None and autoscaler is not None else 0
    return min(max(chosen or plan.replicas, plan.scaling.min_replicas or 1), plan.scaling.max_replicas)


def selectable(plan: InferencePlan, observed: ObservedDeployment | None) -> bool:
    return observed is None or (observed.spec.selector.match_labels or {}).items() <= plan.pod_labels.items()


def _strategy_is_ours(observed: ObservedDeployment) -> bool:
    """Return whether leaving out ``rollingUpdate`` removes it: it is absent or recorded."""
    if observed.spec.strategy.rolling_update is None:
        return True
    return bool(find(observed.record, ("spec", "strategy", "rollingUpdate")))
