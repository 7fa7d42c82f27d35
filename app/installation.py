"""The names under which our manifests install the service, and those that are made from a kind's."""

from __future__ import annotations

from app.kube.resource import CustomResource

NAME = "modelhooks"
NAMESPACE = "modelhooks-system"
ADMISSION_API = "admissionregistration.k8s.io/v1"
METACONTROLLER_GROUP = "metacontroller.k8s.io"
METACONTROLLER_API = f"{METACONTROLLER_GROUP}/v1alpha1"
HOOK_HOST = f"{NAME}.{NAMESPACE}:443"
"""Host of every hook's URL; also what ``spec.endpointConfigs[].host`` of a CompositeController has to say."""


def controller_name(resource: CustomResource) -> str:
    """Name of the kind's CompositeController; it becomes part of finalizers, metrics and events."""
    return f"{resource.family}-{resource.plural}"


def webhook_name(resource: CustomResource) -> str:
    """Name of the kind's webhook in the ValidatingWebhookConfiguration; every denial shows it."""
    return f"validate.{resource.plural}.{resource.group}"
