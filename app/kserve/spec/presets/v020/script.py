"""Start scripts of model servers, as templates. Values of a service are inserted as quoted shell words.

The arguments equal those of KServe v0.20's presets; the script is written for this project. The shell expands a user's
arguments and ``VLLM_ADDITIONAL_ARGS``, as there. JSON without quotes is passed unchanged, as in earlier presets.
"""

from collections.abc import Sequence

from app.kserve.spec.presets.parts import ROCE, spread

PRE_STOP_SECONDS = 15
"""Seconds that a terminating pod waits before it refuses requests."""

_VERSION = r"""
version="$(vllm --version 2>/dev/null | awk 'END { print $NF }')"
since() {
  [[ "${version}" =~ ^[0-9]+\.[0-9]+ ]] && [ "$(printf '%s\n' "$1" "${version}" | sort -V | head -n 1)" = "$1" ]
}
"""
_LOGS = """
if since 0.16; then
  server+=(--disable-access-log-for-endpoints /health,/metrics,/ping)
else
  server+=(--disable-uvicorn-access-log)
fi
"""
_START = """
eval "server+=(${VLLM_ADDITIONAL_ARGS})"
for argument in "$@"; do
  case "${argument}" in
    [{[]* | --*=[{[]*) server+=("${argument}") ;;
    *) eval "server+=(${argument})" ;;
  esac
done
exec "${server[@]}"
"""
_LEADER_ADDRESS = """
address="${LWS_LEADER_ADDRESS}"
for attempt in $(seq "${DP_ADDRESS_RESOLVE_ATTEMPTS:-30}"); do
  resolved="$(getent hosts "${LWS_LEADER_ADDRESS}" | awk 'NR == 1 { print $1 }')"
  if [ -n "${resolved}" ]; then
    address="${resolved}"
    break
  fi
  echo "attempt ${attempt}: ${LWS_LEADER_ADDRESS} has no address yet"
  sleep 1
done
"""


def single_node(port: int, pod: str) -> str:
    """Build the script of a server that fits one pod. ``pod``: path of its template, such as ``.Spec.Template``."""
    return _script(pod, _serve(port))


def data_parallel(port: int, pod: str, parallelism: str, *, leader: bool) -> str:
    """Build the script of the leader or of the workers of a data-parallel group."""
    rank = f"$(( ${{LWS_WORKER_INDEX:-0}} * {{{{ or {parallelism}.DataLocal 1 }}}} ))"
    role = (
        ['--api-server-count "${VLLM_API_SERVER_COUNT:-8}"']
        if leader
        # vLLM 0.33 takes it on the leader for a load balancer outside of the group; rank 0 is the default.
        else [f'--data-parallel-start-rank "{rank}"', "--headless"]
    )
    arguments = [
        *_serve(port),
        *spread(parallelism),
        f"--data-parallel-size {{{{ or {parallelism}.Data 1 }}}}",
        f"--data-parallel-size-local {{{{ or {parallelism}.DataLocal 1 }}}}",
        '--data-parallel-address "${address}"',
        f"--data-parallel-rpc-port {{{{ or {parallelism}.DataRPCPort 5555 }}}}",
        *role,
    ]
    return _script(pod, arguments, _LEADER_ADDRESS)


def pipeline(port: int, pod: str, parallelism: str, *, leader: bool) -> str:
    """Build the script of the leader or of the workers of a pipeline, which vLLM connects itself."""
    arguments = [
        *_serve(port),
        *spread(parallelism),
        f"--pipeline-parallel-size {{{{ or {parallelism}.Pipeline 1 }}}}",
        '--nnodes "${LWS_GROUP_SIZE:-1}"',
        '--node-rank "${LWS_WORKER_INDEX:-0}"',
        '--master-addr "${address}"',
        "" if leader else "--headless",
    ]
    return _script(pod, arguments, _LEADER_ADDRESS)


def _serve(port: int) -> list[str]:
    qualified = '(printf "publishers/%s/models/%s" .ObjectMeta.Namespace .Spec.Model.Name)'
    return [
        "vllm serve /mnt/models",
        f"--served-model-name {{{{ ShellQuote .Spec.Model.Name }}}} {{{{ ShellQuote {qualified} }}}}",
        f"--port {port}",
    ]


def _script(pod: str, arguments: Sequence[str], before: str = "") -> str:
    server = "\n  ".join(argument for argument in arguments if argument)
    timeout = f"{{{{ shutdownTimeout {pod} {PRE_STOP_SECONDS} }}}}"
    graceful = f"if since 0.18; then\n  server+=(--shutdown-timeout {timeout})\nfi\n"
    caches = f"{pod.rpartition('.')[0]}.KVCacheOffloading"
    offload = f'if since 0.22; then\n  eval "server+=({{{{ kvTransferConfig {caches} }}}})"\nfi\n'
    offload = f"{{{{ if {caches} }}}}{offload}{{{{ end }}}}"
    return f"{ROCE}{before}{_VERSION}\nserver=(\n  {server}\n)\n{_LOGS}{graceful}{offload}{_START}"
