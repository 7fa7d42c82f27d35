"""llama.cpp's prompt cache: states of earlier prompts in host memory, which grow to ``--cache-ram`` mebibytes.

The default is 8192, independent of the container's memory, so that a container with less ends after days with many
prompts (https://github.com/ggml-org/llama.cpp/pull/16391).
"""

from math import inf

from app.workload.engines.parse import Parsed, number_of

_MIB = 2**20
OPTION, VARIABLE = "--cache-ram", "LLAMA_ARG_CACHE_RAM"
_DEFAULT = 8192
_SHARE = 4
"""The part of a container's memory that the cache gets here, as a divisor."""
_ONLY_VECTORS = ("--embedding", "--reranking")


def limit_of(parsed: Parsed) -> float:
    """Return the bytes to which the cache of a server grows: 0 without one, infinity without a limit."""
    if OPTION not in parsed.release.spellings or parsed.has(*_ONLY_VECTORS):
        return 0
    number = number_of(parsed, OPTION) if parsed.gives(OPTION) else _DEFAULT
    return inf if number is not None and number < 0 else (_DEFAULT if number is None else number) * _MIB


def suitable(memory: int) -> int | None:
    """Return the mebibytes for a container with so many bytes; ``None`` where the default suits."""
    share = memory // _SHARE // _MIB
    return share if share < _DEFAULT else None


def problem(parsed: Parsed, memory: int, what: str) -> str:
    """Return why a container with so many bytes, of which ``what`` tells the source, may end; empty if it may not."""
    limit = limit_of(parsed)
    if not 0 < memory <= limit:
        return ""
    grown = "without a limit" if limit == inf else f"to {limit / _MIB:.0f} MiB"
    text = f"llama.cpp keeps earlier prompts in host memory, which grow {grown}, and {what} is {memory / _MIB:.0f} MiB"
    return f"{text}; set {OPTION} {suitable(memory)}"
