"""The Secrets of certificates in a cluster, and the clients that must trust the CA.

The Secret holds everything. The ValidatingWebhookConfiguration and the CustomResourceDefinitions with several versions
take the CA as base64. A CompositeController or DecoratorController takes it as PEM, in ``spec.endpointConfigs``:
Metacontroller reads the CA again only when the ``spec`` changes, and no manifest of the installation sets that field.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from app.cli.authority import Bundle, KeyPair, first_certificate
from app.cli.kubeapi import Client
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

SECRET_KEYS = ("ca.crt", "ca.key", "tls.crt", "tls.key")


@dataclass(frozen=True, slots=True)
class SecretName:
    """The Secret that holds the certificates."""

    namespace: str
    name: str

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/secrets/{self.name}"


@dataclass(frozen=True, slots=True)
class Clients:
    """Those that have to trust the CA, by name."""

    webhook_configuration: str
    webhooks: Sequence[str]
    composite_controllers: Sequence[str]
    hook_host: str
    converted: Sequence[str] = ()
    """Names of the CustomResourceDefinitions with a conversion webhook."""
    decorator_controllers: Sequence[str] = ()

    @classmethod
    def installed(cls) -> "Clients":
        """Those of our own manifests."""
        from app.families import DECORATORS, RESOURCES

        return cls(
            webhook_configuration=NAME,
            webhooks=[name for resource in RESOURCES for name in webhook_names(resource)],
            composite_controllers=[controller_name(resource) for resource in RESOURCES],
            hook_host=HOOK_HOST,
            converted=[crd_name(resource) for resource in RESOURCES if resource.older],
            decorator_controllers=[decorator.component for decorator in DECORATORS],
        )

    @property
    def webhook_configuration_path(self) -> str:
        return f"/apis/{ADMISSION_API}/validatingwebhookconfigurations/{self.webhook_configuration}"

    @property
    def definition_paths(self) -> list[str]:
        """Paths of the CustomResourceDefinitions with several versions."""
        return [f"/apis/{CRD_API}/customresourcedefinitions/{name}" for name in self.converted]

    @property
    def composite_controller_paths(self) -> list[str]:
        return [f"/apis/{METACONTROLLER_API}/compositecontrollers/{name}" for name in self.composite_controllers]

    @property
    def decorator_controller_paths(self) -> list[str]:
        """Path of the DecoratorControllers, which exist only if their component is installed."""
        return [f"/apis/{METACONTROLLER_API}/decoratorcontrollers/{name}" for name in self.decorator_controllers]


def texts(bundle: Bundle) -> dict[str, str]:
    """The files that a bundle is kept in."""
    return {
        "ca.crt": bundle.trusted,
        "ca.key": bundle.ca.key,
        "tls.crt": bundle.leaf.certificate,
        "tls.key": bundle.leaf.key,
    }


def bundle_from_texts(held: Mapping[str, str]) -> Bundle | None:
    """The bundle in those files; None when none of them exists, which asks for a new one."""
    if not held:
        return None
    trusted, ca_key, certificate, key = (held.get(name, "") for name in SECRET_KEYS)
    return Bundle(KeyPair(first_certificate(trusted), ca_key), KeyPair(certificate, key), trusted)


def bundle_of(secret: Json) -> Bundle | None:
    data = secret.get("data") or {}
    return bundle_from_texts({key: _decoded(data[key]) for key in SECRET_KEYS if key in data})


def secret(name: SecretName, bundle: Bundle) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name.name, "namespace": name.namespace},
        "data": _data(bundle),
    }


def secret_patch(held: Json, bundle: Bundle) -> Json:
    """Build the patch that sets the bundle of a Secret; it is refused if the Secret has changed meanwhile."""
    return {"metadata": {"resourceVersion": held["metadata"]["resourceVersion"]}, "data": _data(bundle)}


def declared(clients: Clients, trusted: str) -> list[Json]:
    """Return what the clients lack, as objects for server-side apply beside those of the installation."""
    bundle = _base64(trusted)
    webhooks = [{"name": name, "clientConfig": {"caBundle": bundle}} for name in clients.webhooks]
    metadata = {"name": clients.webhook_configuration}
    admission = {"apiVersion": ADMISSION_API, "kind": "ValidatingWebhookConfiguration", "metadata": metadata}
    conversion = {"strategy": "Webhook", "webhook": _conversion(bundle)}
    definition = {"apiVersion": CRD_API, "kind": "CustomResourceDefinition"}
    endpoints = [{"host": clients.hook_host, "caBundle": {"inline": trusted}}]
    hooks = {"apiVersion": METACONTROLLER_API, "kind": "CompositeController"}
    return [
        {**admission, "webhooks": webhooks},
        *({**definition, "metadata": {"name": name}, "spec": {"conversion": conversion}} for name in clients.converted),
        *(
            {**hooks, "metadata": {"name": name}, "spec": {"endpointConfigs": endpoints}}
            for name in clients.composite_controllers
        ),
    ]


def spread(client: Client, clients: Clients, trusted: str) -> list[str]:
    """Make every client trust the CA; the result is the paths that were written, of those that were not up to date."""
    controllers = [*clients.composite_controller_paths, *clients.decorator_controller_paths]
    written = []
    for paths, patch_of, send in (
        ([clients.webhook_configuration_path], admission_patch, client.strategic_merge_patch),
        (clients.definition_paths, conversion_patch, client.merge_patch),
        (controllers, hooks_patch, client.merge_patch),
    ):
        for path in paths:
            if (held := client.get(path)) and (patch := patch_of(held, trusted)):
                send(path, patch)
                written.append(path)
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
        patch["spec"] = {"conversion": {"webhook": _conversion(_base64(trusted))}}
    injected = [key for key in definition["metadata"].get("annotations") or {} if key.startswith(_INJECTED)]
    if injected:
        patch["metadata"] = {"annotations": dict.fromkeys(injected)}
    return patch or None


_INJECTED = "cert-manager.io/inject-"


def _conversion(bundle: str) -> Json:
    return {"clientConfig": {"caBundle": bundle}}


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


def _hosts(spec: Json) -> list[str]:
    """``host:port`` of each hook that speaks TLS and has no CA configured."""
    hosts = []
    for hook in spec.get("hooks", {}).values():
        webhook = (hook or {}).get("webhook") or {}
        address = _address(webhook)
        if address.scheme == "https" and "caBundle" not in webhook:
            hosts.append(f"{address.hostname}:{address.port or 443}")
    return list(dict.fromkeys(hosts))


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
