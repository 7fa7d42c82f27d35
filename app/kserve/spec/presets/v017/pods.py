"""The presets of model-server pods. Source: KS-2.7.1 to KS-2.7.3."""

from __future__ import annotations

from typing import Any

from app import images
from app.kserve.constants import MAIN, PUBLIC_PORT, ROUTING_SIDECAR
from app.kserve.spec.presets import parts
from app.kserve.spec.presets.v017.script import join_script, pipeline_script, start_script
from app.kube.base import Json
from app.workload.parts import STARTUP_PERIOD, TERMINATION_MESSAGE_POLICY


def _probes(port: int, readiness_period: int) -> Json:
    return {
        "livenessProbe": parts.health(port, periodSeconds=10, timeoutSeconds=10, failureThreshold=3),
        "readinessProbe": parts.health(port, periodSeconds=readiness_period, timeoutSeconds=5, failureThreshold=60),
        "startupProbe": parts.health(port, periodSeconds=STARTUP_PERIOD, failureThreshold=300),
    }


def _server(port: int, command: list[str], *, rdma: bool = False, probes: Json | None = None, **fields: object) -> Json:
    capabilities: Json = {"drop": ["ALL"]}
    if rdma:
        capabilities["add"] = parts.RDMA
    return {
        "name": MAIN,
        "image": images.LLM_D_V017,
        "imagePullPolicy": "IfNotPresent",
        "command": command,
        "ports": [{"containerPort": port, "protocol": "TCP"}],
        "env": parts.SERVER_ENV,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": False,
            "runAsNonRoot": False,
            "capabilities": capabilities,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationMessagePath": parts.MESSAGE_PATH,
        "terminationMessagePolicy": TERMINATION_MESSAGE_POLICY,
        **(probes or {}),
        "volumeMounts": parts.server_mounts(),
        **fields,
    }


def _pod(server: Json, sidecar: Json | None = None) -> Json:
    pod: Json = {"containers": [server], "terminationGracePeriodSeconds": 30, "volumes": parts.server_volumes()}
    if sidecar is not None:
        pod["initContainers"] = [sidecar]
    return pod


def single_node(port: int, *, routed: bool = False, **fields: Any) -> Json:
    """A server that fits one pod; ``routed`` puts the routing sidecar before it."""
    command = ["vllm", "serve", "/mnt/models", "--served-model-name", "{{ .Spec.Model.Name }}", "--port", str(port)]
    server = _server(port, command, probes=_probes(port, 10), **fields)
    return _pod(server, routing_sidecar(read_only=False) if routed else None)


def leader(port: int, parallelism: str, *, routed: bool = False) -> Json:
    """The first pod of a data-parallel group: it takes the requests."""
    command = _script(start_script(port, leader=True, parallelism=parallelism))
    server = _server(port, command, rdma=True, probes=_probes(port, 30))
    return _pod(server, routing_sidecar(read_only=True) if routed else None)


def worker(port: int, parallelism: str) -> Json:
    """Every other pod of a data-parallel group. Nobody sends it requests, so it has no probes."""
    return _pod(_server(port, _script(start_script(port, leader=False, parallelism=parallelism)), rdma=True))


def pipeline_leader(port: int, parallelism: str, *, routed: bool = False) -> Json:
    """The first pod of a pipeline: it takes the requests."""
    command = _script(pipeline_script(port, parallelism))
    server = _server(port, command, rdma=True, probes=_probes(port, 30))
    return _pod(server, routing_sidecar(read_only=True) if routed else None)


def pipeline_worker() -> Json:
    """Every other pod of a pipeline, which accepts only the leader's connections."""
    server = _server(0, _script(join_script()), rdma=True)
    return _pod({key: value for key, value in server.items() if key != "ports"})


def _script(text: str) -> list[str]:
    """``--`` makes a container's ``args`` arrive as the script's."""
    return ["/bin/bash", "-c", text, "--"]


def routing_sidecar(*, read_only: bool) -> Json:
    """Takes requests on the public port, has prefill done elsewhere, and passes them to the decode server."""
    security: Json = {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": read_only,
        "runAsNonRoot": False,
        "capabilities": {"drop": ["ALL"]},
    }
    if read_only:
        security["seccompProfile"] = {"type": "RuntimeDefault"}
    return {
        "name": ROUTING_SIDECAR,
        "image": images.ROUTING_SIDECAR_V017,
        "imagePullPolicy": "IfNotPresent",
        "restartPolicy": "Always",
        "args": [
            f"--port={PUBLIC_PORT}",
            f"--vllm-port={parts.DECODE_PORT}",
            "--connector=nixlv2",
            "--secure-proxy=false",
        ],
        "ports": [{"containerPort": PUBLIC_PORT, "protocol": "TCP"}],
        "env": [{"name": "INFERENCE_POOL_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}],
        "securityContext": security,
        "terminationMessagePath": parts.MESSAGE_PATH,
        "terminationMessagePolicy": TERMINATION_MESSAGE_POLICY,
        "livenessProbe": parts.health(
            PUBLIC_PORT, initialDelaySeconds=10, periodSeconds=10, timeoutSeconds=10, failureThreshold=3
        ),
        "readinessProbe": parts.health(
            PUBLIC_PORT, initialDelaySeconds=10, periodSeconds=10, timeoutSeconds=5, failureThreshold=10
        ),
        "volumeMounts": [parts.CERTIFICATES_MOUNT],
    }
