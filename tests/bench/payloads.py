"""Requests as in a real cluster: about a third of each object is ``managedFields``."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from datetime import UTC, datetime

import orjson

from app.desk.cluster.kinds import find
from app.hooks.answer import answer_sync
from app.kube.base import Json
from app.kube.names import LAST_APPLIED
from app.settings import Settings

UID = "0f3c7c1e-2222-4333-8444-555555555555"


@dataclass(frozen=True)
class Case:
    """One request: its path and body, the number of connections, and the target ratio."""

    name: str
    path: str
    body: bytes
    connections: int
    target: float


def managed_fields(entries: int) -> list[Json]:
    """Return field ownership as the API server writes it: many small objects."""
    owned: Json = {
        f"f:field{n}": {
            ".": {},
            f'k:{{"name":"item-{n}"}}': {
                ".": {},
                "f:name": {},
                "f:value": {},
                "f:valueFrom": {".": {}, "f:fieldRef": {}},
            },
        }
        for n in range(entries)
    }
    return [
        {
            "manager": "kube-controller-manager",
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-11-01T10:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": owned,
        }
    ]


def _meta(name: str, entries: int, labels: dict[str, str] | None = None) -> Json:
    metadata = {
        "name": name,
        "namespace": "team-a",
        "uid": UID,
        "resourceVersion": "123456",
        "generation": 3,
        "creationTimestamp": "2026-11-01T10:00:00Z",
        "managedFields": managed_fields(entries),
    }
    return {**metadata, "labels": labels} if labels else metadata


SERVICE_LABELS = {"app": "chat", "inference.llmkube.dev/service": "chat"}


ENVIRONMENT = [{"name": f"VARIABLE_{n}", "value": f"value of variable number {n}"} for n in range(30)]
TOLERATIONS = [{"key": f"taint-{n}", "operator": "Exists", "effect": "NoSchedule"} for n in range(10)]


def _pod_spec() -> Json:
    """Return a pod spec as the API server returns it: with every default, and many variables."""
    probe = {"httpGet": {"path": "/health", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10, "timeoutSeconds": 5}
    container = {
        "name": "llama-server",
        "image": "ghcr.io/ggml-org/llama.cpp:server",
        "args": ["--model", "/models/8cc5f1f83d631cc0/m.gguf", "--port", "8080", "--metrics"],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": ENVIRONMENT,
        "startupProbe": probe,
        "livenessProbe": probe,
        "readinessProbe": probe,
        "resources": {"limits": {"nvidia.com/gpu": "1"}, "requests": {"cpu": "4", "memory": "16Gi"}},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    return {
        "containers": [container],
        "tolerations": TOLERATIONS,
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
    }


def _pod(number: int) -> Json:
    condition = {"status": "True", "lastTransitionTime": "2026-11-01T10:00:00Z", "lastProbeTime": None}
    conditions = [{"type": t, **condition} for t in ("Initialized", "Ready", "ContainersReady", "PodScheduled")]
    status = {
        "name": "llama-server",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "image": "ghcr.io/ggml-org/llama.cpp:server",
        "state": {"running": {"startedAt": "2026-11-01T10:00:00Z"}},
        "lastState": {},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _meta(f"chat-5b8f-{number}", 60, SERVICE_LABELS),
        "spec": _pod_spec(),
        "status": {"phase": "Running", "conditions": conditions, "containerStatuses": [status], "podIP": "10.1.2.3"},
    }


def _inference_service() -> Json:
    return {
        "apiVersion": "inference.llmkube.dev/v1alpha1",
        "kind": "InferenceService",
        "metadata": _meta("chat", 35),
        "spec": {
            "modelRef": "m",
            "replicas": 3,
            "runtime": "llamacpp",
            "contextSize": 8192,
            "resources": {"gpu": 1, "cpu": "4", "memory": "16Gi"},
            "endpoint": {"port": 8080, "type": "ClusterIP", "path": "/v1/chat/completions"},
        },
        "status": {"phase": "Ready", "readyReplicas": 3, "desiredReplicas": 3, "modelReady": True},
    }


def inference_service_sync(pods: int = 3) -> bytes:
    """Return the sync of a settled InferenceService: Deployment, Service, Model and its pods."""
    parent = _inference_service()
    parent["spec"] |= {"env": ENVIRONMENT, "tolerations": TOLERATIONS}
    model = {
        "apiVersion": "inference.llmkube.dev/v1alpha1",
        "kind": "Model",
        "metadata": _meta("m", 35),
        "spec": {"source": "https://example.com/model.gguf", "format": "gguf"},
        "status": {"phase": "Ready", "cacheKey": "8cc5f1f83d631cc0", "path": "/models/8cc5f1f83d631cc0/m.gguf"},
    }
    body = {
        "controller": {"kind": "CompositeController", "metadata": _meta("inferenceservices", 30), "spec": {}},
        "parent": parent,
        "children": {"Deployment.apps/v1": {}, "Service.v1": {}, "HorizontalPodAutoscaler.autoscaling/v2": {}},
        "related": {
            "Model.inference.llmkube.dev/v1alpha1": {"team-a/m": model},
            "Pod.v1": {f"team-a/chat-5b8f-{n}": _pod(n) for n in range(pods)},
        },
        "finalizing": False,
    }
    return orjson.dumps({**body, "children": _children(body)})


def _children(request: Json) -> Json:
    """Return the children once the response to a request without children is applied, with Metacontroller's records."""
    kind = find("inference.llmkube.dev/v1alpha1", "InferenceService")
    assert kind is not None
    answer = orjson.loads(answer_sync(kind, orjson.dumps(request), Settings(), datetime.now(UTC)))
    deployment, service = answer["children"]
    counts = {"replicas": 3, "readyReplicas": 3, "updatedReplicas": 3, "availableReplicas": 3}
    status = {**counts, "observedGeneration": 3}
    return {
        **request["children"],
        "Deployment.apps/v1": {"team-a/chat": {**_recorded(deployment, 70), "status": status}},
        "Service.v1": {"team-a/chat": _recorded(service, 25)},
    }


