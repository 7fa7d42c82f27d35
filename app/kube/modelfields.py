"""Walk documents by the fields of their pydantic models: unknown fields, defaults, and embedded Kubernetes types."""

import math
from collections.abc import Callable, Iterator
from functools import cache, partial
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec.structs import replace
from pydantic import TypeAdapter
from pydantic_core import PydanticUndefined

from app.kube import field, unknown
from app.kube.base import EmbeddedType, Json, KubeModel
from app.kube.correction import Members
from app.kube.embedded import checks as embedded
from app.kube.embedded import types as embedded_types


class FieldType(msgspec.Struct, frozen=True):
    """The type of one field: a model or an embedded type, perhaps in a list; or a plain value."""

    model: type[KubeModel] | None = None
    embedded: str = ""
    in_list: bool = False
    optional: tuple[str, ...] = ()
    """Required fields of the embedded type that may be left out here."""

    @property
    def is_leaf(self) -> bool:
        return self.model is None and not self.embedded


@cache
def fields(model: type[KubeModel]) -> dict[str, tuple[str, FieldType]]:
    """Return the attribute name and the type of each field, by its JSON name."""
    result = {}
    for name, info in model.model_fields.items():
        annotation = Annotated[info.annotation, *info.metadata] if info.metadata else info.annotation
        result[info.alias or name] = (name, _shape(annotation))
    return result


def _shape(annotation: object) -> FieldType:
    origin = get_origin(annotation)
    if origin is Annotated:
        base, *extras = get_args(annotation)
        marker = next((extra for extra in extras if isinstance(extra, EmbeddedType)), None)
        return FieldType(embedded=marker.name, optional=marker.optional) if marker else _shape(base)
    if origin in (Union, UnionType):
        return next((s for arg in get_args(annotation) if not (s := _shape(arg)).is_leaf), FieldType())
    if origin in (list, tuple):
        inner = _shape(get_args(annotation)[0])
        return inner if inner.is_leaf else replace(inner, in_list=True)
    if isinstance(annotation, type) and issubclass(annotation, KubeModel):
        return FieldType(model=annotation)
    return FieldType()


def known_fields(value: object, model: type[KubeModel]) -> Any:
    """Return plain JSON without the fields that the type does not have, as an API server stores it."""
    if not isinstance(value, dict):
        return value
    shapes = {alias: shape for alias, (_, shape) in fields(model).items()}
    return {key: _changed(item, shapes[key], known_fields) for key, item in value.items() if key in shapes}


def _changed(value: object, shape: FieldType, change: Callable[[object, type[KubeModel]], Any]) -> object:
    """Apply a change to the objects that a field has, if they are of a model."""
    if shape.model is None:
        return value
    if shape.in_list and isinstance(value, list):
        return [change(item, shape.model) for item in value]
    return change(value, shape.model)


def with_defaults(value: object, model: type[KubeModel]) -> Any:
    """Return an object with the defaults of its type at every level; an empty list counts as absent."""
    if not isinstance(value, dict):
        return value
    result = dict(value)
    for alias, (name, shape) in fields(model).items():
        info = model.model_fields[name]
        extra = info.json_schema_extra
        default = extra.get("default", info.default) if isinstance(extra, dict) else info.default
        if value.get(alias) in (None, []) and default not in (None, PydanticUndefined):
            result[alias] = default
        if alias in result:
            result[alias] = _changed(result[alias], shape, with_defaults)
    return result


@cache
def _embeds(model: type[KubeModel]) -> tuple[tuple[str, str, FieldType], ...]:
    """Return the fields with an embedded type at or below them: ``(JSON name, attribute, shape)``."""
    return tuple(
        (alias, name, shape)
        for alias, (name, shape) in fields(model).items()
        if shape.embedded or (shape.model is not None and _embeds(shape.model))
    )


def check_embedded(value: KubeModel, path: field.Path) -> tuple[list[field.Error], list[field.Advice]]:
    """Return the errors, up to :data:`MAX_ERRORS`, and warnings of everything embedded anywhere in ``value``."""
    findings = embedded.TypeCheck(lambda place: _levels_above(place.segments[len(path.segments) :], type(value)))
    for where, item, shape in embedded_values(value, path):
        findings.merges = bool(shape.optional)  # what lacks required fields is completed by what it is merged over
        findings.check(item, shape.embedded, where, shape.optional)
        if findings.full:
            break
    return findings.errors, findings.warnings


def _levels_above(place: field.Segments, model: type[KubeModel]) -> Iterator[unknown.Level]:
    """Yield each object around a place below a model, the nearest first."""
    for end in range(len(place) - 1, -1, -1):
        if isinstance(place[end], str):  # what is around an item is a list
            type_ = _type_at(model, place[:end])
            habits = type_.model.habits if type_.model else {}
            yield unknown.Level(_members_of(type_).fields, partial(_inner, type_), habits)


