"""The names that our manifests give to the service, and the names derived from a kind's."""

from importlib import metadata

from app.kube.resource import CustomResource

NAME = "modelhooks"
NAMESPACE = "modelhooks-system"
ADMISSION_API = "admissionregistration.k8s.io/v1"
CRD_API = "apiextensions.k8s.io/v1"
METACONTROLLER_GROUP = "metacontroller.k8s.io"
METACONTROLLER_API = f"{METACONTROLLER_GROUP}/v1alpha1"
HOOK_HOST = f"{NAME}.{NAMESPACE}:443"
"""Host of every hook's URL; also of ``spec.endpointConfigs[].host`` in a CompositeController."""

CONVERSION_PATH = "/convert"


def version() -> str:
    """The installed version; ``unknown`` in a source tree that is not installed."""
    try:
        return metadata.version(NAME)
    except metadata.PackageNotFoundError:
        return "unknown"


def hook_query(version: str) -> str:
    """Return the query of every hook's URL. A new one makes Metacontroller sync every resource again (MC-7.7)."""
    return f"rev={version}"


def controller_name(resource: CustomResource) -> str:
    """Name of the kind's CompositeController; it becomes part of finalizers, metrics and events."""
    return f"{resource.family}-{resource.plural}"


def webhook_names(resource: CustomResource) -> list[str]:
    """Return the names of the webhooks of all versions of a kind: denials show them, an older one has its version."""
    name = f"validate.{resource.plural}.{resource.group}"
    return [name, *(name.replace(".", f".{older.version}.", 1) for older in resource.older)]


def crd_name(resource: CustomResource) -> str:
    return f"{resource.plural}.{resource.group}"
