"""PersonaPlex, a speech model with a server of its own. Source: llmkube spec 3.5.4."""

from __future__ import annotations

from app.llmkube.inferenceservice.types import InferenceServiceSpec
from app.llmkube.runtimes.runtime import Json, Runtime, Serving, switch, token
from app.llmkube.runtimes.types import PersonaPlexConfig


def arguments(serving: Serving) -> list[str]:
    """The command line. The server cannot be told its port, so it stays on its own."""
    config = serving.spec.persona_plex_config or PersonaPlexConfig()
    return [
        *("--ssl", "/app/ssl"),
        *switch("--quantize-4bit", config.quantize_4bit),
        *switch("--cpu-offload", config.cpu_offload),
    ]


def environment(spec: InferenceServiceSpec) -> list[Json]:
    config = spec.persona_plex_config
    return [
        *token("HF_TOKEN", config.hf_token_secret_ref if config else None),
        {"name": "NO_TORCH_COMPILE", "value": "1"},
    ]


PERSONAPLEX = Runtime(
    name="personaplex",
    container="personaplex",
    port=8998,
    command=("/app/moshi/.venv/bin/python", "-m", "moshi.server"),
    arguments=arguments,
    environment=environment,
)
