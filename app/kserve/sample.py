"""The fixed service that a config is rendered against when it is stored. Source: kserve spec 2.6.

Templates of a config may rely on every part that stands here.
"""

from __future__ import annotations

from typing import Any

from app.kserve.names import COMPONENT, MODEL_URI, NAME
from app.kserve.rendering import render_error
from app.kserve.templatedata import ServiceData
from app.kube import field
from app.kube.objects import ObjectMeta

Json = dict[str, Any]

_CONTAINER = {"name": "kserve-container"}
METADATA = ObjectMeta(
    name="test-llm-preset",
    namespace="test-llm-preset-test",
    annotations={MODEL_URI: "llama"},
    labels={NAME: "llminferenceservice", "app.kubernetes.io/instance": "test-llm-preset", COMPONENT: "inference"},
)
SPEC: Json = {
    "model": {"name": "llama", "uri": "llama"},
    "replicas": 2,
    "parallelism": {"data": 4, "dataLocal": 2, "tensor": 1, "expert": True},
    "template": {"containers": [_CONTAINER]},
    "worker": {"containers": [_CONTAINER]},
    "prefill": {
        "replicas": 1,
        "parallelism": {"tensor": 1, "pipeline": 1},
        "template": {"containers": [_CONTAINER]},
    },
    "router": {
        "route": {"http": {"refs": [{"name": "custom-http-route"}]}},
        "gateway": {"refs": [{"namespace": "kserve", "name": "kserve-ingress-gateway"}]},
        "scheduler": {
            "pool": {"ref": {"name": "custom-inference-pool"}},
            "template": {
                "containers": [{"name": "scheduler", "ports": [{"containerPort": port} for port in (9002, 9003, 5557)]}]
            },
        },
    },
}


def template_error(spec: Json, gateway: tuple[str, str], system_namespace: str) -> tuple[field.Path, str]:
    """Where and why a config's spec does not render for the sample service; an empty text where it does."""
    return render_error(spec, data(gateway, system_namespace))


def data(gateway: tuple[str, str], system_namespace: str) -> ServiceData:
    """What the sample service's templates are rendered with."""
    return ServiceData(METADATA, SPEC, system_namespace, gateway, sample=True)
