"""Metrics of an autoscaler as ``autoscaling/v2`` writes them.

Metacontroller replaces the list of metrics as a whole, so each one is complete and its quantities are canonical
(MC-3.2).
"""

from __future__ import annotations

from typing import Any

from app.kube.quantity import canonical

Json = dict[str, Any]


def pods_metric(name: str, average: str) -> Json:
    """A metric of the pods that an adapter offers, and its wanted average."""
    target = {"type": "AverageValue", "averageValue": canonical(average)}
    return {"type": "Pods", "pods": {"metric": {"name": name}, "target": target}}


def resource_metric(name: str, utilization: int) -> Json:
    """CPU or memory, and its wanted average in percent of the request."""
    target = {"type": "Utilization", "averageUtilization": utilization}
    return {"type": "Resource", "resource": {"name": name, "target": target}}
