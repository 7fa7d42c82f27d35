"""Find the source of each value of a pod, by experiments that change fields.

Hooks are pure functions, so fields get other values and the hook is asked again; the values of the pod that change come
from those fields. This works for every kind without knowing its code. Most values are copies of fields, and one
experiment with all fields finds them. Any other field is taken away (or altered, where it is required) by itself. A
value that several fields change is attributed to the one that changes the fewest others.

An InferenceService has ``contextSize: 8192``, and its pod ``args: [--ctx-size, "8192", --metrics]``:

1. Every field gets another value at once, by which it is recognised. The number behind ``--ctx-size`` is then that of
   ``contextSize``: it is a copy of the field.
2. ``--ctx-size`` itself copies nothing. Without ``contextSize`` it is gone, so the field causes it too.
3. ``--metrics`` stays whatever changes: it is the hook's own.

What is vague after that, KServe names (:mod:`app.kserve.llminferenceservice.origins`): a preset, and the layer of
``baseRefs`` that wins, are no fields of the parent, and no experiment with it could tell them apart.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal, TypeVar, get_origin

import orjson

from app.desk.cluster import store
from app.desk.cluster.kinds import find, kind_of
from app.desk.cluster.offline import direct
from app.desk.cluster.simulate import Cluster, Send
from app.desk.cluster.store import Key, Store, inner_key, key_of, outer_key
from app.desk.origins.changes import ABSENT, compare
from app.desk.origins.copies import alternative, copies, recognisable, with_value
from app.hooks.kind import AnyKind
from app.kube import podspec
from app.kube.base import Json
from app.kube.field import ErrorType, Path, Segments
from app.kube.merge import find as value_at
from app.kube.names import CONTROLLER_UID, METACONTROLLER_PREFIX
from app.kube.origin import Origin, leaves
from app.settings import Settings, variable_name

DEFAULT = "default"
"""The source of a value that nothing bears on."""
VAGUE = frozenset({DEFAULT, "metadata.name"})
"""Vague sources, which a more precise one of the kind replaces (:attr:`app.hooks.kind.Offline.explain`)."""
MAX_FIELDS = 500
"""Fields of one parent and its related objects that are tried."""

NAME = ("metadata", "name")
FIELDS = ("spec", "data", "status")
"""The parts of a related object that hooks read."""

TEMPLATES = {kind: ("spec", field_) for kind, field_ in podspec.TEMPLATES.items()}
"""The path of the pod template in each kind of workload."""
EXPLAINED = TEMPLATES | {
    "HorizontalPodAutoscaler": ("spec",),
    "InferenceObjective": ("spec",),
    "ResourceClaimTemplate": ("spec",),
    "ScaledObject": ("spec",),
    "VariantAutoscaling": ("spec",),
}
"""The part of a child whose values are explained."""

T = TypeVar("T")
Pods = dict[str, Json]
"""Those parts by their place: ``Deployment/chat spec.template``."""

Pattern = tuple[str, ...]
"""The kinds and the path of a field without positions: the same field of other objects."""


@dataclass
class Attributions:
    """The results of experiments with earlier objects."""

    fields: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)
    """Numbers of the fields that changed each value of the pods, by the inputs without names."""
    derived: set[Pattern] = field(default_factory=set)
    """Fields whose alternatives change more than copies."""
    plain: set[Pattern] = field(default_factory=set)
    """Fields whose alternatives change nothing but copies."""
    required: set[Pattern] = field(default_factory=set)
    """Fields that the type of their object requires."""
    words: set[Pattern] = field(default_factory=set)
    """Fields whose values are listed in their type."""
    copied: set[tuple[Pattern, ...]] = field(default_factory=set)
    """Fields without which no other values change than their copies, with the paths of those."""


def origins(
    cluster: Cluster,
    kind: AnyKind,
    parent: Json,
    pods: Pods,
    settings: Settings,
    attributions: Attributions | None = None,
) -> list[Origin]:
    """Return the values of a parent's pods with their sources, in the order of the pods' fields.

    The results are added to ``attributions``. An object that differs from an earlier one in names alone is not tried
    again; its pods must differ in the same names, and in nothing else.
    """
    tracer = _Tracer(cluster, kind, parent, pods, settings, attributions or Attributions())
    fields = _fields(cluster, kind, parent, settings) if tracer.values else []
    signature, by_signature = _signature(cluster, kind, parent, tracer), tracer.attributions.fields
    if signature not in by_signature:
        tracer.attribute(fields)
        by_signature[signature] = tracer.result()
    sources = [
        ", ".join(dict.fromkeys(fields[number].source for number in numbers)) for numbers in by_signature[signature]
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
        related = store.related(reader, cluster.rules(reader, document), cluster.objects)
        children = cluster.children(document)
        for other in [*(d for group in related.values() for d in group.values()), *children]:
            of = kind_of(other)
            if of is not None and key_of(other) not in readable and (settling or other in children):
                waiting.append((of, other))
            readable[key_of(other)] = other
    granted = frozenset(key for key in cluster.granted if not cluster.objects.of_kind(key))
    return replace(cluster, objects=Store(readable), granted=granted)


@dataclass(frozen=True, eq=False)
class _Field:
    """A field of an object that hooks read, or a setting of the operator, which has no ``key``."""

    number: int
    source: str
    key: Key | None
    segments: Segments
    value: object
    pattern: Pattern

    @property
    def removable(self) -> bool:
        return self.key is not None and self.segments != NAME


Changes = Mapping[_Field, object]
"""Fields with other values; :data:`ABSENT` takes one away."""


@dataclass
class _Tracer:
    cluster: Cluster
    kind: AnyKind
    parent: Json
    pods: Pods
    settings: Settings
    attributions: Attributions
    values: dict[str, object] = field(init=False)
    start: Cluster = field(init=False)
    """The cluster before the parent has children: an invalid spec has no pods there, where others would be kept."""
    _effects: dict[_Field, list[str]] = field(default_factory=dict)
    """The values that change with each field."""

    def __post_init__(self) -> None:
        self.values = {
            f"{place}{_below(path)}": value for place, pod in self.pods.items() for path, value in leaves(pod, Path())
        }

    def attribute(self, fields: Sequence[_Field]) -> None:
        """Find the effects of fields: of all together if the pods are the same before the parent has children."""
        children = {key_of(d) for c in self.cluster.children(self.parent) for d in (c, *self.cluster.children(c))}
        self.start = _without(self.cluster, children)
        bearing = self._bearing() if fields else ()
        alone = fields
        if bearing is None:
            self.start = self.cluster
        else:
            fields = [entry for entry in fields if entry.key in {None, key_of(self.parent), *bearing}]
            self._learn_types(fields)
            apart = self.attributions.derived | self.attributions.words
            alone = [entry for entry in fields if entry.pattern in apart]
            together = [entry for entry in fields if entry not in alone]
            self._try_together(together)
            self._try_limits([entry for entry in together if type(entry.value) is int and entry.removable])
        for entry in alone:
            self._try(entry)

    def _bearing(self) -> Sequence[Key] | None:
        """Take away the related objects that change nothing in the pods, and return the others.

        Those that the parent names stay untried. ``None`` if the pods are not the same before the parent has children.
        """
        names = {value for _, value in written(self.parent, ("spec",)) if isinstance(value, str)}
        related = [document for document, prefix in _readable(self.start, self.parent) if prefix]
        named = [key_of(document) for document in related if document["metadata"]["name"] in names]
        others = [key_of(document) for document in related if document["metadata"]["name"] not in names]
        if self._take_away(others):
            return named
        if not others or not self._take_away(()):
            return None
        return [*named, *_culprits(others, self._take_away, suspect=True)]

    def _take_away(self, related: Collection[Key]) -> bool:
        """Take related objects away if the pods are the same without them."""
        fewer = _without(self.start, related)
        same = self._pods_with({}, fewer) == self.pods
        self.start = fewer if same else self.start
        return same

    def _try_together(self, fields: Sequence[_Field]) -> bool:
        """Find the copies of all fields at once, or of fewer if anything else changes. Report whether all are found."""
        values = {entry: entry.value for entry in fields}
        changes = recognisable(values)
        changed = self._pods_with(changes, self.start) if fields else self.pods
        copied = copies([*self.pods.values()], [*changed.values()], values)
        if copied is not None:
            self.attributions.plain.update(entry.pattern for entry in fields)
            for entry, pods in copied.items():
                self._attribute_copy(entry, dict(zip(self.pods, pods, strict=True)))
        elif len(fields) == 1:
            self._try_alone(fields[0], changed)
        else:
            self._try_fewer(fields)
        return copied is not None

    def _learn_types(self, fields: Sequence[_Field]) -> None:
        """Note which fields of new kinds are required by the types of their objects, and which are words of a list."""
        earlier = self.attributions.plain | self.attributions.derived | self.attributions.words
        new = {entry: entry.value for entry in fields if entry.pattern not in earlier}
        absent: Changes = {entry: ABSENT for entry in new if entry.removable}
        for changes, error_type, patterns in (
            (absent, ErrorType.REQUIRED, self.attributions.required),
            (recognisable(new), ErrorType.NOT_SUPPORTED, self.attributions.words),
        ):
            refused = self._refused(changes, error_type)
            patterns.update(entry.pattern for entry in changes if (entry.key, entry.segments) in refused)

    def _refused(self, changes: Changes, error_type: ErrorType) -> set[tuple[Key, Segments]]:
        """Return the places of the errors of a type with which changed objects are read."""
        changed = _changed(self.start, self.settings, changes)
        read = {key: changed.objects[key] for key in {entry.key for entry in changes} if key is not None}
        return {
            (key, error.path.segments)
            for key, document in read.items()
            if (kind := kind_of(document)) is not None
            for error in kind.read(orjson.dumps(document.get("spec"))).errors
            if error.type is error_type
        }

    def _try_fewer(self, fields: Sequence[_Field]) -> None:
        """Try fields in two parts, those that are likely plain first, or apart where others of their kind had to be.

        The second part is not tried as a whole if the first changes nothing but copies.
        """
        apart = [entry for entry in fields if len(fields) == 1 or entry.pattern in self.attributions.derived]
        if apart:
            for entry in apart:
                self._try_alone(entry)
            self._try_together([entry for entry in fields if entry not in apart])
            return
        plain = [entry for entry in fields if entry.pattern in self.attributions.plain]
        names = {pattern[-1] for pattern in self.attributions.derived}
        likely = [entry for entry in fields if entry in plain or entry.pattern[-1] not in names]
        first = next((some for some in (likely, plain) if 0 < len(some) < len(fields)), fields[: len(fields) // 2])
        others = [entry for entry in fields if entry not in first]
        if self._try_together(first):
            self._try_fewer(others)
        else:
            self._try_together(others)

    def _try_alone(self, entry: _Field, altered: Pods | None = None) -> None:
        self.attributions.derived.add(entry.pattern)
        self._try(entry, altered)

    def _try_limits(self, numbers: Sequence[_Field]) -> None:
        """Try numbers of which more changes nothing: 3 replicas may add what 4 have too, and 1 has not."""

        def harmless(some: Sequence[_Field]) -> bool:
            return self._pods_with(dict.fromkeys(some, ABSENT), self.start) == self.pods

        for entry in _culprits([entry for entry in numbers if entry not in self._effects], harmless):
            self._try(entry, self.pods)

    def _attribute_copy(self, entry: _Field, copied: Pods) -> None:
        """Attribute copies to their field. The first of a kind shows whether other values change without the field."""
        touched = self._touched(copied)
        pattern = (entry.pattern, *((_NAMES.sub("", path),) for path in touched))
        if pattern in self.attributions.copied:
            self._effects[entry] = touched
            return
        self._try(entry, copied)
        if self._effects.get(entry) == touched:
            self.attributions.copied.add(pattern)

    def _try(self, entry: _Field, altered: Pods | None = None) -> None:
        """Find the values that change without the field, or else with another value of it (``altered``, if known).

        A change that leaves no pods is invalid. One that leaves others may be: it is tried where children are kept.
        """
        absent = [ABSENT] if entry.removable and entry.pattern not in self.attributions.required else []
        others = [alternative(entry.value)] if entry.pattern not in self.attributions.words else []
        for new in dict.fromkeys([*absent, *others]):
            pods = altered if new is not ABSENT and altered is not None else self._pods_with({entry: new}, self.start)
            if pods and pods.keys() != self.pods.keys():
                pods = self._pods_with({entry: new}, self.cluster)
            if pods and (touched := self._touched(pods)):
                self._effects[entry] = touched
                return

    def _pods_with(self, changes: Changes, cluster: Cluster) -> Pods:
        changed = _changed(cluster, self.settings, changes)
        return pod_templates(changed, self.kind, changed.objects.get(key_of(self.parent), self.parent))

    def _touched(self, changed: Pods) -> list[str]:
        paths = []
        for place, pod in self.pods.items():
            for change in compare(pod, _counterpart(place, self.pods, changed), Path()):
                if change.old is not ABSENT:
                    paths += [f"{place}{_below(path)}" for path, _ in leaves(change.old, change.path)]
        return [path for path in paths if path in self.values]

    def result(self) -> list[tuple[int, ...]]:
        """Return the numbers of the fields that each value comes from; none for a default."""
        candidates: dict[str, list[_Field]] = defaultdict(list)
        for entry in sorted(self._effects, key=lambda entry: entry.number):
            for path in self._effects[entry]:
                candidates[path].append(entry)
        return [self._closest(candidates[path], value) for path, value in self.values.items()]

    def _closest(self, candidates: Sequence[_Field], value: object) -> tuple[int, ...]:
        """Return the fields that change the fewest values; of several, those with the same value if there are any."""
        fewest = min((len(self._effects[entry]) for entry in candidates), default=0)
        closest = [entry for entry in candidates if len(self._effects[entry]) == fewest]
        equal = [entry for entry in closest if entry.value == value]
        return tuple(entry.number for entry in equal or closest)


_NAMES = re.compile(r"/\S+|\[[^]]*\]")
"""The names and positions in the path of a value."""


def _culprits(items: Sequence[T], harmless: Callable[[Sequence[T]], bool], *, suspect: bool = False) -> Sequence[T]:
    """Return the items that are not harmless, found by halves. Those that are ``suspect`` are known to have some.

    If the first half has none, the second is suspect.
    """
    if not items or (not suspect and harmless(items)):
        return ()
    if len(items) == 1:
        return items
    middle = len(items) // 2
    first = _culprits(items[:middle], harmless)
    return [*first, *_culprits(items[middle:], harmless, suspect=not first)]


def _without(cluster: Cluster, keys: Collection[Key | None]) -> Cluster:
    objects = Store({key: document for key, document in cluster.objects.items() if key not in keys})
    return replace(cluster, objects=objects)


def _counterpart(place: str, before: Pods, after: Pods) -> Json:
    """Return the pod of a place after a change. A renamed workload is identified by its kind and position."""
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
    """Return the pod templates of a parent's children, and of the children of those of served kinds."""
    return _templates_below(cluster, parent, cluster.ask(kind, parent))


