"""The presets of KServe v0.20: its values, with scripts and templates written here.

The arguments equal those of KServe's presets. Values of a service are inserted in the scripts as quoted shell words.
A user's arguments and ``VLLM_ADDITIONAL_ARGS`` are read as words (:mod:`app.kserve.words`), where KServe has the shell
evaluate them.
"""

from functools import partial

from app import images
from app.kserve.constants import MODEL_PATH, MODEL_ROUTING, PICKER_VERSION, POOL_GROUP, PUBLIC_PORT, TOKENIZER
from app.kserve.spec.presets import edition as names
from app.kserve.spec.presets import parts
from app.kube.base import Json
from app.workload.parts import STARTUP_PERIOD

_GRACE_SECONDS = 60
_PRE_STOP_SECONDS = 15
"""Seconds that a terminating pod waits before it refuses requests."""
_CERTIFICATE_DIRECTORIES: Json = {
    "name": "SSL_CERT_DIR",
    "value": f"{parts.CERTIFICATES_PATH}:/var/run/secrets/kubernetes.io/serviceaccount:/etc/pki/tls/certs",
}
_WAIT_BEFORE_STOP: Json = {"preStop": {"exec": {"command": ["/bin/sleep", str(_PRE_STOP_SECONDS)]}}}
"""Lets a pod that ends finish the requests that still reach it."""
_BY_MODEL: Json = {"annotations": {MODEL_ROUTING: "true"}}
_TOKENIZER_PORT = 8082
_SOCKET: Json = {"name": "tokenizer-uds", "mountPath": "/tmp/tokenizer"}  # noqa: S108 - in the pod
_MODEL = "publishers/{{ .ObjectMeta.Namespace }}/models/{{ .Spec.Model.Name }}"
_APIS = {
    "v1-completions": "/v1/completions",
    "v1-chat-completions": "/v1/chat/completions",
    "v1-responses": "/v1/responses",
    "v1-messages": "/v1/messages",
}
"""Paths that use the endpoint picker, by the first part of their rules' names."""
_OF_MODEL: Json = {"type": "Exact", "name": "{{ .GlobalConfig.ModelBasedRoutingHeaderName }}", "value": _MODEL}
_LEADER_ADDRESS, _VERSION, _LOGS = map(parts.shell, ("leader_address", "version", "logs"))
"""Parts of the scripts."""


_SERVER_TLS = [
    "--enable-ssl-refresh",
    f"--ssl-certfile {parts.CERTIFICATES_PATH}/tls.crt",
    f"--ssl-keyfile {parts.CERTIFICATES_PATH}/tls.key",
]
_SIDECAR_TLS = [
    f"--cert-path={parts.CERTIFICATES_PATH}",
    "--enable-tls=decoder",
    "--enable-tls=prefiller",
    # A certificate that is not KServe's has no addresses of pods, by which the sidecar asks for prefill.
    "--tls-insecure-skip-verify=decoder,prefiller",
]
_PICKER_TLS = [
    "--enable-cert-reload=true",
    "--secure-serving=true",
    "--model-server-metrics-scheme=https",
    f"--cert-path={parts.CERTIFICATES_PATH}",
]
"""Options of the programs that speak TLS, in the presets for an installation that encrypts."""


def _server(port: int, command: list[str], grouped: bool, *, tls: bool) -> Json:
    temporary, fields = {"name": "tmp-dir", "mountPath": "/tmp"}, {"lifecycle": _WAIT_BEFORE_STOP}  # noqa: S108 - in the pod
    return {
        **parts.server(images.LLM_D, command, port, temporary, rdma=grouped, non_root=True, **fields),
        "livenessProbe": parts.health(port, tls=tls, periodSeconds=10, timeoutSeconds=1, failureThreshold=10),
        "readinessProbe": parts.health(port, tls=tls, periodSeconds=1, timeoutSeconds=1, failureThreshold=2),
        "startupProbe": parts.health(
            port, tls=tls, periodSeconds=STARTUP_PERIOD, failureThreshold=600 // STARTUP_PERIOD
        ),
    }


def _pod(server: Json, sidecar: Json | None, grouped: bool) -> Json:
    temporary, memory = {"name": "tmp-dir", "emptyDir": {}}, "8Gi" if grouped else "1Gi"
    return parts.server_pod(server, sidecar, temporary, grace_seconds=_GRACE_SECONDS, shared_memory=memory)


def _sidecar(grouped: bool, *, tls: bool) -> Json:
    command = [
        "/app/pd-sidecar",
        f"--port={PUBLIC_PORT}",
        f"--vllm-port={parts.DECODE_PORT}",
        "--kv-connector=nixlv2",
        "--enable-ssrf-protection=true",
        f"--pool-group={POOL_GROUP}",
        "--inference-pool={{ .GlobalConfig.InferencePoolNamespacedName }}",
        f"--secure-proxy={'true' if tls else 'false'}",
        *(_SIDECAR_TLS if tls else ()),
    ]
    context = parts.security(read_only=False, non_root=True)
    if not grouped:
        del context["seccompProfile"]
    return parts.routing_sidecar(images.ROUTING_SIDECAR, context, _CERTIFICATE_DIRECTORIES, tls=tls, command=command)


def _command(target: names.Target, form: str, leader: bool, *, tls: bool) -> list[str]:
    return parts.bash(script(target, form, leader=leader, tls=tls))


