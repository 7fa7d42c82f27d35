"""Find the source of each value of a pod, by experiments that change fields.

Hooks are pure functions, so fields get other values and the hook is asked again; the values of the pod that change come
from those fields. This works for every kind without knowing its code. Most values are copies of fields, and one request
finds them all, because each field gets a value of its own. Where more than copies changes, fewer fields are tried at a
time. A value that several fields change is attributed to the one that changes the fewest others.
"""

from __future__ import annotations

import copy
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_origin

import orjson

from app.cli import world
from app.cli.changes import ABSENT, compare
from app.cli.copies import Copies, marked
from app.cli.kinds import find
from app.cli.offline import direct, findings_of
from app.cli.simulate import Cluster
from app.cli.store import Store, owner
from app.cli.world import inner_key, outer_key
from app.hooks.kind import AnyKind
from app.kube.base import Json
from app.kube.field import Path
from app.kube.names import CONTROLLER_UID, METACONTROLLER_PREFIX
from app.kube.origin import Origin, leaves
from app.settings import Settings, variable_name

DEFAULT = "default"
"""The source of a value that nothing bears on."""
VAGUE = frozenset({DEFAULT, "metadata.name"})
"""Vague sources, which a more precise one of the kind replaces (:attr:`app.hooks.kind.Offline.explain`)."""
MAX_FIELDS = 500
"""Fields of one parent and its related objects that are tried."""

FIELDS = ("spec", "data", "status")
"""The parts of a related object that hooks read."""

TEMPLATES = {
    "Deployment": ("spec", "template"),
    "StatefulSet": ("spec", "template"),
    "LeaderWorkerSet": ("spec", "leaderWorkerTemplate"),
    "Job": ("spec", "template"),
}
"""The path of the pod template in each kind of workload."""
EXPLAINED = TEMPLATES | {
    "HorizontalPodAutoscaler": ("spec",),
    "InferenceObjective": ("spec",),
    "ResourceClaimTemplate": ("spec",),
    "ScaledObject": ("spec",),
    "VariantAutoscaling": ("spec",),
}
"""The part of a child whose values are explained."""

Pods = dict[str, Json]
"""Those parts by their place: ``Deployment/chat spec.template``."""


Attributions = dict[str, list[tuple[int, ...]]]
"""Numbers of the fields that set each value of the pods, by the inputs of the experiments without names."""


def origins(
    cluster: Cluster, kind: AnyKind, parent: Json, settings: Settings, attributions: Attributions | None = None
) -> list[Origin]:
    """The values of every pod that the parent leads to, with their sources, in the order of the pod's fields.

    What is found is added to ``attributions``. An object that differs from an earlier one in names alone is not tried
    again; its pods must differ in the same names, and in nothing else.
    """
    attributions = {} if attributions is None else attributions
    tracer = _Tracer(cluster, kind, parent, settings)
    fields = _fields(cluster, kind, parent, settings) if tracer.values else []
    signature = _signature(cluster, kind, parent, tracer)
    if signature not in attributions:
        tracer.attribute(fields)
        attributions[signature] = tracer.result()
    sources = [
        ", ".join(dict.fromkeys(fields[number].source for number in contributing))
        for contributing in attributions[signature]
    ]
    return [
        Origin(path, value, source or DEFAULT)
        for (path, value), source in zip(tracer.values.items(), sources, strict=True)
    ]


def _signature(cluster: Cluster, kind: AnyKind, parent: Json, tracer: _Tracer) -> str:
    """Return the inputs of the experiments, with a number in place of each name, namespace and uid."""
    read = [parent, *(o for o in cluster.objects.values() if o is not parent and not _owned(o, cluster))]
    reader = (o["metadata"].get(key) for o in read for key in ("name", "namespace", "uid"))
    numbers = {name: f"<{number}>" for number, name in enumerate(dict.fromkeys(name for name in reader if name))}
    text = orjson.dumps([kind.resource.kind, read, tracer.pods]).decode()
    for name in sorted(numbers, key=len, reverse=True):
        text = _renamed(text, name, numbers[name])
    return text


def _renamed(text: str, name: str, new: str) -> str:
    """Replace every ``name`` that is not part of a longer word."""
    first, *others = text.split(name)
    parts = [first]
    for before, after in itertools.pairwise([first, *others]):
        within = before[-1:].isalnum() or after[:1].isalnum()
        parts += [name if within else new, after]
    return "".join(parts)


