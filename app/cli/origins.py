"""Find the source of each value of a pod, by experiments that change one field at a time.

Hooks are pure functions, so a field is taken away (or altered, where it is required) and the hook is asked again; the
values of the pod that change come from that field. This works for every kind without knowing its code. A value that
several fields change is attributed to the one that changes the fewest others.
"""

from __future__ import annotations

import copy
import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import Any, Literal, get_origin

import orjson

from app.cli import world
from app.cli.changes import ABSENT, compare
from app.cli.kinds import find
from app.cli.offline import direct
from app.cli.simulate import Cluster, Send
from app.cli.store import Store
from app.cli.world import inner_key, key_of
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
FEW_FIELDS = 4
"""Fields that are tried one by one without a trial of all at once."""
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
"""Numbers of the experiments that changed each value of the pods, by their inputs without names."""


def origins(
    cluster: Cluster, kind: AnyKind, parent: Json, settings: Settings, attributions: Attributions | None = None
) -> list[Origin]:
    """The values of every pod that the parent leads to, with their sources, in the order of the pod's fields.

    What is found is added to ``attributions``. An object that differs from an earlier one in names alone is not tried
    again; its pods must differ in the same names, and in nothing else.
    """
    attributions = {} if attributions is None else attributions
    tracer = _Tracer(cluster, kind, parent)
    groups = list(_groups(cluster, kind, parent, settings)) if tracer.values else []
    experiments = [experiment for group in groups for experiment in group.experiments]
    signature = _signature(cluster, kind, parent, tracer)
    if signature not in attributions:
        numbers = itertools.count()
        for group in groups:
            tracer.attribute_group([(next(numbers), experiment) for experiment in group.experiments], group.alter)
        attributions[signature] = tracer.result()
    sources = [
        ", ".join(dict.fromkeys(experiments[number].source for number in contributing))
        for contributing in attributions[signature]
    ]
    return [
        Origin(path, value, source or DEFAULT)
        for (path, value), source in zip(tracer.values.items(), sources, strict=True)
    ]


def _signature(cluster: Cluster, kind: AnyKind, parent: Json, tracer: _Tracer) -> str:
    """Return the inputs of the experiments, with a number in place of each name, namespace and uid."""
    read = [parent, *(o for o in cluster.objects.values() if o is not parent and not _is_child(o))]
    names = dict.fromkeys(name for document in read for name in _names(document["metadata"]) if name)
    numbers = {name: f"<{number}>" for number, name in enumerate(names)}
    text = orjson.dumps([kind.resource.kind, read, tracer.pods]).decode()
    for name in sorted(numbers, key=len, reverse=True):
        text = _renamed(text, name, numbers[name])
    return text


def _names(metadata: Json) -> Iterator[str]:
    """Yield the names of an object and of its owners, and those that its own is made from, as a pod's is."""
    for named in (metadata, *(metadata.get("ownerReferences") or ())):
        yield from (named.get(key, "") for key in ("name", "namespace", "uid"))
    labels: dict[str, str] = metadata.get("labels") or {}
    yield from (value for value in labels.values() if metadata["name"].startswith(f"{value}-"))


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
    readable, waiting = {key_of(parent): parent}, [(kind, parent)]
    for reader, document in waiting:  # served children are appended
        related = world.related(reader, cluster.rules(reader, document), cluster.objects)
        children = cluster.children(document)
        for other in [*(d for group in related.values() for d in group.values()), *children]:
            of = find(other["apiVersion"], other["kind"])
            if of is not None and key_of(other) not in readable and (settling or other in children):
                waiting.append((of, other))
            readable[key_of(other)] = other
    granted = frozenset(key for key in cluster.granted if not cluster.objects.of_kind(key))
    return replace(cluster, objects=Store(readable), granted=granted)


Alter = Callable[[Cluster, Sequence["_Experiment"]], Cluster]


@dataclass
class _Experiment:
    """One field made different. ``attempts`` are clusters in which it is; the first with an effect counts."""

    source: str
    path: Path
    value: object
    attempts: Iterable[Cluster]


@dataclass
class _Group:
    """The experiments of one object, or of the settings; ``alter`` makes the fields of many different at once."""

    experiments: list[_Experiment]
    alter: Alter


