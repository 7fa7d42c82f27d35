"""Pod templates that stay as they were applied: neither a release nor a change of hands restarts a pod.

Each workload carries a digest of the inputs that its template was made from. While they are the same, a template that
would be written otherwise by now was changed by a release, not by a user: the one on record is sent again, with a
digest of the one that it stands for. As soon as a change of the inputs makes that another one, it rolls out.

A workload without that digest, or with one of another format, was made by another operator or an earlier release. What
differs there is taken for a default of theirs and kept in the same way, unless the user has changed the parent since:
the template on record, or where Metacontroller never wrote one, the one that is observed.
Source: docs/decisions/0017 and docs/migration.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import orjson

from app.hooks.kept import Kept
from app.hooks.keptfields import (
    FIELDS,
    TEMPLATES,
    claim,
    covers,
    differences,
    part_to_keep,
    running_template,
    template_of,
    union,
    without_rights,
)
from app.hooks.protocol import Inputs, Parent, observed_children
from app.hooks.response import is_sendable
from app.kube.base import Json
from app.kube.conditions import MESSAGE_MAX
from app.kube.names import LAST_APPLIED
from app.kube.objects import ObservedObject, last_applied
from app.settings import Settings

KEPT = "modelhooks.dev/kept-template"
"""Annotation of a workload whose pod template is kept: the digest of the one that it stands for."""

INPUTS = "modelhooks.dev/template-inputs"
"""Annotation of every workload: the digest of what its pod template was made from."""
FORMAT = "2-"
"""Prefix of digests. A release that takes other inputs changes it, as no digest of an earlier one can match then."""

ROLLOUT = "modelhooks.dev/rollout"
"""Annotation of a parent; ``Latest`` rolls out at once what would wait otherwise."""
LATEST = "Latest"

TAKEN_OVER = "modelhooks.dev/taken-over"
"""Annotation of a workload that is kept as another operator left it, of which our record has only a part."""

MUST_NOT_WAIT: tuple[str, ...] = ()
"""Changes of pod templates that roll out with the release: security fixes, each described in docs/security.md."""

WAITS = f"note: a newer pod template waits for the next change to the pods, or for the annotation {ROLLOUT}={LATEST}"
"""Said in ``Ready`` of a parent with a template that is kept, with the fields that differ."""
MAX_FIELDS = 5
"""Fields that the note names."""


def inputs(parent: Parent, family: str, template_inputs: Mapping[str, Any], settings: Settings) -> Inputs:
    """The inputs of a sync. ``template_inputs``: what the kind makes templates from besides the spec, JSON or structs.

    What is empty leaves no trace, so that a release may look at more than the one before.
    """
    parts = {"spec": parent.spec, "settings": settings.chosen(family), "mustNotWait": MUST_NOT_WAIT, **template_inputs}
    text = _SORTED.encode({name: part for name, part in parts.items() if part})
    requested = (parent.metadata.annotations or {}).get(ROLLOUT) == LATEST
    return Inputs(
        FORMAT + _shortened(text), _is_settled(parent), requested or not settings.keep_pod_templates, requested
    )


def keep_templates(
    desired: Sequence[Json], parent_inputs: Inputs, children: msgspec.Struct
) -> tuple[list[Json], list[str]]:
    """Return the desired children with the templates that are to stay, and the fields that wait for newer ones."""
    there = {
        (child.kind, child.metadata.name): child
        for key, group in observed_children(children)
        if key.partition(".")[0] in TEMPLATES
        for child in group.values()
    }
    waiting = []

    def judged(wanted: Json) -> Json:
        if isinstance(wanted, Kept) or template_of(wanted) is None:
            return wanted
        found, stamped = there.get((wanted["kind"], wanted["metadata"]["name"])), _stamped(wanted, parent_inputs)
        if found is None:
            return stamped
        kept = _kept(stamped, found, parent_inputs)
        if KEPT in kept["metadata"]["annotations"]:
            waiting.extend(_waiting(kept, wanted))
        return kept

    return list(map(judged, desired)), waiting


def _waiting(kept: Json, wanted: Json) -> list[str]:
    """The fields of a kept template, as in ``Deployment chat: spec.containers[main].image``."""
    rule = FIELDS[TEMPLATES[wanted["kind"]]]
    found = differences(template_of(kept) or {}, template_of(wanted), rule)
    return [f"{wanted['kind']} {wanted['metadata']['name']}: {difference.path}" for difference in found]


def noted(status: Any, waiting: Sequence[str]) -> Json:
    """The status with :data:`WAITS` and the fields in the message of its ``Ready``, which is not changed otherwise."""
    told: Json = msgspec.to_builtins(status)
    rest = len(waiting) - MAX_FIELDS
    note = f"{WAITS} ({', '.join(waiting[:MAX_FIELDS])}{f', and {rest} more' if rest > 0 else ''})"
    for condition in told.get("conditions") or []:
        if condition["type"] == "Ready":
            said = condition.get("message", "").partition(WAITS)[0].removesuffix("; ")
            said = said[: MESSAGE_MAX - len(note) - len("; ")]
            condition["message"] = "; ".join(filter(None, [said, note]))
    return told


def stays(child: ObservedObject, wanted: Mapping[str, Any], parent_inputs: Inputs) -> bool:
    """Whether the template on the child's record is kept in place of the wanted one, should they differ."""
    template, recorded = template_of(wanted), _recorded(child)
    if template is None or not _is_unchanged(child, template, parent_inputs):
        return False
    return recorded is None or _may_stay(recorded, wanted)


