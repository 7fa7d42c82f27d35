"""The OpenAPI document: what each hook is sent and answers, with examples that the hooks themselves made.

The routes carry references only, so that a start costs nothing; what they refer to is made when the document is asked
for (``MODELHOOKS_OPENAPI``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import orjson

from app import conversion
from app.admission import review
from app.families import CONVERT
from app.hooks.decorator import Decorator, answer_decorate
from app.hooks.kind import Kind, answer_customize, answer_sync
from app.kube.base import Json
from app.kube.resource import CustomResource
from app.server.samples import METADATA, NAME, NAMES, SAMPLES
from app.settings import Settings

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
        return f"{_title(resource)}{self.name}{what}"


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
    component = hook.component(resource, "")
    summary = hook.summary.format(kind=resource.kind)
    return {**_operation(component, summary, resource.family), "description": resource.description}


def decoration(decorator: Decorator) -> Json:
    """Arguments of ``add_api_route`` that describe a decorator's hook."""
    kinds = ", ".join(label.resource.kind for label in decorator.labels)
    summary = f"Labels of one {kinds}"
    description = f"The hook of the DecoratorController of the component {decorator.component}."
    return {**_operation(_decoration(decorator), summary, decorator.family), "description": description}


def _decoration(decorator: Decorator) -> str:
    """What its components are called."""
    return decorator.component.title().replace("-", "")


def _operation(component: str, summary: str, tag: str) -> Json:
    content = {what: _content(component + what) for what in ("Request", "Response")}
    refusal = {"application/json": {"schema": {"$ref": f"{_SCHEMAS}Refusal"}}}
    return {
        "name": component,
        "operation_id": component,
        "summary": summary,
        "tags": [tag],
        "openapi_extra": {"requestBody": {"required": True, "content": content["Request"]}},
        "responses": {
            200: {"description": "The answer.", "content": content["Response"]},
            **{status: {"description": text, "content": refusal} for status, text in _REFUSALS.items()},
        },
    }


def _content(component: str) -> Json:
    example = {"example": {"$ref": _EXAMPLES + component}}
    return {"application/json": {"schema": {"$ref": _SCHEMAS + component}, "examples": example}}


CONVERSION = {
    **_operation("Conversion", "Objects in another version of their kind", "conversion"),
    "description": "The conversion webhook of the CustomResourceDefinitions that have two versions.",
}
"""Arguments of ``add_api_route`` that describe the conversion webhook."""


def document(
    base: Json,
    kinds: Sequence[Kind[Any, Any]],
    decorators: Sequence[Decorator],
    settings: Settings,
    now: datetime,
) -> Json:
    """FastAPI's document (``base``) with the schemas and examples that the routes refer to."""
    schemas: Json = dict(_COMMON)
    examples: Json = _conversion_examples(kinds)
    for kind in kinds:
        schemas |= _schemas(kind)
        examples |= _examples(kind, kinds, settings, now)
        for older in kind.older:
            schemas |= _version_schemas(older)
            examples |= _called(_admission(older, sample(older.resource), settings))
    for decorator in decorators:
        schemas |= _decorator_schemas(decorator)
        asked = {"controller": {}, "object": sample(decorator.labels[0].resource), "attachments": {}, "related": {}}
        examples |= _called([(_decoration(decorator), asked, partial(answer_decorate, decorator))])
    return {**base, "components": {"schemas": schemas, "examples": examples}}


def _schemas(kind: Kind[Any, Any]) -> Json:
    resource, parent = kind.resource, _ref(_title(kind.resource))
    children = {_group(child.api_version, child.kind): _ref("ObjectsByName") for child in resource.children}
    found = {
        **_version_schemas(kind),
        SYNC.component(resource, "Request"): _object(
            {
                "controller": {"type": "object", "description": "The CompositeController."},
                "parent!": parent,
                "children!": _object(children, "Observed children, by kind, then by name."),
                "related": _ref("ObjectsByKind"),
                "finalizing": {"type": "boolean"},
            }
        ),
        SYNC.component(resource, "Response"): _ref("SyncResponse"),
    }
    if kind.hooks.customize is not None:
        found[CUSTOMIZE.component(resource, "Request")] = _object({"controller": {"type": "object"}, "parent!": parent})
        found[CUSTOMIZE.component(resource, "Response")] = _ref("CustomizeResponse")
    return found


