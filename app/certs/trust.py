"""The Secrets of certificates in a cluster, and the objects that must have the CA.

The Secret holds everything. The ValidatingWebhookConfiguration and the CustomResourceDefinitions with several versions
take the CA as base64. A CompositeController or DecoratorController takes it as PEM, in ``spec.endpointConfigs``:
Metacontroller reads the CA again only when the ``spec`` changes, and no manifest of the installation sets that field.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from app.certs.authority import Bundle, KeyPair, first_certificate
from app.certs.kubeapi import Client
from app.installation import (
    ADMISSION_API,
    CRD_API,
    HOOK_HOST,
    METACONTROLLER_API,
    NAME,
    controller_name,
    crd_name,
    webhook_names,
)
from app.kube.base import Json
from app.kube.child import child, metadata

SECRET_KEYS = ("ca.crt", "ca.key", "tls.crt", "tls.key")
"""The files that a bundle is kept in."""


@dataclass(frozen=True, slots=True)
class ObjectName:
    api_version: str
    kind: str
    name: str
    namespace: str = ""

    @property
    def path(self) -> str:
        root = "/apis" if "/" in self.api_version else "/api"
        scope = f"/namespaces/{self.namespace}" if self.namespace else ""
        return f"{root}/{self.api_version}{scope}/{self.kind.lower()}s/{self.name}"


def trusting_objects() -> list[ObjectName]:
    """Return those of our own manifests; DecoratorControllers exist only if their component is installed."""
    from app.families import DECORATORS, RESOURCES

    definitions = [crd_name(resource) for resource in RESOURCES if resource.older]
    return [
        ObjectName(ADMISSION_API, "ValidatingWebhookConfiguration", NAME),
        *(ObjectName(CRD_API, "CustomResourceDefinition", name) for name in definitions),
        *(ObjectName(METACONTROLLER_API, "CompositeController", controller_name(item)) for item in RESOURCES),
        *(ObjectName(METACONTROLLER_API, "DecoratorController", item.component) for item in DECORATORS),
    ]


def texts(bundle: Bundle) -> dict[str, str]:
    contents = (bundle.trusted, bundle.ca.key, bundle.leaf.certificate, bundle.leaf.key)
    return dict(zip(SECRET_KEYS, contents, strict=True))


def bundle_from_texts(held: Mapping[str, str]) -> Bundle | None:
    """The bundle in those files; ``None`` when none of them exists, which asks for a new one."""
    if not held:
        return None
    trusted, ca_key, certificate, key = (held.get(name, "") for name in SECRET_KEYS)
    return Bundle(KeyPair(first_certificate(trusted), ca_key), KeyPair(certificate, key), trusted)


def bundle_of(secret: Json) -> Bundle | None:
    data = secret.get("data") or {}
    return bundle_from_texts({key: _decoded(data[key]) for key in SECRET_KEYS if key in data})


def secret(name: ObjectName, bundle: Bundle) -> Json:
    return child("v1", "Secret", metadata(name.name, name.namespace), data=_data(bundle))


def secret_patch(held: Json, bundle: Bundle) -> Json:
    """Build the patch that sets the bundle of a Secret; it is refused if the Secret has changed meanwhile."""
    return {"metadata": {"resourceVersion": held["metadata"]["resourceVersion"]}, "data": _data(bundle)}


def declared(trusted: str) -> list[Json]:
    """Return what those objects lack, for server-side apply beside the manifests of the installation."""
    from app.families import RESOURCES

    bundle = {"clientConfig": {"caBundle": _base64(trusted)}}
    names = [name for resource in RESOURCES for name in webhook_names(resource)]
    parts: dict[str, Json] = {
        "ValidatingWebhookConfiguration": {"webhooks": [{"name": name, **bundle} for name in names]},
        "CustomResourceDefinition": {"spec": {"conversion": {"strategy": "Webhook", "webhook": bundle}}},
        "CompositeController": {"spec": {"endpointConfigs": [{"host": HOOK_HOST, "caBundle": {"inline": trusted}}]}},
    }
    return [
        {"apiVersion": item.api_version, "kind": item.kind, "metadata": {"name": item.name}, **parts[item.kind]}
        for item in trusting_objects()
        if item.kind in parts
    ]


def spread(client: Client, trusted: str) -> list[str]:
    """Write the CA to every object that lacks it; return the paths that were written."""
    written = []
    for item in trusting_objects():
        patch_of, merge = _PATCHES[item.kind]
        if (held := client.get(item.path)) and (patch := patch_of(held, trusted)):
            client.patch(item.path, patch, merge)
            written.append(item.path)
    return written


def admission_patch(configuration: Json, trusted: str) -> Json | None:
    """Return what the webhooks of a ValidatingWebhookConfiguration lack; ``None`` if nothing."""
    bundle = _base64(trusted)
    lacking = [
        {"name": webhook["name"], "clientConfig": {"caBundle": bundle}}
        for webhook in configuration.get("webhooks") or []
        if webhook["clientConfig"].get("caBundle") != bundle
    ]
    return {"webhooks": lacking} if lacking else None


def conversion_patch(definition: Json, trusted: str) -> Json | None:
    """Return what a CustomResourceDefinition lacks for conversion; ``None`` if nothing, or if another service converts.

    Another installation may let cert-manager write its CA there, which would replace this one.
    """
    webhook = (definition["spec"].get("conversion") or {}).get("webhook") or {}
    client = webhook.get("clientConfig") or {}
    if not client or client.get("service", {}).get("name", NAME) != NAME:
        return None
    patch: Json = {}
    if client.get("caBundle") != _base64(trusted):
        patch["spec"] = {"conversion": {"webhook": {"clientConfig": {"caBundle": _base64(trusted)}}}}
    annotations = definition["metadata"].get("annotations") or {}
    if injected := [key for key in annotations if key.startswith("cert-manager.io/inject-")]:
        patch["metadata"] = {"annotations": dict.fromkeys(injected)}
    return patch or None


def hooks_patch(controller: Json, trusted: str) -> Json | None:
    """Return what a CompositeController or DecoratorController lacks to trust its hooks; ``None`` if nothing."""
    spec = controller["spec"]
    endpoints: list[Json] = spec.get("endpointConfigs") or []
    trusting = [*endpoints]
    for host in _hosts(spec):
        index = next((i for i, endpoint in enumerate(trusting) if endpoint["host"].lower() == host), None)
        if index is None:
            trusting.append({"host": host, "caBundle": {"inline": trusted}})
        elif not trusting[index].get("caBundle", {}).keys() - {"inline"}:  # else somebody chose where the CA is
            trusting[index] = {**trusting[index], "caBundle": {"inline": trusted}}
    # A merge patch replaces lists as a whole.
    return {"spec": {"endpointConfigs": trusting}} if trusting != endpoints else None


_PATCHES: dict[str, tuple[Callable[[Json, str], Json | None], str]] = {
    "ValidatingWebhookConfiguration": (admission_patch, "strategic-merge"),
    "CustomResourceDefinition": (conversion_patch, "merge"),
    "CompositeController": (hooks_patch, "merge"),
    "DecoratorController": (hooks_patch, "merge"),
}
"""Functions that build the missing part of an object of each kind, and the way to merge it."""


def _hosts(spec: Json) -> dict[str, None]:
    """``host:port`` of each hook that speaks TLS and has no CA configured."""
    hosts: dict[str, None] = {}
    for hook in spec.get("hooks", {}).values():
        webhook = (hook or {}).get("webhook") or {}
        address = _address(webhook)
        if address.scheme == "https" and "caBundle" not in webhook:
            hosts[f"{address.hostname}:{address.port or 443}"] = None
    return hosts


def _address(webhook: Json) -> SplitResult:
    if url := webhook.get("url"):
        return urlsplit(url)
    service = webhook.get("service") or {}
    protocol, port = service.get("protocol", "http"), service.get("port", 80)
    return urlsplit(f"{protocol}://{service.get('name')}.{service.get('namespace')}:{port}")


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _data(bundle: Bundle) -> dict[str, str]:
    return {key: _base64(text) for key, text in texts(bundle).items()}


def _decoded(value: str) -> str:
    """Return a value of a Secret; one that is not a string counts as absent, and is replaced."""
    try:
        return base64.b64decode(value).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
