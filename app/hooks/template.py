"""Pod templates that are kept, so that neither a release nor a migration restarts pods.

Each workload has an annotation with a digest of the inputs of its template. While they are the same, a different
template is due to a release, not to a user: the recorded one is sent again, with a digest of the one that it replaces.
As soon as a change of the inputs changes the template, it rolls out.

A workload without that digest, or with one of another format, was made by another operator or an earlier release.
Differences are taken for its defaults and kept in the same way, unless the user has changed the parent since: the
recorded template, or without a record of Metacontroller the observed one.
Source: decisions/0017 and docs/migration.md.
"""

import hashlib
from collections.abc import Mapping, Sequence

import msgspec
import orjson

from app.hooks import keptfields
from app.hooks.keptfields import Difference
from app.hooks.protocol import AnyRequest, Inputs, InterimTemplate, KeptTemplate, Parent
from app.hooks.readystatus import WAITS_NOTE
from app.hooks.sendable import is_sendable, sendable
from app.kube import podspec
from app.kube.base import Json
from app.kube.names import LAST_APPLIED
from app.kube.objects import ObservedObject, ObservedWorkload
from app.limits import MAX_NOTED_FIELDS
from app.settings import Settings

KEPT = "modelhooks.dev/kept-template"
"""Annotation of a workload whose pod template is kept: the digest of the template that it replaces."""

INPUTS = "modelhooks.dev/template-inputs"
"""Annotation of every workload: the digest of the inputs of its pod template."""
FORMAT = "4-"
"""Prefix of digests. A release with other inputs changes it, because earlier digests cannot match then."""

ROLLOUT = "modelhooks.dev/rollout"
"""Annotation of a parent; ``Latest`` rolls out kept templates at once."""
LATEST = "Latest"

TAKEN_OVER = "modelhooks.dev/taken-over"
"""Annotation of a workload that is kept as another operator left it; the record has only a part of it."""

MUST_NOT_WAIT: tuple[str, ...] = ()
"""Changes of pod templates that roll out with a release: security fixes, described in docs/security.md."""

WAITS = f"{WAITS_NOTE} for the next change to the pods, or for the annotation {ROLLOUT}={LATEST}"
"""Note in ``Ready`` of a parent with a kept template, with the fields that differ."""


TEMPLATES = {
    **{kind: podspec.TEMPLATES[kind] for kind in ("Deployment", "LeaderWorkerSet")},
    "Service": "workloadTemplate",
}
"""The field of a kind's spec whose changes replace pods. The core Service has no field of that name."""


def template_of(workload: Json) -> Json | None:
    spec = workload.get("spec")
    template = spec.get(TEMPLATES.get(workload.get("kind", ""), "")) if isinstance(spec, dict) else None
    return template if isinstance(template, dict) else None


def running_template(child: ObservedObject) -> Json | None:
    """Return the observed template without nulls; ``None`` if it is absent or cannot be decoded."""
    return child.running_template if isinstance(child, ObservedWorkload) else None


def inputs(parent: Parent, family: str, template_inputs: Mapping[str, object], settings: Settings) -> Inputs:
    """Build the inputs of a parent's pod templates: ``template_inputs``, and the spec, which is valid.

    Empty ones do not count, so that a release may add inputs.
    """
    parts = {"spec": parent.spec, "settings": settings.chosen(family), "mustNotWait": MUST_NOT_WAIT, **template_inputs}
    text = _SORTED.encode({name: part for name, part in parts.items() if part})
    requested = (parent.metadata.annotations or {}).get(ROLLOUT) == LATEST
    latest = requested or not settings.keep_pod_templates
    return Inputs(FORMAT + _shortened(text), _is_settled(parent), latest, requested)


def keep_template(child: Json, request: AnyRequest, inputs_: Inputs) -> Json:
    """Return a desired child with the digest of its template's inputs, and with the recorded template if it stays."""
    if template_of(child) is None:
        return child
    desired = stamped(child, inputs_)
    current = request.observed.get((child["kind"], child["metadata"]["name"]))
    return desired if current is None else _choose(desired, current, inputs_)


def may_stay(workload: Json, desired: Json) -> bool:
    """Report whether the pod template of a workload may be kept in place of the desired one, if no input changes."""
    return _may_stay(_differing(template_of(workload) or {}, desired))


def waiting_note(waiting: Sequence[str]) -> str:
    """Return the note with the fields of kept pod templates that wait."""
    rest = len(waiting) - MAX_NOTED_FIELDS
    return f"{WAITS} ({', '.join(waiting[:MAX_NOTED_FIELDS])}{f', and {rest} more' if rest > 0 else ''})"


def _is_unchanged(child: ObservedObject, template: Json, parent_inputs: Inputs) -> bool:
    """Report whether no user has changed the pods since the child's template was built."""
    if parent_inputs.latest:
        return False
    digest = child.annotations.get(INPUTS)
    if digest is None or (digest and not digest.startswith(FORMAT)):  # of another operator or an earlier release
        unchanged = parent_inputs.settled
    else:
        unchanged = digest == parent_inputs.digest
    return unchanged or child.annotations.get(KEPT) == _digest(template)


