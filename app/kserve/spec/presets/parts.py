"""Parts of pods and of the route that the presets of every edition share."""

from pathlib import Path

from app.kserve import constants
from app.kserve.constants import PUBLIC_PORT, ROUTING_SIDECAR
from app.kube.base import Json
from app.workload.parts import TERMINATION_MESSAGE_POLICY


def shell(name: str) -> str:
    """Read a part of the start scripts."""
    return "\n" + Path(__file__).with_name(f"{name}.sh").read_text(encoding="ascii")


DECODE_PORT = 8001
"""Port of the server in a decode pod: the routing sidecar has the public port."""
ROCE = shell("roce")
"""The part of start scripts that finds RDMA adapters, where ``KSERVE_INFER_ROCE`` asks for it (KS-2.7.2)."""
WORDS, RANK, _START = map(shell, ("words", "rank", "start"))
"""Parts of start scripts: the reader of words, the number of the pod in its group, and the user's arguments."""
_RDMA = ["IPC_LOCK", "SYS_RAWIO", "NET_RAW"]
"""Capabilities of servers that use RDMA."""
POOL_NAME = "{{ ChildName .ObjectMeta.Name `-inference-pool` }}"
SERVICE_NAME = "{{ ChildName .ObjectMeta.Name `-kserve-workload-svc` }}"
SERVICE_PATH = "/{{ .ObjectMeta.Namespace }}/{{ .ObjectMeta.Name }}"

_CERTIFICATES = "tls-certs"
CERTIFICATES_PATH = "/var/run/kserve/tls"
CERTIFICATES_MOUNT: Json = {"name": _CERTIFICATES, "mountPath": CERTIFICATES_PATH, "readOnly": True}
_CERTIFICATES_VOLUME: Json = {
    "name": _CERTIFICATES,
    "secret": {"secretName": "{{ ChildName .ObjectMeta.Name `-kserve-self-signed-certs` }}"},
}
"""KServe's certificates, where they exist (:mod:`app.kserve.spec.effective`)."""


def spread(parallelism: str) -> list[str]:
    """Build the arguments for the fields that are set."""
    return [
        f"{{{{ if {parallelism}.Expert }}}}--enable-expert-parallel{{{{ end }}}}",
        f"{{{{ if {parallelism}.Tensor }}}}--tensor-parallel-size {{{{ {parallelism}.Tensor }}}}{{{{ end }}}}",
    ]


def container(name: str, image: str, **fields: object) -> Json:
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


def http_probe(path: str, port: int, **numbers: int) -> Json:
    return {"httpGet": {"path": path, "port": port}, **numbers}


# Model servers.

SERVER_ENV: list[Json] = [
    {"name": "HOME", "value": "/home"},
    {"name": "VLLM_LOGGING_LEVEL", "value": "INFO"},
    {"name": "HF_HUB_CACHE", "value": "/models"},
]
_HOME, _SHARED_MEMORY, _CACHE = "home", "dshm", "model-cache"


def server(
    image: str, command: list[str], port: int, *mounts: Json, rdma: bool, non_root: bool, **fields: Json
) -> Json:
    capabilities = {"add": _RDMA} if rdma else {}
    own_mounts = [
        {"name": _HOME, "mountPath": "/home"},
        *mounts,
        {"name": _SHARED_MEMORY, "mountPath": "/dev/shm"},  # noqa: S108 - in the pod
        {"name": _CACHE, "mountPath": "/models"},
        CERTIFICATES_MOUNT,
    ]
    return container(
        constants.MAIN,
        image,
        command=command,
        ports=[{"containerPort": port, "protocol": "TCP"}],
        env=SERVER_ENV,
        securityContext=security(read_only=False, non_root=non_root, **capabilities),
        **fields,
        volumeMounts=own_mounts,
    )


def server_pod(
    main: Json, sidecar: Json | None, *volumes: Json, grace_seconds: int, shared_memory: str = "1Gi"
) -> Json:
    own_volumes = [
        {"name": _HOME, "emptyDir": {}},
        *volumes,
        {"name": _SHARED_MEMORY, "emptyDir": {"medium": "Memory", "sizeLimit": shared_memory}},
        {"name": _CACHE, "emptyDir": {}},
        _CERTIFICATES_VOLUME,
    ]
    pod: Json = {"containers": [main], "terminationGracePeriodSeconds": grace_seconds, "volumes": own_volumes}
    return pod if sidecar is None else {**pod, "initContainers": [sidecar]}


def bash(script: str) -> list[str]:
    """Return the command that runs a script; ``--`` makes a container's ``args`` arrive as the script's."""
    return ["/bin/bash", "-c", script, "--"]


def start(*last: str) -> str:
    """Return the end of a script that has the arguments of a server: the user's are added, and then ``last``."""
    added = f"server+=({' '.join(last)})\n" if last else ""
    return f'{_START}{added}exec "${{server[@]}}"\n'


