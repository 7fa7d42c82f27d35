"""The presets of KServe v0.17. Source: KS-2.7.1 to KS-2.7.5."""

from __future__ import annotations

from app import images
from app.kserve.constants import MAIN, MODEL_PATH, PUBLIC_PORT
from app.kserve.spec.presets import edition as names
from app.kserve.spec.presets import parts
from app.kserve.spec.presets import router as shared
from app.kserve.spec.presets.edition import WORKER_ENV, Target, edition
from app.kserve.spec.presets.v017.script import join_script, pipeline_script, start_script
from app.kube.base import Json
from app.workload.parts import STARTUP_PERIOD

# Model servers.


def _server(port: int, command: list[str], *, rdma: bool = False) -> Json:
    capabilities = {"add": parts.RDMA} if rdma else {}
    return parts.container(
        MAIN,
        images.LLM_D_V017,
        command=command,
        ports=[{"containerPort": port, "protocol": "TCP"}],
        env=parts.SERVER_ENV,
        securityContext=parts.security(read_only=False, non_root=False, **capabilities),
        volumeMounts=parts.server_mounts(),
    )


def _probes(port: int, readiness_period: int) -> Json:
    return {
        "livenessProbe": parts.health(port, periodSeconds=10, timeoutSeconds=10, failureThreshold=3),
        "readinessProbe": parts.health(port, periodSeconds=readiness_period, timeoutSeconds=5, failureThreshold=60),
        "startupProbe": parts.health(port, periodSeconds=STARTUP_PERIOD, failureThreshold=300),
    }


def _pod(server: Json, sidecar: Json | None = None) -> Json:
    pod: Json = {"containers": [server], "terminationGracePeriodSeconds": 30, "volumes": parts.server_volumes()}
    return pod if sidecar is None else {**pod, "initContainers": [sidecar]}


def _single_node(target: Target) -> Json:
    """Build a server that fits one pod."""
    served = ["--served-model-name", "{{ .Spec.Model.Name }}", "--port", str(target.port)]
    server = {**_server(target.port, ["vllm", "serve", MODEL_PATH, *served]), **_probes(target.port, 10)}
    return {"template": _pod(server, _sidecar(read_only=False) if target.routed else None)}


def _data_parallel(target: Target) -> Json:
    """Build a data-parallel group. Workers get no requests, so they have no probes."""
    script = start_script(target.port, leader=False, parallelism=target.parallelism)
    worker = _server(target.port, _script(script), rdma=True)
    worker["env"] = [*worker["env"], *([WORKER_ENV] if target.routed else [])]
    leader = start_script(target.port, leader=True, parallelism=target.parallelism)
    return {"template": _leader(target, leader), "worker": _pod(worker)}


def _pipeline(target: Target) -> Json:
    """Build a pipeline, whose other pods accept only the leader's connections."""
    worker = _server(0, _script(join_script()), rdma=True)
    del worker["ports"]
    return {"template": _leader(target, pipeline_script(target.port, target.parallelism)), "worker": _pod(worker)}


def _leader(target: Target, script: str) -> Json:
    """Build the first pod of a group: it takes the requests."""
    server = {**_server(target.port, _script(script), rdma=True), **_probes(target.port, 30)}
    return _pod(server, _sidecar(read_only=True) if target.routed else None)


def _script(text: str) -> list[str]:
    """``--`` makes a container's ``args`` arrive as the script's."""
    return ["/bin/bash", "-c", text, "--"]


def _sidecar(*, read_only: bool) -> Json:
    context = parts.security(read_only=read_only, non_root=False)
    if not read_only:
        del context["seccompProfile"]
    ports = [f"--port={PUBLIC_PORT}", f"--vllm-port={parts.DECODE_PORT}"]
    args = [*ports, "--connector=nixlv2", "--secure-proxy=false"]
    return parts.routing_sidecar(images.ROUTING_SIDECAR_V017, context, args=args)


# The router.


def _route() -> Json:
    """The API goes through the endpoint picker's pool, everything else straight to the workload Service."""
    return {
        "parentRefs": [shared.GATEWAY],
        "rules": [
            _rule("/v1/completions", "/v1/completions", shared.POOL),
            _rule("/v1/chat/completions", "/v1/chat/completions", shared.POOL),
            _rule("", "/", shared.SERVICE),
        ],
    }


def _rule(path: str, rewritten: str, backend: Json) -> Json:
    matches = shared.prefix(f"{parts.SERVICE_PATH}{path}")
    return {"matches": matches, "filters": shared.rewrite(rewritten), **shared.to(backend)}


def _scheduler() -> Json:
    picker = shared.picker(
        images.ENDPOINT_PICKER_V017,
        args=[*shared.PICKER_ARGUMENTS, "--kv-cache-usage-percentage-metric", "vllm:kv_cache_usage_perc"],
        resources={"requests": {"cpu": "256m", "memory": "500Mi"}},
    )
    return {"pool": {"spec": shared.POOL_SPEC}, "template": shared.picker_pod(picker, volumes=[], grace_seconds=30)}


PRESETS = edition(
    {names.SINGLE_NODE: _single_node, names.DATA_PARALLEL: _data_parallel, names.PIPELINE: _pipeline},
    _scheduler(),
    _route(),
)
