"""Valid requests, from which each case of the corpus differs in one point, and checks of the answers.

The fields are LLMKube's where the corpus (HTTP-6) has placeholders.
"""

from __future__ import annotations

import copy
from typing import Any

import orjson

from app.hooks.template import INPUTS
from app.kube.base import Json
from tests.service import Answer

REVIEW = "/validate-inference-llmkube-dev-v1alpha1-inferenceservice"
REVIEW_MODEL = "/validate-inference-llmkube-dev-v1alpha1-model"
SYNC = "/llmkube/inferenceservices/sync"
SYNC_MODEL = "/llmkube/models/sync"
CUSTOMIZE = "/llmkube/inferenceservices/customize"

API_VERSION = "inference.llmkube.dev/v1alpha1"
JSON_HEADERS = {"Content-Type": "application/json"}
UID = "4b8f1c62-1f5e-4b8f-9a55-0d3c7c1f0001"
SPEC: Json = {"modelRef": "m", "runtime": "llamacpp", "replicas": 1, "image": "registry.example/server:1"}
MODEL_SPEC: Json = {"source": "https://models.example.com/m.gguf"}


def service(spec: Any = None, **over: Any) -> Json:
    """Return an InferenceService as the API server stores it."""
    return _object("InferenceService", "s", SPEC if spec is None else spec, over)


def model(spec: Any = None, **over: Any) -> Json:
    return _object("Model", "m", MODEL_SPEC if spec is None else spec, over)


def _object(kind: str, name: str, spec: Any, over: Json) -> Json:
    metadata = {"name": name, "namespace": "ns", "uid": UID, "generation": 1}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec, **over}


def spec_with(**over: Any) -> Json:
    """Return a valid spec with some fields replaced."""
    return {**SPEC, **over}


def review(document: Any = None, old: Any = None, **over: Any) -> Json:
    """Return an AdmissionReview of an object, as the API server sends it."""
    document = service() if document is None else document
    metadata = document.get("metadata") if isinstance(document, dict) else None
    kind = document.get("kind", "") if isinstance(document, dict) else "InferenceService"
    request = {
        "uid": "r-1",
        "operation": "CREATE" if old is None else "UPDATE",
        "kind": {"group": "inference.llmkube.dev", "version": "v1alpha1", "kind": kind},
        "resource": {"group": "inference.llmkube.dev", "version": "v1alpha1", "resource": f"{kind.lower()}s"},
        "name": metadata.get("name", "") if isinstance(metadata, dict) else "",
        "namespace": metadata.get("namespace", "") if isinstance(metadata, dict) else "",
        "object": document,
        "oldObject": old,
        "dryRun": False,
        **over,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


DEPLOYMENT_RECORD: Json = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "s", "namespace": "ns", "labels": {"app": "s"}},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "s", "inference.llmkube.dev/service": "s"}},
        "template": {
            "metadata": {"labels": {"app": "s", "inference.llmkube.dev/service": "s"}},
            "spec": {"containers": [{"name": "kept", "image": "kept:1"}]},
        },
    },
}


def observed(record: Json = DEPLOYMENT_RECORD) -> Json:
    """Return a child as observed, with Metacontroller's record and the digest of inputs other than the present ones."""
    child = copy.deepcopy(record)
    text = orjson.dumps(record).decode()
    child["metadata"] |= {
        "uid": "c-1",
        "labels": {**child["metadata"].get("labels", {}), "controller-uid": UID},
        "annotations": {"metacontroller.k8s.io/last-applied-configuration": text, INPUTS: ""},
    }
    return child


READY_MODEL = model(status={"phase": "Ready", "path": "/models/x/m.gguf", "cacheKey": "x"})


def sync(parent: Any = None, **over: Any) -> Json:
    """Return a sync request: one Deployment exists, and the Model is Ready."""
    return {
        "controller": {"spec": {}},
        "parent": service() if parent is None else parent,
        "children": {"Deployment.apps/v1": {"ns/s": observed()}, "Service.v1": {}},
        "related": {f"Model.{API_VERSION}": {"ns/m": READY_MODEL}},
        "finalizing": False,
        **over,
    }


def nested(depth: int) -> Any:
    """Return a map nested to this depth."""
    return orjson.loads(b'{"a":' * depth + b"1" + b"}" * depth) if depth <= 1000 else None


# Answers.


def verdict(answer: Answer) -> Json:
    """Return the response of a review, which must have status 200."""
    assert answer.status == 200, answer
    response: Json = answer.json["response"]
    return response


def causes(response: Json) -> list[tuple[str, str]]:
    """Return field and type (without its common prefix) of each cause of a denial."""
    assert response["allowed"] is False, response
    assert response["status"]["code"] == 422, response
    listed = response["status"].get("details", {}).get("causes", [])
    return [(cause["field"], cause["reason"].removeprefix("FieldValue")) for cause in listed]


def is_denied(answer: Answer, field: str, *types: str) -> None:
    """Assert that a review is denied with one of the types at that field: ``deny(field, TYPE)`` in the corpus."""
    errors = causes(verdict(answer))
    assert any(path == field and (not types or type_ in types) for path, type_ in errors), errors
    assert len(answer.body) <= 64 * 1024


def is_allowed(answer: Answer) -> list[str]:
    """Assert that a review is allowed, and return its warnings."""
    response = verdict(answer)
    assert response["allowed"] is True, response
    warnings: list[str] = response.get("warnings", [])
    return warnings


def ready(answer: Answer) -> Json:
    """Return the Ready condition of a sync answer."""
    assert answer.status == 200, answer
    return next(c for c in answer.json["status"]["conditions"] if c["type"] == "Ready")


def is_frozen(answer: Answer) -> None:
    """Assert ``frozen`` of the corpus: the child is sent exactly as last applied, and the condition has the reason."""
    condition = ready(answer)
    assert (condition["status"], condition["reason"]) == ("False", "InvalidSpec"), condition
    assert answer.json["children"] == [DEPLOYMENT_RECORD]


UNREADABLE = {REVIEW: "not an AdmissionReview: ", SYNC: "not a v2 hook request: "}
"""How the reasons begin of a refused body that is not JSON, or has no such form."""


def is_refused(answer: Answer) -> str:
    """Assert that a request is refused with status 400 and a short body that has only a reason; return the reason."""
    assert answer.status == 400, answer
    assert len(answer.body) <= 512
    ((key, reason),) = answer.json.items()
    assert key == "error"
    assert "\n" not in reason
    return str(reason)
