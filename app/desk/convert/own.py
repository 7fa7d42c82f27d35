"""Convert users' own workloads, with the objects around them, to a family; each value is in the account."""

import copy
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from app.desk.convert.ownllmkube import LLMKube
from app.desk.convert.ownsecrets import without_secrets
from app.desk.convert.targets import NEW, KServe, Llmaz, OwnTarget, put, relabel, shown, untooled
from app.desk.convert.translate import Entry, Translation
from app.desk.convert.workloads import DATA, is_own, read
from app.desk.files.manifests import Manifest, ManifestError
from app.kube import field
from app.kube.base import Json
from app.kube.embedded.checks import TypeCheck
from app.kube.merge import find

TARGETS: dict[str, type[OwnTarget]] = {target.family: target for target in (LLMKube, Llmaz, KServe)}


def translate_own(manifests: Sequence[Manifest], to: str, result: Translation, *, renamed: bool = True) -> None:
    """Convert all workloads among the manifests. What is around them stays, or is written for the new pods, too.

    ``renamed``: the workloads run, so that their names are taken.
    """
    for manifest in manifests:
        _refuse_malformed(manifest)
    manifests = [_without_secrets(m, result, renamed=renamed) if is_own(m) else m for m in manifests]
    others = [manifest for manifest in manifests if not is_own(manifest)]
    beside = {
        workload: [other for other in others if _refers(other, workload)] for workload in manifests if is_own(workload)
    }
    numbers = Counter(other for several in beside.values() for other in several)
    for manifest in filter(is_own, manifests):
        mine, labels = beside[manifest], _labels(manifest)
        selected = {key for other in mine for key in _selector(other)}
        selected |= {*(find(manifest.document, ("spec", "selector", "matchLabels")) or {})}
        ports: frozenset[Any] = frozenset(
            port.get("targetPort", port["port"]) for other in mine for port in _ports(other)
        )
        target = TARGETS[to](read(manifest, frozenset(selected), ports), renamed=renamed)
        target.make(result)
        if not target.documents:
            continue
        if renamed:
            result.steps.append(_kubectl(manifest, f"wait --for=condition=Ready {_address(target)} --timeout=60m"))
        for other in mine:
            if numbers[other] == 1:
                _move(other, target, {key: labels[key] for key in selected & labels.keys()}, result)
            elif not any(entry.manifest is other for entry in result.lost):
                result.lost.append(Entry(other, (), other.document, reason=_SHARED))
    reported = {entry.manifest for entry in (*result.lost, *result.carried, *result.defaults)}
    result.defaults += [Entry(other, (), other.document, reason=_STAYS) for other in others if other not in reported]


def _without_secrets(manifest: Manifest, result: Translation, *, renamed: bool) -> Manifest:
    """Return a workload without what is secret; the first step is to make the Secret that its new pods read."""
    changed, withheld = without_secrets(manifest, f"{manifest.name}{NEW if renamed else ''}-env")
    result.lost += withheld.lost
    if withheld.keys:
        result.steps.append(_kubectl(manifest, withheld.command()))
    return changed


_SELECTOR, _POD = ("spec.selector", "LabelSelector"), ("spec.template", "PodTemplateSpec")
_PARTS: dict[str, Sequence[tuple[str, str]]] = {
    "Deployment": (_POD, _SELECTOR),
    "StatefulSet": (_POD, _SELECTOR, ("spec.volumeClaimTemplates", "PersistentVolumeClaimTemplate")),
    "Service": (("spec", "ServiceSpec"),),
    "HorizontalPodAutoscaler": (("spec", "HorizontalPodAutoscalerSpec"),),
    "ScaledObject": (("spec.scaleTargetRef", "CrossVersionObjectReference"),),
    "PodDisruptionBudget": (_SELECTOR,),
    "PodMonitor": (_SELECTOR,),
    "NetworkPolicy": (("spec.podSelector", "LabelSelector"),),
}
"""Places of Kubernetes' own types that are read, by kind; a list has them as items."""
_OBJECTS = (
    "metadata",
    "metadata.labels",
    "metadata.annotations",
    "spec",
    "spec.strategy",
    "spec.strategy.rollingUpdate",
)
"""Places at which every kind has an object, if anything."""
_NAMED = ("", "spec.volumeClaimTemplates")


def _refuse_malformed(manifest: Manifest) -> None:
    """Raise :class:`ManifestError` for the first value that no API server takes: it cannot be converted either."""
    type_check = TypeCheck()
    for place in _OBJECTS:
        path, value = _value(manifest.document, place)
        if value is not None and not isinstance(value, dict):
            type_check.errors.append(field.type_invalid(path, value, "must be an object"))
    for place, type_name in _PARTS.get(manifest.kind, ()):
        for path, value in _values(manifest.document, place):
            type_check.check(value, type_name, path)
    for place in _NAMED:
        for path, value in _values(manifest.document, place):
            if not isinstance(value, dict) or not isinstance(find(value, ("metadata", "name")), str):
                type_check.errors.append(field.required(path.child("metadata", "name")))
    for error in type_check.errors[:1]:
        raise ManifestError(str(error), manifest.file, *manifest.position(error.path))


