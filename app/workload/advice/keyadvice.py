"""Warnings about a server's key that is not there."""

from collections.abc import Callable, Iterator

from app.kube.field import Advice, Path, advice
from app.workload.engines.parse import Parsed

KEY = "--api-key"


def key_warnings(parsed: Parsed, place: Callable[[int], Path]) -> Iterator[Advice]:
    """Warn of an option for the key of an API that names none: vLLM then answers everybody, and others end."""
    for given in parsed.all(KEY):
        if not given.value or given.value.startswith("-"):
            yield advice(
                place(given.at), f"{given.name} has no value, so the server needs no key, or ends: name the key"
            )
