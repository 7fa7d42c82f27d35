"""Where each value of a child comes from, as ``modelhooks explain`` tells it, and where that is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.cli.explain import explain
from app.cli.manifests import Manifest
from app.cli.offline import in_cluster, settled
from app.cli.origins import written
from app.cli.simulate import Cluster
from app.cli.store import owner
from app.settings import Settings
from app.studio import catalogue
from app.studio.documents import Unknown, objects, settings
from app.studio.graph import node_id
from app.studio.models import Origin, OriginsRequest


def origins(asked: OriginsRequest) -> list[Origin]:
    """The values of the pods and autoscalers below one object. Raises :class:`Unknown` for one that nothing made."""
    manifests, given = objects(asked.documents, asked.namespace), settings(asked.settings)
    others = catalogue.installed(manifests)
    own = _parent(asked, manifests, others, given)
    rest = [manifest for manifest in manifests if manifest is not own]
    (explained,) = explain([own], asked.namespace, others=[*rest, *others], settings=given)
    outer, _, inner = asked.node.partition(" ")
    child = "" if node_id(in_cluster(own, asked.namespace)) == asked.node else f"{outer.split('.')[0]}/{_name(inner)} "
    places = dict(_places(own, rest))
    return [
        _origin(row, places)
        for row in explained["values"]
        if row["path"].startswith(child) and asked.filter in row["path"]
    ]


def _name(inner: str) -> str:
    return inner.rpartition("/")[2]


def _parent(
    asked: OriginsRequest, manifests: Sequence[Manifest], others: Sequence[Manifest], given: Settings
) -> Manifest:
    """The manifest that leads to the object, or is it."""
    own = {node_id(in_cluster(manifest, asked.namespace)): manifest for manifest in manifests}
    if asked.node in own:
        return own[asked.node]
    node = _maker(settled([*others, *manifests], asked.namespace, settings=given), asked.node)
    if node not in own:
        raise Unknown(f"{asked.node} is nothing that these documents lead to")
    return own[node]


def _maker(cluster: Cluster, node: str) -> str:
    """Who made an object, or had it made; empty where nobody did."""
    outer, _, inner = node.partition(" ")
    makers = {document["metadata"]["uid"]: document for _, document in cluster.parents()}
    document = cluster.objects.get((outer, inner))
    while document is not None and (uid := owner(document)):
        document = makers.get(uid)
    return node_id(document) if document is not None else ""


Place = tuple[str, int, int]


def _places(own: Manifest, others: Sequence[Manifest]) -> Iterator[tuple[str, Place]]:
    """Where the fields are written that sources name."""
    for manifest in (own, *others):
        prefix = "" if manifest is own else f"{manifest.kind}/{manifest.name} "
        for path, _ in written({"metadata": {}, **manifest.document}):
            yield f"{prefix}{path}", (manifest.file, *manifest.position(path))


def _origin(row: dict[str, object], places: dict[str, Place]) -> Origin:
    """Of several sources, the first that is written says where."""
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
