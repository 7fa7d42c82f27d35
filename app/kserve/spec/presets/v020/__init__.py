"""The presets of KServe v0.20: its values, with scripts and templates written here."""

from __future__ import annotations

from app import images
from app.kserve.constants import MAIN, MODEL_PATH, MODEL_ROUTING, PICKER_VERSION, POOL_GROUP, PUBLIC_PORT, TOKENIZER
from app.kserve.spec.presets import edition as names
from app.kserve.spec.presets import parts
from app.kserve.spec.presets import router as shared
from app.kserve.spec.presets.edition import WORKER_ENV, Target, edition
from app.kserve.spec.presets.v020 import script
from app.kube.base import Json
from app.workload.parts import STARTUP_PERIOD

_GRACE_SECONDS = 60
_CERTIFICATE_DIRECTORIES: Json = {
    "name": "SSL_CERT_DIR",
    "value": f"{parts.CERTIFICATES_PATH}:/var/run/secrets/kubernetes.io/serviceaccount:/etc/pki/tls/certs",
}
_WAIT_BEFORE_STOP: Json = {"preStop": {"exec": {"command": ["/bin/sleep", str(script.PRE_STOP_SECONDS)]}}}
"""Lets a pod that ends finish the requests that still reach it."""
_BY_MODEL: Json = {"annotations": {MODEL_ROUTING: "true"}}

# Model servers.


def _server(port: int, text: str, *, rdma: bool = False) -> Json:
    capabilities = {"add": parts.RDMA} if rdma else {}
    return parts.container(
        MAIN,
        images.LLM_D,
        command=["/bin/bash", "-c", text, "--"],  # ``--`` makes a container's ``args`` arrive as the script's
        ports=[{"containerPort": port, "protocol": "TCP"}],
        env=parts.SERVER_ENV,
        securityContext=parts.security(read_only=False, non_root=True, **capabilities),
        lifecycle=_WAIT_BEFORE_STOP,
        volumeMounts=parts.server_mounts({"name": "tmp-dir", "mountPath": "/tmp"}),  # noqa: S108 - in the pod
    )


