"""Compare the children of two versions of manifests, and say what each difference does to pods."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Literal

import msgspec
import orjson

from app.desk.cluster import parts, sets
from app.desk.cluster.kinds import kind_of
from app.desk.cluster.offline import World, desired, direct, holding, identity, in_cluster, progress, served, settle
from app.desk.cluster.simulate import Cluster
from app.desk.cluster.single import all_errors_of, judge_all
from app.desk.cluster.store import Key, key_of
from app.desk.files.manifests import Manifest
from app.desk.origins.changes import Change, compare
from app.errors import CommandError
from app.families import RESOURCES
from app.hooks.template import INPUTS, KEPT, may_stay
from app.kube import field
from app.kube.base import Json
from app.kube.podspec import TEMPLATES
from app.settings import Settings
from app.workload.devices import is_accelerator

Children = Mapping[tuple[str, str], Json]
"""Children by kind (``Deployment.apps/v1``) and ``namespace/name``."""


_BESIDE_TEMPLATE = {"LeaderWorkerSet": ("networkConfig",)}
"""Fields beside the template of a workload that its pods are made from too."""


def _parts_of_pods(kind: str) -> list[field.Path]:
    """Return the places in a workload that its pods are made from; none of another kind."""
    name = kind.partition(".")[0]
    fields = (TEMPLATES[name], *_BESIDE_TEMPLATE.get(name, ())) if name in TEMPLATES else ()
    return [field.SPEC.child(part) for part in fields]


_DEPLOYMENT = "Deployment.apps/v1"
NEEDS_MORE = "the new pod starts before an old one ends, so it waits for devices beside theirs"

_CREATE_ONLY = {child.key for resource in RESOURCES for child in resource.children if child.update == "OnDelete"}


class Effect(StrEnum):
    RESTART = "pods restart"
    RECREATE = "recreates: all pods stop before new ones start"
    START = "pods start"
    STOP = "pods stop"
    SCALE = "pods are added or removed, the others go on"
    NONE = "no pod restarts"
    WAITS = "waits for the next change to the pods, no pod restarts"
    DATA = "its data is deleted"
    KEPT = "not applied: objects of this kind are only created"


_ENDS_PODS = {Effect.RESTART, Effect.RECREATE}


class ChildDifference(msgspec.Struct, frozen=True):
    kind: str
    name: str
    action: Literal["create", "delete", "change"]
    effect: Effect
    fields: tuple[Change, ...] = ()
    note: str = ""
    """What keeps the change from ending by itself."""


def differences(old: Children, new: Children) -> list[ChildDifference]:
    result = []
    for kind, name in sorted({*old, *new}):
        before, after = old.get((kind, name)), new.get((kind, name))
        if after is None:
            data = kind == "PersistentVolumeClaim.v1"
            effect = Effect.DATA if data else Effect.STOP if _parts_of_pods(kind) else Effect.NONE
            result.append(ChildDifference(kind, name, "delete", effect))
        elif before is None:
            effect = Effect.START if _parts_of_pods(kind) else Effect.NONE
            result.append(ChildDifference(kind, name, "create", effect))
        elif fields := tuple(compare(_plain(before), _plain(after), field.Path())):
            effect = effect_of(kind, fields, after)
            if effect in _ENDS_PODS and _inputs(before) == _inputs(after) is not None and may_stay(before, after):
                effect = Effect.WAITS
            note = _waits_for_itself(after) if effect is Effect.RESTART and kind == _DEPLOYMENT else ""
            result.append(ChildDifference(kind, name, "change", effect, fields, note))
    return result


def stops_all(spec: Json) -> bool:
    """Report whether a change of the template of a Deployment or LeaderWorkerSet leaves no pod running for a while."""
    strategy: Json = spec.get("strategy") or spec.get("rolloutStrategy") or {}
    if strategy.get("type") == "Recreate":
        return True
    rolling: Json | None = strategy.get("rollingUpdate") or strategy.get("rollingUpdateConfiguration")
    if rolling is None:
        return False
    surge, unavailable = (str(rolling.get(name, default)) for name, default in (("maxSurge", 0), ("maxUnavailable", 1)))
    share, number = unavailable.removesuffix("%"), spec.get("replicas", 1)
    if surge.removesuffix("%") != "0" or not share.isdecimal():
        return False
    return int(share) >= (100 if unavailable.endswith("%") else number)


def _waits_for_itself(deployment: Json) -> str:
    """Say which devices the first new pod needs beside those of the old ones; empty if an old pod goes before it."""
    spec = deployment["spec"]
    strategy, replicas = spec.get("strategy") or {}, spec.get("replicas", 1)
    most = (strategy.get("rollingUpdate") or {}).get("maxUnavailable", "25%")
    unavailable = int(replicas * int(str(most).rstrip("%")) / 100) if isinstance(most, str) else most
    containers = spec["template"]["spec"].get("containers") or ()
    limits = [(container.get("resources") or {}).get("limits") or {} for container in containers]
    devices = [f"{count} {name}" for found in limits for name, count in found.items() if is_accelerator(name)]
    if not devices or not replicas or unavailable:
        return ""
    return f"{NEEDS_MORE} ({', '.join(devices)} for a pod): without free ones set replicas to 0 and back"


def _inputs(child: Json) -> str | None:
    """The digest of what a workload's template was made from: two releases agree on it."""
    annotations: Mapping[str, str] = child["metadata"].get("annotations") or {}
    return annotations.get(INPUTS)


