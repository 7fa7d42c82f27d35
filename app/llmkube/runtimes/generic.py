"""Any server: image, command and arguments are the user's. Source: llmkube spec 3.5.5."""

from __future__ import annotations

from app.llmkube.runtimes.runtime import Runtime, Serving, nothing


def arguments(serving: Serving) -> list[str]:
    return list(serving.spec.args)


GENERIC = Runtime(
    name="generic",
    container="inference-server",
    port=8080,
    arguments=arguments,
    environment=nothing,
)
