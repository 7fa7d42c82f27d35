"""The presets of the managed route and of the endpoint picker. Source: KS-2.7.4 and KS-2.7.5."""

from app import images
from app.kserve.constants import MAIN
from app.kserve.spec.presets import parts
from app.kserve.spec.presets.router import GATEWAY, POOL, POOL_SPEC, RESTRICTED, SERVICE, prefix, rewrite, to
from app.kube.base import Json
from app.workload.parts import TERMINATION_MESSAGE_POLICY


def _rule(path: str, rewritten: str, backend: Json) -> Json:
    return {"matches": prefix(f"{parts.SERVICE_PATH}{path}"), "filters": rewrite(rewritten), **to(backend)}


def route() -> Json:
    """The API goes through the endpoint picker's pool, everything else straight to the workload Service."""
    return {
        "parentRefs": [GATEWAY],
        "rules": [
            _rule("/v1/completions", "/v1/completions", POOL),
            _rule("/v1/chat/completions", "/v1/chat/completions", POOL),
            _rule("", "/", SERVICE),
        ],
    }


def scheduler() -> Json:
    return {"pool": {"spec": POOL_SPEC}, "template": _pod()}


def _pod() -> Json:
    return {
        "containers": [_picker()],
        "volumes": [parts.certificates_volume()],
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
            *("--pool-name", parts.POOL_NAME),
            *("--pool-namespace", "{{ .ObjectMeta.Namespace }}"),
            *("--zap-encoder", "json"),
            *("--grpc-port", str(parts.GRPC_PORT)),
            *("--grpc-health-port", str(parts.HEALTH_PORT)),
            *("--kv-cache-usage-percentage-metric", "vllm:kv_cache_usage_perc"),
        ],
        "ports": parts.PICKER_PORTS,
        "livenessProbe": parts.picker_health("liveness", initial_delay=5),
        "readinessProbe": parts.picker_health("readiness", initial_delay=30),
        "resources": {"requests": {"cpu": "256m", "memory": "500Mi"}},
        "securityContext": RESTRICTED,
        "terminationMessagePath": parts.MESSAGE_PATH,
        "terminationMessagePolicy": TERMINATION_MESSAGE_POLICY,
        "volumeMounts": [parts.CERTIFICATES_MOUNT],
    }
