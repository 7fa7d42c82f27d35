"""The workload Service, before every model server of a service. Source: kserve spec 3.8."""

from __future__ import annotations

from typing import Any

from app.kserve.llminferenceservice.deployment import metadata
from app.kserve.names import COMPONENT_WORKLOAD, PUBLIC_PORT, Names, component_labels, workload_selector

Json = dict[str, Any]


def workload_service(names: Names, namespace: str) -> Json:
    """It is there in every topology, with a router or without. The servers speak plain HTTP."""
    port = {
        "name": "http",
        "protocol": "TCP",
        "appProtocol": "http",
        "port": PUBLIC_PORT,
        "targetPort": PUBLIC_PORT,
    }
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(names.workload_service, namespace, component_labels(names.service, COMPONENT_WORKLOAD)),
        "spec": {"type": "ClusterIP", "selector": workload_selector(names.service), "ports": [port]},
    }
