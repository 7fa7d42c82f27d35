"""The ``BackendRuntime`` kind: an inference engine and its presets. Source: LZ-1.2."""

from typing import Annotated

from app.kube.base import EnvVar, Json, KubeModel, Lifecycle, Probe
from app.kube.resource import Resource
from app.kube.schema.fieldclass import HONOURED, PASSED_THROUGH, honoured, passed_through
from app.llmaz.quantities import Quantity, Resources
from app.llmaz.scaling import ScaleTrigger
from app.llmaz.status import Status

DEFAULT_PRESET = "default"
SPECULATIVE_PRESET = "speculative-decoding"


class ParamArguments(KubeModel):
    """Arguments that depend on the flavor."""

    param: Annotated[str, HONOURED]
    """Name of the param. TP and PP count as set when they are greater than 1."""
    args: Annotated[list[str] | None, honoured("with placeholders replaced, after args")] = None
    """Arguments to add when the flavor has the param."""
    unless: Annotated[list[str] | None, HONOURED] = None
    """Aliases of these options. Nothing is added when the args of the Playground have one of them, or one of args."""


class RecommendedConfig(KubeModel):
    """A preset: arguments and resources that go well together."""

    name: Annotated[str, HONOURED]
    """Name of the preset. Without configName, Playgrounds use default, or speculative-decoding when they have a draft
    model."""
    args: Annotated[list[str] | None, honoured("with placeholders replaced")] = None
    """Arguments of the engine; {{ .ModelPath }}, {{ .ModelName }}, {{ .DraftModelPath }} are replaced, and the params
    of the flavor: {{ .TP }}, {{ .PP }} and any other."""
    param_args: list[ParamArguments] | None = None
    """Arguments to add when the flavor has a param."""
    resources: Annotated[Resources | None, honoured("each unless the Playground, or the model's flavor, has it")] = None
    """CPU and memory of the engine. Set accelerators in the model's flavors."""
    shared_memory_size: Annotated[Quantity | None, HONOURED] = None
    """Size of the shared memory at /dev/shm."""
    scale_trigger: Annotated[
        ScaleTrigger | None,
        passed_through(
            "to the autoscaler of an elastic Playground without a trigger; without one in its preset, default's or "
            "speculative-decoding's is used"
        ),
    ] = None
    """Metrics that drive scaling of Playgrounds with elasticConfig and without a scaleTrigger."""


class BackendRuntimeSpec(KubeModel):
    image: Annotated[str, honoured("together the container's image")]
    """The engine's image, without a tag."""
    version: Annotated[str, honoured("together the container's image")]
    """The image's tag."""
    command: Annotated[list[str] | None, PASSED_THROUGH] = None
    """Command of the container. Defaults to the entrypoint of the image."""
    envs: Annotated[list[EnvVar] | None, honoured("the last of several entries of one name")] = None
    """Environment variables of the container. Params of the flavor are replaced in their values."""
    lifecycle: Annotated[Lifecycle | None, PASSED_THROUGH] = None
    """Lifecycle hooks of the container."""
    liveness_probe: Annotated[Probe | None, PASSED_THROUGH] = None
    """Liveness probe of the container."""
    readiness_probe: Annotated[Probe | None, PASSED_THROUGH] = None
    """Readiness probe of the container."""
    startup_probe: Annotated[Probe | None, PASSED_THROUGH] = None
    """Startup probe of the container."""
    recommended_configs: list[RecommendedConfig] | None = None
    """Presets, by name."""

    @property
    def probes(self) -> dict[str, Json | None]:
        return {
            "startupProbe": self.startup_probe,
            "livenessProbe": self.liveness_probe,
            "readinessProbe": self.readiness_probe,
        }


BackendRuntime = Resource[BackendRuntimeSpec, Status]


def preset(spec: BackendRuntimeSpec, name: str) -> RecommendedConfig | None:
    return next((config for config in spec.recommended_configs or () if config.name == name), None)
