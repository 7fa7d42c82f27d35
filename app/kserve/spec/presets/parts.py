"""Parts that the presets of every edition share."""

from __future__ import annotations

from app.kserve.names import (
    GATEWAY_GROUP,
    KSERVE_COMPONENT,
    KSERVE_COMPONENT_VALUE,
    NAME,
    PART_OF,
    PART_OF_VALUE,
    POOL_GROUP,
    PUBLIC_PORT,
)
from app.kube.base import Json

DECODE_PORT = 8001
"""Port of the server in a decode pod: the routing sidecar has the public port."""
GRPC_PORT = 9002
HEALTH_PORT = 9003
METRICS_PORT = 9090
EVENTS_PORT = 5557
"""ZeroMQ: model servers report their caches here."""
PICKER_PORTS: list[Json] = [
    {"name": "grpc", "containerPort": GRPC_PORT, "protocol": "TCP"},
    {"name": "grpc-health", "containerPort": HEALTH_PORT, "protocol": "TCP"},
    {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"},
    {"name": "zmq", "containerPort": EVENTS_PORT, "protocol": "TCP"},
]
MESSAGE_PATH = "/dev/termination-log"
RDMA = ["IPC_LOCK", "SYS_RAWIO", "NET_RAW"]
"""Capabilities of servers that use RDMA."""
POOL_NAME = "{{ ChildName .ObjectMeta.Name `-inference-pool` }}"
SERVICE_NAME = "{{ ChildName .ObjectMeta.Name `-kserve-workload-svc` }}"
SERVICE_PATH = "/{{ .ObjectMeta.Namespace }}/{{ .ObjectMeta.Name }}"

_CERTIFICATES = "tls-certs"
CERTIFICATES_PATH = "/var/run/kserve/tls"
CERTIFICATES_MOUNT: Json = {"name": _CERTIFICATES, "mountPath": CERTIFICATES_PATH, "readOnly": True}


def certificates_volume() -> Json:
    """Build the volume of KServe's certificates, where they exist (:func:`app.kserve.spec.complete`)."""
    return {
        "name": _CERTIFICATES,
        "secret": {"secretName": "{{ ChildName .ObjectMeta.Name `-kserve-self-signed-certs` }}"},
    }


# Servers.

SERVER_ENV: list[Json] = [
    {"name": "HOME", "value": "/home"},
    {"name": "VLLM_LOGGING_LEVEL", "value": "INFO"},
    {"name": "HF_HUB_CACHE", "value": "/models"},
]
_HOME, _SHARED_MEMORY, _CACHE = "home", "dshm", "model-cache"


def server_mounts(*more: Json) -> list[Json]:
    """Return the mounts of a model server; ``more`` come after its home."""
    return [
        {"name": _HOME, "mountPath": "/home"},
        *more,
        {"name": _SHARED_MEMORY, "mountPath": "/dev/shm"},  # noqa: S108 - in the pod
        {"name": _CACHE, "mountPath": "/models"},
        CERTIFICATES_MOUNT,
    ]


def server_volumes(*more: Json, shared_memory: str = "1Gi") -> list[Json]:
    """Return the volumes of :func:`server_mounts`."""
    return [
        {"name": _HOME, "emptyDir": {}},
        *more,
        {"name": _SHARED_MEMORY, "emptyDir": {"medium": "Memory", "sizeLimit": shared_memory}},
        {"name": _CACHE, "emptyDir": {}},
        certificates_volume(),
    ]


def health(port: int, **numbers: int) -> Json:
    return {"httpGet": {"path": "/health", "port": port, "scheme": "HTTP"}, **numbers}


def picker_health(service: str, initial_delay: int) -> Json:
    return {
        "grpc": {"port": HEALTH_PORT, "service": service},
        "initialDelaySeconds": initial_delay,
        "periodSeconds": 10,
        "timeoutSeconds": 1,
        "successThreshold": 1,
        "failureThreshold": 3,
    }


PICKER_SECURITY: Json = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
POOL: Json = {
    "endpointPickerRef": {
        "group": "",
        "kind": "Service",
        "name": "{{ ChildName .ObjectMeta.Name `-epp-service` }}",
        "port": {"number": GRPC_PORT},
        "failureMode": "FailOpen",
    },
    "selector": {
        "matchLabels": {
            NAME: "{{ .ObjectMeta.Name }}",
            PART_OF: PART_OF_VALUE,
            KSERVE_COMPONENT: KSERVE_COMPONENT_VALUE,
        }
    },
    "targetPorts": [{"number": PUBLIC_PORT}],
}
"""The spec of the pool."""

# Routes.

GATEWAYS: list[Json] = [
    {
        "group": GATEWAY_GROUP,
        "kind": "Gateway",
        "name": "{{ .GlobalConfig.IngressGatewayName }}",
        "namespace": "{{ .GlobalConfig.IngressGatewayNamespace }}",
    }
]
TO_POOL: Json = {"group": POOL_GROUP, "kind": "InferencePool", "name": POOL_NAME}
TO_SERVICE: Json = {"group": "", "kind": "Service", "name": SERVICE_NAME}


def rule(matches: list[Json], backend: Json) -> Json:
    """Build a rule without a time limit."""
    return {
        "matches": matches,
        "backendRefs": [{**backend, "port": PUBLIC_PORT, "weight": 1}],
        "timeouts": {"request": "0s", "backendRequest": "0s"},
    }


def prefixed_rule(path: str, rewritten: str, backend: Json) -> Json:
    """Build a rule for a path, which the backend sees as ``rewritten``."""
    rewrite = {
        "type": "URLRewrite",
        "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": rewritten}},
    }
    return {**rule([{"path": {"type": "PathPrefix", "value": path}}], backend), "filters": [rewrite]}


TRACING: Json = {
    "tracing": {
        "exporterEndpoint": "http://otel-collector:4317",
        "sampler": "parentbased_traceidratio",
        "samplerArg": "0.05",
        "exporter": "otlp",
    }
}
