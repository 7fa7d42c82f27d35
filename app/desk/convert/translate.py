"""Translate objects of one family to another's, with an account of every value: its new place, or why it has none.

Every leaf of the source objects is in the account. A value that no table of
:mod:`app.desk.convert.counterparts` carries over is lost, and so is one that the target family's rules refuse, which is
taken out again.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.desk.cluster.kinds import as_stored, find, kind_of
from app.desk.cluster.single import findings_of
from app.desk.convert.counterparts import EACH, FAMILIES, MAIN, OF_ONE_RUNTIME, Family, NoCounterpart, Step
from app.desk.files.manifests import Manifest
from app.kube.base import Json
from app.kube.field import Path
from app.settings import Settings

Keys = tuple[Step, ...]
Place = tuple[str, Keys]
"""``service`` or ``model``, and a path in it."""
_BY_CLUSTER = "the cluster writes it"
_SERVER_FIELDS = frozenset(
    {"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "ownerReferences"}
)
_OF_TOOLS = frozenset({"kubectl.kubernetes.io", "metacontroller.k8s.io"})


@dataclass(frozen=True)
class Entry:
    """The outcome for one part of an object that was read."""

    manifest: Manifest
    keys: Keys
    value: object
    target: tuple[str, ...] = ()
    """Objects and fields that have it now; empty if it is lost."""
    reason: str = ""

    @property
    def path(self) -> Path:
        return path_of(self.keys)

    @property
    def object(self) -> str:
        return f"{self.manifest.kind}/{self.manifest.name}"


@dataclass
class Translation:
    documents: list[Json] = field(default_factory=list)
    carried: list[Entry] = field(default_factory=list)
    lost: list[Entry] = field(default_factory=list)
    added: list[tuple[str, Path, object]] = field(default_factory=list)
    """Values that the other family requires and the source does not have: object, field and value."""
    defaults: list[Entry] = field(default_factory=list)
    """Of users' own workloads: values that change nothing, with the reason."""
    steps: list[str] = field(default_factory=list)
    """Commands that move the clients of users' own workloads, in order."""


def family_of(manifest: Manifest) -> str:
    if find(manifest.api_version, manifest.kind) is None:
        return ""
    group = manifest.api_version.partition("/")[0]
    return next(name for name, family in FAMILIES.items() if group.endswith(family.group))


def translate(manifests: Iterable[Manifest], to: str, others: Iterable[Manifest] = ()) -> Translation:
    """Convert the objects of all other families to the family ``to``. ``others`` are models that services may name."""
    result, target = Translation(), FAMILIES[to]
    selected = [(m, FAMILIES[name]) for m in manifests if (name := family_of(m)) not in ("", to)]
    readable = (*others, *(m for m, _ in selected))
    models = {(m.kind, m.document["metadata"].get("namespace") or "", m.name): m for m in readable}
    used: set[Manifest] = set()
    for manifest, source in selected:
        if manifest.kind == source.service[1]:
            model = models.get(_model_of(manifest, source))
            parts = {"service": manifest} if model is None else {"service": manifest, "model": model}
            used.update(parts.values())
            _Conversion(source, target, parts).run(result)
    for manifest, source in selected:
        if manifest in used:
            continue
        if source.model is not None and manifest.kind == source.model[1]:
            _Conversion(source, target, {"model": manifest}).run(result)
        else:
            words = f"{target.title} has nothing like a {manifest.kind}"
            result.lost.append(Entry(manifest, (), manifest.document, reason=words))
    return result


def _model_of(manifest: Manifest, source: Family) -> tuple[str, str, str]:
    """Return kind, namespace and name of the model that a service names."""
    if source.model is None:
        return "", "", ""
    names = [str(value) for link in source.links for _, _, value in _values_at(manifest.document, link)]
    namespace = manifest.document["metadata"].get("namespace") or "" if source.model_scoped else ""
    return source.model[1], namespace, names[0] if names else ""


@dataclass(frozen=True)
class _Fact:
    value: Any
    places: tuple[Place, ...] = ()
    """The fields that have the value; none for a default."""