def neighbourhood(cluster: Cluster, kind: AnyKind, parent: Json, *, settling: bool = False) -> Cluster:
    """Return the part of a cluster that the hooks of an object and of its children read, the object first.

    What the hooks of related objects read belongs to it only where they run: in a cluster that is ``settling``. A kind
    of which the cluster has objects is judged there, too, although none of them may be read.
    """
    readable, waiting = {_key(parent): parent}, [(kind, parent)]
    for reader, document in waiting:  # served children are appended
        related = world.related(reader, cluster.rules(reader, document), cluster.objects)
        children = cluster.children(document)
        for other in [*(d for group in related.values() for d in group.values()), *children]:
            of = find(other["apiVersion"], other["kind"])
            if of is not None and _key(other) not in readable and (settling or other in children):
                waiting.append((of, other))
            readable[_key(other)] = other
    granted = frozenset(key for key in cluster.granted if not cluster.objects.of_kind(key))
    return replace(cluster, objects=Store(readable), granted=granted)


def _key(document: Json) -> tuple[str, str]:
    return outer_key(document), inner_key(document)


@dataclass(frozen=True, eq=False)
class _Field:
    """One field of an object that hooks read, or one setting."""

    source: str
    path: Path
    value: object
    number: int
    others: Sequence[object]
    """Other values of the same type, in the order in which they are tried."""
    key: tuple[str, str] | None = None
    """The object that has it; ``None`` for a setting."""

    @property
    def removed(self) -> object:
        """What stands for its absence; ``None`` for a name, and for a setting that cannot be switched off."""
        if isinstance(self.value, bool):
            return not self.value
        return None if self.key is None or self.path == NAME else ABSENT

    @property
    def group(self) -> tuple[bool, ...]:
        """What is tried together: values that are copied apart from others, and from names of items, which refer."""
        segments = self.path.segments
        item = len(segments) > 1 and isinstance(segments[-2], int) and segments[-1] == "name"
        return self.key is None, segments[0] == "status", item, isinstance(self.value, str)


NAME = Path("metadata").child("name")
Trial = dict[_Field, object]
"""Fields with the values that they have in one request."""


