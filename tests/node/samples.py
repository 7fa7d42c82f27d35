"""Objects of all three families, small enough to run many on one machine; each serves the model of `tiny_model`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.node import images

_SMALL = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}}
_ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - a pod has to be reached from outside itself


def model(name: str, source: str, **spec: Any) -> dict[str, Any]:
    """Return a Model of LLMKube."""
    return {
        "apiVersion": "inference.llmkube.dev/v1alpha1",
        "kind": "Model",
        "metadata": {"name": name},
        "spec": {"source": source, "format": "gguf", **spec},
    }


def service(name: str, model_ref: str, **spec: Any) -> dict[str, Any]:
    """Return an InferenceService of LLMKube with small requests."""
    small = {"contextSize": 512, "resources": {"cpu": "10m", "memory": "128Mi"}}
    return {
        "apiVersion": "inference.llmkube.dev/v1alpha1",
        "kind": "InferenceService",
        "metadata": {"name": name},
        "spec": {"modelRef": model_ref, **small, **spec},
    }


def runtime(name: str) -> dict[str, Any]:
    """Return a BackendRuntime of llmaz with small requests; cluster-scoped."""
    repository, _, version = images.LLAMA.rpartition(":")
    model = ["-m", "{{ .ModelPath }}", "--ctx-size", "512", "--threads", "1"]
    arguments = [*model, "--host", _ANY_ADDRESS, "--port", "8080", "--metrics"]
    return {
        "apiVersion": "inference.llmaz.io/v1alpha1",
        "kind": "BackendRuntime",
        "metadata": {"name": name},
        "spec": {
            "image": repository,
            "version": version,
            "command": ["/app/llama-server"],
            "startupProbe": {"httpGet": {"path": "/health", "port": 8080}, "periodSeconds": 2, "failureThreshold": 60},
            "readinessProbe": {"httpGet": {"path": "/health", "port": 8080}, "periodSeconds": 2},
            "recommendedConfigs": [{"name": "default", "args": arguments, "resources": _SMALL}],
        },
    }


def open_model(name: str, file: Path) -> dict[str, Any]:
    """Return an OpenModel whose source is a file of the node; cluster-scoped."""
    return {
        "apiVersion": "llmaz.io/v1alpha1",
        "kind": "OpenModel",
        "metadata": {"name": name},
        "spec": {"familyName": "llama", "source": {"uri": f"host://{file}"}},
    }


def playground(name: str, model_name: str, runtime_name: str, **spec: Any) -> dict[str, Any]:
    """Return a Playground of llmaz."""
    return {
        "apiVersion": "inference.llmaz.io/v1alpha1",
        "kind": "Playground",
        "metadata": {"name": name},
        "spec": {
            "modelClaim": {"modelName": model_name},
            "backendRuntimeConfig": {"backendName": runtime_name},
            **spec,
        },
    }


def volume(name: str, folder: Path) -> dict[str, Any]:
    """Return a PersistentVolume that is a directory of the node."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "manual",
            "hostPath": {"path": str(folder)},
        },
    }


def claim(name: str, volume_name: str) -> dict[str, Any]:
    """Return a claim of a volume made by `volume`."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "volumeName": volume_name,
            "storageClassName": "manual",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def llm_service(name: str, uri: str, **spec: Any) -> dict[str, Any]:
    """Return an LLMInferenceService of KServe, with the presets' security context unchanged."""
    return {
        "apiVersion": "serving.kserve.io/v1alpha2",
        "kind": "LLMInferenceService",
        "metadata": {"name": name},
        "spec": {
            "model": {"uri": uri, "name": name},
            "template": {"containers": [{"name": "main", "image": images.ENGINE, "resources": _SMALL}]},
            **(spec or {"replicas": 1}),
        },
    }
