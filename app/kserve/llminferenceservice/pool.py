"""The managed InferencePool. Source: kserve spec 4.5."""

from __future__ import annotations

from typing import Any

from app.kserve.names import COMPONENT_SCHEDULER, POOL_API, Names, component_labels
from app.kserve.presets.router import GRPC_PORT

Json = dict[str, Any]


def inference_pool(names: Names, namespace: str, spec: Json) -> Json:
    """The pool as effective ``router.scheduler.pool.spec`` has it, which is in the form of InferencePool v1."""
    picker = spec.get("endpointPickerRef")
    if isinstance(picker, dict) and picker.get("kind", "Service") == "Service" and "port" not in picker:
        spec = {**spec, "endpointPickerRef": {**picker, "port": {"number": GRPC_PORT}}}
    return {
        "apiVersion": POOL_API,
        "kind": "InferencePool",
        "metadata": {
            "name": names.pool,
            "namespace": namespace,
            "labels": component_labels(names.service, COMPONENT_SCHEDULER),
        },
        "spec": spec,
    }
