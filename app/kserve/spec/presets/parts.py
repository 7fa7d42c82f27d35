"""Parts of pods that the presets of every edition share."""

from __future__ import annotations

from pathlib import Path

from app.kserve.constants import PUBLIC_PORT, ROUTING_SIDECAR
from app.kube.base import Json
from app.workload.parts import TERMINATION_MESSAGE_POLICY

DECODE_PORT = 8001
"""Port of the server in a decode pod: the routing sidecar has the public port."""
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


def spread(parallelism: str) -> list[str]:
    """Arguments for the fields that are set."""
    return [
        f"{{{{ if {parallelism}.Expert }}}}--enable-expert-parallel{{{{ end }}}}",
        f"{{{{ if {parallelism}.Tensor }}}}--tensor-parallel-size {{{{ {parallelism}.Tensor }}}}{{{{ end }}}}",
    ]


# Containers.


def container(name: str, image: str, **fields: object) -> Json:
    """Build a container with what all of them have in common."""
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": TERMINATION_MESSAGE_POLICY,
        **fields,
    }


def security(*, read_only: bool, non_root: bool, **capabilities: list[str]) -> Json:
    """Build a security context without privileges and, but for ``capabilities``, without capabilities."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": read_only,
        "runAsNonRoot": non_root,
        "capabilities": {"drop": ["ALL"], **capabilities},
        "seccompProfile": {"type": "RuntimeDefault"},
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


def routing_sidecar(image: str, security_context: Json, *variables: Json, **started: list[str]) -> Json:
    """Build the routing sidecar, which has prefill done elsewhere and passes requests to the decode server."""
    namespace = {"name": "INFERENCE_POOL_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}
    times = {"initialDelaySeconds": 10, "periodSeconds": 10}
    return {
        **container(ROUTING_SIDECAR, image, **started),
        "restartPolicy": "Always",
        "ports": [{"containerPort": PUBLIC_PORT, "protocol": "TCP"}],
        "env": [namespace, *variables],
        "securityContext": security_context,
        "livenessProbe": health(PUBLIC_PORT, **times, timeoutSeconds=10, failureThreshold=3),
        "readinessProbe": health(PUBLIC_PORT, **times, timeoutSeconds=5, failureThreshold=10),
        "volumeMounts": [CERTIFICATES_MOUNT],
    }