def settled_pod_templates(cluster: Cluster, parent: Json) -> Pods:
    """Return the same for a cluster that has settled, by the parent's last answer."""
    return _templates_below(cluster, parent, cluster.last_answer(parent))


def _templates_below(cluster: Cluster, parent: Json, answer: Json) -> Pods:
    templates: Pods = {}
    for child in answer["children"]:
        reader = kind_of(child)
        if reader is not None:
            new = store.stored(child, parent["metadata"].get("namespace", ""))
            held = cluster.objects.get(key_of(new), {})
            metadata = {**new["metadata"], **held.get("metadata", {}), **child["metadata"]}
            document = {**held, **new, "metadata": metadata, "status": held.get("status", {})}
            templates |= pod_templates(cluster, reader, document)
        elif child["kind"] in EXPLAINED and child.get("spec"):
            path = EXPLAINED[child["kind"]]
            place = f"{child['kind']}/{child['metadata']['name']} {'.'.join(path)}"
            templates[place] = value_at(child, path) or {}
    return templates


# Experiments.


def _fields(cluster: Cluster, kind: AnyKind, parent: Json, settings: Settings) -> list[_Field]:
    """Return the parent's own fields with its name, those of the objects it reads, and the operator's settings."""
    entries = (
        (f"{prefix}{path}", key_of(document), path.segments, value, outer_key(document) if prefix else "")
        for document, prefix in _readable(cluster, parent)
        for path, value in written(document, FIELDS if prefix else ("spec",))
        if not prefix or path.segments != NAME  # an object is found by its name
    )
    operator = [
        (f"setting {variable_name(name)}", None, (name,), value, "")
        for name, info in type(settings).model_fields.items()
        if (name.startswith(f"{kind.resource.family}_") or name == "cluster_domain")
        and get_origin(info.annotation) is not Literal  # an edition of built-in presets, which the kind names itself
        and alternative(value := getattr(settings, name)) is not ABSENT
    ]
    return [
        _Field(number, source, key, at, value, (kind.resource.kind, related, *(n for n in at if isinstance(n, str))))
        for number, (source, key, at, value, related) in enumerate([*itertools.islice(entries, MAX_FIELDS), *operator])
    ]


