"""The ``Playground`` kind: a model served with a preset of an engine. Source: LZ-1.3 and LZ-5.2."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from app.kube.base import EnvVar, Int32, KubeModel
from app.kube.resource import Resource
from app.kube.schema.fieldclass import DEFAULTED, HONOURED, defaulted, honoured, passed_through
from app.llmaz import names, quantities, scaling, status
from app.llmaz.claims import ModelClaims, ModelReference


class ModelClaim(KubeModel):
    """One model, served alone."""

    model_name: Annotated[str, HONOURED] = ""
    """Name of the OpenModel."""
    inference_flavors: Annotated[
        list[str] | None, honoured("the first decides resources and params, all of them the nodes and an annotation")
    ] = None
    """Names of the model's flavors, in order of preference. The first sets the resources, and pods run on nodes of any
    of them. Defaults to all flavors of the model."""


class BackendRuntimeConfig(KubeModel):
    """Overrides of the engine's preset."""

    other_names: ClassVar[Mapping[str, str]] = {"name": "backendName", "tag": "version"}
    habits: ClassVar[Mapping[str, str]] = {
        "image": "the BackendRuntime has the image; version chooses another tag of it"
    }

    backend_name: Annotated[str, DEFAULTED] = names.DEFAULT_BACKEND
    """Name of the BackendRuntime."""
    version: Annotated[str | None, honoured("instead of the preset's")] = None
    """Tag of the engine's image instead of the BackendRuntime's."""
    envs: Annotated[list[EnvVar] | None, honoured("added, or instead of those of the same name")] = None
    """Environment variables, added to the BackendRuntime's or instead of those of the same name."""
    config_name: Annotated[str | None, honoured("absent means by whether there is a draft model")] = None
    """Name of the preset. Defaults to speculative-decoding with a draft model, otherwise to default."""
    args: Annotated[list[str] | None, passed_through("after the preset's")] = None
    """Arguments to append to those of the preset. Placeholders in them are not replaced."""
    resources: Annotated[
        quantities.Resources | None,
        honoured("each instead of the preset's; a limit lowers the preset's request, a request raises its limit"),
    ] = None
    """CPU and memory of the engine. Each overrides the preset's value."""
    shared_memory_size: Annotated[quantities.Quantity | None, honoured("instead of the preset's")] = None
    """Size of /dev/shm instead of the preset's."""


class ElasticConfig(KubeModel):
    """Range of replicas for autoscaling."""

    min_replicas: Annotated[Int32, defaulted("where there is a scaleTrigger, here or in the preset")] = 1
    """Minimum number of replicas. Must be at least 1 and less than maxReplicas."""
    max_replicas: Annotated[Int32, honoured("where there is a scaleTrigger, here or in the preset")] = Field(ge=1)
    """Maximum number of replicas."""
    scale_trigger: Annotated[scaling.ScaleTrigger | None, passed_through("to the autoscaler")] = None
    """Metrics that drive scaling. Defaults to the preset's trigger; without one, nothing is scaled."""


class PlaygroundSpec(KubeModel):
    """One model, or a main and a draft model, served by one engine."""

    other_names: ClassVar[Mapping[str, str]] = {
        "autoscaling": "elasticConfig",
        "engine": "backendRuntimeConfig.backendName",
        "model": "modelClaim",
        "modelRef": "modelClaim.modelName",
        "runtime": "backendRuntimeConfig.backendName",
    }

    replicas: Annotated[Int32, defaulted("an autoscaler writes it")] = 1
    """Number of replicas. An autoscaler writes it too."""
    model_claim: ModelClaim | None = None
    """Claim of a single model. Excludes modelClaims."""
    model_claims: ModelClaims | None = None
    """Claim of several models. Excludes modelClaim."""
    backend_runtime_config: BackendRuntimeConfig | None = None
    """Engine and overrides of its preset."""
    elastic_config: ElasticConfig | None = None
    """Autoscaling settings."""

    @property
    def claims(self) -> ModelClaims:
        """Both forms of the claim as one."""
        claim = self.model_claim
        if claim is None:
            return self.model_claims or ModelClaims()
        return ModelClaims(models=[ModelReference(name=claim.model_name)], inference_flavors=claim.inference_flavors)

    @property
    def backend_config(self) -> BackendRuntimeConfig:
        return self.backend_runtime_config or BackendRuntimeConfig()


class PlaygroundReason(StrEnum):
    """Why a Playground's condition is as it is, beside :class:`app.llmaz.references.Obstacle` and the Service's."""

    PENDING = "Pending"
    """Waiting for the Service, for the first time or after an abort."""
    PLAYGROUND_IN_PROGRESS = "PlaygroundInProgress"
    """Waiting for a Service that was available before."""
    PLAYGROUND_READY = "PlaygroundReady"
    PLAYGROUND_NOT_READY = "PlaygroundNotReady"
    """The Service was available before."""
    SERVICE_CONFLICT = "ServiceConflict"
    """Another object controls the Service of this name."""
    PRESET_NOT_FOUND = "PresetNotFound"
    ARGUMENT_NOT_RENDERABLE = "ArgumentNotRenderable"
    SERVICE_NOT_REPORTED = "ServiceNotReported"


Playground = Resource[PlaygroundSpec, status.ScaledStatus]