def embedded_values(value: KubeModel, path: field.Path) -> Iterator[tuple[field.Path, Any, FieldType]]:
    for alias, name, shape in _embeds(type(value)):
        item = getattr(value, name)
        if item is None:
            continue
        for where, part in _items(item, shape, path.child(alias)):
            if shape.embedded:
                yield where, part, shape
            elif isinstance(part, KubeModel):
                yield from embedded_values(part, where)


def _items(item: Any, shape: FieldType, path: field.Path) -> Iterator[tuple[field.Path, object]]:
    return path.each(item) if shape.in_list else iter([(path, item)])


def unknown_fields(
    document: object, model: type[KubeModel], path: field.Path, above: tuple[type[KubeModel], ...] = ()
) -> Iterator[field.Advice]:
    """Warn about each field that the type does not have; ``above`` are the types around it, the nearest last."""
    if not isinstance(document, dict):
        return
    shapes = fields(model)
    if unknown_keys := [key for key in document if key not in shapes]:
        levels = [unknown.Level(fields(outer), partial(_inner, FieldType(outer))) for outer in reversed(above)]
        inner = partial(_inner, FieldType(model))
        type_fields = unknown.TypeFields(_members(model), inner, lambda: levels, model.habits, model.other_names)
        yield from unknown.warnings(unknown_keys, document, path, type_fields)
    for key, item in document.items():
        shape = shapes[key][1] if key in shapes else FieldType()
        if shape.model is None or not isinstance(item, list if shape.in_list else dict):
            continue
        for where, part in _items(item, shape, path.child(key)):
            yield from unknown_fields(part, shape.model, where, (*above, model))


@cache
def _inner(type_: FieldType) -> tuple[str, ...]:
    """Return the fields one level down, as paths; of pods, those of the first one."""
    if type_.embedded:
        return embedded.inner_places(type_.embedded)
    shapes = {name: shape for name, (_, shape) in fields(type_.model).items()} if type_.model else {}
    pods = [name for name, shape in shapes.items() if shape.embedded == "PodSpec"]
    return tuple(
        f"{name}{'[]' if shape.in_list else ''}.{place}"
        for name, shape in shapes.items()
        if not shape.is_leaf and name not in pods[1:]
        for place in (embedded.places(shape.embedded) if shape.embedded else fields(shape.model))
    )


def members_at(model: type[KubeModel], segments: field.Segments) -> Members:
    """Return the fields of the type at a place below a model; none if it has no fields."""
    return _members_of(_type_at(model, segments))


def bounds_at(model: type[KubeModel], segments: field.Segments) -> tuple[float, float]:
    """Return the lowest and the highest number of a field below a model; infinite without a bound."""
    owner = _type_at(model, segments[:-1]).model
    attribute = fields(owner)[str(segments[-1])][0] if owner is not None and segments[-1] in fields(owner) else ""
    return _bounds(owner, attribute) if owner is not None and attribute else (-math.inf, math.inf)


@cache
def _bounds(model: type[KubeModel], attribute: str) -> tuple[float, float]:
    info = model.model_fields[attribute]
    type_: Any = Annotated[info.annotation, *info.metadata] if info.metadata else info.annotation
    schema = TypeAdapter(type_).json_schema()
    parts: list[Json] = [part for part in schema.get("anyOf", [schema]) if "minimum" in part or "maximum" in part]
    bounds = parts[0] if parts else {}
    return bounds.get("minimum", -math.inf), bounds.get("maximum", math.inf)


def _type_at(model: type[KubeModel], segments: field.Segments) -> FieldType:
    place = FieldType(model=model)
    for segment in segments:
        if place.model is not None and segment in fields(place.model):
            place = fields(place.model)[str(segment)][1]
        elif place.embedded and isinstance(segment, str):
            declared = embedded_types.TYPES[place.embedded].get(segment)
            if declared is None or declared.type not in embedded_types.TYPES:
                return FieldType()
            place = FieldType(embedded=declared.type)
    return place


def _members_of(type_: FieldType) -> Members:
    if type_.embedded:
        return embedded.members(type_.embedded)
    return Members() if type_.model is None else _members(type_.model)


@cache
def _members(model: type[KubeModel]) -> Members:
    infos = {info.alias or name: info for name, info in model.model_fields.items()}
    required = tuple(name for name, info in infos.items() if info.is_required())
    return Members(
        tuple(infos), required, tuple(n for n, info in infos.items() if get_origin(info.annotation) is Literal)
    )