def _changed(cluster: Cluster, settings: Settings, changes: Changes) -> Cluster:
    """Return a cluster in which fields have other values, and in which changed references still find an object."""
    objects, operator = dict(cluster.objects), {}
    for entry, value in reversed([*changes.items()]):  # the positions of earlier fields stay
        if entry.key is None:
            operator[str(entry.segments[0])] = value
        else:
            objects[entry.key] = with_value(objects[entry.key], entry.segments, value)
    references: dict[str, list[str]] = defaultdict(list)
    for entry, value in changes.items():
        if isinstance(entry.value, str) and isinstance(value, str) and entry.segments != NAME:
            references[entry.value].append(value)
    for (kind, _), document in [*objects.items()]:
        for name in references[document["metadata"]["name"]] if kind_of(document) else ():
            renamed = {**document, "metadata": {**document["metadata"], "name": name}}
            objects.setdefault((kind, inner_key(renamed)), renamed)
    changed = replace(cluster, objects=Store(objects))
    return replace(changed, send=_send_with(settings, **operator), answers={}) if operator else changed


def _readable(cluster: Cluster, parent: Json) -> Iterator[tuple[Json, str]]:
    """Yield the parent and what is read beside it, of served kinds or ConfigMaps, with prefixes for their fields."""
    yield parent, ""
    for key, document in cluster.objects.items():
        read = document["kind"] == "ConfigMap" or kind_of(document) is not None
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
    """Yield the scalars of a document with their positions, except conditions and the observed generation."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            if key not in ("conditions", "observedGeneration"):
                yield from _located(item, path.child(key))
    elif isinstance(value, list) and value:
        for position, item in enumerate(value):
            yield from _located(item, path.index(position))
    else:
        yield path, value


@lru_cache(maxsize=256)
def _send_with(settings: Settings, **changes: object) -> Send:
    """Return the hooks with other settings. Cached, so that results for the same settings are reused."""
    return direct(settings.model_copy(update=changes))


def one_line(value: object) -> str:
    return value if isinstance(value, str) and value.isprintable() else orjson.dumps(value).decode()
