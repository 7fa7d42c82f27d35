"""The start scripts of servers that spread one replica over the pods of a LeaderWorkerSet.

Source: KS-2.7.2, forms B and C. Environment variables, order of arguments and decisions are the interface; the script
is written for this project. Each value of a service is inserted once, as a quoted shell word.
"""

from collections.abc import Iterable

from app.kserve.spec.presets.parts import ROCE, spread

_RAY_PORT = 6379


def start_script(port: int, *, leader: bool, parallelism: str) -> str:
    """The script as a template. ``parallelism`` is the path of its numbers: ``.Spec.Parallelism`` or prefill's."""
    rank = f"$(( ${{LWS_WORKER_INDEX:-0}} * {{{{ or {parallelism}.DataLocal 1 }}}} ))"
    arguments = [
        "vllm serve /mnt/models",
        r"--served-model-name \"\${MODEL_NAME}\"",
        f"--port {port}",
        "--api-server-count ${VLLM_API_SERVER_COUNT:-8}" if leader else "",
        *spread(parallelism),
        f"--data-parallel-size {{{{ or {parallelism}.Data 1 }}}}",
        f"--data-parallel-size-local {{{{ or {parallelism}.DataLocal 1 }}}}",
        "--data-parallel-address $(LWS_LEADER_ADDRESS)",
        f"--data-parallel-rpc-port {{{{ or {parallelism}.DataRPCPort 5555 }}}}",
        # vLLM 0.33 takes it on the leader for a load balancer outside of the group; rank 0 is the default.
        "" if leader else "--data-parallel-start-rank ${START_RANK}",
        "${VLLM_ADDITIONAL_ARGS}",
        "$*",
        "--trust-remote-code",
        "" if leader else "--headless",
    ]
    command = _continued(arguments)
    start = "" if leader else f"START_RANK={rank}\n"
    return f'{ROCE}\nMODEL_NAME={{{{ ShellQuote .Spec.Model.Name }}}}\n{start}eval "{command}"\n'


def pipeline_script(port: int, parallelism: str) -> str:
    """The script of a pipeline's leader as a template: once every pod of the group has joined its Ray, vLLM starts."""
    arguments = [
        "exec vllm serve /mnt/models",
        "--served-model-name {{ ShellQuote .Spec.Model.Name }}",
        f"--port {port}",
        *spread(parallelism),
        f"--pipeline-parallel-size {{{{ or {parallelism}.Pipeline 1 }}}}",
        "--distributed-executor-backend ray",
        "${VLLM_ADDITIONAL_ARGS}",
        '"$@"',
    ]
    return f"""{ROCE}
ray start --head --port={_RAY_PORT} --disable-usage-stats || exit 1
count='import ray; ray.init(address="auto", logging_level="ERROR"); print(sum(n["Alive"] for n in ray.nodes()))'
until joined=$(python3 -c "${{count}}") && [ "${{joined}}" -ge "${{LWS_GROUP_SIZE:-1}}" ]; do
  echo "waiting for the pods of the group: ${{joined:-0}} of ${{LWS_GROUP_SIZE:-1}} have joined"
  sleep 5
done
{_continued(arguments)}
"""


def join_script() -> str:
    """The script of a pipeline's other pods. It ends with the leader, upon which the group is made anew."""
    return f"""{ROCE}
until (exec 3<>"/dev/tcp/${{LWS_LEADER_ADDRESS}}/{_RAY_PORT}") 2>/dev/null; do
  echo "waiting for the leader, ${{LWS_LEADER_ADDRESS}}"
  sleep 5
done
exec ray start --address="${{LWS_LEADER_ADDRESS}}:{_RAY_PORT}" --disable-usage-stats --block
"""


def _continued(arguments: Iterable[str]) -> str:
    """One command over several lines."""
    return " \\\n  ".join(argument for argument in arguments if argument)
