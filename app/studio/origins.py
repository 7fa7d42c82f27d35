"""The source of each value of a child, as in ``modelhooks explain``, and its place in the documents."""

from collections.abc import Iterator, Sequence

from app.desk.cluster import catalogue, simulate
from app.desk.cluster.offline import identity
from app.desk.cluster.store import Key, key_of, owner
from app.desk.explanation import explain
from app.desk.files.manifests import Manifest
from app.desk.origins.tracer import neighbourhood
from app.desk.origins.tracer import written as fields_of
from app.hooks.kind import AnyKind
from app.kube.base import Json
from app.studio import documents, graph, simulation
from app.studio.models import OriginsRequest, ValueOrigin

Place = tuple[str, int, int]


def origins(request: OriginsRequest) -> list[ValueOrigin]:
    """The values of the pods and autoscalers below one object. Raises :class:`Unknown` if nothing created it."""
    manifests, cluster = simulation.end(request)
    readable = [*catalogue.installed(manifests), *manifests]
    written = {identity(manifest, request.namespace): manifest for manifest in readable}
    outer, inner = key = graph.key_in(request.node)
    kind, parent = _maker(cluster, key)
    related = neighbourhood(cluster, kind, parent, settling=True).objects
    target = written[key_of(parent)]
    rest = [manifest for key, manifest in written.items() if key in related and manifest is not target]
    (explained,) = explain([target], documents.world(request), rest)
    child = "" if graph.node_id(parent) == request.node else f"{outer.partition('.')[0]}/{inner.rpartition('/')[2]} "
    places = dict(_places(target, [manifest for manifest in rest if manifest in manifests]))
    return [
        _origin(row, places)
        for row in explained["values"]
        if row["path"].startswith(child) and request.filter in row["path"]
    ]


def _maker(cluster: simulate.Cluster, key: Key) -> tuple[AnyKind, Json]:
    """Return the object itself if it is a served one without an owner, else its owner."""
    makers = {document["metadata"]["uid"]: (kind, document) for kind, document in cluster.parents()}
    document = cluster.objects.get(key)
    maker = makers.get(document["metadata"]["uid"]) if document is not None else None
    while document is not None and (uid := owner(document)) and uid in makers:
        maker = makers[uid]
        document = maker[1]
    if maker is None:
        raise documents.Unknown(f"{' '.join(key)} is not created by these documents")
    return maker


def _places(explained: Manifest, others: Sequence[Manifest]) -> Iterator[tuple[str, Place]]:
    for manifest in (explained, *others):
        prefix = "" if manifest is explained else f"{manifest.kind}/{manifest.name} "
        for path, _ in fields_of({"metadata": {}, **manifest.document}):
            yield f"{prefix}{path}", (manifest.file, *manifest.position(path))


def _origin(row: dict[str, object], places: dict[str, Place]) -> ValueOrigin:
    sources = str(row["source"]).split(", ")
    document, line, column = next((places[source] for source in sources if source in places), (None, None, None))
    return ValueOrigin(
        path=str(row["path"]),
        value=row["value"],
        origin=str(row["source"]),
        document=document,
        line=line,
        column=column,
    )
