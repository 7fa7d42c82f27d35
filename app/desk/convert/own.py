"""Convert users' own workloads, with the objects around them, to a family; each value is in the account."""

import copy
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from app.desk.convert.ownllmkube import LLMKube
from app.desk.convert.targets import NEW, KServe, Llmaz, OwnTarget, put, relabel, shown, untooled
from app.desk.convert.translate import Entry, Translation
from app.desk.convert.workloads import DATA, is_own, read
from app.desk.files.manifests import Manifest
from app.kube.base import Json
from app.kube.merge import find

TARGETS: dict[str, type[OwnTarget]] = {target.family: target for target in (LLMKube, Llmaz, KServe)}


def translate_own(manifests: Sequence[Manifest], to: str, result: Translation, *, renamed: bool = True) -> None:
    """Convert all workloads among the manifests. What is around them stays, or is written for the new pods, too.

    ``renamed``: the workloads run, so that their names are taken.
    """
    around = [manifest for manifest in manifests if not is_own(manifest)]
    beside = {one: [here for here in around if _refers(here, one)] for one in manifests if is_own(one)}
    numbers = Counter(one for several in beside.values() for one in several)
    for manifest in filter(is_own, manifests):
        mine, labels = beside[manifest], _labels(manifest)
        own = {key for one in mine for key in _selector(one)}
        own |= {*(find(manifest.document, ("spec", "selector", "matchLabels")) or {})}
        ports: frozenset[Any] = frozenset(port.get("targetPort", port["port"]) for one in mine for port in _ports(one))
        target = TARGETS[to](read(manifest, frozenset(own), ports), renamed=renamed)
        target.make(result)
        if not target.documents:
            continue
        if renamed:
            result.steps.append(_kubectl(manifest, f"wait --for=condition=Ready {_address(target)} --timeout=60m"))
        for one in mine:
            if numbers[one] == 1:
                _move(one, target, {key: labels[key] for key in own & labels.keys()}, result)
            elif not any(entry.manifest is one for entry in result.lost):
                result.lost.append(Entry(one, (), one.document, reason=_SHARED))
    told = {entry.manifest for entry in (*result.lost, *result.carried, *result.defaults)}
    result.defaults += [Entry(one, (), one.document, reason=_STAYS) for one in around if one not in told]


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


def _copy(one: Manifest, target: OwnTarget, own: Json) -> Json:
    copied: Json = {"apiVersion": one.api_version, "kind": one.kind, "metadata": {"name": one.name + NEW}}
    copied["spec"] = copy.deepcopy(one.document["spec"])
    for part in ("namespace", "labels", "annotations"):
        if kept := untooled(one.document["metadata"].get(part)):
            copied["metadata"][part] = kept
    if _path(one)[-1] == "scaleTargetRef":
        served = target.documents[-1]
        put(copied, _path(one), {"apiVersion": served["apiVersion"], "kind": served["kind"], "name": target.name})
    else:
        relabel([copied["spec"], *copied["spec"].values()], own, target.selector())
    return copied
