"""Live mode: the objects of a cluster, read with the rights of the user. Nothing here writes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Protocol

import orjson
from fastapi import APIRouter
from fastapi.sse import EventSourceResponse

from app.desk.cluster import live as clusters
from app.desk.cluster.kinds import find, kind_of
from app.desk.cluster.offline import desired, direct, in_cluster
from app.desk.cluster.rows import Row, row_of, rows_with_objects
from app.desk.cluster.simulate import Cluster
from app.desk.cluster.store import Store, key_of, type_of
from app.desk.files.manifests import Manifest, ManifestError, parse
from app.desk.files.yaml import dump
from app.kube.base import Json
from app.kube.names import CONTROLLER_UID
from app.kube.resource import ChildKind, CustomResource
from app.settings import Settings, variable_name
from app.studio import documents, models
from app.studio.check import check
from app.studio.compare import comparison_fields, edits
from app.studio.graph import draw, key_in, node_id

_READY: Mapping[str, models.Ready] = {"True": "True", "False": "False"}
_ACTIONS: Mapping[str, models.Action] = {"ADDED": "added", "MODIFIED": "modified", "DELETED": "deleted"}
_WRITTEN_BY_USERS = ("name", "namespace", "labels", "annotations")
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Watched(clusters.ObjectSource, Protocol):
    context: str

    def release(self) -> str:
        """Return the release of the API server, such as ``1.37``."""

    def changes(self, api_version: str, kind: str, label: str = "") -> AsyncIterator[tuple[str, Json]]:
        """``ADDED``, ``MODIFIED`` or ``DELETED``, and the object, for each that has the label."""


class Live:
    def __init__(self, source: Watched) -> None:
        self.context = source.context
        self._source = source

    def router(self) -> APIRouter:
        router = APIRouter(tags=["live"])
        router.add_api_route("/objects", self.objects, methods=["GET"])
        router.add_api_route("/graph", self.graph, methods=["GET"])
        router.add_api_route("/events", self.events, methods=["GET"], response_class=EventSourceResponse)
        router.add_api_route("/compare", self.compare, methods=["POST"])
        return router

    def objects(self, namespace: str = "", family: str = "", text: str = "") -> list[models.LiveObject]:
        """Return the served objects, filtered by namespace, family and search string."""
        rows = rows_with_objects(self._source, namespace or None)
        listed = [_object(*row) for row in rows]
        return [item for item in listed if family in ("", item.family) and text.lower() in _words(item)]

    def graph(self, resource: str, name: str, namespace: str = "") -> models.LiveGraph:
        """The graph around one object, which is what it reads, what it leads to, and the pods."""
        kind = _resource(resource)
        document = self._find(kind, namespace, name)
        cluster = self._simulated_cluster(kind, document, namespace)
        manifest = _manifest(document)
        places = {key_of(document): (manifest.name, 1)}
        drawn = draw(cluster, places, document, partial(_looked_for, cluster, namespace))
        keys = [key_in(node.id) for node in drawn.nodes if node.role == "related"]
        related = [_manifest(cluster.objects[key]) for key in keys if key in cluster.objects]
        return models.LiveGraph(nodes=drawn.nodes, edges=drawn.edges, manifest=manifest, related=related)

    async def events(self) -> AsyncIterator[models.LiveEvent]:
        """Yield the served objects of the cluster, then every change of them and of their children."""
        queue: asyncio.Queue[models.LiveEvent] = asyncio.Queue(maxsize=1000)
        served = clusters.served()
        children = {child.key: child for resource in served for child in resource.children}
        followed: list[CustomResource | ChildKind] = [*served, *children.values()]
        tasks = [asyncio.create_task(self._follow(resource, queue)) for resource in followed]
        try:
            while True:
                yield await queue.get()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, followed: CustomResource | ChildKind, queue: asyncio.Queue[models.LiveEvent]) -> None:
        label = "" if isinstance(followed, CustomResource) else CONTROLLER_UID
        async for action, document in self._source.changes(followed.api_version, followed.kind, label):
            if isinstance(followed, CustomResource):
                await queue.put(_event(action, document, _object(followed, document, row_of(followed, document))))
            elif action != "ADDED":  # a new one changes its parent's status too
                await queue.put(_event(action, document, None))

    def compare(self, request: models.LiveCompareRequest) -> models.LiveComparison:
        """Compare the children of an edited object with those that its hook returns now."""
        document = models.Document(name="edited.yaml", text=request.text)
        edited = _single(request.text)
        new = in_cluster(edited, edited.document.get("metadata", {}).get("namespace") or "default")
        kind = kind_of(new)
        assert kind is not None
        namespace, name = new["metadata"].get("namespace", ""), new["metadata"]["name"]
        held = self._find(kind.resource, namespace, name)
        cluster = self._simulated_cluster(kind.resource, held, namespace)
        after = {**new, "metadata": {**held["metadata"], **_labels(new)}, "status": held.get("status", {})}
        sides = [{key_of(c, namespace): c for c in cluster.ask(kind, parent)["children"]} for parent in (held, after)]
        return models.LiveComparison(
            **comparison_fields(list(edits([_single(_manifest(held).text)], [edited], namespace)), *sides),
            command=_command(request.text),
            findings=check(
                models.Manifests(documents=[document], namespace=namespace, settings=self._release_setting())
            ),
        )

    def _release_setting(self) -> dict[str, str]:
        """Return the setting with the cluster's release; none where that cannot be read."""
        with contextlib.suppress(clusters.Unreadable):
            return {variable_name("kubernetes_release"): self._source.release()}
        return {}

    def _find(self, resource: CustomResource, namespace: str, name: str) -> Json:
        for document in self._source.objects(resource.api_version, resource.kind, namespace or None) or ():
            if document["metadata"]["name"] == name and document["metadata"].get("namespace", "") == namespace:
                return document
        raise documents.Unknown(f"no {resource.kind} is called {name} in namespace {namespace or '(none)'}")

    def _simulated_cluster(self, resource: CustomResource, document: Json, namespace: str) -> Cluster:
        """Return the part of the cluster that the object's hooks read."""
        related = clusters.readable_objects(self._source, resource, document, namespace)
        objects = Store({key_of(item): item for item in [*related, document]})
        return Cluster(direct(Settings()), objects=objects)