def _plain(child: Json) -> Json:
    """Return a child without the annotations about its template, which follow from everything else."""
    metadata = child["metadata"]
    annotations = {k: v for k, v in (metadata.get("annotations") or {}).items() if k not in (INPUTS, KEPT)}
    rest = {key: value for key, value in metadata.items() if key != "annotations"}
    return {**child, "metadata": {**rest, "annotations": annotations} if annotations else rest}


def effect_of(kind: str, fields: Iterable[Change], after: Json) -> Effect:
    """Return what changes of fields do to the pods of a child, which is given as it is ``after`` them."""
    if kind in _CREATE_ONLY:
        return Effect.KEPT
    paths, template = [change.path for change in fields], _parts_of_pods(kind)
    if any(path.is_within(part) for path in paths for part in template):
        return Effect.RECREATE if stops_all(after["spec"]) else Effect.RESTART
    return Effect.SCALE if template and _REPLICAS in paths else Effect.NONE


_REPLICAS = field.SPEC.child("replicas")


def applied(old: list[Manifest], new: list[Manifest], world: World, settings: Settings) -> tuple[Children, Children]:
    """Return the children before and after ``new`` replaces ``old``, and ``settings`` those of the world."""
    first, second, namespace = world.settings, settings, world.namespace
    _refuse_invalid([*old, *new] if first == second else old, first)
    if first != second:
        _refuse_invalid(new, second)
    if any(len(sets.split(manifests, namespace).sets) > 1 for manifests in (old, new)):
        raise CommandError("the same object is described in several ways; compare one folder at a time")
    olds, news = ({key: m for m in side if (key := identity(m, namespace)) is not None} for side in (old, new))
    present = holding(olds.values(), world)
    replaced = present.copy()
    _replace(replaced, olds, news, namespace)

    def children(clusters: Sequence[Cluster], _: object, watch: parts.Watch) -> tuple[Children, Children]:
        cluster = settle(clusters[0])
        watch(cluster)
        before = _children(cluster)
        _replace(cluster, olds, {key: m for key, m in news.items() if key in clusters[1].objects}, namespace)
        if first != second:
            cluster.send = direct(second)
            cluster.answers.clear()
        with progress() as tick:
            cluster.settle(tick)
        watch(cluster)
        return before, _children(cluster)

    keys = {key: key for key, manifest in {**olds, **news}.items() if served(manifest)}
    befores, afters = zip(*parts.results([present, replaced], keys, children), strict=True)
    return _joined(befores), _joined(afters)


def _joined(children: Iterable[Children]) -> Children:
    return {key: child for some in children for key, child in some.items()}


def _refuse_invalid(manifests: Iterable[Manifest], settings: Settings) -> None:
    """Refuse objects with errors, which change no child. Of objects that are equal on both sides, the last is named."""
    equal: dict[bytes, list[Manifest]] = {}
    for manifest in manifests:
        equal.setdefault(orjson.dumps(manifest.document), []).append(manifest)
    judge_all((group[0] for group in equal.values()), settings)
    wrong = [group[-1] for group in equal.values() if all_errors_of(group[0], settings)]
    if errors := [error for manifest in wrong for error in all_errors_of(manifest, settings)]:
        raise CommandError("\n".join(["an object with errors changes nothing:", *map(str, errors)]))


def _replace(cluster: Cluster, old: Iterable[Key], new: Mapping[Key, Manifest], namespace: str) -> None:
    """Bring the objects of the files to their new version, and remove those that are gone with what they own."""
    for key in old:
        if key not in new and key in cluster.objects:
            cluster.delete(key)
    for key, manifest in new.items():
        document, before = in_cluster(manifest, namespace), cluster.objects.get(key)
        if before is not None:
            generation = before["metadata"]["generation"] + (before.get("spec") != document.get("spec"))
            document["metadata"] |= {"generation": generation, "uid": before["metadata"]["uid"]}
            if "status" in before:
                document.setdefault("status", before["status"])
        cluster.objects[key] = document


def _children(cluster: Cluster) -> Children:
    """Return the children in the cluster, except those of the kinds served here, which have children themselves."""
    owned = [desired(child) for _, parent in cluster.parents() for child in cluster.children(parent)]
    return {key_of(c): c for c in owned if kind_of(c) is None}


def summary(result: list[ChildDifference]) -> str:
    if not result:
        return "Nothing changes."
    changed = "1 child changes" if len(result) == 1 else f"{len(result)} children change"
    felt = [] if DISRUPTIVE & {d.effect for d in result} else ["no running pod restarts"]
    for effect, words in _FELT.items():
        if names := [difference.name for difference in result if difference.effect is effect]:
            felt.append(words.format(", ".join(names)))
    return f"{changed}; {' and '.join(felt)}."


DISRUPTIVE = {*_ENDS_PODS, Effect.STOP}
_FELT = {
    Effect.RESTART: "the pods of {} restart",
    Effect.RECREATE: "all pods of {} stop before new ones start",
    Effect.STOP: "the pods of {} stop",
    Effect.DATA: "the data of {} is deleted",
}
