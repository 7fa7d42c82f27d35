"""The Deployment of a workload whose replicas are single pods. Source: kserve spec 3.5."""

from __future__ import annotations

from typing import Any

from app.kserve.llminferenceservice.metadata import Labels
from app.kserve.llminferenceservice.plan import DeploymentPlan, PodPlan
from app.kube.objects import ObservedDeployment

Json = dict[str, Any]


def current(observed: ObservedDeployment | None, selector: Labels) -> ObservedDeployment | None:
    """The observed Deployment, unless its selector, which nobody can change, no longer finds the pods.

    Such a one has to go first: it is left out of one answer, and made anew by the next. That is so when a service
    gets or loses ``prefill``: its pods change their role.
    """
    if observed is None or outlived(observed, selector):
        return None
    return observed


def outlived(observed: ObservedDeployment | None, selector: Labels) -> bool:
    """Whether the observed Deployment cannot become the wanted one. ``selector`` is the one to be sent."""
    return observed is not None and (observed.spec.selector.match_labels or selector) != selector


def deployment(plan: DeploymentPlan, namespace: str) -> Json:
    """The strategy is left to Kubernetes: a rolling update."""
    spec: Json = {"selector": {"matchLabels": plan.selector}, "template": pod_template(plan.pod)}
    if plan.replicas is not None:
        spec["replicas"] = plan.replicas
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(plan.name, namespace, plan.labels, plan.annotations),
        "spec": spec,
    }


def pod_template(pod: PodPlan) -> Json:
    """A pod template as Deployments and LeaderWorkerSets have it."""
    meta: Json = {"labels": pod.labels}
    if pod.annotations:
        meta["annotations"] = pod.annotations
    return {"metadata": meta, "spec": pod.spec}


def metadata(name: str, namespace: str, labels: dict[str, str], annotations: dict[str, str] | None = None) -> Json:
    """An object's own metadata."""
    meta: Json = {"name": name, "namespace": namespace, "labels": labels}
    if annotations:
        meta["annotations"] = annotations
    return meta
