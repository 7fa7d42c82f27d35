"""llama.cpp's server with a directory of models, from which each request chooses one. Source: LK-3.5.6."""

from collections.abc import Iterator

from app import images
from app.kube.decode import SPEC
from app.kube.field import Advice, advice
from app.llmkube.inferenceservice.types import InferenceServiceSpec
from app.llmkube.names import MODELS_DIR
from app.llmkube.runtimes.runtime import Runtime, Serving, flag, switch


def arguments(serving: Serving) -> list[str]:
    """Build the command line. The models are on a volume of the user."""
    return [
        *("--models-dir", MODELS_DIR),
        *flag("--port", serving.port),
        *serving.listen(),
        *switch("--metrics", not serving.has("--metrics")),
        *serving.spec.extra_args,
    ]


def warnings(spec: InferenceServiceSpec) -> Iterator[Advice]:
    """Warn of a missing volume or metric (LK-V-I70)."""
    if spec.autoscaling and not spec.autoscaling.metrics:
        message = "no effect without metrics: llamacpp-router serves none that could be the default"
        yield advice(SPEC.child("autoscaling"), message, "no-effect")
    if not any(mount.get("mountPath", "").rstrip("/") == MODELS_DIR for mount in spec.extra_volume_mounts):
        message = f"llamacpp-router serves what lies in {MODELS_DIR}, and nothing is mounted there"
        yield advice(SPEC.child("extraVolumeMounts"), message)


LLAMACPP_ROUTER = Runtime(
    name="llamacpp-router",
    container="llama-server",
    image=images.LLAMACPP,
    port=8080,
    metric="",  # its /metrics answers for a single model only, which the query names
    arguments=arguments,
    reads=("extraArgs",),
    advice=warnings,
)