class _Conversion:
    """A service and its model, or one of the two."""

    def __init__(self, source: Family, target: Family, parts: Mapping[str, Manifest]) -> None:
        self.source, self.target, self.parts = source, target, parts
        self.read = {part: as_stored(manifest.document) for part, manifest in parts.items()}
        self.unread: dict[Place, str] = {}
        """The reason why a field has no value to convert."""
        self.facts = self._facts()
        self.placed: dict[str, Place] = {}
        """The new path of each fact; no path if it follows from the form of the objects."""
        self.refused: dict[str, str] = {}
        """The reason why a fact is left out."""
        self.made: dict[str, Json] = {}
        self.added: list[tuple[str, Keys, object]] = []

    def run(self, result: Translation) -> None:
        """Make the objects, and account for every leaf of what was read."""
        if reason := self._make():
            self.made, self.placed, self.added = {}, {}, []
        names = {part: f"{document['kind']}/{document['metadata']['name']}" for part, document in self.made.items()}
        documents = [self.made[part] for part in ("model", "service") if part in self.made]
        result.documents += [document for document in documents if document not in result.documents]
        result.added += [(names[part], path_of(keys), value) for part, keys, value in self.added]
        for part, manifest in self.parts.items():
            self._account(result, part, manifest, names, reason)

    # Reading.

    def _facts(self) -> dict[str, _Fact]:
        facts: dict[str, _Fact] = {}
        for field_ in self.source.fields:
            document = self.read.get(field_.part, {})
            for keys, each, value in _values_at(document, field_.path) if field_.path else ():
                reason = field_.unless(document) or self._foreign(keys)
                try:
                    if not reason:
                        fact = field_.read_from(document) if field_.read_from is not None else field_.read(value)
                        reason = self._add(facts, field_.fact.format(each), fact, (field_.part, keys))
                except NoCounterpart as why:
                    reason = str(why)
                if reason:
                    self.unread[field_.part, keys] = reason
        for link in self.source.links if "service" in self.parts else ():
            for keys, _, value in _values_at(self.read["service"], link):
                self._add(facts, "link", value, ("service", keys))
        if "service" not in self.parts:
            return facts
        for keys, words in reversed([*self.source.options(self.read["service"])]):  # before arguments, which win
            rest = facts.get("arguments", _Fact([]))
            facts["arguments"] = _Fact([*words, *rest.value], (("service", keys), *rest.places))
        return {"runtime": facts.pop("runtime", _Fact(self.source.runtime)), **facts}  # others depend on it

    def _value(self, name: str) -> str:
        return str(self.facts[name].value) if name in self.facts else ""

    def _add(self, facts: dict[str, _Fact], name: str, value: object, place: Place) -> str:
        """Add a fact, or another field that has its value. Return why the field is ignored, or an empty string."""
        fact = facts.setdefault(name, _Fact(value))
        if fact.value != value:
            return f"{path_of(fact.places[0][1])} of the {fact.places[0][0]} takes precedence"
        facts[name] = _Fact(value, (*fact.places, place))
        return ""

    def _foreign(self, keys: Keys) -> str:
        """Return why a label or annotation means nothing to the other family; empty where it may."""
        key = str(keys[-1])
        if keys[0] != "metadata" or "/" not in key:
            return ""
        group = key.partition("/")[0]
        if group in _OF_TOOLS:
            return _BY_CLUSTER
        return f"only {self.source.title} reads it" if group.endswith(self.source.group) else ""

    # Writing.

    def _make(self) -> str:
        """Write every fact. Return why there can be no object of the other family, or an empty string."""
        if self.parts.keys() == {"model"} and self.target.model is None:
            return f"{self.target.title} has the model in the service, and no service among the files uses this one"
        if "address" not in self.facts:
            reasons = (why for (_, keys), why in self.unread.items() if keys[1:2] in (("source",), ("model",)))
            return next(reasons, "its model is not among the files; --with reads more of them")
        self._begin()
        for name, fact in self.facts.items():
            self._write(name, fact)
        if "address" not in self.placed:
            return self.refused["address"]
        for part, keys, value in self.target.required(self._value("address"), self._value("runtime")):
            if part in self.made and not list(_values_at(self.made[part], keys)):
                _put(self.made[part], keys, value)
                self.added.append((part, keys, value))
        return self._valid()

    def _begin(self) -> None:
        """Make the objects with their types and names, and the link between the two."""
        target = self.target
        if "service" in self.parts:
            self.made["service"] = _object(target.service)
        if target.model is None:
            return
        self.made["model"] = _object(target.model)
        if target.model_scoped and "namespace" in self.facts:
            self.made["model"]["metadata"]["namespace"] = self.facts["namespace"].value
        if "service" not in self.parts:
            return
        name = self._value("model name") or self._value("name")
        _put(self.made["service"], target.links[0], name)
        self.placed["link"] = "service", target.links[0]
        if "model name" not in self.facts:
            _put(self.made["model"], ("metadata", "name"), name)
            self.added.append(("model", ("metadata", "name"), name))

    def _write(self, name: str, fact: _Fact) -> None:
        if name in self.placed:
            return
        served = name == "served name" and fact.value == self.target.serves_as(self._value("address"))
        if served or name in self.target.implied:
            self.placed[name] = next(iter(self.made)), ()
            return
        reason = f"written for {self._value('runtime')}" if name in OF_ONE_RUNTIME and "runtime" in self.refused else ""
        for field_ in self.target.fields if not reason else ():
            each = _key(field_.fact, name)
            if field_.write is None or field_.part not in self.made or each is None:
                continue
            try:
                value = field_.write(fact.value)
            except NoCounterpart as why:
                self.refused[name] = str(why)
                continue
            keys = tuple(each if step == EACH else step for step in field_.path)
            self.placed[name] = field_.part, keys
            if keys:
                _put(self.made[field_.part], keys, value)
                if not fact.places:
                    self.added.append((field_.part, keys, value))
            return
        reasons = (why for word, why in self.target.reasons.items() if name.startswith(word))
        self.refused.setdefault(name, reason or next(reasons, f"{self.target.title} has no counterpart"))

    def _valid(self) -> str:
        """Remove what the other family's rules refuse. Return why nothing valid is left, or an empty string."""
        for part, document in self.made.items():
            kind = kind_of(document)
            assert kind is not None
            while errors := findings_of(kind, document, Settings())[0]:
                keys = (errors[0].place or errors[0].path).segments
                name = next((n for n, (p, k) in self.placed.items() if p == part and k and overlap(k, keys)), "")
                if not name or name in ("name", "link", "address"):
                    return f"{self.target.title} refuses it: {errors[0]}"
                _remove(document, self.placed.pop(name)[1])
                self.added = [value for value in self.added if value[:2] != (part, keys)]
                self.refused[name] = f"{self.target.title} refuses it: {errors[0].body}"
        return ""

    # The account.

    def _account(
        self, result: Translation, part: str, manifest: Manifest, names: Mapping[str, str], whole: str
    ) -> None:
        lost: dict[Keys, str] = {}
        went: dict[Place, list[str]] = {}
        reasons = dict(self.unread)
        for name, fact in self.facts.items():
            for place in fact.places:
                if name in self.placed:
                    where, keys = self.placed[name]
                    went.setdefault(place, []).append(f"{names[where]} {path_of(keys)}".rstrip())
                if name in self.refused:
                    reasons.setdefault(place, self.refused[name])
        for keys, value in leaves(self.read[part]):
            enclosing = [(part, keys[:end]) for end in range(len(keys), 0, -1)]
            targets = next((went[k] for k in enclosing if k in went), None)
            if whole:
                lost[keys] = whole
            elif targets is not None:
                result.carried.append(Entry(manifest, keys, value, target=tuple(targets)))
            elif keys not in (("apiVersion",), ("kind",)):
                reason_given = next((reasons[k] for k in enclosing if k in reasons), "")
                lost[keys] = reason_given or self._without(keys)
        rows = collapsed(self.read[part], (), lost)
        result.lost += [Entry(manifest, keys, value, reason=why) for keys, value, why in rows]
        if part == "service" and not whole and not self.facts["runtime"].places and "runtime" in self.refused:
            keys = next((field_.path for field_ in self.source.fields if field_.fact == "runtime"), ("spec",))
            result.lost.append(Entry(manifest, keys, self.facts["runtime"].value, reason=self.refused["runtime"]))

    def _without(self, keys: Keys) -> str:
        if keys[0] == "status" or (keys[0] == "metadata" and keys[1] in _SERVER_FIELDS):
            return _BY_CLUSTER
        hint = next((text for path, text in self.source.hints.items() if keys[: len(path)] == path), "")
        return f"{self.target.title} has no counterpart{'; ' if hint else ''}{hint}"


