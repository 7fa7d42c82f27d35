"""Generates the CustomResourceDefinition of a kind. Source: HTTP-2.3."""

from __future__ import annotations

from app.installation import CONVERSION_PATH, CRD_API, NAME, NAMESPACE, crd_name
from app.kube.resource import Column, CustomResource, Scale
from app.kube.schema.rules import Schema
from app.kube.schema.structural import structural_schema


def custom_resource_definition(resource: CustomResource) -> Schema:
    """Build the CRD, oldest version first.

    ``conversion`` is explicit, so that replacing another operator's CRD removes its conversion webhook. The CA bundle
    is added to the live object by ``modelhooks certs`` or by cert-manager.
    """
    return {
        "apiVersion": CRD_API,
        "kind": "CustomResourceDefinition",
        "metadata": {"name": crd_name(resource)},
        "spec": {
            "group": resource.group,
            "names": _names(resource),
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "conversion": _conversion() if resource.older else {"strategy": "None"},
            "versions": [*map(_version, resource.older), _version(resource)],
        },
    }


def _names(resource: CustomResource) -> Schema:
    names: Schema = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.kind.lower(),
    }
    if resource.short_names:
        names["shortNames"] = list(resource.short_names)
    return names


def _conversion() -> Schema:
    service = {"name": NAME, "namespace": NAMESPACE, "path": CONVERSION_PATH, "port": 443}
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": {"service": service}}
    return {"strategy": "Webhook", "webhook": webhook}


def _version(resource: CustomResource) -> Schema:
    version: Schema = {"name": resource.version, "served": True, "storage": resource.stored}
    if resource.columns:
        version["additionalPrinterColumns"] = [_column(column) for column in resource.columns]
    version["subresources"] = {"status": {}}
    if resource.scale:
        version["subresources"]["scale"] = _scale(resource.scale)
    version["schema"] = {"openAPIV3Schema": structural_schema(resource, merging=resource.stored)}
    return version


def _column(column: Column) -> Schema:
    written: Schema = {"name": column.name, "type": column.type, "jsonPath": column.json_path}
    if column.description:
        written["description"] = column.description
    if column.priority:
        written["priority"] = column.priority
    return written


def _scale(scale: Scale) -> Schema:
    written = {"specReplicasPath": scale.spec_replicas, "statusReplicasPath": scale.status_replicas}
    if scale.label_selector:
        written["labelSelectorPath"] = scale.label_selector
    return written