def _decorator_schemas(decorator: Decorator) -> Json:
    request = {
        "controller": {"type": "object", "description": "The DecoratorController."},
        "object!": {"oneOf": [_ref(_title(label.resource)) for label in decorator.labels]},
        "attachments": _ref("ObjectsByKind"),
        "related": _ref("ObjectsByKind"),
        "finalizing": {"type": "boolean"},
    }
    values = {"type": "object", "additionalProperties": {"type": ["string", "null"]}}
    response = {
        "labels!": {**values, "description": "To write; null takes one away."},
        "attachments!": _array(_ref("Object")),
    }
    return {
        f"{_decoration(decorator)}Request": _object(request),
        f"{_decoration(decorator)}Response": _object(response),
    }


def _version_schemas(kind: Kind[Any, Any]) -> Json:
    """The object itself, and its admission: what each version of a kind has."""
    resource = kind.resource
    name = _title(resource)
    spec: Json = resource.spec.model_json_schema(by_alias=True, ref_template=f"{_SCHEMAS}{name}.{{model}}")
    parts = {f"{name}.{part}": schema for part, schema in spec.pop("$defs", {}).items()}
    document = _object(
        {
            "apiVersion": {"const": resource.api_version},
            "kind": {"const": resource.kind},
            "metadata!": _ref("ObjectMeta"),
            "spec": _ref(f"{name}Spec"),
            "status": {"type": "object", "description": "As it was last answered."},
        }
    )
    return {
        **parts,
        f"{name}Spec": spec,
        name: document,
        ADMISSION.component(resource, "Request"): _review(_ADMISSION, "request", _asked(name)),
        ADMISSION.component(resource, "Response"): _ref("AdmissionResponse"),
    }


def _title(resource: CustomResource) -> str:
    """What its components are called: by its kind, an older version by that too."""
    return resource.kind if resource.stored else f"{resource.kind}{resource.version.capitalize()}"


def _asked(kind: str) -> Json:
    """The schema of an AdmissionReview's request."""
    return {
        "uid!": _TEXT,
        "operation": {"enum": ["CREATE", "UPDATE", "DELETE", "CONNECT"]},
        "kind": _object(dict.fromkeys(("group", "version", "kind"), _TEXT)),
        "name": _TEXT,
        "namespace": _TEXT,
        "object": _ref(kind),
        "oldObject": _ref(kind),
    }


def _review(of: tuple[str, str], part: str, properties: Json) -> Json:
    api_version, kind = of
    return _object({"apiVersion!": {"const": api_version}, "kind!": {"const": kind}, f"{part}!": _object(properties)})


def _object(properties: Json, description: str = "") -> Json:
    """An object with these properties; a name that ends in ``!`` is required."""
    found: Json = {"type": "object", "properties": {name.rstrip("!"): of for name, of in properties.items()}}
    if required := [name[:-1] for name in properties if name.endswith("!")]:
        found["required"] = required
    return found | ({"description": description} if description else {})


def _ref(schema: str) -> Json:
    return {"$ref": _SCHEMAS + schema}


def _array(of: Json) -> Json:
    return {"type": "array", "items": of}


def _group(api_version: str, kind: str) -> str:
    return f"{kind}.{api_version}"


