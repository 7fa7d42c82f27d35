"""Summarize the objects of a cluster in rows, with Ready and the first cause."""

from dataclasses import dataclass, replace

from app.desk.cluster.live import ObjectSource, Unreadable, ready, served
from app.installation import METACONTROLLER_API
from app.kube.base import Json
from app.kube.resource import CustomResource

_OUTDATED = (
    "changed, and its status does not reflect that yet; if this lasts, see its events, and that Metacontroller and "
    "modelhooks run"
)


@dataclass(frozen=True)
class Row:
    namespace: str
    object: str
    """``inferenceservice.inference.llmkube.dev/chat``, as kubectl takes it."""
    ready: str
    """``True``, ``False`` or ``Unknown``."""
    cause: str = ""


def list_rows(source: ObjectSource, namespace: str | None) -> list[Row]:
    return [row for _, _, row in rows_with_objects(source, namespace)]


def rows_with_objects(source: ObjectSource, namespace: str | None) -> list[tuple[CustomResource, Json, Row]]:
    """Return every served object. Raises :class:`Unreadable` where none of the kinds is installed or may be read."""
    held = [(kind, source.objects(kind.api_version, kind.kind, namespace)) for kind in served()]
    if all(objects is None for _, objects in held):
        raise Unreadable("none of the eight kinds is installed on this cluster, or none may be read")
    return [
        (resource, document, row_with_cause(source, resource, document, objects))
        for resource, objects in held
        if objects
        for document in objects
    ]


def row_with_cause(source: ObjectSource, resource: CustomResource, document: Json, objects: list[Json]) -> Row:
    """Return the row of an object. ``objects`` of its kind show whether the service answers, if it has no status."""
    row = row_of(resource, document)
    if ready(document) or any(map(ready, objects)):
        return row
    return replace(row, cause=_unanswered(source, resource))


def row_of(resource: CustomResource, document: Json) -> Row:
    metadata = document["metadata"]
    name = f"{resource.qualified_name}/{metadata['name']}"
    condition, generation = ready(document), metadata.get("generation")
    status, cause = condition.get("status", "Unknown"), "" if condition else "not answered yet"
    observed = condition.get("observedGeneration", (document.get("status") or {}).get("observedGeneration", generation))
    if condition and observed != generation:
        status, cause = "Unknown", _OUTDATED
    elif condition and status != "True":
        cause = first_cause(condition)
    return Row(metadata.get("namespace", ""), name, status, cause)


def first_cause(condition: Json) -> str:
    lines = str(condition.get("message") or "").strip().splitlines()
    return lines[0] if lines else str(condition.get("reason", ""))


def _unanswered(source: ObjectSource, resource: CustomResource) -> str:
    controllers = source.objects(METACONTROLLER_API, "CompositeController", None)
    parents = [(controller.get("spec") or {}).get("parentResource") or {} for controller in controllers or ()]
    if controllers is not None and not any(parent.get("resource") == resource.plural for parent in parents):
        return "no CompositeController declares this kind; apply metacontroller/ of this release"
    return (
        "no object of this kind has a status yet: after an installation Metacontroller finds a new kind within its "
        "--discovery-interval, 30 seconds by default; later, see that Metacontroller runs"
    )