@dataclass
class _Tracer:
    cluster: Cluster
    kind: AnyKind
    parent: Json
    pods: Pods = field(init=False)
    values: dict[str, object] = field(init=False)
    empty: Cluster = field(init=False)
    """The cluster before the parent has children: an invalid spec has no pods there, where others would be kept."""
    _effects: dict[str, list[tuple[int, int, object]]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        self.pods = settled_pod_templates(self.cluster, self.parent)
        self.values = {
            f"{place}{_below(path)}": value for place, pod in self.pods.items() for path, value in leaves(pod, Path())
        }
        children = {key_of(d) for c in self.cluster.children(self.parent) for d in (c, *self.cluster.children(c))}
        others = {key: document for key, document in self.cluster.objects.items() if key not in children}
        self.empty = replace(self.cluster, objects=Store(others))

    @cached_property
    def comparable(self) -> bool:
        """True if the pods are the same before the parent has children."""
        return pod_templates(self.empty, self.kind, self.parent) == self.pods

    def attribute_group(self, numbered: Sequence[tuple[int, _Experiment]], alter: Alter) -> None:
        """Try each experiment, except those whose fields have no effect even when all of them are different at once."""
        if len(numbered) < FEW_FIELDS or not self.comparable:
            for number, experiment in numbered:
                self.attribute(number, experiment)
        elif self._pods_in(alter(self.empty, [experiment for _, experiment in numbered])) != self.pods:
            middle = len(numbered) // 2
            self.attribute_group(numbered[:middle], alter)
            self.attribute_group(numbered[middle:], alter)

    def _pods_in(self, cluster: Cluster) -> Pods:
        return pod_templates(cluster, self.kind, cluster.objects.get(key_of(self.parent), self.parent))

    def attribute(self, number: int, experiment: _Experiment) -> None:
        """Try, and remember by the experiment's number which values it bears on."""
        for cluster in experiment.attempts:
            touched = self._touched(self._pods_in(cluster))
            for path in touched:
                self._effects[path].append((len(touched), number, experiment.value))
            if touched:
                return

    def _touched(self, changed: Pods) -> list[str]:
        paths = []
        for place, pod in self.pods.items():
            for change in compare(pod, _counterpart(place, self.pods, changed), Path()):
                if change.old is not ABSENT:
                    paths += [f"{place}{_below(path)}" for path, _ in leaves(change.old, change.path)]
        return [path for path in paths if path in self.values]

    def result(self) -> list[tuple[int, ...]]:
        """The experiments that tell where each value comes from; none for a default."""
        return [self._closest(path, value) for path, value in self.values.items()]

    def _closest(self, path: str, value: object) -> tuple[int, ...]:
        """Those that bear on the fewest values; of equally close ones those with the same value, else all."""
        candidates = self._effects.get(path, [])
        fewest = min((count for count, _, _ in candidates), default=0)
        closest = [candidate for candidate in candidates if candidate[0] == fewest]
        equal = [candidate for candidate in closest if candidate[2] == value]
        return tuple(number for _, number, _ in equal or closest)


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
    return _templates_below(cluster, parent, cluster.ask(kind, parent))


def settled_pod_templates(cluster: Cluster, parent: Json) -> Pods:
    """The same in a cluster that has settled, by the parent's last answer."""
    return _templates_below(cluster, parent, cluster.last_answer(parent))


def _templates_below(cluster: Cluster, parent: Json, answer: Json) -> Pods:
    templates: Pods = {}
    for child in answer["children"]:
        reader = find(child["apiVersion"], child["kind"])
        if reader is not None:
            new = world.stored(child, parent["metadata"].get("namespace", ""))
            held = cluster.objects.get(key_of(new), {})
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


def _groups(cluster: Cluster, kind: AnyKind, parent: Json, settings: Settings) -> Iterator[_Group]:
    """The parent's own fields with its name, those of the objects it reads, and the operator's settings."""
    left = MAX_FIELDS
    for document, prefix in _readable(cluster, parent):
        fields = itertools.islice(written(document, FIELDS if prefix else ("spec",)), left)
        experiments = [
            _Experiment(f"{prefix}{path}", path, value, _altered(cluster, document, path, value))
            for path, value in fields
        ]
        left -= len(experiments)
        yield _Group(experiments, partial(_all_altered, document))
    names = [
        name
        for name, info in type(settings).model_fields.items()
        if (name.startswith(f"{kind.resource.family}_") or name == "cluster_domain")
        and get_origin(info.annotation) is not Literal  # an edition of built-in presets, which the kind names itself
        and _alternative(getattr(settings, name)) is not ABSENT
    ]
    yield _Group(
        [
            _Experiment(
                f"setting {variable_name(name)}",
                Path(name),
                getattr(settings, name),
                _with_setting(cluster, settings, name),
            )
            for name in names
        ],
        partial(_all_settings, settings),
    )


def _all_altered(document: Json, cluster: Cluster, experiments: Sequence[_Experiment]) -> Cluster:
    """A cluster in which all these fields of an object have other values; those without another are absent."""
    changed = document
    for experiment in reversed(experiments):  # the positions of earlier fields stay
        changed = _with(changed, experiment.path.segments, _alternative(experiment.value))
    return replace(cluster, objects=Store({**cluster.objects, key_of(document): changed}))


def _all_settings(settings: Settings, cluster: Cluster, experiments: Sequence[_Experiment]) -> Cluster:
    """A cluster in which all these settings have other values."""
    values = {str(experiment.path): _alternative(experiment.value) for experiment in experiments}
    return replace(cluster, send=direct(settings.model_copy(update=values)), answers={})


def _readable(cluster: Cluster, parent: Json) -> Iterator[tuple[Json, str]]:
    """Yield the parent and what is read beside it, of served kinds or ConfigMaps, with prefixes for their fields."""
    yield parent, ""
    for key, document in cluster.objects.items():
        read = document["kind"] == "ConfigMap" or find(document["apiVersion"], document["kind"]) is not None
        if read and key != key_of(parent) and not _is_child(document):
            yield document, f"{document['kind']}/{document['metadata']['name']} "


def _is_child(document: Json) -> bool:
    """Report whether the object is the child of a served object, which then has set its fields."""
    references = document["metadata"].get("ownerReferences") or ()
    owners = [reference for reference in references if reference.get("controller")]
    return any(find(reference.get("apiVersion", ""), reference.get("kind", "")) is not None for reference in owners)


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
        yield Path("metadata").child("name"), document["metadata"]["name"]


def _located(value: object, path: Path) -> Iterator[tuple[Path, object]]:
    """The scalars of a document, by the positions they have; conditions and the generation only tell about it."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            if key not in ("conditions", "observedGeneration"):
                yield from _located(item, path.child(key))
    elif isinstance(value, list) and value:
        for position, item in enumerate(value):
            yield from _located(item, path.index(position))
    else:
        yield path, value


def _altered(cluster: Cluster, document: Json, path: Path, value: object) -> Iterator[Cluster]:
    """A cluster in which the field is absent, then one in which it has another value."""
    key = key_of(document)
    absent = [] if path.segments == ("metadata", "name") else [ABSENT]
    for new in dict.fromkeys([*absent, _alternative(value)]):
        changed = _with(document, path.segments, new)
        yield replace(cluster, objects=Store({**cluster.objects, **_namesakes(cluster, value, new), key: changed}))


def _namesakes(cluster: Cluster, old: object, new: object) -> dict[tuple[str, str], Json]:
    """Copies, under the new name, of the objects that a changed reference named, so that it still finds something."""
    if not isinstance(old, str) or not isinstance(new, str):
        return {}
    copies = {}
    for (kind, _), document in cluster.objects.items():
        if document["metadata"]["name"] == old and find(document["apiVersion"], document["kind"]):
            renamed = {**document, "metadata": {**document["metadata"], "name": new}}
            copies[kind, inner_key(renamed)] = renamed
    return copies


def _with(document: Any, segments: tuple[str | int, ...], value: object) -> Any:
    """Return a document in which the field has another value; the parts that stay the same are shared."""
    changed, (first, *others) = copy.copy(document), segments
    if others:
        changed[first] = _with(document[first], tuple(others), value)
    elif value is ABSENT:
        del changed[first]
    else:
        changed[first] = value
    return changed


_AMOUNT = re.compile(r"([0-9]+)(\D*)")


def _alternative(value: object) -> object:
    """Return another value of the same type; absent for one without, such as an empty list."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value / 2
    if isinstance(value, str):
        amount = _AMOUNT.fullmatch(value)
        return f"{int(amount[1]) + 1}{amount[2]}" if amount else f"{value}x"
    return ABSENT


def _with_setting(cluster: Cluster, settings: Settings, name: str) -> Iterator[Cluster]:
    value = _alternative(getattr(settings, name))
    yield replace(cluster, send=_send_with(settings, name, value), answers={})


@lru_cache(maxsize=256)
def _send_with(settings: Settings, name: str, value: object) -> Send:
    """The hooks with one setting of another value; the same settings each time, so that what was judged stays known."""
    return direct(settings.model_copy(update={name: value}))


def one_line(value: object) -> str:
    """A value of a pod as it is printed."""
    return value if isinstance(value, str) and value.isprintable() else orjson.dumps(value).decode()
