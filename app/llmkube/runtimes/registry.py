"""The runtimes by name."""

from functools import cache

from app.llmkube.inferenceservice.types import InferenceServiceSpec
from app.llmkube.runtimes.llamacpp import LLAMACPP, LLAMACPP_ROUTER
from app.llmkube.runtimes.personaplex import PERSONAPLEX
from app.llmkube.runtimes.runtime import Runtime
from app.llmkube.runtimes.sglang import SGLANG
from app.llmkube.runtimes.tgi import TGI
from app.llmkube.runtimes.vllm import VLLM

GENERIC = Runtime(
    name="generic",
    container="inference-server",
    port=8080,
    health="",
    arguments=lambda serving: list(serving.spec.args),
    reads=("args",),
)
"""Any server: image, command and arguments are the user's (LK-3.5.5)."""
RUNTIMES = {runtime.name: runtime for runtime in (LLAMACPP, LLAMACPP_ROUTER, VLLM, TGI, SGLANG, PERSONAPLEX, GENERIC)}


@cache
def readers(field: str) -> list[str]:
    """Return the runtimes that read a field of the spec; none for a field that every runtime reads."""
    return [runtime.name for runtime in RUNTIMES.values() if field in runtime.fields]


def spelt_out(names: list[str]) -> str:
    """Join names as ``llamacpp, vllm and tgi``."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def draft_name(spec: InferenceServiceSpec) -> str:
    return runtime(spec.runtime).draft(spec)


def runtime(name: str) -> Runtime:
    """Return the runtime of that name, or llama.cpp (LK-1.4)."""
    return RUNTIMES.get(name, LLAMACPP)


def server_port(spec: InferenceServiceSpec) -> int:
    return spec.container_port or (spec.endpoint.port if spec.endpoint else runtime(spec.runtime).port)
