"""The presets of KServe v0.17, with scripts that are written for this project. Source: KS-2.7.1 to KS-2.7.5.

The scripts insert each value of a service once, as a quoted shell word.
"""

from app import images
from app.kserve.constants import MODEL_PATH, PUBLIC_PORT
from app.kserve.spec.presets import edition as names
from app.kserve.spec.presets import parts
from app.kserve.spec.presets.parts import ROCE, spread
from app.kube.base import Json
from app.workload.parts import STARTUP_PERIOD


def _server(port: int, command: list[str], grouped: bool) -> Json:
    period = 30 if grouped else 10
    return {
        **parts.server(images.LLM_D_V017, command, port, rdma=grouped, non_root=False),
        "livenessProbe": parts.health(port, periodSeconds=10, timeoutSeconds=10, failureThreshold=3),
        "readinessProbe": parts.health(port, periodSeconds=period, timeoutSeconds=5, failureThreshold=60),
        "startupProbe": parts.health(port, periodSeconds=STARTUP_PERIOD, failureThreshold=300),
    }


def _pod(server: Json, sidecar: Json | None, grouped: bool) -> Json:
    return parts.server_pod(server, sidecar, grace_seconds=30)


def _sidecar(grouped: bool) -> Json:
    context = parts.security(read_only=grouped, non_root=False)
    if not grouped:
        del context["seccompProfile"]
    ports = [f"--port={PUBLIC_PORT}", f"--vllm-port={parts.DECODE_PORT}"]
    args = [*ports, "--connector=nixlv2", "--secure-proxy=false"]
    return parts.routing_sidecar(images.ROUTING_SIDECAR_V017, context, args=args)


def _command(target: names.Target, form: str, leader: bool) -> list[str]:
    """The other pods of a pipeline accept only the leader's connections."""
    if form == names.SINGLE_NODE:
        served = ["--served-model-name", "{{ .Spec.Model.Name }}", "--port", str(target.port)]
        return ["vllm", "serve", MODEL_PATH, *served]
    if form == names.DATA_PARALLEL:
        return parts.bash(start_script(target.port, leader=leader, parallelism=target.parallelism))
    return parts.bash(pipeline_script(target.port, target.parallelism) if leader else join_script())


def start_script(port: int, *, leader: bool, parallelism: str) -> str:
    """Build the script of a data-parallel group, a template that has its numbers at the path ``parallelism``."""
    server = parts.server_array(
        *_served(port),
        '--api-server-count "${VLLM_API_SERVER_COUNT:-8}"' if leader else "",
        *spread(parallelism),
        f"--data-parallel-size {{{{ or {parallelism}.Data 1 }}}}",
        f"--data-parallel-size-local {{{{ or {parallelism}.DataLocal 1 }}}}",
        '--data-parallel-address "${LWS_LEADER_ADDRESS}"',
        f"--data-parallel-rpc-port {{{{ or {parallelism}.DataRPCPort 5555 }}}}",
        # vLLM 0.33 takes it on the leader for a load balancer outside of the group; rank 0 is the default.
        "" if leader else f'--data-parallel-start-rank "{parts.first_copy(parallelism)}"',
    )
    end = parts.start("--trust-remote-code", *([] if leader else ["--headless"]))
    return f"{ROCE}{parts.WORDS}{parts.RANK}{server}{end}"


def pipeline_script(port: int, parallelism: str) -> str:
    """Build the script of a pipeline's leader: once every pod of the group has joined its Ray, vLLM starts."""
    server = parts.server_array(
        *_served(port),
        *spread(parallelism),
        f"--pipeline-parallel-size {{{{ or {parallelism}.Pipeline 1 }}}}",
        "--distributed-executor-backend ray",
    )
    return f"{ROCE}{parts.WORDS}{parts.shell('ray_leader')}{server}{parts.start()}"


def _served(port: int) -> list[str]:
    return ["vllm serve /mnt/models", "--served-model-name {{ ShellQuote .Spec.Model.Name }}", f"--port {port}"]


def join_script() -> str:
    """Build the script of a pipeline's other pods. It ends with the leader, upon which the group is made anew."""
    return ROCE + parts.shell("ray_worker")


def _route() -> Json:
    """The API goes through the endpoint picker's pool, everything else straight to the workload Service."""
    return {
        "parentRefs": [parts.GATEWAY],
        "rules": [
            _rule("/v1/completions", "/v1/completions", parts.POOL),
            _rule("/v1/chat/completions", "/v1/chat/completions", parts.POOL),
            _rule("", "/", parts.SERVICE),
        ],
    }


def _rule(path: str, rewritten: str, backend: Json) -> Json:
    matches = parts.prefix(f"{parts.SERVICE_PATH}{path}")
    return {"matches": matches, "filters": parts.rewrite(rewritten), **parts.to(backend)}


def _scheduler() -> Json:
    picker = parts.picker(
        images.ENDPOINT_PICKER_V017,
        args=[*parts.PICKER_ARGUMENTS, "--kv-cache-usage-percentage-metric", "vllm:kv_cache_usage_perc"],
        resources={"requests": {"cpu": "256m", "memory": "500Mi"}},
    )
    return {"pool": {"spec": parts.POOL_SPEC}, "template": parts.picker_pod(picker, volumes=[], grace_seconds=30)}


PRESETS = names.edition(names.Builders(_command, _server, _sidecar, _pod), _scheduler(), _route(), {})
