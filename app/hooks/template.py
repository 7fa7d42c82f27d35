"""Pod templates that stay as they were applied: a change of hands restarts no pod. Source: docs/migration.md.

A workload that another operator made carries no record of Metacontroller. Where its pods differ from what would be
written here, that operator wrote its defaults, so the template is sent back as it is observed, with a digest beside it.
While the same would be written, the record's template is the answer; as soon as the user changes something, the new
one is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import orjson
from msgspec import Raw

from app.hooks.protocol import Parent, SyncResponse, observed_children
from app.hooks.response import is_sendable
from app.hooks.sendable import merge_key
from app.kube.limits import depth_exceeds
from app.kube.names import LAST_APPLIED
from app.kube.objects import ObservedObject, annotations_of, last_applied
from app.kube.stored import without_nulls

KEPT = "modelhooks.dev/kept-template"
"""Annotation of a workload whose pod template is kept: the digest of the one that it stands for."""

_TEMPLATES = {"Deployment": "template", "LeaderWorkerSet": "leaderWorkerTemplate"}
"""The field of a kind's spec of which every change replaces pods."""

Json = dict[str, Any]


def keep_templates(answer: SyncResponse, parent: Parent, children: msgspec.Struct, body: bytes) -> SyncResponse:
    """The answer with the templates that are to stay; ``body`` is the request, for what nobody else reads of it."""
    candidates = dict(_candidates(children))
    if not candidates:
        return answer
    kept = orjson.loads(msgspec.json.encode(answer.children))
    observed = _Observed(body)
    settled = _is_settled(parent)
    for position, wanted in enumerate(kept):
        child = candidates.get((wanted["kind"], wanted["metadata"]["name"]))
        if child is not None:
            kept[position] = _kept(wanted, child, observed, settled=settled)
    return SyncResponse(answer.status, kept, answer.resync_after_seconds)


def stands_for(child: ObservedObject, wanted: Mapping[str, Any]) -> bool:
    """Whether the child's template is kept in place of the wanted one."""
    if KEPT.encode() not in bytes(child.metadata.annotations):
        return False
    template = _template(wanted)
    return template is not None and annotations_of(child).get(KEPT) == _digest(template)


def without_template(wanted: Mapping[str, Any]) -> Json:
    """A workload but for its pod template."""
    field_ = _TEMPLATES[wanted["kind"]]
    return {**wanted, "spec": {key: value for key, value in wanted["spec"].items() if key != field_}}


def _candidates(children: msgspec.Struct) -> Iterator[tuple[tuple[str, str], ObservedObject]]:
    """Workloads without a record of their template, and those whose template is kept already."""
    for key, group in observed_children(children):
        if key.partition(".")[0] in _TEMPLATES:
            for child in group.values():
                annotations = bytes(child.metadata.annotations)
                if KEPT.encode() in annotations or not _is_recorded(annotations):
                    yield (child.kind, child.metadata.name), child


def _is_recorded(annotations: bytes) -> bool:
    """Whether a record with a pod template is among them, without reading them all. Its quotes are escaped."""
    return LAST_APPLIED.encode() in annotations and b'emplate\\":' in annotations


def _kept(wanted: Json, child: ObservedObject, observed: _Observed, *, settled: bool) -> Json:
    template = _template(wanted)
    if template is None:
        return wanted
    if stands_for(child, wanted):
        return _with_template(wanted, _template(last_applied(child) or {}), _digest(template))
    if not _is_foreign(child):
        return wanted
    running = observed.template(child)
    if running is None or (_covers(running, template) and is_sendable(running)):
        return wanted
    if settled and KEPT not in annotations_of(child):
        return _with_template(wanted, running, _digest(template))
    return wanted if is_sendable(running) else _claimed(wanted, running)


def _is_foreign(child: ObservedObject) -> bool:
    """Whether nothing was ever sent for the template; a record that cannot be read says nothing about that."""
    record = last_applied(child)
    if record is None:
        return LAST_APPLIED not in annotations_of(child)
    spec = record.get("spec", {})
    return isinstance(spec, dict) and _TEMPLATES[child.kind] not in spec


