"""Weights that an engine cannot load, by the name of their repository."""

import re

from app.workload.engines.engine import NAMES

_ENGINES = ("vllm", "sglang")
"""Engines that load a repository's safetensors, and end with another quantization than its configuration has."""
_METHODS = {
    "awq": ("awq", "awq_marlin"),
    "gptq": ("gptq", "gptq_bitblas", "gptq_marlin", "gptq_marlin_24", "marlin"),
    "": ("bitsandbytes", "fp8", "gguf"),
}
"""Methods for the weights of a repository with the word in its name; others, such as ``moe_wna16``, are for several."""


def _words(repository: str) -> set[str]:
    return set(re.findall("[a-z0-9]+", repository.lower()))


def not_loadable(engine: str, repository: str) -> str:
    """Return why an engine cannot load a repository; empty if it can, or may."""
    if engine not in _ENGINES or "gguf" not in _words(repository):
        return ""
    return (
        f"{repository} has GGUF files by its name, and {NAMES[engine]} loads a repository's safetensors: name another"
    )


def other_method(engine: str, repository: str, method: str) -> str:
    """Return why an engine ends with a quantization method for a repository; empty if it does not, or may not."""
    named = [word for word in _METHODS if word in _words(repository)]
    others = [methods for word, methods in _METHODS.items() if word not in named]
    if engine not in _ENGINES or len(named) != 1 or not any(method in methods for methods in others):
        return ""
    written = f"{NAMES[engine]} ends with quantization {method} for {repository}"
    return f"{written}, which is quantized with {named[0].upper()}; leave it out"
