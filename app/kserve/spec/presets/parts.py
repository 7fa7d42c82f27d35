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