def _single(text: str) -> Manifest:
    manifests = parse(text, "edited.yaml")
    if len(manifests) != 1 or find(manifests[0].api_version, manifests[0].kind) is None:
        raise ManifestError("must be a single object of a served kind")
    return manifests[0]


def _labels(document: Json) -> Json:
    return {key: document["metadata"].get(key) or {} for key in ("labels", "annotations")}


def _resource(name: str) -> CustomResource:
    served = clusters.served()
    matching = [item for item in served if name in (item.qualified_name, item.kind.lower(), item.plural)]
    if len(matching) != 1:
        names = ", ".join(resource.qualified_name for resource in served)
        raise documents.Unknown(f"{name} is not supported; must be one of {names}")
    return matching[0]


def _words(listed: models.LiveObject) -> str:
    return f"{listed.kind} {listed.namespace} {listed.name} {listed.ready} {listed.cause}".lower()


def _object(resource: CustomResource, document: Json, row: Row) -> models.LiveObject:
    return models.LiveObject(
        family=resource.family,
        kind=resource.kind,
        resource=resource.qualified_name,
        namespace=row.namespace,
        name=document["metadata"]["name"],
        ready=_READY.get(row.ready, "Unknown"),
        cause=row.cause,
    )


def _event(action: str, document: Json, listed: models.LiveObject | None) -> models.LiveEvent:
    namespace = document["metadata"].get("namespace", "")
    return models.LiveEvent(action=_ACTIONS[action], node=node_id(document), namespace=namespace, object=listed)


def _looked_for(cluster: Cluster, namespace: str, key: tuple[str, str]) -> bool:
    """Report whether an object would have been read: all of served kinds; of others, those here if any were read."""
    outer, inner = key
    visible = inner.startswith(f"{namespace}/") or "/" not in inner
    return visible and (find(*type_of(outer)) is not None or bool(cluster.objects.of_kind(outer)))


def _manifest(document: Json) -> models.Document:
    """Return an object as a user would write it, without the fields of the API server and of controllers."""
    shown = desired(document)
    metadata = {key: shown["metadata"][key] for key in _WRITTEN_BY_USERS if shown["metadata"].get(key)}
    annotations = {k: v for k, v in (metadata.pop("annotations", None) or {}).items() if k != _APPLIED}
    manifest = {**shown, "metadata": {**metadata, **({"annotations": annotations} if annotations else {})}}
    return models.Document(name=f"{document['kind'].lower()}-{metadata['name']}.yaml", text=dump(manifest))


def _command(text: str) -> str:
    """Return a shell command with a here-document whose delimiter the content does not contain."""
    end = next(word for word in ("EOF", "END_OF_MANIFEST", orjson.dumps(len(text)).decode()) if word not in text)
    return f"kubectl apply -f - <<'{end}'\n{text.rstrip()}\n{end}\n"