def _with_template(wanted: Json, template: Json | None, digest: str) -> Json:
    """The workload with another template, or without one where it cannot be sent: then it stays as it is, too."""
    result = without_template(wanted)
    if template is not None and is_sendable(template):
        result["spec"][_TEMPLATES[wanted["kind"]]] = template
    metadata = wanted["metadata"]
    annotations = {**(metadata.get("annotations") or {}), KEPT: digest}
    return {**result, "metadata": {**metadata, "annotations": annotations}}


def _claimed(wanted: Json, running: Json) -> Json:
    """The workload with the running template, of which every list has each key once, as the merge would have it.

    It is to change. But where a key was twice, what is merged now has fields of both, which may exclude each other.
    Once these are on record, the next answer can take them away.
    """
    single = _single(running)
    if not is_sendable(single):
        return wanted
    return {**wanted, "spec": {**wanted["spec"], _TEMPLATES[wanted["kind"]]: single}}


def _single(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _single(item) for key, item in value.items()}
    key = merge_key(value) if isinstance(value, list) and value else None
    if key is None:
        return value
    return list({str(item[key]): _single(item) for item in value}.values())


def _template(workload: Mapping[str, Any]) -> Json | None:
    spec = workload.get("spec")
    template = spec.get(_TEMPLATES.get(workload.get("kind", ""), "")) if isinstance(spec, dict) else None
    return template if isinstance(template, dict) else None


def _digest(template: Json) -> str:
    return hashlib.sha256(orjson.dumps(template, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


def _covers(running: Any, wanted: Any) -> bool:
    """Whether Metacontroller's merge would leave everything as it runs. What else is there, nobody takes away."""
    if isinstance(running, dict) and isinstance(wanted, dict):
        return all(key in running and _covers(running[key], value) for key, value in wanted.items())
    if isinstance(running, list) and isinstance(wanted, list):
        key = merge_key([*running, *wanted]) if running and wanted else None
        if key is not None:
            named = {str(item[key]): item for item in running}
            return all(str(item[key]) in named and _covers(named[str(item[key])], item) for item in wanted)
    return bool(running == wanted)


# What is read of the request only here.


class _Child(msgspec.Struct):
    spec: Raw = Raw(b"null")


class _Request(msgspec.Struct):
    children: dict[str, dict[str, _Child]]


_REQUEST = msgspec.json.Decoder(_Request)


class _Observed:
    """The observed templates in full, read at first use."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._children: dict[str, dict[str, _Child]] | None = None

    def template(self, child: ObservedObject) -> Json | None:
        """As the cluster has it, without nulls; ``None`` where there is none, or none that can be read."""
        if self._children is None:
            self._children = _REQUEST.decode(self._body).children
        group = self._children.get(f"{child.kind}.{child.api_version}") or {}
        found = next((item for key, item in group.items() if key.rpartition("/")[2] == child.metadata.name), None)
        if found is None or depth_exceeds(found.spec):
            return None
        try:
            spec = orjson.loads(bytes(found.spec))
        except orjson.JSONDecodeError:  # such as 1e400, which is skipped over where nobody reads it
            return None
        return _template({"kind": child.kind, "spec": without_nulls(spec)})


class _Generation(msgspec.Struct, rename="camel"):
    observed_generation: int | None = None


class _Status(_Generation):
    conditions: list[_Generation] | None = None


_STATUS = msgspec.json.Decoder(_Status)


def _is_settled(parent: Parent) -> bool:
    """Whether the operator before us saw the parent as it is now, as far as its status tells.

    If it did not, the user has changed something since, and waits for it.
    """
    try:
        status = _STATUS.decode(parent.status)
    except (msgspec.DecodeError, RecursionError):
        return True
    seen = [part.observed_generation for part in (status, *(status.conditions or ())) if part.observed_generation]
    return not seen or max(seen) >= (parent.metadata.generation or 0)
