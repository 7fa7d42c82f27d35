"""Any server: image, command and arguments are the user's. Source: LK-3.5.5."""

from app.llmkube.runtimes.runtime import Runtime

GENERIC = Runtime(
    name="generic",
    container="inference-server",
    port=8080,
    arguments=lambda serving: list(serving.spec.args),
    reads=("args",),
)
