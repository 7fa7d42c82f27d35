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
from app.kserve.spec.presets.parts import (
    CERTIFICATES_MOUNT,
    GRPC_PORT,
    HEALTH_PORT,
    MESSAGE_PATH,
    PICKER_PORTS,
    POOL_NAME,
    SERVICE_NAME,
    SERVICE_PATH,
    certificates_volume,
    picker_health,
)
from app.kube.base import Json
from app.workload.parts import TERMINATION_MESSAGE_POLICY


def _rule(path: str, rewritten: str, backend: Json) -> Json:
    return {
        "matches": [{"path": {"type": "PathPrefix", "value": f"{SERVICE_PATH}{path}"}}],
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
    pool = {"group": POOL_GROUP, "kind": "InferencePool", "name": POOL_NAME}
    service = {"group": "", "kind": "Service", "name": SERVICE_NAME}
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
        "image": images.ENDPOINT_PICKER_V017,
        "imagePullPolicy": "IfNotPresent",
        "args": [
            *("--pool-name", POOL_NAME),
            *("--pool-namespace", "{{ .ObjectMeta.Namespace }}"),
            *("--zap-encoder", "json"),
            *("--grpc-port", str(GRPC_PORT)),
            *("--grpc-health-port", str(HEALTH_PORT)),
            *("--kv-cache-usage-percentage-metric", "vllm:kv_cache_usage_perc"),
        ],
        "ports": PICKER_PORTS,
        "livenessProbe": picker_health("liveness", initial_delay=5),
        "readinessProbe": picker_health("readiness", initial_delay=30),
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
