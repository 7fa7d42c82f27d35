"""Types of ``LLMInferenceService`` that differ in ``v1alpha1``: the pool, and criticality as a field of the model."""

from typing import Annotated, Literal

from pydantic import Field

from app.kserve.gatewayapi import PortNumber
from app.kserve.llminferenceservice import types
from app.kube.base import KubeModel, with_types
from app.kube.schema.fieldclass import DEFAULTED, honoured

Criticality = Literal["Critical", "Standard", "Sheddable"]
CRITICALITY = honoured("with router.scheduler, and where InferenceObjectives and their component are installed")


class ModelSpecV1Alpha1(types.LLMModelSpec):
    criticality: Annotated[Criticality | None, CRITICALITY] = None
    """Importance of requests. Sets an InferenceObjective if the cluster has the kind."""


class ExtensionReference(types.EndpointPickerIdentity):
    port_number: Annotated[PortNumber | None, DEFAULTED] = None
    """Port of the endpoint picker. Defaults to 9002."""


class InferencePoolSpecV1Alpha1(KubeModel):
    """Spec of the managed InferencePool, in the form of its v1alpha2."""

    selector: Annotated[dict[str, types.LabelText], types.MATCH_LABELS]
    """Labels of the pods, in addition to the service's own."""
    target_port_number: PortNumber = Field(description="Port of the model server.")
    extension_ref: ExtensionReference = Field(description="The endpoint picker.")


@with_types({"model": ModelSpecV1Alpha1 | None, "router.scheduler.pool.spec": InferencePoolSpecV1Alpha1 | None})
class LLMInferenceServiceSpecV1Alpha1(types.LLMInferenceServiceSpec):
    """A model, the pods that serve it, and the way there."""
