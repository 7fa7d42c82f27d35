"""Pod templates that stay as they were applied: neither a release nor a change of hands restarts a pod.

Each workload carries a digest of the inputs that its template was made from. While they are the same, a template that
would be written otherwise by now was changed by a release, not by a user: the one on record is sent again, with a
digest of the one that it stands for. As soon as a change of the inputs makes that another one, it rolls out.

A workload without that digest was made by another operator, or by a release that wrote none. What differs there is
taken for a default of theirs and kept in the same way, unless the user has changed the parent since: the template on
record, or where Metacontroller never wrote one, the one that is observed.
Source: docs/decisions/0017 and docs/migration.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec
import orjson
from msgspec import Raw

from app.hooks.kept import Kept
from app.hooks.protocol import Inputs, Parent, SyncResponse, observed_children
from app.hooks.response import is_sendable
from app.hooks.sendable import merge_key
from app.kube.base import Json
from app.kube.conditions import MESSAGE_MAX
from app.kube.limits import depth_exceeds
from app.kube.names import LAST_APPLIED
from app.kube.objects import ObservedObject, last_applied
from app.kube.stored import without_nulls
from app.settings import Settings

KEPT = "modelhooks.dev/kept-template"
"""Annotation of a workload whose pod template is kept: the digest of the one that it stands for."""

INPUTS = "modelhooks.dev/template-inputs"
"""Annotation of every workload: the digest of what its pod template was made from."""

ROLLOUT = "modelhooks.dev/rollout"
"""Annotation of a parent; ``Latest`` rolls out at once what would wait otherwise."""
LATEST = "Latest"

MUST_NOT_WAIT: tuple[str, ...] = ()
"""Changes of pod templates that roll out with the release: security fixes, each described in docs/security.md."""

WAITS = f"note: a newer pod template waits for the next change to the pods, or for the annotation {ROLLOUT}={LATEST}"
"""Said in ``Ready`` of a parent with a template that is kept."""

_TEMPLATES = {"Deployment": "template", "LeaderWorkerSet": "leaderWorkerTemplate", "Service": "workloadTemplate"}
"""The field of a kind's spec of which every change replaces pods. The core Service has none of that name."""


def inputs(parent: Parent, family: str, template_inputs: Mapping[str, Any], settings: Settings) -> Inputs:
    """The inputs of a sync. ``template_inputs``: what the kind makes templates from besides the spec, JSON or structs.

    What is empty leaves no trace, so that a release may look at more than the one before.
    """
    parts = {"spec": parent.spec, "settings": settings.chosen(family), "mustNotWait": MUST_NOT_WAIT, **template_inputs}
    text = _SORTED.encode({name: part for name, part in parts.items() if part})
    asked = (parent.metadata.annotations or {}).get(ROLLOUT) == LATEST
    return Inputs(_shortened(text), _is_settled(parent), asked or not settings.keep_pod_templates, asked)


def keep_templates(
    answer: SyncResponse, parent_inputs: Inputs, children: msgspec.Struct, body: bytes
) -> tuple[SyncResponse, bool]:
    """The answer with the templates that are to stay, and whether there is one that waits.

    ``body`` is the request, for what nobody else reads of it.
    """
    there = {
        (child.kind, child.metadata.name): child
        for key, group in observed_children(children)
        if key.partition(".")[0] in _TEMPLATES
        for child in group.values()
    }
    observed = _Observed(body)

    def judged(child: Any, wanted: Json) -> Json:
        if _template(wanted) is None or isinstance(child, Kept):
            return wanted
        found, stamped = there.get((wanted["kind"], wanted["metadata"]["name"])), _stamped(wanted, parent_inputs)
        if found is None or parent_inputs.latest:
            return stamped
        return _kept(stamped, found, observed, parent_inputs)

    kept = list(map(judged, answer.children, msgspec.to_builtins(answer.children)))
    waits = any(KEPT in (child["metadata"].get("annotations") or {}) for child in kept)
    return SyncResponse(answer.status, kept, answer.resync_after_seconds), waits


def noted(status: Any) -> Json:
    """The status with :data:`WAITS` in the message of its ``Ready``, which says nothing else than before."""
    told: Json = msgspec.to_builtins(status)
    for condition in told.get("conditions") or []:
        said = condition.get("message", "")[: MESSAGE_MAX - len(WAITS) - len("; ")]
        if condition["type"] == "Ready" and WAITS not in said:
            condition["message"] = "; ".join(filter(None, [said, WAITS]))
    return told


def stays(child: ObservedObject, wanted: Mapping[str, Any], parent_inputs: Inputs) -> bool:
    """Whether the child's template is kept in place of the wanted one, should they differ."""
    template = _template(wanted)
    if template is None or parent_inputs.latest:
        return False
    made_from = child.annotations.get(INPUTS, parent_inputs.digest if parent_inputs.settled else None)
    return made_from == parent_inputs.digest or child.annotations.get(KEPT) == _digest(template)


def without_template(wanted: Mapping[str, Any]) -> Json:
    """A workload but for its pod template."""
    field_ = _TEMPLATES[wanted["kind"]]
    return {**wanted, "spec": {key: value for key, value in wanted.get("spec", {}).items() if key != field_}}


def _stamped(wanted: Json, parent_inputs: Inputs) -> Json:
    """The workload with the digest of its inputs."""
    annotations = {**(wanted["metadata"].get("annotations") or {}), INPUTS: parent_inputs.digest}
    if parent_inputs.asked and wanted["kind"] == "Service":
        annotations[ROLLOUT] = LATEST
    return _annotated(wanted, annotations)


def _annotated(workload: Json, annotations: Json) -> Json:
    return {**workload, "metadata": {**workload["metadata"], "annotations": annotations}}


def _kept(wanted: Json, child: ObservedObject, observed: _Observed, parent_inputs: Inputs) -> Json:
    template, record = _template(wanted), last_applied(child)
    if record is None and LAST_APPLIED in child.annotations:  # one that cannot be read says nothing
        return wanted
    recorded = _template(record or {})
    if recorded is not None:
        stay = recorded != template and stays(child, wanted, parent_inputs)
        return _with_template(wanted, recorded) if stay else wanted
    running = observed.template(child)
    if running is None or (_covers(running, template) and is_sendable(running)):
        return wanted
    if stays(child, wanted, parent_inputs):
        return _with_template(wanted, running)
    return wanted if is_sendable(running) else _claimed(wanted, running)


def _with_template(wanted: Json, template: Json) -> Json:
    """The workload with another template, or without one where it cannot be sent: then it stays as it is, too."""
    result = without_template(wanted)
    if is_sendable(template):
        result["spec"][_TEMPLATES[wanted["kind"]]] = template
    return _annotated(result, {**wanted["metadata"]["annotations"], KEPT: _digest(_template(wanted))})


def _claimed(wanted: Json, running: Json) -> Json:
    """The workload with the running template, of which every list has each key once, as the merge would have it.

    It is to change. But where a key was twice, what is merged now has fields of both, which may exclude each other.
    Once these are on record, the next answer can take them away; what they were made from, nobody knows.
    """
    single = _single(running)
    if not is_sendable(single):
        return wanted
    claimed = {**wanted, "spec": {**wanted["spec"], _TEMPLATES[wanted["kind"]]: single}}
    return _annotated(claimed, {**wanted["metadata"]["annotations"], INPUTS: ""})


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


def _digest(template: Any) -> str:
    return _shortened(orjson.dumps(template, option=orjson.OPT_SORT_KEYS) + "".join(MUST_NOT_WAIT).encode())


_SORTED = msgspec.json.Encoder(order="sorted")


def _shortened(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:32]


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
