"""Explain objects: their state, why they are not ready, their children, and what set each value of their pods."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeVar

import msgspec

from app.desk import fitting
from app.desk.cluster import live as on_cluster
from app.desk.cluster import parts
from app.desk.cluster.offline import World, holding, in_cluster, request_of, served, settle
from app.desk.cluster.sets import split
from app.desk.cluster.simulate import Cluster, created
from app.desk.cluster.single import errors_of
from app.desk.cluster.store import Store, key_of
from app.desk.files.manifests import Manifest
from app.desk.origins import tracer
from app.desk.origins.podfit import pods_fit
from app.desk.progress import counted
from app.hooks.kind import AnyKind
from app.hooks.readystatus import READY, STALLED, STOPPED, ready_of
from app.kube.base import Json
from app.kube.origin import Origin
from app.settings import Settings

T = TypeVar("T")
INVALID = "invalid"
"""The state of an object with errors, of which nothing else is known."""


def explain(manifests: list[Manifest], world: World, others: Sequence[Manifest] = ()) -> list[Json]:
    """Return the explanations as JSON; ``others`` are in the cluster but are not explained."""
    return explained(manifests, world, others, lambda explanation: explanation)


def explained(
    manifests: list[Manifest], world: World, others: Sequence[Manifest], shown: Callable[[Json], T]
) -> list[T]:
    """Return what is ``shown`` of each explanation, which is less than the explanation where many are made at once."""
    result: list[T] = []
    attributions = tracer.Attributions()
    waiting, namespace = set(manifests), world.namespace
    for members in split([*manifests, *others], namespace).sets:
        if ours := [manifest for manifest in members if served(manifest) is not None and manifest in waiting]:
            present = holding(members, world)
            documents = {manifest: in_cluster(manifest, namespace) for manifest in ours}
            result += _explanations(present, documents, world.settings, attributions, shown)
            waiting -= {*ours}
    return result


def _explanations(
    present: Cluster,
    documents: Mapping[Manifest, Json],
    settings: Settings,
    attributions: tracer.Attributions,
    shown: Callable[[Json], T],
) -> list[T]:
    """Explain objects of one cluster; many of them in shares."""

    def explanations(clusters: Sequence[Cluster], share: Sequence[Manifest], watch: parts.Watch) -> list[T]:
        final = settle(clusters[0])
        watch(final)
        known = _Clusters(present, final, settings, attributions)
        counted_share = counted(share, "objects explained")
        return [shown(_explained(manifest, documents[manifest], known)) for manifest in counted_share]

    keys = {manifest: key_of(document) for manifest, document in documents.items()}
    return [*chain.from_iterable(parts.results([present], keys, explanations))]


class _Clusters(msgspec.Struct, frozen=True):
    """The clusters that objects are explained with: as the files have it, and once everything runs."""

    present: Cluster
    final: Cluster
    settings: Settings
    attributions: tracer.Attributions


def _explained(manifest: Manifest, document: Json, clusters: _Clusters) -> Json:
    present, final, kind = clusters.present, clusters.final, served(manifest)
    assert kind is not None
    name = f"{kind.resource.kind}/{manifest.name}"
    head = {"object": name, "namespace": document["metadata"].get("namespace", "")}
    errors = [str(finding) for finding in errors_of(manifest, clusters.settings)]
    if errors:
        return {**head, "state": INVALID, "why": errors, "conditions": [], "children": [], "values": []}
    has_children = bool(present.children(document))
    reported = _live_conditions(present, kind, document) if has_children else on_cluster.conditions(document)
    live = has_children or bool(reported)
    parent = final.objects[key_of(document)]
    shown = reported if live else on_cluster.conditions(parent)
    pods = tracer.settled_pod_templates(final, parent)
    return {
        **head,
        "state": _state(shown, live=live),
        "why": _why(shown),
        "conditions": [c for c in shown if c.get("type") not in (READY, STALLED, STOPPED)],
        "children": [_child(child, present, head["namespace"]) for child in final.last_answer(parent)["children"]],
        "fit": _fit(kind, parent, pods, clusters),
        "values": [origin._asdict() for origin in _values(kind, parent, pods, clusters)],
    }


def _fit(kind: AnyKind, parent: Json, pods: tracer.Pods, clusters: _Clusters) -> str:
    """Return whether the model fits into its GPUs; empty for a kind without models."""
    if kind.offline.fit is None:
        result = pods_fit(kind, parent, pods)
    else:
        result = fitting.answer(kind, parent, clusters.final, clusters.settings)
    return f"{result.answer}: {result.why}" if result is not None else ""


def _live_conditions(present: Cluster, kind: AnyKind, document: Json) -> list[Json]:
    """Return the conditions that the hook computes from the existing children."""
    completed = _completed(tracer.neighbourhood(present, kind, document), kind, document)
    return on_cluster.conditions(completed.ask(kind, document))


def _completed(cluster: Cluster, kind: AnyKind, document: Json) -> Cluster:
    """Add the children that are not among the files, without a status.

    Files with a Deployment and its pods but without its Service do not mean that the Service is missing.
    """
    objects = Store(cluster.objects)
    for child in cluster.ask(kind, document)["children"]:
        new = created(child, document)
        objects.setdefault(key_of(new), new)
    return replace(cluster, objects=objects)


NOT_KNOWN = "not known to be ready"


def _state(conditions: list[Json], *, live: bool) -> str:
    ready = ready_of(conditions)
    if not ready:
        return "without a Ready condition"
    word = {"True": "ready", "False": "not ready"}.get(ready.get("status", ""), NOT_KNOWN)
    reason = f" ({ready['reason']})" if ready.get("reason") else ""
    return f"{word}{reason}" if live else f"not applied yet; once everything runs: {word}{reason}"


def _why(conditions: list[Json]) -> list[str]:
    """Return the causes, one per line; empty for a ready object."""
    ready = ready_of(conditions)
    if ready.get("status") == "True" or not ready.get("message"):
        return []
    return [str(ready["message"])]


def _child(child: Json, present: Cluster, namespace: str) -> Json:
    return {
        "kind": child["kind"],
        "name": child["metadata"]["name"],
        "exists": key_of(child, namespace) in present.objects,
    }


def _values(kind: AnyKind, parent: Json, pods: tracer.Pods, clusters: _Clusters) -> list[Origin]:
    """Return the sources of the pods' values: found by experiment, or from the kind's own explanation if vague."""
    cluster, settings = tracer.neighbourhood(clusters.final, kind, parent), clusters.settings
    result = tracer.origins(cluster, kind, parent, pods, settings, clusters.attributions)
    if kind.offline.explain is None:
        return result
    request = request_of(kind, parent, cluster)
    resource, _ = kind.decode(request.parent)
    sources = {} if resource is None else {o.path: o.source for o in kind.offline.explain(resource, request, settings)}
    # Empty fields, such as spec.router.scheduler.
    empty = {str(path) for path, value in tracer.written(parent, ("spec",)) if value == {}}
    return [
        Origin(o.path, o.value, sources[o.path])
        if o.path in sources and (o.source in tracer.VAGUE or (o.source in empty and rank_of(sources[o.path]) == 1))
        else o
        for o in result
    ]


RANKS = ("of users", "of presets and settings", "from names", "by default")


def rank_of(source: str) -> int:
    """Return the place of a source: fields of objects, then presets and settings, then names, then defaults."""
    if source == tracer.DEFAULT:
        return 3
    return 2 if source in tracer.VAGUE else 1 if source.startswith(("setting ", "preset ")) else 0
