"""The runtimes by name. A further one is a module of its own, a line here, and a word in the type ``Runtime``."""

from __future__ import annotations

from app.llmkube.runtimes.generic import GENERIC
from app.llmkube.runtimes.llamacpp import LLAMACPP
from app.llmkube.runtimes.personaplex import PERSONAPLEX
from app.llmkube.runtimes.runtime import Runtime
from app.llmkube.runtimes.tgi import TGI
from app.llmkube.runtimes.vllm import VLLM

RUNTIMES = {runtime.name: runtime for runtime in (LLAMACPP, VLLM, TGI, PERSONAPLEX, GENERIC)}


def runtime(name: str) -> Runtime:
    """The runtime of that name; llama.cpp where there is none (spec 1.4)."""
    return RUNTIMES.get(name, LLAMACPP)
