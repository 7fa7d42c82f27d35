"""Hugging Face's Text Generation Inference. Source: llmkube spec 3.5.3."""

from __future__ import annotations

from app.llmkube.inferenceservice.types import InferenceServiceSpec
from app.llmkube.runtimes.runtime import HEALTH, Json, Runtime, Serving, flag, token
from app.llmkube.runtimes.types import TGIConfig


def arguments(serving: Serving) -> list[str]:
    """The command line. It never gets a path: nothing is mounted for it."""
    config = serving.spec.tgi_config or TGIConfig()
    return [
        *("--model-id", serving.source),
        *("--hostname", "0.0.0.0"),  # noqa: S104 - a server in a pod is reached from outside itself
        *flag("--port", serving.port),
        *flag("--quantize", config.quantize),
        *flag("--max-input-length", config.max_input_length),
        *flag("--max-total-tokens", config.max_total_tokens),
        *flag("--dtype", config.dtype),
        *flag("--num-shard", serving.gpus if serving.gpus > 1 else None),
    ]


def environment(spec: InferenceServiceSpec) -> list[Json]:
    return token("HUGGING_FACE_HUB_TOKEN", spec.tgi_config.hf_token_secret_ref if spec.tgi_config else None)


TGI = Runtime(
    name="tgi",
    container="tgi",
    image="ghcr.io/huggingface/text-generation-inference:latest",
    port=80,
    health=HEALTH,
    metric="tgi_queue_size",  # what TGI exports; upstream's name has a colon and never matches (T-42)
    scraped=True,
    arguments=arguments,
    environment=environment,
)
