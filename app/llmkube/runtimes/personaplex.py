"""PersonaPlex, a speech model with its own server. Source: LK-3.5.4."""

from collections.abc import Iterator

from app.kube.field import SPEC, Advice, advice
from app.llmkube.inferenceservice.types import InferenceServiceSpec
from app.llmkube.runtimes.runtime import Runtime, Serving, flag
from app.llmkube.runtimes.types import PersonaPlexConfig

PORT = 8998
TOKEN = "HF_TOKEN"  # noqa: S105 - the name of a key


def arguments(serving: Serving) -> list[str]:
    config = serving.spec.persona_plex_config or PersonaPlexConfig()
    port = flag("--port", None if serving.port == PORT else serving.port)
    return ["--ssl", "/app/ssl", *port, *serving.options(config), *serving.spec.extra_args]


def warnings(spec: InferenceServiceSpec) -> Iterator[Advice]:
    """Warn of a key in the token's Secret that the API does not name (LK-V-I60)."""
    reference = (spec.persona_plex_config or PersonaPlexConfig()).hf_token_secret_ref or {}
    if reference.get("key") not in (None, "", TOKEN):
        message = f"the API names the key {TOKEN}; pods read the token from key {reference['key']}"
        yield advice(SPEC.child("personaPlexConfig", "hfTokenSecretRef", "key"), message)


PERSONAPLEX = Runtime(
    name="personaplex",
    container="personaplex",
    port=PORT,
    health="",
    command=("/app/moshi/.venv/bin/python", "-m", "moshi.server"),
    arguments=arguments,
    variables={"NO_TORCH_COMPILE": "1"},
    reads=("extraArgs", "personaPlexConfig"),
    config="personaPlexConfig",
    advice=warnings,
)