def _is_unchanged(child: ObservedObject, template: Json, parent_inputs: Inputs) -> bool:
    """Whether no user asked for other pods since the child's template was made."""
    if parent_inputs.latest:
        return False
    digest = child.annotations.get(INPUTS)
    if digest is None or (digest and not digest.startswith(FORMAT)):  # of another operator or an earlier release
        unchanged = parent_inputs.settled
    else:
        unchanged = digest == parent_inputs.digest
    return unchanged or child.annotations.get(KEPT) == _digest(template)


def _may_stay(template: Json, wanted: Mapping[str, Any]) -> bool:
    """Whether a template differs from the wanted one in nothing but what a release may change."""
    found = differences(template, template_of(wanted), FIELDS[TEMPLATES[wanted["kind"]]])
    return all(difference.allowed for difference in found)


def without_template(wanted: Mapping[str, Any]) -> Json:
    """A workload but for its pod template."""
    field_ = TEMPLATES[wanted["kind"]]
    return {**wanted, "spec": {key: value for key, value in wanted.get("spec", {}).items() if key != field_}}


def _stamped(wanted: Json, parent_inputs: Inputs) -> Json:
    """The workload with the digest of its inputs."""
    annotations = {**(wanted["metadata"].get("annotations") or {}), INPUTS: parent_inputs.digest}
    if parent_inputs.requested and wanted["kind"] == "Service":
        annotations[ROLLOUT] = LATEST
    return _annotated(wanted, annotations)


def _annotated(workload: Json, annotations: Json) -> Json:
    return {**workload, "metadata": {**workload["metadata"], "annotations": annotations}}


def _kept(wanted: Json, child: ObservedObject, inputs_: Inputs) -> Json:
    """The workload as it is to be sent: with the template on record, or with the wanted one."""
    if last_applied(child) is None and LAST_APPLIED in child.annotations:  # one that cannot be read says nothing
        return wanted
    recorded, template = _recorded(child), template_of(wanted)
    if recorded == template:
        return wanted
    if recorded is not None and not is_sendable(recorded):  # nor any answer's
        recorded = None
    if recorded is not None and TAKEN_OVER not in child.annotations:
        return _with_template(wanted, recorded, {KEPT: _digest(template)}) if stays(child, wanted, inputs_) else wanted
    running = running_template(child)
    return wanted if running is None else _taken_over(wanted, child, recorded, running, inputs_)


def _taken_over(wanted: Json, child: ObservedObject, recorded: Json | None, running: Json, inputs_: Inputs) -> Json:
    """A workload of another operator: as far as it runs as the plan has it, or may have it otherwise.

    Once it is to change, or where it is no template of ours, what the plan does not have is claimed, so that the answer
    after this one takes it away. Where a key is twice in a list that runs, no part can be sent without changing it.
    """
    template, merges = template_of(wanted) or {}, is_sendable(running)
    part = recorded or part_to_keep(running, template, FIELDS[TEMPLATES[wanted["kind"]]]) or {}
    ours = _may_stay(part, wanted)
    if ours and recorded is None and merges and (inputs_.latest or covers(running, template)):
        return wanted
    if ours and _is_unchanged(child, template, inputs_):
        notes = {KEPT: _digest(template), TAKEN_OVER: "true"}
        return _with_template(wanted, part if merges else None, notes)
    claims = claim(running, template)
    if ours and claims is None:
        return wanted
    claimed = union(part if ours else without_rights(template, running), claims)
    return _with_template(wanted, claimed, {INPUTS: ""}) if is_sendable(claimed) and claimed != template else wanted


def _with_template(wanted: Json, template: Json | None, notes: Mapping[str, str]) -> Json:
    """The workload with another template, or without one, which leaves the running one as it is."""
    result = without_template(wanted)
    if template is not None:
        result["spec"][TEMPLATES[wanted["kind"]]] = template
    return _annotated(result, {**wanted["metadata"]["annotations"], **notes})


def _recorded(child: ObservedObject) -> Json | None:
    """The template on a child's record; ``None`` where that has none with containers."""
    template = template_of(last_applied(child) or {}) or {}
    pods = template.get("workerTemplate", template)
    spec = pods.get("spec") if isinstance(pods, dict) else None
    return template if isinstance(spec, dict) and spec.get("containers") else None


def _digest(template: Any) -> str:
    return _shortened(orjson.dumps(template, option=orjson.OPT_SORT_KEYS) + "".join(MUST_NOT_WAIT).encode())


_SORTED = msgspec.json.Encoder(order="sorted")


def _shortened(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:32]


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
