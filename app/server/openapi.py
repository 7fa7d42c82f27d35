"""The OpenAPI document: what each hook is sent and answers, with examples that the hooks themselves made.

The routes carry references only, so that a start costs nothing; what they refer to is made when the document is asked
for (``MODELHOOKS_OPENAPI``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from app.admission import review
from app.hooks.kind import Kind, answer_customize, answer_sync
from app.kube.resource import CustomResource
from app.server.samples import METADATA, NAME, NAMES, SAMPLES
from app.settings import Settings

Json = dict[str, Any]

DESCRIPTION = """Metacontroller's hooks and the admission webhooks for LLMKube, llmaz and KServe.

Every POST takes `application/json`. A refusal is `{"error": "..."}`, in one line and without content of the request."""

_SCHEMAS, _EXAMPLES = "#/components/schemas/", "#/components/examples/"


@dataclass(frozen=True)
class Hook:
    """A sort of endpoint that every kind has; ``name`` is the end of its components' names."""

    name: str
    summary: str
    path: Callable[[CustomResource], str]

    def component(self, resource: CustomResource, what: str) -> str:
        """The name of a schema or an example: ``what`` is ``Request`` or ``Response``."""
        return f"{resource.kind}{self.name}{what}"


SYNC = Hook("Sync", "Desired children and status of one {kind}", lambda resource: f"{resource.hook_path}/sync")
CUSTOMIZE = Hook(
    "Customize", "Related objects that one {kind} asks for", lambda resource: f"{resource.hook_path}/customize"
)
ADMISSION = Hook("Admission", "Verdict on a {kind}", lambda resource: resource.admission_path)

_REFUSALS = {
    400: "The request is not what the protocol says.",
    413: "The request, or the answer that it leads to, is too large.",
    415: "The body is not JSON, or is compressed.",
    429: "Too much is being worked on; `Retry-After` says when to ask again.",
    500: "A fault of the service; nothing is changed. The log has the id.",
}


def operation(resource: CustomResource, hook: Hook) -> Json:
    """Arguments of ``add_api_route`` that describe a hook of a kind."""
    content = {what: _content(hook.component(resource, what)) for what in ("Request", "Response")}
    refusal = {"application/json": {"schema": {"$ref": f"{_SCHEMAS}Refusal"}}}
    return {
        "name": hook.component(resource, ""),
        "operation_id": hook.component(resource, ""),
        "summary": hook.summary.format(kind=resource.kind),
        "description": resource.description,
        "tags": [resource.family],
        "openapi_extra": {"requestBody": {"required": True, "content": content["Request"]}},
        "responses": {
            200: {"description": "The answer.", "content": content["Response"]},
            **{status: {"description": text, "content": refusal} for status, text in _REFUSALS.items()},
        },
    }


def _content(component: str) -> Json:
    example = {"example": {"$ref": _EXAMPLES + component}}
    return {"application/json": {"schema": {"$ref": _SCHEMAS + component}, "examples": example}}


def document(base: Json, kinds: Sequence[Kind[Any, Any]], settings: Settings, now: datetime) -> Json:
    """FastAPI's document (``base``) with the schemas and examples that the routes refer to."""
    schemas: Json = dict(_COMMON)
    examples: Json = {}
    for kind in kinds:
        schemas |= _schemas(kind)
        examples |= _examples(kind, kinds, settings, now)
    return {**base, "components": {"schemas": schemas, "examples": examples}}


def _schemas(kind: Kind[Any, Any]) -> Json:
    resource = kind.resource
    name = resource.kind
    spec: Json = resource.spec.model_json_schema(by_alias=True, ref_template=f"{_SCHEMAS}{name}.{{model}}")
    parts = {f"{name}.{part}": schema for part, schema in spec.pop("$defs", {}).items()}
    parent = _object(
        {
            "apiVersion": {"const": resource.api_version},
            "kind": {"const": name},
            "metadata": _ref("ObjectMeta"),
            "spec": _ref(f"{name}Spec"),
            "status": {"type": "object", "description": "As it was last answered."},
        },
        "metadata",
    )
    children = {_group(child.api_version, child.kind): _ref("ObjectsByName") for child in resource.children}
    found = {
        **parts,
        f"{name}Spec": spec,
        name: parent,
        SYNC.component(resource, "Request"): _object(
            {
                "controller": {"type": "object", "description": "The CompositeController."},
                "parent": _ref(name),
                "children": _object(children, description="Observed children, by kind, then by name."),
                "related": _ref("ObjectsByKind"),
                "finalizing": {"type": "boolean"},
            },
            "parent",
            "children",
        ),
        SYNC.component(resource, "Response"): _ref("SyncResponse"),
        ADMISSION.component(resource, "Request"): _review(name),
        ADMISSION.component(resource, "Response"): _ref("AdmissionResponse"),
    }
    if kind.customize is not None:
        found[CUSTOMIZE.component(resource, "Request")] = _object(
            {"controller": {"type": "object"}, "parent": _ref(name)}, "parent"
        )
        found[CUSTOMIZE.component(resource, "Response")] = _ref("CustomizeResponse")
    return found