def _differing(template: Json, desired: Json) -> list[Difference]:
    return keptfields.differences(template, template_of(desired), keptfields.RULES[desired["kind"]])


def _may_stay(differing: Sequence[Difference]) -> bool:
    """Report whether a template differs from the desired one only in fields that a release may change."""
    return all(difference.allowed for difference in differing)


def stamped(desired: Json, parent_inputs: Inputs) -> Json:
    """Return a workload with the digest of its template's inputs."""
    annotations = {**(desired["metadata"].get("annotations") or {}), INPUTS: parent_inputs.digest}
    if parent_inputs.requested and desired["kind"] == "Service":
        annotations[ROLLOUT] = LATEST
    return _annotated(desired, annotations)


def _annotated(workload: Json, annotations: Json) -> Json:
    return {**workload, "metadata": {**workload["metadata"], "annotations": annotations}}


def _choose(desired: Json, child: ObservedObject, inputs_: Inputs) -> Json:
    """Return the workload with the recorded or with the desired template."""
    if child.record is None and LAST_APPLIED in child.annotations:  # a record that cannot be decoded
        return desired
    recorded, template = _recorded(child), template_of(desired) or {}
    if recorded == template:
        return desired
    if recorded is not None:
        recorded = sendable(recorded)  # a forged record may not be
    if recorded is not None and TAKEN_OVER not in child.annotations:
        if not _is_unchanged(child, template, inputs_) or not _may_stay(differing := _differing(recorded, desired)):
            return desired
        return _with_kept_template(desired, recorded, differing, {})
    running = running_template(child)
    return desired if running is None else _taken_over(desired, child, recorded, running, inputs_)


def _taken_over(desired: Json, child: ObservedObject, recorded: Json | None, running: Json, inputs_: Inputs) -> Json:
    """Return a workload of another operator with the part of its template that equals the plan, or may differ.

    Before a change, or if the template differs too much, fields that the plan lacks are claimed, and the next answer
    removes them. If a running list has a duplicate key, no part can be sent without changing it.
    """
    template, rule = template_of(desired) or {}, keptfields.RULES[desired["kind"]]
    part = recorded
    if part is None and not keptfields.lacks(running, template, rule):
        part = keptfields.part_to_keep(running, template, rule) or {}
    may_stay = part is not None and _may_stay(differing := _differing(part, desired))
    if may_stay:
        merges = is_sendable(running)
        if recorded is None and merges and (inputs_.latest or keptfields.covers(running, template)):
            return desired
        if _is_unchanged(child, template, inputs_):
            if merges:
                return _with_kept_template(desired, part, differing, {TAKEN_OVER: "true"})
            return _with_kept_template(desired, None, _differing({}, desired), {TAKEN_OVER: "true"})
    claims = keptfields.claim(running, template)
    if may_stay and claims is None:
        return desired
    claimed = keptfields.union(part if may_stay else keptfields.without_rights(template, running), claims)
    checked = None if claimed == template else sendable(claimed)
    return desired if checked is None else InterimTemplate(_with_template(desired, checked, {INPUTS: ""}))


def _with_kept_template(
    desired: Json, template: Json | None, differing: Sequence[Difference], notes: Mapping[str, str]
) -> KeptTemplate:
    workload = f"{desired['kind']} {desired['metadata']['name']}"
    child = KeptTemplate(_with_template(desired, template, {KEPT: _digest(template_of(desired)), **notes}))
    child.waiting = [f"{workload}: {difference.path}" for difference in differing]
    return child


def _with_template(desired: Json, template: Json | None, notes: Mapping[str, str]) -> Json:
    """Return the workload with another template; without one, which keeps the running one."""
    field_ = TEMPLATES[desired["kind"]]
    spec = {key: value for key, value in desired["spec"].items() if key != field_}
    if template is not None:
        spec[field_] = template
    return _annotated({**desired, "spec": spec}, {**desired["metadata"]["annotations"], **notes})


def _recorded(child: ObservedObject) -> Json | None:
    """Return the recorded template of a child; ``None`` without containers."""
    template = template_of(child.record or {}) or {}
    pods = template.get("workerTemplate", template)
    spec = pods.get("spec") if isinstance(pods, dict) else None
    return template if isinstance(spec, dict) and spec.get("containers") else None


def _digest(template: object) -> str:
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
    """Report whether the status is about the current generation; if not, the user expects a change to roll out."""
    try:
        status = _STATUS.decode(parent.status)
    except (msgspec.DecodeError, RecursionError):
        return True
    parts = (status, *(status.conditions or ()))
    generations = [part.observed_generation for part in parts if (part.observed_generation or 0) > 0]
    return not generations or max(generations) >= (parent.metadata.generation or 0)