def _key(pattern: str, name: str) -> str | None:
    """Return the value of ``{}`` in the name of a fact; empty for a fact without it, ``None`` for another fact."""
    before, mark, _ = pattern.partition("{}")
    if mark:
        return name.removeprefix(before) if name.startswith(before) and len(name) > len(before) else None
    return "" if name == pattern else None


def _object(type_: tuple[str, str]) -> Json:
    return {"apiVersion": type_[0], "kind": type_[1], "metadata": {}, "spec": {}}


def path_of(keys: Keys) -> Path:
    path = Path()
    for step in (0 if step == MAIN else step for step in keys):  # of what is written there is only one
        path = path.index(step) if isinstance(step, int) else path.member(step)
    return path


def leaves(value: object, keys: Keys = ()) -> Iterator[tuple[Keys, object]]:
    """Yield every value without values below it; an empty map or list is one."""
    below = [leaf for key, item in _items(value) for leaf in leaves(item, (*keys, key))]
    yield from below or [(keys, value)]


def _items(value: object) -> Iterable[tuple[Step, object]]:
    """Return the keys or positions of a map or a list, with their values; nothing for any other value."""
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def _values_at(
    value: object, path: tuple[Step, ...], keys: Keys = (), each: str = ""
) -> Iterator[tuple[Keys, str, object]]:
    """Yield the values at a path of the tables: the actual path, the key in place of :data:`EACH`, and the value."""
    if not path:
        yield keys, each, value
        return
    step = path[0]
    for key, item in _items(value):
        is_main = step == MAIN and isinstance(item, dict) and item.get("name") == "main"
        if is_main or step in (EACH, key):
            yield from _values_at(item, path[1:], (*keys, key), str(key) if step == EACH else each)


