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


def compare(request: CompareRequest) -> Comparison:
    """Apply ``after`` once ``before`` has settled. Raises what ``modelhooks diff`` refuses."""
    if unreadable := read([*request.before, *request.after]).findings:
        raise NotComparable("\n".join(["a document that cannot be read:", *map(str, unreadable)]))
    old, new = (objects(documents, request.namespace) for documents in (request.before, request.after))
    both_settings = settings(request.settings_before), settings(request.settings_after)
    sides = [[*catalogue.installed([*old, *new]), *side] for side in (old, new)]
    return Comparison(**comparison_fields(*applied(sides[0], sides[1], request.namespace, settings=both_settings)))


def comparison_fields(before: Children, after: Children) -> Json:
    """The fields of a :class:`Comparison`."""
    changes = differences(before, after)
    return {"objects": [_object(change, after) for change in changes], "summary": summary(changes)}


def _object(difference: Difference, after: Children) -> ObjectChange:
    namespace, _, name = difference.name.rpartition("/")
    child = after.get((difference.kind, difference.name), {})
    effect = _effect(difference.effect, child)
    if effect == "in place" and difference.action != "change":
        effect = "none"
    return ObjectChange(
        node=f"{difference.kind} {difference.name}",
        kind=difference.kind.partition(".")[0],
        namespace=namespace,
        name=name,
        action=difference.action,
        effect=effect,
        words=_RECREATED if effect == "recreates" else difference.effect.value,
        fields=_fields(difference, child),
    )


def _fields(difference: Difference, child: Json) -> list[FieldChange]:
    return [_field(change, _effect(effect_of(difference.kind, [change]), child)) for change in difference.fields]


def _field(change: Change, effect: Effect) -> FieldChange:
    sides = {"before": change.old, "after": change.new}
    return FieldChange(path=str(change.path), effect=effect, **{k: v for k, v in sides.items() if v is not ABSENT})


def _effect(meaning: Meaning, child: Json) -> Effect:
    """Return the effect; a restart recreates the pods if the Deployment's strategy is Recreate."""
    strategy = ((child.get("spec") or {}).get("strategy") or {}).get("type")
    return "recreates" if meaning is Meaning.RESTART and strategy == "Recreate" else _EFFECTS[meaning]