def _value(document: Json, place: str) -> tuple[field.Path, Any]:
    names: list[str] = [name for name in place.split(".") if name]
    value: Any = document
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return field.Path().child(*names), value


def _values(document: Json, place: str) -> Iterator[tuple[field.Path, Any]]:
    """Yield the value at a place, or the items of a list there."""
    path, value = _value(document, place)
    if isinstance(value, list):
        yield from path.each(value)
    elif value is not None:
        yield path, value


_SHARED = "it finds the pods of several workloads, and their new pods have no label in common: give them one to find"
_STAYS = "it stays as it is"


def _namespace(manifest: Manifest) -> str:
    return str((manifest.document.get("metadata") or {}).get("namespace") or "")


def _kubectl(manifest: Manifest, words: str) -> str:
    return f"kubectl {f'--namespace {_namespace(manifest)} ' if _namespace(manifest) else ''}{words}"


def _address(target: OwnTarget) -> str:
    document = target.documents[-1]
    return f"{document['kind'].lower()}s.{document['apiVersion'].partition('/')[0]}/{document['metadata']['name']}"


def _path(one: Manifest) -> tuple[str, ...]:
    """Return the place at which an object of a known kind has its pods' labels, or names their workload."""
    return tuple(DATA.beside.get(one.kind, "").split("."))


def _selector(one: Manifest) -> Json:
    return {} if _path(one)[-1] in ("", "scaleTargetRef") else find(one.document, _path(one)) or {}


def _ports(one: Manifest) -> list[Json]:
    return (find(one.document, ("spec", "ports")) or []) if one.kind == "Service" else []


def _labels(workload: Manifest) -> Json:
    return find(workload.document, ("spec", "template", "metadata", "labels")) or {}


def _refers(one: Manifest, workload: Manifest) -> bool:
    if _namespace(one) != _namespace(workload):
        return False
    if _path(one)[-1] == "scaleTargetRef":
        named = find(one.document, _path(one)) or {}
        return (named.get("kind", "Deployment"), named.get("name")) == (workload.kind, workload.name)
    return bool(_selector(one)) and _selector(one).items() <= _labels(workload).items()


def _move(one: Manifest, target: OwnTarget, own: Json, result: Translation) -> None:
    """Patch a Service when the new pods are ready; copy for them what scales, scrapes or protects the pods."""
    if one.kind == "Service":
        result.steps.append(
            _kubectl(one, f"patch services.v1. {one.name} --type=json --patch '{_patch(one, target, result)}'")
        )
        result.defaults.append(Entry(one, (), one.document, reason=_STAYS))
    elif one.kind == "PodMonitor" and target.makes_monitor:
        result.lost.append(Entry(one, (), one.document, reason=f"{target.title} makes a PodMonitor of its own"))
    elif target.scaled_by(one.document):
        result.carried.append(Entry(one, (), one.document, (f"{shown(target.documents[-1])} spec.autoscaling",)))
    else:
        copied = _copy(one, target, own)
        result.documents.append(copied)
        result.carried.append(Entry(one, (), one.document, (shown(copied),)))


def _patch(one: Manifest, target: OwnTarget, result: Translation) -> str:
    """Return the patch of a Service: a new selector as a whole, and ports that are others in the new pods."""
    patch: list[Json] = [{"op": "replace", "path": "/spec/selector", "value": target.selector()}]
    for place, port in enumerate(_ports(one)):
        old: int | str = port.get("targetPort") or port["port"]
        new = target.port_of(old)
        if new is None:
            result.lost.append(
                Entry(one, ("spec", "ports", place), port, reason=f"the new pods do not have port {old}")
            )
        elif new != old:
            patch.append({"op": "add", "path": f"/spec/ports/{place}/targetPort", "value": new})
    return json.dumps(patch)


def _copy(manifest: Manifest, target: OwnTarget, own: Json) -> Json:
    copied: Json = {
        "apiVersion": manifest.api_version,
        "kind": manifest.kind,
        "metadata": {"name": manifest.name + NEW},
    }
    copied["spec"] = copy.deepcopy(manifest.document["spec"])
    for part in ("namespace", "labels", "annotations"):
        if values := untooled(manifest.document["metadata"].get(part)):
            copied["metadata"][part] = values
    if _path(manifest)[-1] == "scaleTargetRef":
        served = target.documents[-1]
        put(copied, _path(manifest), {"apiVersion": served["apiVersion"], "kind": served["kind"], "name": target.name})
    else:
        relabel([copied["spec"], *copied["spec"].values()], own, target.selector())
    return copied