@dataclass
class _Tracer:
    cluster: Cluster
    kind: AnyKind
    parent: Json
    settings: Settings
    pods: Pods = field(init=False)
    values: dict[str, object] = field(init=False)
    _start: Cluster = field(init=False)
    """The cluster before the parent has children if its pods are the same there: a refused spec has none."""
    _named: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))
    """Objects of served kinds by their names."""
    _effects: dict[str, list[tuple[int, _Field]]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        self.pods = pod_templates(self.cluster, self.kind, self.parent)
        self.values = {
            f"{place}{_below(path)}": value for place, pod in self.pods.items() for path, value in leaves(pod, Path())
        }
        made = {_key(d) for c in self.cluster.children(self.parent) for d in (c, *self.cluster.children(c))}
        others = {key: document for key, document in self.cluster.objects.items() if key not in made}
        empty = replace(self.cluster, objects=Store(others))
        self._start = empty if pod_templates(empty, self.kind, self.parent) == self.pods else self.cluster
        for key, document in self._start.objects.items():
            if find(document["apiVersion"], document["kind"]) is not None:
                self._named[document["metadata"]["name"]].append(key)

    def attribute(self, fields: Sequence[_Field]) -> None:
        """Find the values that the fields bear on.

        First each field has a value that is recognised. For values that have no source then, such as the name of an
        option, fields are absent or the opposite, if they bear on anything or the first value tells nothing of them.
        Numbers that are still unknown have a third value.
        """
        everything = self.values.keys()
        known = self._try({one: one.others[0] for one in fields if one.others}, everything)
        useful = {one for effects in self._effects.values() for _, one in effects}
        doubtful = {
            one: one.removed for one in fields if one.removed is not None and (one in useful or one not in known)
        }
        known |= self._try(doubtful, everything - self._effects.keys())
        self._try({one: one.others[1] for one in fields if one not in known and len(one.others) > 1}, everything)

    def _try(self, trial: Trial, sought: AbstractSet[str]) -> set[_Field]:
        """Find the effects of a trial's values on those that are sought. Return the fields of which this tells."""
        groups: dict[tuple[bool, ...], Trial] = defaultdict(dict)
        for one, value in self._accepted(trial).items():
            groups[one.group][one] = value
        return {one for group in groups.values() for one in self._found(group, sought)}

    def _accepted(self, trial: Trial) -> Trial:
        """Return the trial without the values that the rules of their objects refuse."""
        accepted = {one: value for one, value in trial.items() if one.key is None}
        for key in dict.fromkeys(one.key for one in trial if one.key is not None):
            part = {one: value for one, value in trial.items() if one.key == key}
            while refused := self._refused(key, part):
                part = {one: value for one, value in part.items() if one not in refused}
            accepted |= part
        return accepted

    def _refused(self, key: tuple[str, str], trial: Trial) -> set[_Field]:
        document = self._altered(trial, self._start).objects[key]
        kind = find(document["apiVersion"], document["kind"])
        errors, _ = findings_of(kind, document, self.settings) if kind is not None and trial else ([], [])
        places = [error.path.segments for error in errors]
        return {one for one in trial if any(p[: len(one.path.segments)] == one.path.segments for p in places)}

    def _found(self, trial: Trial, sought: AbstractSet[str]) -> set[_Field]:
        """Try all values at once, or fewer where others than copies of sought ones change."""
        if not trial:
            return set()
        changed = self._pods_with(trial, self._start)
        if len(trial) == 1 and len(changed) < len(self.pods):
            changed = self._pods_with(trial, self.cluster)  # where children of what is refused are kept
        effects = self._copied(trial, changed)
        if effects is None:
            touched = self._touched(changed)
            if len(trial) > 1 and (not changed or not sought.isdisjoint(touched)):
                fields, middle = list(trial.items()), len(trial) // 2
                return self._found(dict(fields[:middle]), sought) | self._found(dict(fields[middle:]), sought)
            if not touched:
                return set()
            effects = dict.fromkeys(trial, touched) if len(trial) == 1 else {}
        for one, paths in effects.items():
            for path in paths:
                self._effects[path].append((len(paths), one))
        return set(trial)

    def _copied(self, trial: Trial, changed: Pods) -> dict[_Field, list[str]] | None:
        """Return the values that copy each field; ``None`` if others are different, too."""
        copies = Copies({one: (one.number, one.value, value) for one, value in trial.items()})
        names = {copies.restored(place)[0]: place for place in changed}
        copied: dict[_Field, list[str]] = {one: [] for one in trial}
        for place, pod in self.pods.items():
            pairs = copies.between(pod, changed[names[place]], Path()) if names.keys() == self.pods.keys() else None
            if pairs is None:
                return None
            for path, sources in pairs:
                for one in sources:
                    copied[one].append(f"{place}{_below(path)}")
        return copied

    def _pods_with(self, trial: Trial, start: Cluster) -> Pods:
        cluster = self._altered(trial, start)
        return pod_templates(cluster, self.kind, cluster.objects.get(_key(self.parent), self.parent))

    def _altered(self, trial: Trial, start: Cluster) -> Cluster:
        """Return the cluster with the values of a trial, where changed references still find an object."""
        objects, before, settings = dict(start.objects), start.objects, {}
        for one, value in reversed(trial.items()):  # the positions of earlier fields stay
            if one.key is None:
                settings[str(one.path)] = value
            else:
                if objects[one.key] is before[one.key]:
                    objects[one.key] = copy.deepcopy(before[one.key])
                _put(objects[one.key], one.path.segments, value)
        for one, value in trial.items():
            for key in self._named[one.value] if isinstance(one.value, str) and isinstance(value, str) else ():
                renamed = {**objects[key], "metadata": {**objects[key]["metadata"], "name": value}}
                objects[key[0], inner_key(renamed)] = renamed
        altered = replace(start, objects=Store(objects))
        if settings:
            altered = replace(altered, send=direct(self.settings.model_copy(update=settings)), answers={})
        return altered

    def _touched(self, changed: Pods) -> list[str]:
        paths = []
        for place, pod in self.pods.items():
            for change in compare(pod, _counterpart(place, self.pods, changed), Path()):
                if change.old is not ABSENT:
                    paths += [f"{place}{_below(path)}" for path, _ in leaves(change.old, change.path)]
        return [path for path in paths if path in self.values]

    def result(self) -> list[tuple[int, ...]]:
        """Return the numbers of the fields that each value comes from; none for a default."""
        return [self._closest(path, value) for path, value in self.values.items()]

    def _closest(self, path: str, value: object) -> tuple[int, ...]:
        """Those that bear on the fewest values; of equally close ones those with the same value, else all."""
        candidates = self._effects.get(path, [])
        fewest = min((count for count, _ in candidates), default=0)
        closest = [one for count, one in candidates if count == fewest]
        equal = [one for one in closest if one.value == value]
        return tuple(one.number for one in sorted(equal or closest, key=lambda one: one.number))


def _counterpart(place: str, before: Pods, after: Pods) -> Json:
    """The pod of a place after a change. A workload whose name changed too is known by its kind and position."""
    if place in after:
        return after[place]
    kind = place.partition("/")[0]
    position = [p for p in before if p.startswith(f"{kind}/")].index(place)
    same = [pod for p, pod in after.items() if p.startswith(f"{kind}/")]
    return same[position] if position < len(same) else {}


def _below(path: Path) -> str:
    text = str(path)
    return text if not text or text.startswith("[") else f".{text}"


def pod_templates(cluster: Cluster, kind: AnyKind, parent: Json) -> Pods:
    """The pod templates of a parent's children, and of the children of those of served kinds."""
    templates: Pods = {}
    for child in cluster.ask(kind, parent)["children"]:
        reader = find(child["apiVersion"], child["kind"])
        if reader is not None:
            new = world.stored(child, parent["metadata"].get("namespace", ""))
            held = cluster.objects.get((outer_key(new), inner_key(new)), {})
            metadata = {**new["metadata"], **held.get("metadata", {}), **child["metadata"]}
            templates |= pod_templates(
                cluster, reader, {**held, **new, "metadata": metadata, "status": held.get("status", {})}
            )
        elif child["kind"] in EXPLAINED and child.get("spec"):
            path = EXPLAINED[child["kind"]]
            part = child
            for key in path:
                part = part.get(key, {})
            templates[f"{child['kind']}/{child['metadata']['name']} {'.'.join(path)}"] = part
    return templates


# Experiments.


def _fields(cluster: Cluster, kind: AnyKind, parent: Json, settings: Settings) -> list[_Field]:
    """Return the parent's own fields with its name, those of the objects it reads, and the operator's settings."""
    own, related = [], []
    for document, prefix in _readable(cluster, parent):
        for path, value in written(document, FIELDS if prefix else ("spec",)):
            if not prefix:
                own.append((f"{path}", path, value, _key(document)))
            elif path != NAME:  # what refers to an object names it
                related.append((f"{prefix}{path}", path, value, _key(document)))
    names = [
        name
        for name, info in type(settings).model_fields.items()
        if name.startswith(f"{kind.resource.family}_") or name == "cluster_domain"
        if get_origin(info.annotation) is not Literal  # editions of built-in presets, which the kind names itself
    ]
    operator = [
        (f"setting {variable_name(name)}", Path(name), getattr(settings, name), None)
        for name in names
        if getattr(settings, name) not in ("", None)
    ]
    twins = Counter[str]()
    fields = []
    for number, (source, path, value, key) in enumerate([*[*own, *related][:MAX_FIELDS], *operator]):
        others = _alternatives(value, number, twins[repr(value)])
        fields.append(_Field(source, path, value, number, others, key))
        twins[repr(value)] += 1
    return fields


def _readable(cluster: Cluster, parent: Json) -> Iterator[tuple[Json, str]]:
    """Yield the parent and what is read beside it, of served kinds or ConfigMaps, with prefixes for their fields."""
    yield parent, ""
    for key, document in cluster.objects.items():
        read = document["kind"] == "ConfigMap" or find(document["apiVersion"], document["kind"]) is not None
        if read and key != _key(parent) and not _owned(document, cluster):
            yield document, f"{document['kind']}/{document['metadata']['name']} "


def _owned(document: Json, cluster: Cluster) -> bool:
    """Report whether the object is the child of another served object, which then has set its fields."""
    uid = owner(document)
    return bool(uid) and any(parent["metadata"]["uid"] == uid for _, parent in cluster.parents())


def written(document: Json, parts: Sequence[str] = FIELDS) -> Iterator[tuple[Path, object]]:
    """Yield the fields of an object that are set, by the paths that sources name."""
    for part in parts:
        if isinstance(document.get(part), Mapping):
            yield from _located(document[part], Path(part))
    for part in ("labels", "annotations"):
        values = document["metadata"].get(part) or {}
        for key, value in values.items():
            if not key.startswith((METACONTROLLER_PREFIX, "kubectl.kubernetes.io/")) and key != CONTROLLER_UID:
                yield Path("metadata").child(part).key(key), value
    if "spec" in document:
        yield NAME, document["metadata"]["name"]


def _located(value: object, path: Path) -> Iterator[tuple[Path, object]]:
    """The scalars of a document, by the positions they have; conditions are words about it only."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            if key != "conditions":
                yield from _located(item, path.child(key))
    elif isinstance(value, list) and value:
        for position, item in enumerate(value):
            yield from _located(item, path.index(position))
    else:
        yield path, value


def _put(document: Any, segments: tuple[str | int, ...], value: object) -> None:
    for segment in segments[:-1]:
        document = document[segment]
    if value is ABSENT:
        del document[segments[-1]]
    else:
        document[segments[-1]] = value


_AMOUNT = re.compile(r"([0-9]+)(\D*)")


def _alternatives(value: object, number: int, twins: int) -> list[object]:
    """Return other values of the same type, which tell the field from all others, also from its ``twins``."""
    if isinstance(value, int) and not isinstance(value, bool):
        return [value + 1 + twins, value - 1]
    if isinstance(value, float):
        return [value / 2]
    if isinstance(value, str) and "\n" not in value:  # more lines are a document, which a mark would break
        amount = _AMOUNT.fullmatch(value)
        return [f"{int(amount[1]) + 1 + twins}{amount[2]}"] if amount else [marked(value, number)]
    return []


def one_line(value: object) -> str:
    """A value of a pod as it is printed."""
    return value if isinstance(value, str) and value.isprintable() else orjson.dumps(value).decode()
