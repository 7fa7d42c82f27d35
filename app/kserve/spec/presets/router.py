"""Parts of the route and of the endpoint picker that the presets of every edition share."""

from app.kserve import constants
from app.kserve.spec.presets import parts
from app.kube.base import Json

GRPC_PORT = 9002
_HEALTH_PORT = 9003
_PORTS = {"grpc": GRPC_PORT, "grpc-health": _HEALTH_PORT, "metrics": 9090, "zmq": 5557}
"""Ports of the endpoint picker; by ZeroMQ model servers report their caches."""
PICKER_ARGUMENTS = [
    *("--pool-name", parts.POOL_NAME),
    *("--pool-namespace", "{{ .ObjectMeta.Namespace }}"),
    *("--zap-encoder", "json"),
    *("--grpc-port", str(GRPC_PORT)),
    *("--grpc-health-port", str(_HEALTH_PORT)),
]
POOL: Json = {"group": constants.POOL_GROUP, "kind": "InferencePool", "name": parts.POOL_NAME}
SERVICE: Json = {"group": "", "kind": "Service", "name": parts.SERVICE_NAME}
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
    "targetPorts": [{"number": constants.PUBLIC_PORT}],
}


def to(backend: Json) -> Json:
    """Build the part of a rule that sends its requests to a backend, for as long as they take."""
    return {
        "backendRefs": [{**backend, "port": constants.PUBLIC_PORT, "weight": 1}],
        "timeouts": {"request": "0s", "backendRequest": "0s"},
    }


def prefix(path: str) -> list[Json]:
    return [{"path": {"type": "PathPrefix", "value": path}}]


def rewrite(path: str) -> list[Json]:
    """Build the filters of a rule whose backend sees ``path`` in place of the matched prefix."""
    modifier = {"type": "ReplacePrefixMatch", "replacePrefixMatch": path}
    return [{"type": "URLRewrite", "urlRewrite": {"path": modifier}}]


def picker_pod(picker: Json, *others: Json, volumes: list[Json], grace_seconds: int) -> Json:
    """Build the pod of the endpoint picker; ``volumes`` come after that of the certificates."""
    return {
        "containers": [picker, *others],
        "volumes": [parts.certificates_volume(), *volumes],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": grace_seconds,
    }


def picker(image: str, *mounts: Json, **fields: object) -> Json:
    """Build the container of the endpoint picker; ``mounts`` come after that of the certificates."""
    return {
        **parts.container(constants.MAIN, image, **fields),
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in _PORTS.items()],
        "livenessProbe": _health("liveness", initial_delay=5),
        "readinessProbe": _health("readiness", initial_delay=30),
        "securityContext": parts.security(read_only=True, non_root=True),
        "volumeMounts": [parts.CERTIFICATES_MOUNT, *mounts],
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
