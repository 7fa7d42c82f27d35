"""What ``v1alpha1`` of ``LLMInferenceServiceConfig`` has otherwise: as for services, where templates fit in."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from app.kserve.gatewayapi import PortNumber
from app.kserve.llminferenceservice import v1alpha1
from app.kserve.llminferenceservice.types import MATCH_LABELS, PICKER_NAME, POOL_SPEC
from app.kserve.llminferenceserviceconfig import types


class ConfigModelSpec(types.ConfigModelSpec):
    criticality: Annotated[v1alpha1.Criticality | None, v1alpha1.CRITICALITY] = Field(
        None, description="Importance of requests: an InferenceObjective, where the cluster has the kind."
    )


class ConfigExtensionReference(v1alpha1.ExtensionReference):
    name: Annotated[str, PICKER_NAME] = Field(description="Name, may be a template.", min_length=1)


class ConfigInferencePoolSpec(v1alpha1.InferencePoolSpec):
    """Content of the managed InferencePool, or a part of it."""

    selector: Annotated[dict[str, str] | None, MATCH_LABELS] = Field(  # type: ignore[assignment]  # may be left out here
        None, description="Labels of the pods, in addition to the service's own, may be templates."
    )
    target_port_number: PortNumber | None = Field(None, description="Port of the model server.")  # type: ignore[assignment]  # may be left out here
    extension_ref: ConfigExtensionReference | None = Field(None, description="The endpoint picker.")  # type: ignore[assignment]  # may be left out here


class ConfigPoolSpec(v1alpha1.PoolSpec):
    spec: Annotated[ConfigInferencePoolSpec | None, POOL_SPEC] = Field(None, description="Content of the managed pool.")


class ConfigSchedulerSpec(v1alpha1.SchedulerSpec):
    pool: ConfigPoolSpec | None = Field(None, description="The InferencePool; empty for a managed one.")


class ConfigRouterSpec(types.ConfigRouterSpec):
    scheduler: ConfigSchedulerSpec | None = Field(  # type: ignore[assignment]  # the older form
        None, description="The endpoint picker; empty for a managed one."
    )


class LLMInferenceServiceConfigSpec(types.LLMInferenceServiceConfigSpec):
    """Part of a service's spec, to be combined with others."""

    model: ConfigModelSpec | None = Field(None, description="Which model is served.")
    router: ConfigRouterSpec | None = Field(None, description="How requests reach the model.")
