"""Models of requests and answers for FastAPI's OpenAPI document: endpoints read the bytes themselves."""

from fastapi import Depends
from pydantic import BaseModel, create_model

from app.hooks.labels import Decorator
from app.kube.base import Json
from app.kube.resource import CustomResource

DESCRIPTION = """Metacontroller's hooks and the admission webhooks for LLMKube, llmaz and KServe.

Every POST takes `application/json`. A refusal is `{"error": "..."}`, in one line and without content of the request."""

GROUPS = dict[str, dict[str, Json]]
"""Objects by kind (`Pod.v1`), then by name."""


def _model(name: str, **fields: object) -> type[BaseModel]:
    definitions: Json = {field: (annotation, ...) for field, annotation in fields.items()}
    model: type[BaseModel] = create_model(name, **definitions)
    return model


REFUSAL = _model("Refusal", error=str)
SYNC = _model("SyncResponse", status=Json, children=list[Json])
CUSTOMIZE = _model("CustomizeResponse", relatedResources=list[Json])
DECORATE = _model("DecoratorResponse", labels=dict[str, str | None], attachments=list[Json])
REVIEW = _model("Review", apiVersion=str, kind=str, response=Json)
CONVERSION = _model("ConversionRequest", uid=str, desiredAPIVersion=str, objects=list[Json])


def object_of(resource: CustomResource) -> type[BaseModel]:
    name = resource.kind if resource.stored else resource.kind + resource.version.capitalize()
    return _model(name, apiVersion=str, kind=str, metadata=Json, spec=resource.spec)


def review_of(name: str, request: type[BaseModel]) -> type[BaseModel]:
    return _model(f"{name}Review", apiVersion=str, kind=str, request=request)


def operation(summary: str, tag: str, answer: type[BaseModel], request: type[BaseModel], description: str) -> Json:
    """Return the arguments of ``add_api_route`` that describe an endpoint."""

    def body(request: object) -> None:
        """Never called: ``HookRoute`` has no dependencies. FastAPI reads the annotation for the document."""

    body.__annotations__["request"] = request
    return {
        "summary": summary,
        "description": description,
        "tags": [tag],
        "response_model": answer,
        "dependencies": [Depends(body)],
        "responses": {"4XX": {"model": REFUSAL}, "5XX": {"model": REFUSAL}},
    }


def sync(resource: CustomResource, verb: str = "Sync") -> Json:
    """Describe a sync hook, or a finalize hook, which has the same form."""
    parent = object_of(resource)
    request = _model(f"{parent.__name__}{verb}", parent=parent, children=GROUPS, related=GROUPS)
    return operation(f"{verb} {parent.__name__}", resource.family, SYNC, request, resource.description)


def customize(resource: CustomResource) -> Json:
    parent = object_of(resource)
    request = _model(f"{parent.__name__}Customize", parent=parent)
    return operation(f"Customize {parent.__name__}", resource.family, CUSTOMIZE, request, resource.description)


def admit(resource: CustomResource) -> Json:
    reviewed = object_of(resource)
    name = reviewed.__name__
    request = review_of(name, _model(f"{name}Admission", uid=str, operation=str, object=reviewed))
    return operation(f"Admit {name}", resource.family, REVIEW, request, resource.description)


def decorate(decorator: Decorator) -> Json:
    name = decorator.component
    request = _model("Decoration", object=Json, related=GROUPS)
    return operation(f"Decorate with {name}", decorator.family, DECORATE, request, f"The component {name}.")


def convert() -> Json:
    request = review_of("Conversion", CONVERSION)
    return operation("Convert", "conversion", REVIEW, request, "The conversion webhook of the kinds with two versions.")
