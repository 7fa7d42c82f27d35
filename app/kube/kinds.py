"""Kinds of Kubernetes' and LeaderWorkerSet's that more than one family owns or reads."""

from __future__ import annotations

from app.kube.resource import ChildKind, RelatedKind

DEPLOYMENTS = ChildKind("apps/v1", "Deployment", "deployments")
SERVICES = ChildKind("v1", "Service", "services")
AUTOSCALERS = ChildKind("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
LEADER_WORKER_SETS = ChildKind(
    "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "leaderworkersets", optional=True, component="leaderworkerset"
)

PODS = RelatedKind("v1", "pods")
CONFIG_MAPS = RelatedKind("v1", "configmaps")
