"""The effect of a change on the children, as in ``modelhooks diff``."""

from __future__ import annotations

from collections.abc import Mapping

from app.cli import catalogue
from app.cli.changes import ABSENT, Change
from app.cli.diff import Children, Difference, NotComparable, applied, differences, effect_of, summary
from app.cli.diff import Effect as Meaning
from app.kube.base import Json
from app.studio.documents import objects, read, settings
from app.studio.models import CompareRequest, Comparison, Effect, FieldChange, ObjectChange

_EFFECTS: Mapping[Meaning, Effect] = {
    Meaning.RESTART: "rolls pods",
    Meaning.START: "starts",
    Meaning.STOP: "stops",
    Meaning.SCALE: "scales",
    Meaning.NONE: "in place",
    Meaning.WAITS: "in place",
    Meaning.DATA: "deletes data",
    Meaning.KEPT: "kept",
}
_RECREATED = "the pods stop, then new ones start"


def compare(asked: CompareRequest) -> Comparison:
    """Apply ``after`` where ``before`` has settled. Raises what ``modelhooks diff`` refuses."""
    if unreadable := read([*asked.before, *asked.after]).findings:
        raise NotComparable("\n".join(["a document that cannot be read:", *map(str, unreadable)]))
    old, new = (objects(documents, asked.namespace) for documents in (asked.before, asked.after))
    given = settings(asked.settings_before), settings(asked.settings_after)
    sides = [[*catalogue.installed([*old, *new]), *side] for side in (old, new)]
    return Comparison(**told(*applied(sides[0], sides[1], asked.namespace, settings=given)))


def told(before: Children, after: Children) -> Json:
    """The fields of a :class:`Comparison`."""
    found = differences(before, after)
    return {"objects": [_object(one, after) for one in found], "summary": summary(found)}


def _object(one: Difference, after: Children) -> ObjectChange:
    namespace, _, name = one.name.rpartition("/")
    child = after.get((one.kind, one.name), {})
    effect = _effect(one.effect, child)
    if effect == "in place" and one.action != "change":
        effect = "none"
    return ObjectChange(
        node=f"{one.kind} {one.name}",
        kind=one.kind.partition(".")[0],
        namespace=namespace,
        name=name,
        action=one.action,
        effect=effect,
        words=_RECREATED if effect == "recreates" else one.effect.value,
        fields=_fields(one, child),
    )


def _fields(one: Difference, child: Json) -> list[FieldChange]:
    return [_field(change, _effect(effect_of(one.kind, [change]), child)) for change in one.fields]


def _field(change: Change, effect: Effect) -> FieldChange:
    sides = {"before": change.old, "after": change.new}
    return FieldChange(path=str(change.path), effect=effect, **{k: v for k, v in sides.items() if v is not ABSENT})


def _effect(meaning: Meaning, child: Json) -> Effect:
    """Pods are replaced one by one, unless the Deployment says otherwise."""
    strategy = ((child.get("spec") or {}).get("strategy") or {}).get("type")
    return "recreates" if meaning is Meaning.RESTART and strategy == "Recreate" else _EFFECTS[meaning]
