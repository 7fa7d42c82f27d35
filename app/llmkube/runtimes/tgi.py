"""Hugging Face's Text Generation Inference. Source: LK-3.5.3."""

from collections.abc import Iterator

from app import images
from app.kube.field import SPEC, Advice, advice
from app.llmkube.inferenceservice.types import InferenceServiceSpec
from app.llmkube.runtimes.runtime import Runtime, Serving, flag, memory_use
from app.llmkube.runtimes.types import TGIConfig


def arguments(serving: Serving) -> list[str]:
    config = serving.spec.tgi_config or TGIConfig()
    return [
        *flag("--model-id", None if serving.has("--model-id") else serving.repository),
        *serving.revision,
        *serving.listen("--hostname"),
        *flag("--port", None if serving.has("--port") else serving.port),
        *(serving.options(config, dtype=[]) if _decides_dtype(config) else serving.options(config)),
        *flag("--num-shard", serving.gpus if serving.gpus > 1 and not serving.has("--num-shard") else None),
        *serving.spec.extra_args,
    ]


def _decides_dtype(config: TGIConfig) -> bool:
    """Return True if the quantization decides the data type, so that the server rejects both together."""
    return config.quantize not in (None, "bitsandbytes")


def warnings(spec: InferenceServiceSpec) -> Iterator[Advice]:
    """Warn of lengths and data types that the server rejects (LK-V-I52)."""
    config = spec.tgi_config or TGIConfig()
    longest, total = config.max_input_length, config.max_total_tokens
    if longest is not None and total is not None and longest >= total:
        message = f"must be below maxTotalTokens, which is {total}, or the server ends at once"
        yield advice(SPEC.child("tgiConfig", "maxInputLength"), message)
    if config.dtype and _decides_dtype(config):
        message = f"no effect beside quantize {config.quantize}, which decides about the data type"
        yield advice(SPEC.child("tgiConfig", "dtype"), message, "no-effect")


TGI: Runtime = Runtime(
    name="tgi",
    container="tgi",
    image=images.TGI,
    port=80,
    metric="tgi_queue_size",  # what TGI exports; upstream's name has a colon and never matches
    scraped=True,
    service_links=False,
    divides_layers=True,
    arguments=arguments,
    formats=("safetensors", "pytorch", "custom"),
    repositories_only=True,
    reads=("extraArgs", "tgiConfig"),
    config="tgiConfig",
    advice=warnings,
    memory_share=0.9,
    divides_heads=True,
    use=lambda spec, _: memory_use(spec, TGI),
)
