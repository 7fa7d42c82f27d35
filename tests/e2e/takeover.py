"""What KServe left in a cluster in which modelhooks is installed: its CRD with both versions, and an object."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from app.kube.base import Json
from tests.e2e.controlplane import ControlPlane

KINDS = {
    "llminferenceservices": ("LLMInferenceService", "llmisvc"),
    "llminferenceserviceconfigs": ("LLMInferenceServiceConfig", "llmisvcconfig"),
}
PLURAL, GROUP = "llminferenceservices", "serving.kserve.io"
VERSIONS = ("v1alpha1", "v1alpha2")
NAMESPACE = "old"


def leave_behind(cluster: ControlPlane, workdir: Path) -> None:
    """Install KServe's CRD, and create a service in `NAMESPACE`."""
    path = workdir / "kserve.yaml"
    path.write_text(yaml.safe_dump(kserves_crd()))
    cluster.install_crds(path)
    cluster.create_namespace(NAMESPACE)
    cluster.kubectl("apply", "-n", NAMESPACE, "-f", "-", input=json.dumps(stored("before")))


def kserves_crd(plural: str = PLURAL) -> Json:
    """Return the relevant part of KServe's CRD: both versions (the newer is stored), and cert-manager's annotation."""
    kind, short = KINDS[plural]
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    service = {"name": "llmisvc-webhook-server-service", "namespace": "kserve", "path": "/convert"}
    versions: list[Json] = [
        {"name": name, "served": True, "storage": name == "v1alpha2", "schema": schema, "subresources": {"status": {}}}
        for name in VERSIONS
    ]
    webhook = {"conversionReviewVersions": ["v1", "v1beta1"], "clientConfig": {"service": service}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{GROUP}",
            "annotations": {"cert-manager.io/inject-ca-from": "kserve/llmisvc-serving-cert"},
        },
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "shortNames": [short]},
            "conversion": {"strategy": "Webhook", "webhook": webhook},
            "versions": versions,
        },
    }


def stored(name: str, *ports: int) -> Json:
    """Return a service as KServe's users have it; with ports, in full detail."""
    pool = {
        "selector": {"matchLabels": {"app": "x"}},
        "targetPorts": [{"number": port} for port in ports],
        "endpointPickerRef": {"name": f"{name}-epp-service", "port": {"number": 9002}},
    }
    router = {"router": {"scheduler": {"pool": {"spec": pool}}}} if ports else {}
    return {
        "apiVersion": f"{GROUP}/v1alpha2",
        "kind": "LLMInferenceService",
        "metadata": {"name": name},
        "spec": {"model": {"uri": "hf://facebook/opt-125m"}, **router},
    }
