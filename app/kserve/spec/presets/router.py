"""The presets of the managed route and of the endpoint picker. Source: KS-2.7.4 and KS-2.7.5."""

from __future__ import annotations

from app import images
from app.kserve.names import (
    GATEWAY_GROUP,
    KSERVE_COMPONENT,
    KSERVE_COMPONENT_VALUE,
    MAIN,
    NAME,
    PART_OF,
    PART_OF_VALUE,
    POOL_GROUP,
    PUBLIC_PORT,
)
from app.kserve.spec.presets.pods import CERTIFICATES_MOUNT, MESSAGE_PATH, certificates_volume
from app.kube.base import Json
from app.workload.parts import TERMINATION_MESSAGE_POLICY

"""Image and arguments belong together: never change one alone."""
GRPC_PORT = 9002
HEALTH_PORT = 9003
METRICS_PORT = 9090
EVENTS_PORT = 5557
"""ZeroMQ: model servers report their caches here."""

_POOL_NAME = "{{ ChildName .ObjectMeta.Name `-inference-pool` }}"
_PREFIX = "/{{ .ObjectMeta.Namespace }}/{{ .ObjectMeta.Name }}"


def _rule(path: str, rewritten: str, backend: Json) -> Json:
    return {
        "matches": [{"path": {"type": "PathPrefix", "value": f"{_PREFIX}{path}"}}],
        "filters": [
            {
                "type": "URLRewrite",
                "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": rewritten}},
            }
        ],
        "backendRefs": [{**backend, "port": PUBLIC_PORT, "weight": 1}],
        "timeouts": {"request": "0s", "backendRequest": "0s"},
    }


def route() -> Json:
    """The API goes through the endpoint picker's pool, everything else straight to the workload Service."""
    pool = {"group": POOL_GROUP, "kind": "InferencePool", "name": _POOL_NAME}
    service = {"group": "", "kind": "Service", "name": "{{ ChildName .ObjectMeta.Name `-kserve-workload-svc` }}"}
    return {
        "parentRefs": [
            {
                "group": GATEWAY_GROUP,
                "kind": "Gateway",
                "name": "{{ .GlobalConfig.IngressGatewayName }}",
                "namespace": "{{ .GlobalConfig.IngressGatewayNamespace }}",
            }
        ],
        "rules": [
            _rule("/v1/completions", "/v1/completions", pool),
            _rule("/v1/chat/completions", "/v1/chat/completions", pool),
            _rule("", "/", service),
        ],
    }


def scheduler() -> Json:
    """The endpoint picker and its pool."""
    return {"pool": {"spec": _pool()}, "template": _pod()}


def _pool() -> Json:
    return {
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


def _pod() -> Json:
    return {
        "containers": [_picker()],
        "volumes": [certificates_volume()],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
    }


def _picker() -> Json:
    return {
        "name": MAIN,
        "image": images.ENDPOINT_PICKER,
        "imagePullPolicy": "IfNotPresent",
        "args": [
            *("--pool-name", _POOL_NAME),
            *("--pool-namespace", "{{ .ObjectMeta.Namespace }}"),
            *("--zap-encoder", "json"),
            *("--grpc-port", str(GRPC_PORT)),
            *("--grpc-health-port", str(HEALTH_PORT)),
            *("--kv-cache-usage-percentage-metric", "vllm:kv_cache_usage_perc"),
        ],
        "ports": [
            {"name": "grpc", "containerPort": GRPC_PORT, "protocol": "TCP"},
            {"name": "grpc-health", "containerPort": HEALTH_PORT, "protocol": "TCP"},
            {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"},
            {"name": "zmq", "containerPort": EVENTS_PORT, "protocol": "TCP"},
        ],
        "livenessProbe": _health("liveness", initial_delay=5),
        "readinessProbe": _health("readiness", initial_delay=30),
        "resources": {"requests": {"cpu": "256m", "memory": "500Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationMessagePath": MESSAGE_PATH,
        "terminationMessagePolicy": TERMINATION_MESSAGE_POLICY,
        "volumeMounts": [CERTIFICATES_MOUNT],
    }


def _health(service: str, initial_delay: int) -> Json:
    return {
        "grpc": {"port": HEALTH_PORT, "service": service},
        "initialDelaySeconds": initial_delay,
        "periodSeconds": 10,
        "timeoutSeconds": 1,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
