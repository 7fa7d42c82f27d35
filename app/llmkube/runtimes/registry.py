"""The runtimes by name. A further one is a module, a line here, and a word in the type ``Runtime``."""

from __future__ import annotations

from app.llmkube.runtimes.generic import GENERIC
from app.llmkube.runtimes.llamacpp import LLAMACPP
from app.llmkube.runtimes.llamacpp_router import LLAMACPP_ROUTER
from app.llmkube.runtimes.personaplex import PERSONAPLEX
from app.llmkube.runtimes.runtime import Runtime
from app.llmkube.runtimes.sglang import SGLANG
from app.llmkube.runtimes.tgi import TGI
from app.llmkube.runtimes.vllm import VLLM

RUNTIMES = {runtime.name: runtime for runtime in (LLAMACPP, LLAMACPP_ROUTER, VLLM, TGI, SGLANG, PERSONAPLEX, GENERIC)}


def readers(field: str) -> list[str]:
    """The runtimes that read a field of the spec; none for a field that every runtime reads."""
    return [known.name for known in RUNTIMES.values() if field in known.reads]


def spelt_out(names: list[str]) -> str:
    """``llamacpp``, ``llamacpp and vllm``, ``llamacpp, vllm and tgi``."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def runtime(name: str) -> Runtime:
    """The runtime of that name; llama.cpp where there is none (LK-1.4)."""
    return RUNTIMES.get(name, LLAMACPP)
