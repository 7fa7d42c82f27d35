"""Types of ``LLMInferenceServiceConfig`` that differ in ``v1alpha1``: those of services, with room for templates."""

from typing import Annotated

from pydantic import Field

from app.kserve.gatewayapi import PortNumber
from app.kserve.llminferenceservice import v1alpha1
from app.kserve.llminferenceservice.types import MATCH_LABELS, PICKER_NAME
from app.kserve.llminferenceserviceconfig import types
from app.kube.base import with_types


class ConfigModelSpecV1Alpha1(types.ConfigModelSpec):
    criticality: Annotated[v1alpha1.Criticality | None, v1alpha1.CRITICALITY] = None
    """Importance of requests: an InferenceObjective, where the cluster has the kind."""


class ConfigExtensionReference(v1alpha1.ExtensionReference):
    name: Annotated[str, PICKER_NAME] = Field(description="Name, may be a template.", min_length=1)


@with_types(
    {
        "selector": (
            Annotated[dict[str, str] | None, MATCH_LABELS],
            Field(None, description="Labels of the pods, in addition to the service's own, may be templates."),
        ),
        "target_port_number": PortNumber | None,
        "extension_ref": ConfigExtensionReference | None,
    }
)
class ConfigInferencePoolSpecV1Alpha1(v1alpha1.InferencePoolSpecV1Alpha1):
    """Content of the managed InferencePool, or a part of it."""


@with_types(
    {"model": ConfigModelSpecV1Alpha1 | None, "router.scheduler.pool.spec": ConfigInferencePoolSpecV1Alpha1 | None}
)
class ConfigSpecV1Alpha1(types.LLMInferenceServiceConfigSpec):
    """Part of a service's spec, to be combined with others."""
