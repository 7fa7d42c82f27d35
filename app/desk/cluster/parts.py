"""Settle the parts of a cluster with many objects in processes of their own.

The hooks of an object read what its rules select, and hooks of those objects read more: a part holds all of it. When
the parts have settled, it is known what was in each and which rules it had. If one would have seen an object that
appeared in another, or an object is not the same in two, everything settles as one cluster.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import msgspec

from app.desk import processes
from app.desk.cluster.kinds import find, kind_of
from app.desk.cluster.simulate import CONTROLLERS, Cluster
from app.desk.cluster.store import Key, Store, key_of, owner, related
from app.kube.base import Json

R = TypeVar("R")
T = TypeVar("T")
Rules = tuple[str, str, list[Json]]
"""API version and kind of an object, and what its hook asks for."""
Readers = dict[Key, dict[Key, None]]
"""Who reads an object, in a fixed order."""
Watch = Callable[[Cluster], None]
"""Told of a cluster each time when it has settled."""
Work = Callable[[Sequence[Cluster], Sequence[T], Watch], R]
"""Lets clusters settle, and makes something of some of their objects."""


def results(clusters: Sequence[Cluster], items: Mapping[T, Key], work: Work[T, R]) -> list[R]:
    """Return what ``work`` makes of all items, or of each share of many, in parts of the clusters."""
    shares = processes.shares([*items])
    if len(shares) > 1:
        rest, readers = {*_others(clusters, {*items.values()})}, _readers(clusters)

        def settle_part(share: Sequence[T]) -> tuple[R, list[_Seen]]:
            keys = {items[item] for item in share} | (rest if share is shares[-1] else set())
            return _in_part(clusters, keys, readers, lambda parts, watch: work(parts, share, watch))

        found = processes.results(shares, settle_part)
        if _are_apart([seen for _, seen in found]):
            return [result for result, _ in found]
    return [work(clusters, [*items], lambda _: None)]


class _Seen(msgspec.Struct, frozen=True):
    """What a part had when it had settled: its objects with their names and labels, and the rules of its parents."""

    objects: dict[Key, Json]
    rules: list[Rules]


def _look(seen: list[_Seen], part: Cluster) -> None:
    names = ("name", "namespace", "labels")
    objects = {
        key: {"metadata": {name: document["metadata"].get(name) for name in names}}
        for key, document in part.objects.items()
    }
    rules = [(p["apiVersion"], p["kind"], part.rules(kind, p)) for kind, p in part.parents()]
    seen.append(_Seen(objects, rules))


def _readers(clusters: Sequence[Cluster]) -> Readers:
    """Return who reads each object whose own hooks read something: it may be what its readers make."""
    found: Readers = {}
    for cluster in clusters:
        rules = {key_of(p): (p["apiVersion"], p["kind"], cluster.rules(kind, p)) for kind, p in cluster.parents()}
        for key, asked in rules.items():
            for read in _selected([asked], cluster.objects):
                if read in rules and rules[read][2]:
                    found.setdefault(read, {})[key] = None
    return found


def _in_part(
    clusters: Sequence[Cluster], keys: set[Key], readers: Readers, work: Callable[[Sequence[Cluster], Watch], R]
) -> tuple[R, list[_Seen]]:
    """Return what is made of some objects, and what was seen, in parts of the clusters that miss nothing."""
    held: set[Key] = set()
    missing = keys
    while True:
        held |= {key for cluster in clusters for key in _closure(cluster, missing, readers)}
        seen: list[_Seen] = []
        result = work([_part(cluster, held) for cluster in clusters], partial(_look, seen))
        whole = [cluster.objects for cluster in clusters]
        missing = {key for one in seen for objects in whole for key in _selected(one.rules, objects)}
        missing |= {key for one in seen for objects in whole for key in one.objects if key in objects}
        missing -= held
        if not missing:
            return result, seen


def _part(cluster: Cluster, keys: set[Key]) -> Cluster:
    granted = frozenset(outer for outer in cluster.granted if not cluster.objects.of_kind(outer))
    objects = Store({key: document for key, document in cluster.objects.items() if key in keys})
    return replace(cluster, objects=objects, granted=granted)


def _closure(cluster: Cluster, keys: Iterable[Key], readers: Readers) -> Iterator[Key]:
    """Yield objects of a cluster with those that hooks read while they settle, their owners and what they own."""
    parents = {parent["metadata"]["uid"]: key_of(parent) for _, parent in cluster.parents()}
    known = dict.fromkeys(keys)
    waiting = list(known)
    for key in waiting:  # what is found is appended
        document = cluster.objects.get(key)
        if document is None:
            continue
        yield key
        near = [*cluster.objects.owned_by(document["metadata"].get("uid", ""))]
        near += [*filter(None, [parents.get(owner(document))]), *readers.get(key, ())]
        if (kind := kind_of(document)) is not None:
            rules = (document["apiVersion"], document["kind"], cluster.rules(kind, document))
            near += _selected([rules], cluster.objects)
        waiting += (other for other in dict.fromkeys(near) if other not in known)
        known.update(dict.fromkeys(near))


def _selected(asked: Iterable[Rules], objects: Store) -> Iterator[Key]:
    for api_version, name, rules in asked:
        kind = find(api_version, name)
        assert kind is not None
        for outer, group in related(kind, rules, objects, frozenset()).items():
            yield from ((outer, inner) for inner in group)


def _others(clusters: Sequence[Cluster], keys: set[Key]) -> Iterator[Key]:
    """Yield the objects of which more come, beside some and what they own."""
    for cluster in clusters:
        parents = {parent["metadata"]["uid"] for _, parent in cluster.parents()}
        for key, document in cluster.objects.items():
            acts = document["kind"] in CONTROLLERS or kind_of(document) is not None
            if acts and key not in keys and owner(document) not in parents:
                yield key


def _are_apart(shares: Sequence[Sequence[_Seen]]) -> bool:
    """Report whether no part would have seen more in the whole cluster than it did, each time when it had settled."""
    for moment in zip(*shares, strict=True):
        everything: dict[Key, Json] = {}
        for seen in moment:
            if any(everything.setdefault(key, metadata) != metadata for key, metadata in seen.objects.items()):
                return False
        objects = Store(everything)
        for share in shares:
            own = {key for seen in share for key in seen.objects}
            if any(key not in own for seen in share for key in _selected(seen.rules, objects)):
                return False
    return True