def first_copy(parallelism: str) -> str:
    """Return the shell's expression for the number of the first copy of a model in a pod."""
    return f"$(( rank * {{{{ or {parallelism}.DataLocal 1 }}}} ))"


def server_array(*arguments: str) -> str:
    """Return the part of a script that has the first arguments of a server."""
    words = "\n  ".join(filter(None, arguments))
    return f"\nserver=(\n  {words}\n)\n"


def health(port: int, *, tls: bool = False, **numbers: int) -> Json:
    return {"httpGet": {"path": "/health", "port": port, "scheme": "HTTPS" if tls else "HTTP"}, **numbers}


def routing_sidecar(
    image: str, security_context: Json, *variables: Json, tls: bool = False, **started: list[str]
) -> Json:
    """Build the routing sidecar, which has prefill done elsewhere and passes requests to the decode server."""
    namespace = {"name": "INFERENCE_POOL_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}
    times = {"initialDelaySeconds": 10, "periodSeconds": 10}
    return {
        **container(ROUTING_SIDECAR, image, **started),
        "restartPolicy": "Always",
        "ports": [{"containerPort": PUBLIC_PORT, "protocol": "TCP"}],
        "env": [namespace, *variables],
        "securityContext": security_context,
        "livenessProbe": health(PUBLIC_PORT, tls=tls, **times, timeoutSeconds=10, failureThreshold=3),
        "readinessProbe": health(PUBLIC_PORT, tls=tls, **times, timeoutSeconds=5, failureThreshold=10),
        "volumeMounts": [CERTIFICATES_MOUNT],
    }


# The route and the endpoint picker.

GRPC_PORT = 9002
_HEALTH_PORT = 9003
PORTS = {"grpc": GRPC_PORT, "grpc-health": _HEALTH_PORT, "metrics": 9090, "zmq": 5557}
"""Ports of the endpoint picker; its Service has those of these names. By ZeroMQ model servers report their caches."""
PICKER_ARGUMENTS = [
    *("--pool-name", POOL_NAME),
    *("--pool-namespace", "{{ .ObjectMeta.Namespace }}"),
    *("--zap-encoder", "json"),
    *("--grpc-port", str(GRPC_PORT)),
    *("--grpc-health-port", str(_HEALTH_PORT)),
]
POOL: Json = {"group": constants.POOL_GROUP, "kind": "InferencePool", "name": POOL_NAME}
SERVICE: Json = {"group": "", "kind": "Service", "name": SERVICE_NAME}
GATEWAY: Json = {
    "group": constants.GATEWAY_GROUP,
    "kind": "Gateway",
    "name": "{{ .GlobalConfig.IngressGatewayName }}",
    "namespace": "{{ .GlobalConfig.IngressGatewayNamespace }}",
}
POOL_SPEC: Json = {
    "endpointPickerRef": {
        "group": "",
        "kind": "Service",
        "name": "{{ ChildName .ObjectMeta.Name `-epp-service` }}",
        "port": {"number": GRPC_PORT},
        "failureMode": "FailOpen",
    },
    "selector": {
        "matchLabels": {
            constants.NAME: "{{ .ObjectMeta.Name }}",
            constants.PART_OF: constants.PART_OF_VALUE,
            constants.KSERVE_COMPONENT: constants.KSERVE_COMPONENT_VALUE,
        }
    },
    "targetPorts": [{"number": PUBLIC_PORT}],
}


def to(backend: Json) -> Json:
    """Build the part of a rule that sends its requests to a backend, without time limits."""
    return {
        "backendRefs": [{**backend, "port": PUBLIC_PORT, "weight": 1}],
        "timeouts": {"request": "0s", "backendRequest": "0s"},
    }


def prefix(path: str) -> list[Json]:
    return [{"path": {"type": "PathPrefix", "value": path}}]


def rewrite(path: str) -> list[Json]:
    """Build the filters of a rule whose backend sees ``path`` in place of the matched prefix."""
    modifier = {"type": "ReplacePrefixMatch", "replacePrefixMatch": path}
    return [{"type": "URLRewrite", "urlRewrite": {"path": modifier}}]


def picker_pod(picker: Json, *others: Json, volumes: list[Json], grace_seconds: int) -> Json:
    return {
        "containers": [picker, *others],
        "volumes": [_CERTIFICATES_VOLUME, *volumes],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": grace_seconds,
    }


def picker(image: str, *mounts: Json, **fields: object) -> Json:
    return {
        **container(constants.MAIN, image, **fields),
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in PORTS.items()],
        "livenessProbe": _health("liveness", initial_delay=5),
        "readinessProbe": _health("readiness", initial_delay=30),
        "securityContext": security(read_only=True, non_root=True),
        "volumeMounts": [CERTIFICATES_MOUNT, *mounts],
    }


def _health(service: str, initial_delay: int) -> Json:
    return {
        "grpc": {"port": _HEALTH_PORT, "service": service},
        "initialDelaySeconds": initial_delay,
        "periodSeconds": 10,
        "timeoutSeconds": 1,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