def _put(document: Json, path: tuple[Step, ...], value: object) -> None:
    """Set a value at a path of the tables; a list has one item, with the name it needs."""
    node: Any = document
    for step, following in zip(path, (*path[1:], None), strict=True):
        if step in (MAIN, 0):
            if not node:
                node.append({"name": "main"} if step == MAIN else {"name": "default"})
            node = node[0]
        elif following is None:
            node[step] = value
        else:
            node = node.setdefault(step, [] if following in (MAIN, 0) else {})


def _remove(document: Json, path: tuple[Step, ...]) -> None:
    """Remove a value, and the maps and lists that become empty."""
    enclosing: list[tuple[Any, Step]] = []
    node: Any = document
    for step in path:
        key = 0 if step == MAIN else step
        enclosing.append((node, key))
        node = node[key]
    for holder, key in reversed(enclosing):
        del holder[key]
        if holder and holder not in ([{"name": "main"}], [{"name": "default"}], {"name": "main"}, {"name": "default"}):
            return


def overlap(keys: Keys, other: Keys) -> bool:
    """Report whether one path is at or below the other."""
    plain = tuple(0 if step == MAIN else step for step in keys)
    length = min(len(plain), len(other))
    return plain[:length] == other[:length]


def collapsed(value: object, keys: Keys, lost: Mapping[Keys, str]) -> list[tuple[Keys, object, str]]:
    """Return the lost leaves; the largest part that is lost for one reason replaces the leaves in it."""
    causes = [lost.get(leaf) for leaf, _ in leaves(value, keys)]
    if len(set(causes)) == 1 and causes[0] is not None and len(keys) > 1:
        return [(keys, value, causes[0])]
    below = [row for key, item in _items(value) for row in collapsed(item, (*keys, key), lost)]
    return below or ([(keys, value, lost[keys])] if keys in lost else [])
