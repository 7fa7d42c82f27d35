"""The effect of a change on the children, as in ``modelhooks diff``."""

from collections.abc import Iterator, Mapping, Sequence

from app.desk.cluster import catalogue
from app.desk.cluster.offline import World, identity
from app.desk.differences import ChildDifference, Children, Effect, applied, differences, effect_of, summary
from app.desk.files import manifests
from app.desk.origins.changes import ABSENT, Change
from app.desk.origins.changes import compare as compare_values
from app.errors import CommandError
from app.kube.base import Json
from app.kube.field import Path
from app.studio.documents import objects, read, settings
from app.studio.models import CompareRequest, Comparison, FieldChange, FieldEdit, ObjectChange, Shown

_SHOWN: Mapping[Effect, Shown] = {
    Effect.RESTART: "rolls pods",
    Effect.RECREATE: "recreates",
    Effect.START: "starts",
    Effect.STOP: "stops",
    Effect.SCALE: "scales",
    Effect.NONE: "in place",
    Effect.WAITS: "in place",
    Effect.DATA: "deletes data",
    Effect.KEPT: "kept",
}


def compare(request: CompareRequest) -> Comparison:
    """Apply ``after`` once ``before`` has settled. Raises what ``modelhooks diff`` refuses."""
    if unreadable := read([*request.before, *request.after]).findings:
        raise CommandError("\n".join(["a document that cannot be read:", *map(str, unreadable)]))
    old, new = (objects(documents, request.namespace) for documents in (request.before, request.after))
    world = World(request.namespace, settings=settings(request.settings_before))
    sides = [[*catalogue.installed([*old, *new]), *side] for side in (old, new)]
    children = applied(sides[0], sides[1], world, settings(request.settings_after))
    return Comparison(**comparison_fields(list(edits(old, new, request.namespace)), *children))


def edits(old: Sequence[manifests.Manifest], new: Sequence[manifests.Manifest], namespace: str) -> Iterator[FieldEdit]:
    """Yield the fields of the new manifests that differ from those of the same object before."""
    before = {identity(manifest, namespace): manifest.document for manifest in old}
    for manifest in new:
        earlier = before.get(identity(manifest, namespace))
        changes = (
            [Change(Path(), ABSENT, ABSENT)] if earlier is None else compare_values(earlier, manifest.document, Path())
        )
        for change in changes:
            line, column = manifest.position(change.path)
            yield FieldEdit(
                document=manifest.file,
                line=line,
                column=column,
                object=f"{manifest.kind}/{manifest.name}",
                path=str(change.path),
                **change.sides("before", "after"),
            )


def comparison_fields(edited: list[FieldEdit], before: Children, after: Children) -> Json:
    changes = differences(before, after)
    objects_ = [_object(change, after) for change in changes]
    return {"edits": edited, "objects": objects_, "summary": summary(changes)}


def _object(difference: ChildDifference, after: Children) -> ObjectChange:
    namespace, _, name = difference.name.rpartition("/")
    child = after.get((difference.kind, difference.name), {})
    shown = _SHOWN[difference.effect]
    return ObjectChange(
        node=f"{difference.kind} {difference.name}",
        kind=difference.kind.partition(".")[0],
        namespace=namespace,
        name=name,
        action=difference.action,
        effect="none" if shown == "in place" and difference.action != "change" else shown,
        words=difference.effect.value,
        fields=[_field(change, effect_of(difference.kind, [change], child)) for change in difference.fields],
    )


def _field(change: Change, effect: Effect) -> FieldChange:
    return FieldChange(path=str(change.path), effect=_SHOWN[effect], **change.sides("before", "after"))
