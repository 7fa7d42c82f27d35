"""A valid object of every kind, and a cluster with all objects that they refer to."""

from __future__ import annotations

from typing import Any

from app.desk.cluster.offline import direct
from app.desk.cluster.simulate import Cluster
from app.desk.cluster.store import inner_key, outer_key, stored
from app.families import KINDS
from app.hooks.kind import Kind
from app.kube.base import Json
from app.settings import Settings

SETTINGS = Settings()

VALID: dict[str, Json] = {
    "inference.llmkube.dev/Model": {"source": "https://models.example.com/m.gguf"},
    "inference.llmkube.dev/InferenceService": {"modelRef": "m"},
    "llmaz.io/OpenModel": {"familyName": "opt", "source": {"modelHub": {"modelID": "facebook/opt-125m"}}},
    "inference.llmaz.io/BackendRuntime": {
        "command": ["serve"],
        "image": "tool",
        "version": "v1",
        "recommendedConfigs": [{"name": "default", "args": ["--model", "{{ .ModelPath }}"]}],
    },
    "inference.llmaz.io/Playground": {"modelClaim": {"modelName": "opt"}},
    "inference.llmaz.io/Service": {
        "modelClaims": {"models": [{"name": "opt"}]},
        "workloadTemplate": {
            "workerTemplate": {"spec": {"containers": [{"name": "model-runner", "image": "tool:v1"}]}},
        },
    },
    "serving.kserve.io/LLMInferenceService": {"model": {"uri": "hf://Qwen/Qwen2.5-0.5B"}},
    "serving.kserve.io/LLMInferenceServiceConfig": {"model": {"uri": "hf://Qwen/Qwen2.5-0.5B"}},
}


def name_of(kind: Kind[Any, Any]) -> str:
    return f"{kind.resource.group}/{kind.resource.kind}"


def parent(kind: Kind[Any, Any], spec: Any) -> Json:
    resource = kind.resource
    metadata = {"name": "x", "uid": "u", "generation": 1, **({"namespace": "ns"} if resource.namespaced else {})}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}


def reviewed(kind: Kind[Any, Any], document: Json, old: Json | None = None) -> Json:
    resource = kind.resource
    request = {
        "uid": "r",
        "operation": "CREATE" if old is None else "UPDATE",
        "kind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "object": document,
        "oldObject": old,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def cluster_of_all() -> Cluster:
    """Return a cluster in which everything that the valid specs refer to exists and is ready."""
    cluster = Cluster(direct(SETTINGS))
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "ns"}}
    cluster.objects[outer_key(account), inner_key(account)] = account
    names = {"Model": "m", "OpenModel": "opt", "BackendRuntime": "vllm"}
    for kind in KINDS:
        document = stored(parent(kind, VALID[name_of(kind)]), "ns" if kind.resource.namespaced else "")
        document["metadata"] |= {"name": names.get(kind.resource.kind, "there"), "uid": name_of(kind)}
        cluster.objects[outer_key(document), inner_key(document)] = document
    cluster.settle()
    return cluster