def _probes(port: int) -> Json:
    return {
        "livenessProbe": parts.health(port, periodSeconds=10, timeoutSeconds=1, failureThreshold=10),
        "readinessProbe": parts.health(port, periodSeconds=1, timeoutSeconds=1, failureThreshold=2),
        "startupProbe": parts.health(port, periodSeconds=STARTUP_PERIOD, failureThreshold=600 // STARTUP_PERIOD),
    }


def _pod(server: Json, sidecar: Json | None, shared_memory: str = "1Gi") -> Json:
    pod: Json = {
        "containers": [server],
        "terminationGracePeriodSeconds": _GRACE_SECONDS,
        "volumes": parts.server_volumes({"name": "tmp-dir", "emptyDir": {}}, shared_memory=shared_memory),
    }
    return pod if sidecar is None else {**pod, "initContainers": [sidecar]}


def _single_node(target: Target) -> Json:
    """Build a server that fits one pod."""
    text = script.single_node(target.port, f"{target.path}.Template")
    server = {**_server(target.port, text), **_probes(target.port)}
    sidecar = _sidecar()
    del sidecar["securityContext"]["seccompProfile"]
    return {**_BY_MODEL, "template": _pod(server, sidecar if target.routed else None)}


def _data_parallel(target: Target) -> Json:
    leader = script.data_parallel(target.port, f"{target.path}.Template", target.parallelism, leader=True)
    text = script.data_parallel(target.port, f"{target.path}.Worker", target.parallelism, leader=False)
    worker = _server(target.port, text, rdma=True)
    return _group(target, leader, {**worker, "env": [*worker["env"], *([WORKER_ENV] if target.routed else [])]})


def _pipeline(target: Target) -> Json:
    leader = script.pipeline(target.port, f"{target.path}.Template", target.parallelism, leader=True)
    text = script.pipeline(target.port, f"{target.path}.Worker", target.parallelism, leader=False)
    worker = _server(target.port, text, rdma=True)
    del worker["ports"]
    return _group(target, leader, worker)


def _group(target: Target, leader: str, worker: Json) -> Json:
    """Build the leader and the workers of a group. Workers get no requests, so they have no probes."""
    server = {**_server(target.port, leader, rdma=True), **_probes(target.port)}
    template = _pod(server, _sidecar() if target.routed else None, "8Gi")
    return {**_BY_MODEL, "template": template, "worker": _pod(worker, None, "8Gi")}


def _sidecar() -> Json:
    command = [
        "/app/pd-sidecar",
        f"--port={PUBLIC_PORT}",
        f"--vllm-port={parts.DECODE_PORT}",
        "--kv-connector=nixlv2",
        "--enable-ssrf-protection=true",
        f"--pool-group={POOL_GROUP}",
        "--inference-pool={{ .GlobalConfig.InferencePoolNamespacedName }}",
        "--secure-proxy=false",
    ]
    context = parts.security(read_only=False, non_root=True)
    return parts.routing_sidecar(images.ROUTING_SIDECAR, context, _CERTIFICATE_DIRECTORIES, command=command)


# The route.

_MODEL = "publishers/{{ .ObjectMeta.Namespace }}/models/{{ .Spec.Model.Name }}"
_APIS = {
    "v1-completions": "/v1/completions",
    "v1-chat-completions": "/v1/chat/completions",
    "v1-responses": "/v1/responses",
    "v1-messages": "/v1/messages",
}
"""Paths that use the endpoint picker, by the first part of their rules' names."""
_OF_MODEL: Json = {"type": "Exact", "name": "{{ .GlobalConfig.ModelBasedRoutingHeaderName }}", "value": _MODEL}


def _route() -> Json:
    """Build the route: by the service's own path, by the model in a header, and by the model in the path."""
    prefix, pool, service = parts.SERVICE_PATH, shared.POOL, shared.SERVICE
    by_model = [
        {"path": {"type": "Exact", "value": path}, "headers": [_OF_MODEL]}
        for api in _APIS.values()
        for path in (api, f"{api}/")
    ]
    rules = [_prefixed(f"{name}-path", f"{prefix}{api}", api, pool) for name, api in _APIS.items()]
    rules.append(_rule("v1-model-routing", by_model, pool))
    rules += [_prefixed(f"{name}-publisher-path", f"/{_MODEL}{api}", api, pool) for name, api in _APIS.items()]
    rules.append(_prefixed("v1-publisher-path-catch-all", f"/{_MODEL}", "/", service))
    rules.append(_prefixed("v1-catch-all-path", prefix, "/", service))
    everything = {"path": {"type": "PathPrefix", "value": "/"}, "headers": [_OF_MODEL]}
    rules.append(_rule("v1-catch-all-model-routing", [everything], service))
    return {"parentRefs": [shared.GATEWAY], "rules": rules}


def _prefixed(name: str, path: str, rewritten: str, backend: Json) -> Json:
    """Build a rule for a path, which the backend sees as ``rewritten``."""
    return {**_rule(name, shared.prefix(path), backend), "filters": shared.rewrite(rewritten)}


def _rule(name: str, matches: list[Json], backend: Json) -> Json:
    return {"name": name, "matches": matches, **shared.to(backend)}


# The endpoint picker.

_SOCKET: Json = {"name": "tokenizer-uds", "mountPath": "/tmp/tokenizer"}  # noqa: S108 - in the pod


def _scheduler() -> Json:
    picker = shared.picker(
        images.ENDPOINT_PICKER,
        _SOCKET,
        command=["/app/epp", *shared.PICKER_ARGUMENTS],
        env=[_CERTIFICATE_DIRECTORIES],
        lifecycle=_WAIT_BEFORE_STOP,
        resources={"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"cpu": "6", "memory": "16Gi"}},
    )
    volumes: list[Json] = [
        {"name": name, "emptyDir": {}} for name in (_SOCKET["name"], "tokenizer-tmp", "tokenizer-cache")
    ]
    version = {PICKER_VERSION: images.ENDPOINT_PICKER.rpartition(":v")[2]}
    pod = shared.picker_pod(picker, _tokenizer(), volumes=volumes, grace_seconds=_GRACE_SECONDS)
    return {"pool": {"spec": shared.POOL_SPEC}, "annotations": version, "template": pod}


def _tokenizer() -> Json:
    """Build the container that splits prompts into tokens; it stays where a plugin of the picker asks for it."""

    def probe(**numbers: int) -> Json:
        return {"httpGet": {"path": "/healthz", "port": 8082}, "timeoutSeconds": 5, **numbers}

    return parts.container(
        TOKENIZER,
        images.TOKENIZER,
        workingDir=MODEL_PATH,
        env=[{"name": "TOKENIZERS_DIR", "value": MODEL_PATH}],
        ports=[{"name": "health", "containerPort": 8082, "protocol": "TCP"}],
        livenessProbe=probe(periodSeconds=15, failureThreshold=3),
        readinessProbe=probe(periodSeconds=10, failureThreshold=3),
        startupProbe=probe(initialDelaySeconds=5, periodSeconds=10, failureThreshold=60),
        resources={"requests": {"cpu": "256m", "memory": "500Mi"}},
        securityContext=parts.security(read_only=True, non_root=True),
        volumeMounts=[
            {"name": "tokenizer-tmp", "mountPath": "/tmp"},  # noqa: S108 - in the pod
            {"name": "tokenizer-cache", "mountPath": "/.cache"},
            _SOCKET,
        ],
    )


PRESETS = edition(
    {names.SINGLE_NODE: _single_node, names.DATA_PARALLEL: _data_parallel, names.PIPELINE: _pipeline},
    _scheduler(),
    _route(),
)
