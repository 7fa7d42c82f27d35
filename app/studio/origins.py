"""The source of each value of a child, as in ``modelhooks explain``, and its place in the documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from app.cli import catalogue
from app.cli.explain import explain
from app.cli.manifests import Manifest
from app.cli.offline import in_cluster
from app.cli.origins import neighbourhood
from app.cli.origins import written as fields_of
from app.cli.simulate import Cluster
from app.cli.store import owner
from app.cli.world import inner_key, outer_key
from app.hooks.kind import Kind
from app.kube.base import Json
from app.studio.documents import Unknown, settings
from app.studio.graph import node_id
from app.studio.models import Origin, OriginsRequest
from app.studio.scenes import end


def origins(asked: OriginsRequest) -> list[Origin]:
    """The values of the pods and autoscalers below one object. Raises :class:`Unknown` for one that nothing made."""
    manifests, cluster = end(asked)
    written = {_key(manifest, asked.namespace): manifest for manifest in [*catalogue.installed(manifests), *manifests]}
    outer, _, inner = asked.node.partition(" ")
    kind, parent = _maker(cluster, (outer, inner))
    around = neighbourhood(cluster, kind, parent).objects
    own = written[outer_key(parent), inner_key(parent)]
    rest = [manifest for key, manifest in written.items() if key in around and manifest is not own]
    (explained,) = explain([own], asked.namespace, others=rest, settings=settings(asked.settings))
    child = "" if node_id(parent) == asked.node else f"{outer.partition('.')[0]}/{inner.rpartition('/')[2]} "
    places = dict(_places(own, [manifest for manifest in rest if manifest in manifests]))
    return [
        _origin(row, places)
        for row in explained["values"]
        if row["path"].startswith(child) and asked.filter in row["path"]
    ]


Key = tuple[str, str]


def _key(manifest: Manifest, namespace: str) -> Key:
    document = in_cluster(manifest, namespace)
    return outer_key(document), inner_key(document)


def _maker(cluster: Cluster, key: Key) -> tuple[Kind[Any, Any], Json]:
    """Return the object itself if it is a served one without an owner, else its owner."""
    makers = {document["metadata"]["uid"]: (kind, document) for kind, document in cluster.parents()}
    document = cluster.objects.get(key)
    found = makers.get(document["metadata"]["uid"]) if document is not None else None
    while document is not None and (uid := owner(document)) and uid in makers:
        found = makers[uid]
        document = found[1]
    if found is None:
        raise Unknown(f"{' '.join(key)} is nothing that these documents lead to")
    return found


Place = tuple[str, int, int]


def _places(own: Manifest, others: Sequence[Manifest]) -> Iterator[tuple[str, Place]]:
    """Return the places of the fields that sources name."""
    for manifest in (own, *others):
        prefix = "" if manifest is own else f"{manifest.kind}/{manifest.name} "
        for path, _ in fields_of({"metadata": {}, **manifest.document}):
            yield f"{prefix}{path}", (manifest.file, *manifest.position(path))


def _origin(row: dict[str, object], places: dict[str, Place]) -> Origin:
    """Of several sources, the first one in the documents is the place."""
    sources = str(row["source"]).split(", ")
    document, line, column = next((places[one] for one in sources if one in places), (None, None, None))
    return Origin(
        path=str(row["path"]),
        value=row["value"],
        origin=str(row["source"]),
        document=document,
        line=line,
        column=column,
    )