_TEXT = {"type": "string"}
_TIME = {**_TEXT, "format": "date-time"}
_STRINGS = {"type": "object", "additionalProperties": _TEXT}
_CONVERSION = (conversion.API_VERSION, "ConversionReview")
_ADMISSION = ("admission.k8s.io/v1", "AdmissionReview")
_RULE = {"apiVersion!": _TEXT, "resource!": _TEXT, "namespace": _TEXT, "names": _array(_TEXT)}
_COMMON: Json = {
    "ObjectMeta": _object(
        {
            **dict.fromkeys(("name", "namespace", "uid", "resourceVersion"), _TEXT),
            "creationTimestamp": _TIME,
            "deletionTimestamp": _TIME,
            "generation": {"type": "integer"},
            **dict.fromkeys(("labels", "annotations"), _STRINGS),
        }
    ),
    "Object": _object(
        {"apiVersion!": _TEXT, "kind!": _TEXT, "metadata!": _ref("ObjectMeta")}, "Any Kubernetes object."
    ),
    "ObjectsByName": {"type": "object", "additionalProperties": _ref("Object")},
    "ObjectsByKind": {
        "type": "object",
        "additionalProperties": _ref("ObjectsByName"),
        "description": "What customize asked for, by kind (`Pod.v1`), then by name.",
    },
    "SyncResponse": _object(
        {
            "status!": {"type": "object", "description": "The whole new status."},
            "children!": _array(_ref("Object")),
            "resyncAfterSeconds": {"type": "number"},
        }
    ),
    "CustomizeResponse": _object(
        {"relatedResources!": _array(_object({**_RULE, "labelSelector": {"type": "object"}}))}
    ),
    "AdmissionResponse": _review(
        _ADMISSION,
        "response",
        {
            "uid!": _TEXT,
            "allowed!": {"type": "boolean"},
            "warnings": _array(_TEXT),
            "status": {"type": "object", "description": "Of a denial: a `Status` with a cause per mistake."},
        },
    ),
    "ConversionRequest": _review(
        _CONVERSION,
        "request",
        {"uid!": _TEXT, "desiredAPIVersion!": _TEXT, "objects!": _array(_ref("Object"))},
    ),
    "ConversionResponse": _review(
        _CONVERSION,
        "response",
        {
            "uid!": _TEXT,
            "convertedObjects": _array(_ref("Object")),
            "result!": _object({"status!": {"enum": ["Success", "Failed"]}, "message": _TEXT}),
        },
    ),
    "Refusal": _object({"error!": _TEXT, "id": _TEXT}),
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
    calls = [
        (SYNC.component(resource, ""), request, lambda body: answer_sync(kind, body, settings, now).body),
        *_admission(kind, parent, settings),
    ]
    if kind.hooks.customize is not None:
        asking = {"controller": {}, "parent": parent}
        calls.append((CUSTOMIZE.component(resource, ""), asking, lambda body: answer_customize(kind, body, settings)))
    return _called(calls)


_Call = tuple[str, Json, Callable[[bytes], bytes]]
"""Name of the components, request, and what answers it."""


def _admission(kind: Kind[Any, Any], document: Json, settings: Settings) -> list[_Call]:
    resource = kind.resource
    reviewed = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": _UID,
            "operation": "CREATE",
            "kind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
            "name": document["metadata"]["name"],
            "object": document,
        },
    }
    return [(ADMISSION.component(resource, ""), reviewed, lambda body: review.answer(kind, body, settings).body)]


_UID = "705ab4f5-6393-11e8-b7cc-42010a800002"


def _conversion_examples(kinds: Sequence[Kind[Any, Any]]) -> Json:
    found: Json = {}
    for kind in kinds:
        for older in kind.older:
            request = {
                "uid": _UID,
                "desiredAPIVersion": kind.resource.api_version,
                "objects": [sample(older.resource)],
            }
            sent = {"apiVersion": conversion.API_VERSION, "kind": "ConversionReview", "request": request}
            found = _called([("Conversion", sent, lambda body: conversion.answer(CONVERT, body))])
    return found


def _called(calls: Sequence[_Call]) -> Json:
    found: Json = {}
    for component, sent, answer in calls:
        found[f"{component}Request"] = {"value": sent}
        found[f"{component}Response"] = {"value": orjson.loads(answer(orjson.dumps(sent)))}
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