def _recorded(child: Json, entries: int) -> Json:
    annotations = {LAST_APPLIED: orjson.dumps(child).decode()}
    return {**child, "metadata": {**_meta("chat", entries), "annotations": annotations}}


def inference_service_review() -> bytes:
    """Return an admission review of an update of the same object."""
    new = _inference_service()
    old = copy.deepcopy(new)
    old["spec"]["replicas"] = 2
    return review(new, old)


def review(new: Json, old: Json) -> bytes:
    """Return an admission review of an update of an InferenceService."""
    identity = {"group": "inference.llmkube.dev", "version": "v1alpha1", "kind": "InferenceService"}
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": identity,
        "operation": "UPDATE",
        "name": new["metadata"]["name"],
        "namespace": new["metadata"]["namespace"],
        "userInfo": {"username": "jane", "groups": ["system:authenticated"]},
        "object": new,
        "oldObject": old,
    }
    return orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


def many_pods(count: int) -> bytes:
    """Return a sync of an LLMInferenceService with ``count`` unscheduled pods of 750 bytes each."""
    return orjson.dumps(
        {
            "controller": {},
            "parent": {
                "apiVersion": "serving.kserve.io/v1alpha1",
                "kind": "LLMInferenceService",
                "metadata": {"name": "chat", "namespace": "team-a", "uid": UID},
                "spec": {"model": {"uri": "hf://a/b"}},
            },
            "children": {"Deployment.apps/v1": {}, "Service.v1": {}},
            "related": {"Pod.v1": {f"team-a/chat-{n}": _waiting(n) for n in range(count)}},
            "finalizing": False,
        }
    )


_KSERVE_LABELS = {"app.kubernetes.io/name": "chat", "app.kubernetes.io/part-of": "llminferenceservice"}


def _waiting(number: int) -> Json:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": f"0/{number} nodes are available: {'insufficient memory ' * 25}",
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"chat-{number}", "namespace": "team-a", "labels": _KSERVE_LABELS},
        "status": {"phase": "Pending", "conditions": [condition]},
    }