def script(target: names.Target, form: str, *, leader: bool, tls: bool = False) -> str:
    """Build the script of a server that fits one pod, or of the leader or a worker of a group."""
    qualified = '(printf "publishers/%s/models/%s" .ObjectMeta.Namespace .Spec.Model.Name)'
    arguments = [
        "vllm serve /mnt/models",
        f"--served-model-name {{{{ ShellQuote .Spec.Model.Name }}}} {{{{ ShellQuote {qualified} }}}}",
        f"--port {target.port}",
    ]
    if form != names.SINGLE_NODE:
        arguments += parts.spread(target.parallelism)
        arguments += (_data_parallel if form == names.DATA_PARALLEL else _pipeline)(target.parallelism, leader)
    pod = f"{target.path}.{'Template' if leader else 'Worker'}"
    timeout = f"{{{{ shutdownTimeout {pod} {_PRE_STOP_SECONDS} }}}}"
    graceful = f"if since 0.18; then\n  server+=(--shutdown-timeout {timeout})\nfi\n"
    caches = f"{target.path}.KVCacheOffloading"
    offload = f'if since 0.22; then\n  words kvCacheOffloading "{{{{ kvTransferConfig {caches} }}}}"\nfi\n'
    offload = f"{{{{ if {caches} }}}}{offload}{{{{ end }}}}"
    before = "" if form == names.SINGLE_NODE else parts.RANK + _LEADER_ADDRESS
    server = parts.server_array(*arguments, *(_SERVER_TLS if tls else ()))
    return f"{parts.ROCE}{parts.WORDS}{before}{_VERSION}{server}{_LOGS}{graceful}{offload}{parts.start()}"


def _data_parallel(parallelism: str, leader: bool) -> list[str]:
    rank = parts.first_copy(parallelism)
    role = (
        ['--api-server-count "${VLLM_API_SERVER_COUNT:-8}"']
        if leader
        # vLLM 0.33 takes it on the leader for a load balancer outside of the group; rank 0 is the default.
        else [f'--data-parallel-start-rank "{rank}"', "--headless"]
    )
    return [
        f"--data-parallel-size {{{{ or {parallelism}.Data 1 }}}}",
        f"--data-parallel-size-local {{{{ or {parallelism}.DataLocal 1 }}}}",
        '--data-parallel-address "${address}"',
        f"--data-parallel-rpc-port {{{{ or {parallelism}.DataRPCPort 5555 }}}}",
        *role,
    ]


def _pipeline(parallelism: str, leader: bool) -> list[str]:
    return [
        f"--pipeline-parallel-size {{{{ or {parallelism}.Pipeline 1 }}}}",
        '--nnodes "${LWS_GROUP_SIZE:-1}"',
        '--node-rank "${rank}"',
        '--master-addr "${address}"',
        *([] if leader else ["--headless"]),
    ]


def _route() -> Json:
    """Build the route: by the service's own path, by the model in a header, and by the model in the path."""
    prefix, pool, service = parts.SERVICE_PATH, parts.POOL, parts.SERVICE
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
    return {"parentRefs": [parts.GATEWAY], "rules": rules}


def _prefixed(name: str, path: str, rewritten: str, backend: Json) -> Json:
    return {**_rule(name, parts.prefix(path), backend), "filters": parts.rewrite(rewritten)}


def _rule(name: str, matches: list[Json], backend: Json) -> Json:
    return {"name": name, "matches": matches, **parts.to(backend)}


def _scheduler(*, tls: bool) -> Json:
    picker = parts.picker(
        images.ENDPOINT_PICKER,
        _SOCKET,
        command=["/app/epp", *parts.PICKER_ARGUMENTS, *(_PICKER_TLS if tls else ())],
        env=[_CERTIFICATE_DIRECTORIES],
        lifecycle=_WAIT_BEFORE_STOP,
        resources={"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"cpu": "6", "memory": "16Gi"}},
    )
    volumes: list[Json] = [
        {"name": name, "emptyDir": {}} for name in (_SOCKET["name"], "tokenizer-tmp", "tokenizer-cache")
    ]
    version = {PICKER_VERSION: images.ENDPOINT_PICKER.rpartition(":v")[2]}
    pod = parts.picker_pod(picker, _tokenizer(), volumes=volumes, grace_seconds=_GRACE_SECONDS)
    return {"pool": {"spec": parts.POOL_SPEC}, "annotations": version, "template": pod}


def _tokenizer() -> Json:
    """Build the container that splits prompts into tokens; it stays where a plugin of the picker asks for it."""
    probe = partial(parts.http_probe, "/healthz", _TOKENIZER_PORT, timeoutSeconds=5)
    return parts.container(
        TOKENIZER,
        images.TOKENIZER,
        workingDir=MODEL_PATH,
        env=[{"name": "TOKENIZERS_DIR", "value": MODEL_PATH}],
        ports=[{"name": "health", "containerPort": _TOKENIZER_PORT, "protocol": "TCP"}],
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


def _presets(*, tls: bool) -> dict[str, Json]:
    builders = names.Builders(partial(_command, tls=tls), partial(_server, tls=tls), partial(_sidecar, tls=tls), _pod)
    return names.edition(builders, _scheduler(tls=tls), _route(), _BY_MODEL)


PRESETS, ENCRYPTED = _presets(tls=False), _presets(tls=True)
"""The second ones are for an installation whose traffic inside the cluster is encrypted."""
