"""Parts that the presets of every edition share."""

from __future__ import annotations

from pathlib import Path

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
ROCE = "\n" + Path(__file__).with_name("roce.sh").read_text(encoding="ascii")
"""The part of start scripts that finds RDMA adapters, where ``KSERVE_INFER_ROCE`` asks for it (KS-2.7.2)."""
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


TRACING: Json = {
    "tracing": {
        "exporterEndpoint": "http://otel-collector:4317",
        "sampler": "parentbased_traceidratio",
        "samplerArg": "0.05",
        "exporter": "otlp",
    }
}
