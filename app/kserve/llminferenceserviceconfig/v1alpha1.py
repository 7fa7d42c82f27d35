"""Types of ``LLMInferenceServiceConfig`` that differ in ``v1alpha1``: those of services, with room for templates."""

from app.kserve.gatewayapi import PortNumber
from app.kserve.llminferenceservice import v1alpha1
from app.kserve.llminferenceserviceconfig import types
from app.kube.base import with_types


class ConfigModelSpecV1Alpha1(types.ConfigModelSpec, v1alpha1.ModelSpecV1Alpha1):
    """Model to serve, or a part of it."""


@with_types(
    {
        "model": ConfigModelSpecV1Alpha1 | None,
        "router.scheduler.pool.spec": v1alpha1.InferencePoolSpecV1Alpha1 | None,
        "router.scheduler.pool.spec.selector": types.LABELS,
        "router.scheduler.pool.spec.target_port_number": PortNumber | None,
        "router.scheduler.pool.spec.extension_ref": v1alpha1.ExtensionReference | None,
        "router.scheduler.pool.spec.extension_ref.name": types.PICKER,
    }
)
class ConfigSpecV1Alpha1(types.LLMInferenceServiceConfigSpec):
    """Part of a service's spec, to be combined with others."""