def _review(kind: str) -> Json:
    request = _object(
        {
            "uid": {"type": "string"},
            "operation": {"enum": ["CREATE", "UPDATE", "DELETE", "CONNECT"]},
            "kind": _object({part: {"type": "string"} for part in ("group", "version", "kind")}),
            "name": {"type": "string"},
            "namespace": {"type": "string"},
            "object": _ref(kind),
            "oldObject": _ref(kind),
        },
        "uid",
    )
    return _object({**_ENVELOPE, "request": request}, "apiVersion", "kind", "request")


def _object(properties: Json, *required: str, description: str = "") -> Json:
    found: Json = {"type": "object", "properties": properties}
    if required:
        found["required"] = list(required)
    return found | ({"description": description} if description else {})


def _ref(schema: str) -> Json:
    return {"$ref": _SCHEMAS + schema}


def _array(of: Json) -> Json:
    return {"type": "array", "items": of}


def _group(api_version: str, kind: str) -> str:
    return f"{kind}.{api_version}"


_STRINGS = {"type": "object", "additionalProperties": {"type": "string"}}
_ENVELOPE = {"apiVersion": {"const": "admission.k8s.io/v1"}, "kind": {"const": "AdmissionReview"}}
_COMMON: Json = {
    "ObjectMeta": _object(
        {
            **{part: {"type": "string"} for part in ("name", "namespace", "uid", "resourceVersion")},
            "creationTimestamp": {"type": "string", "format": "date-time"},
            "deletionTimestamp": {"type": "string", "format": "date-time"},
            "generation": {"type": "integer"},
            "labels": _STRINGS,
            "annotations": _STRINGS,
        }
    ),
    "Object": _object(
        {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": _ref("ObjectMeta")},
        "apiVersion",
        "kind",
        "metadata",
        description="Any Kubernetes object.",
    ),
    "ObjectsByName": {"type": "object", "additionalProperties": _ref("Object")},
    "ObjectsByKind": {
        "type": "object",
        "additionalProperties": _ref("ObjectsByName"),
        "description": "What customize asked for, by kind (`Pod.v1`), then by name.",
    },
    "SyncResponse": _object(
        {
            "status": {"type": "object", "description": "The whole new status."},
            "children": _array(_ref("Object")),
            "resyncAfterSeconds": {"type": "number"},
        },
        "status",
        "children",
    ),
    "CustomizeResponse": _object(
        {
            "relatedResources": _array(
                _object(
                    {
                        "apiVersion": {"type": "string"},
                        "resource": {"type": "string"},
                        "namespace": {"type": "string"},
                        "names": _array({"type": "string"}),
                        "labelSelector": {"type": "object"},
                    },
                    "apiVersion",
                    "resource",
                )
            )
        },
        "relatedResources",
    ),
    "AdmissionResponse": _object(
        {
            **_ENVELOPE,
            "response": _object(
                {
                    "uid": {"type": "string"},
                    "allowed": {"type": "boolean"},
                    "warnings": _array({"type": "string"}),
                    "status": {"type": "object", "description": "Of a denial: a `Status` with a cause per mistake."},
                },
                "uid",
                "allowed",
            ),
        },
        "apiVersion",
        "kind",
        "response",
    ),
    "Refusal": _object({"error": {"type": "string"}, "id": {"type": "string"}}, "error"),
}


def _examples(kind: Kind[Any, Any], kinds: Sequence[Kind[Any, Any]], settings: Settings, now: datetime) -> Json:
    """A request of each hook of a kind, and what the hook answers to it."""
    resource = kind.resource
    parent = sample(resource)
    asked = {related.plural for related in resource.related}
    related = {
        _group(other.resource.api_version, other.resource.kind): {_key(other.resource): sample(other.resource)}
        for other in kinds
        if other.resource.plural in asked and other is not kind
    }
    children: Json = {_group(child.api_version, child.kind): {} for child in resource.children if not child.optional}
    request = {"controller": {}, "parent": parent, "children": children, "related": related, "finalizing": False}
    reviewed = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "operation": "CREATE",
            "kind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
            "name": parent["metadata"]["name"],
            "object": parent,
        },
    }
    calls: list[tuple[Hook, Json, Callable[[bytes], bytes]]] = [
        (SYNC, request, lambda body: answer_sync(kind, body, settings, now)),
        (ADMISSION, reviewed, lambda body: review.answer(kind, body, settings)),
    ]
    if kind.customize is not None:
        asking = {"controller": {}, "parent": parent}
        calls.append((CUSTOMIZE, asking, lambda body: answer_customize(kind, body, settings)))
    found: Json = {}
    for hook, sent, answer in calls:
        found[hook.component(resource, "Request")] = {"value": sent}
        found[hook.component(resource, "Response")] = {"value": orjson.loads(answer(orjson.dumps(sent)))}
    return found


def sample(resource: CustomResource) -> Json:
    """A small, valid object of a kind, as the API server stores it."""
    found = {"apiVersion": resource.api_version, "kind": resource.kind, **SAMPLES[resource.kind]}
    name = {"name": _name(resource)} | ({"namespace": "default"} if resource.namespaced else {})
    return {**found, "metadata": {**name, **METADATA}}


def _name(resource: CustomResource) -> str:
    return NAMES.get(resource.kind, NAME)


def _key(resource: CustomResource) -> str:
    """How Metacontroller names an object among the related ones."""
    return f"default/{_name(resource)}" if resource.namespaced else _name(resource)
