"""The presets of the managed route and of the endpoint picker."""

from app import images
from app.kserve.constants import MAIN
from app.kserve.spec.presets import parts
from app.kserve.spec.presets.router import GATEWAY, POOL, POOL_SPEC, RESTRICTED, SERVICE, prefix, rewrite, to
from app.kserve.spec.presets.v020.pods import CERTIFICATE_DIRECTORIES, GRACE_SECONDS, wait_before_stop
from app.kube.base import Json
from app.workload.parts import TERMINATION_MESSAGE_POLICY

_MODEL = "publishers/{{ .ObjectMeta.Namespace }}/models/{{ .Spec.Model.Name }}"
_APIS = {
    "v1-completions": "/v1/completions",
    "v1-chat-completions": "/v1/chat/completions",
    "v1-responses": "/v1/responses",
    "v1-messages": "/v1/messages",
}
"""Paths that use the endpoint picker, by the first part of their rules' names."""
_BY_MODEL: Json = {"type": "Exact", "name": "{{ .GlobalConfig.ModelBasedRoutingHeaderName }}", "value": _MODEL}


def route() -> Json:
    """Build the route: by the service's own path, by the model in a header, and by the model in the path."""
    by_model = [
        {"path": {"type": "Exact", "value": path}, "headers": [_BY_MODEL]}
        for api in _APIS.values()
        for path in (api, f"{api}/")
    ]
    rules = [_prefixed(f"{name}-path", f"{parts.SERVICE_PATH}{api}", api, POOL) for name, api in _APIS.items()]
    rules.append(_rule("v1-model-routing", by_model, POOL))
    rules += [_prefixed(f"{name}-publisher-path", f"/{_MODEL}{api}", api, POOL) for name, api in _APIS.items()]
    rules.append(_prefixed("v1-publisher-path-catch-all", f"/{_MODEL}", "/", SERVICE))
    rules.append(_prefixed("v1-catch-all-path", parts.SERVICE_PATH, "/", SERVICE))
    everything = {"path": {"type": "PathPrefix", "value": "/"}, "headers": [_BY_MODEL]}
    rules.append(_rule("v1-catch-all-model-routing", [everything], SERVICE))
    return {"parentRefs": [GATEWAY], "rules": rules}


def _prefixed(name: str, path: str, rewritten: str, backend: Json) -> Json:
    """Build a rule for a path, which the backend sees as ``rewritten``."""
    return {**_rule(name, prefix(path), backend), "filters": rewrite(rewritten)}


def _rule(name: str, matches: list[Json], backend: Json) -> Json:
    return {"name": name, "matches": matches, **to(backend)}


def scheduler() -> Json:
    pod = {
        "containers": [_picker(), _tokenizer()],
        "volumes": [
            parts.certificates_volume(),
            *({"name": name, "emptyDir": {}} for name in (_SOCKET["name"], "tokenizer-tmp", "tokenizer-cache")),
        ],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": GRACE_SECONDS,
    }
    version = {"app.kubernetes.io/version": images.ENDPOINT_PICKER.rpartition(":v")[2]}
    return {"pool": {"spec": POOL_SPEC}, "annotations": version, "template": pod}


_SOCKET: Json = {"name": "tokenizer-uds", "mountPath": "/tmp/tokenizer"}  # noqa: S108 - in the pod


def _picker() -> Json:
    return {
        "name": MAIN,
        "image": images.ENDPOINT_PICKER,
        "imagePullPolicy": "IfNotPresent",
        "command": [
            "/app/epp",
            *("--pool-name", parts.POOL_NAME),
            *("--pool-namespace", "{{ .ObjectMeta.Namespace }}"),
            *("--zap-encoder", "json"),
            *("--grpc-port", str(parts.GRPC_PORT)),
            *("--grpc-health-port", str(parts.HEALTH_PORT)),
        ],
        "env": [CERTIFICATE_DIRECTORIES],
        "ports": parts.PICKER_PORTS,
        "lifecycle": wait_before_stop(),
        "livenessProbe": parts.picker_health("liveness", initial_delay=5),
        "readinessProbe": parts.picker_health("readiness", initial_delay=30),
        "resources": {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"cpu": "6", "memory": "16Gi"}},
        "securityContext": RESTRICTED,
        "terminationMessagePath": parts.MESSAGE_PATH,
        "terminationMessagePolicy": TERMINATION_MESSAGE_POLICY,
        "volumeMounts": [parts.CERTIFICATES_MOUNT, _SOCKET],
    }


def _tokenizer() -> Json:
    """Build the container that splits prompts into tokens; it stays where a plugin of the picker asks for it."""

    def probe(**numbers: int) -> Json:
        return {"httpGet": {"path": "/healthz", "port": 8082}, "timeoutSeconds": 5, **numbers}

    return {
        "name": "tokenizer",
        "image": images.TOKENIZER,
        "imagePullPolicy": "IfNotPresent",
        "workingDir": "/mnt/models",
        "env": [{"name": "TOKENIZERS_DIR", "value": "/mnt/models"}],
        "ports": [{"name": "health", "containerPort": 8082, "protocol": "TCP"}],
        "livenessProbe": probe(periodSeconds=15, failureThreshold=3),
        "readinessProbe": probe(periodSeconds=10, failureThreshold=3),
        "startupProbe": probe(initialDelaySeconds=5, periodSeconds=10, failureThreshold=60),
        "resources": {"requests": {"cpu": "256m", "memory": "500Mi"}},
        "securityContext": RESTRICTED,
        "terminationMessagePath": parts.MESSAGE_PATH,
        "terminationMessagePolicy": TERMINATION_MESSAGE_POLICY,
        "volumeMounts": [
            {"name": "tokenizer-tmp", "mountPath": "/tmp"},  # noqa: S108 - in the pod
            {"name": "tokenizer-cache", "mountPath": "/.cache"},
            _SOCKET,
        ],
    }
