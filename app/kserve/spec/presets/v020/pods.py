"""The presets of model-server pods."""

from __future__ import annotations

from collections.abc import Sequence

from app import images
from app.kserve.constants import MAIN, POOL_GROUP, PUBLIC_PORT, ROUTING_SIDECAR
from app.kserve.spec.presets import parts
from app.kserve.spec.presets.v020 import script
from app.kube.base import Json
from app.workload.parts import STARTUP_PERIOD, TERMINATION_MESSAGE_POLICY

GRACE_SECONDS = 60
CERTIFICATE_DIRECTORIES: Json = {
    "name": "SSL_CERT_DIR",
    "value": f"{parts.CERTIFICATES_PATH}:/var/run/secrets/kubernetes.io/serviceaccount:/etc/pki/tls/certs",
}


def wait_before_stop() -> Json:
    """Let a pod that ends finish the requests that still reach it."""
    return {"preStop": {"exec": {"command": ["/bin/sleep", str(script.PRE_STOP_SECONDS)]}}}


def single_node(port: int, pod: str, *, routed: bool = False) -> Json:
    """Build a server that fits one pod. ``pod``: path of its template; ``routed``: with the routing sidecar."""
    server = {**_server(port, script.single_node(port, pod)), **_probes(port)}
    return _pod(server, _sidecar() if routed else None)


def data_parallel(
    port: int, path: str, parallelism: str, *, routed: bool = False, env: Sequence[Json] = ()
) -> dict[str, Json]:
    """Build the leader and the workers of a data-parallel group. ``env``: more variables of workers."""
    leader = script.data_parallel(port, f"{path}.Template", parallelism, leader=True)
    worker = _server(port, script.data_parallel(port, f"{path}.Worker", parallelism, leader=False), rdma=True)
    return _group(port, leader, {**worker, "env": [*worker["env"], *env]}, routed=routed)


def pipeline(port: int, path: str, parallelism: str, *, routed: bool = False) -> dict[str, Json]:
    """Build the leader and the workers of a pipeline."""
    leader = script.pipeline(port, f"{path}.Template", parallelism, leader=True)
    worker = _server(port, script.pipeline(port, f"{path}.Worker", parallelism, leader=False), rdma=True)
    del worker["ports"]
    return _group(port, leader, worker, routed=routed)


def _group(port: int, leader: str, worker: Json, *, routed: bool) -> dict[str, Json]:
    """Workers get no requests, so they have no probes."""
    server = {**_server(port, leader, rdma=True), **_probes(port)}
    sidecar = _sidecar(seccompProfile={"type": "RuntimeDefault"}) if routed else None
    return {"template": _pod(server, sidecar, "8Gi"), "worker": _pod(worker, None, "8Gi")}


def _server(port: int, text: str, *, rdma: bool = False) -> Json:
    return {
        "name": MAIN,
        "image": images.LLM_D,
        "imagePullPolicy": "IfNotPresent",
        # ``--`` makes a container's ``args`` arrive as the script's.
        "command": ["/bin/bash", "-c", text, "--"],
        "ports": [{"containerPort": port, "protocol": "TCP"}],
        "env": parts.SERVER_ENV,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": False,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"], **({"add": parts.RDMA} if rdma else {})},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "lifecycle": wait_before_stop(),
        "terminationMessagePath": parts.MESSAGE_PATH,
        "terminationMessagePolicy": TERMINATION_MESSAGE_POLICY,
        "volumeMounts": parts.server_mounts({"name": "tmp-dir", "mountPath": "/tmp"}),  # noqa: S108 - in the pod
    }


def _probes(port: int) -> Json:
    return {
        "livenessProbe": parts.health(port, periodSeconds=10, timeoutSeconds=1, failureThreshold=10),
        "readinessProbe": parts.health(port, periodSeconds=1, timeoutSeconds=1, failureThreshold=2),
        "startupProbe": parts.health(port, periodSeconds=STARTUP_PERIOD, failureThreshold=600 // STARTUP_PERIOD),
    }


def _pod(server: Json, sidecar: Json | None, shared_memory: str = "1Gi") -> Json:
    pod: Json = {
        "containers": [server],
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "volumes": parts.server_volumes({"name": "tmp-dir", "emptyDir": {}}, shared_memory=shared_memory),
    }
    return pod if sidecar is None else {**pod, "initContainers": [sidecar]}


def _sidecar(**security: Json) -> Json:
    """Build the routing sidecar: it has prefill done elsewhere and passes requests to the decode server."""
    return {
        "name": ROUTING_SIDECAR,
        "image": images.ROUTING_SIDECAR,
        "imagePullPolicy": "IfNotPresent",
        "restartPolicy": "Always",
        "command": [
            "/app/pd-sidecar",
            f"--port={PUBLIC_PORT}",
            f"--vllm-port={parts.DECODE_PORT}",
            "--kv-connector=nixlv2",
            "--enable-ssrf-protection=true",
            f"--pool-group={POOL_GROUP}",
            "--inference-pool={{ .GlobalConfig.InferencePoolNamespacedName }}",
            "--secure-proxy=false",
        ],
        "ports": [{"containerPort": PUBLIC_PORT, "protocol": "TCP"}],
        "env": [
            {"name": "INFERENCE_POOL_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            CERTIFICATE_DIRECTORIES,
        ],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": False,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
            **security,
        },
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
