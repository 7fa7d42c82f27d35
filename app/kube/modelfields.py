"""Walk documents by the fields of their pydantic models: unknown fields, defaults, and embedded Kubernetes types."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic_core import PydanticUndefined

from app.kube import embedded, field
from app.kube.base import EmbeddedType, Json, KubeModel
from app.kube.correction import Members
from app.kube.field import Hint, nearest


@dataclass(frozen=True, slots=True)
class FieldType:
    """The type of one field: a model or an embedded type, perhaps in a list or map; or a plain value."""

    model: type[KubeModel] | None = None
    embedded: str = ""
    container: str = ""
    """``list``, ``map`` or empty."""
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
    if origin in (list, dict, tuple):
        inner = _shape(get_args(annotation)[1 if origin is dict else 0]) if get_args(annotation) else FieldType()
        return inner if inner.is_leaf else replace(inner, container="map" if origin is dict else "list")
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
    if shape.container == "list" and isinstance(value, list):
        return [change(item, shape.model) for item in value]
    if shape.container == "map" and isinstance(value, dict):
        return {key: change(item, shape.model) for key, item in value.items()}
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
    findings = embedded.TypeCheck()
    for where, item, shape in embedded_values(value, path):
        findings.check(item, shape.embedded, where, shape.optional)
        if findings.full:
            break
    return findings.errors, findings.warnings


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
    if shape.container == "list":
        return path.each(item)
    if shape.container == "map":
        return ((path.key(key), value) for key, value in item.items())
    return iter([(path, item)])


def unknown_fields(
    document: object, model: type[KubeModel], path: field.Path, above: tuple[type[KubeModel], ...] = ()
) -> Iterator[field.Advice]:
    """Warn about each field that the type does not have; ``above`` are the types around it, the nearest last."""
    if not isinstance(document, dict):
        return
    shapes = fields(model)
    for key, item in document.items():
        if key not in shapes:
            yield embedded.unknown_field(path.member(key), _hint(key, model, document, above))
            continue
        shape = shapes[key][1]
        if shape.model is None or not isinstance(item, list if shape.container == "list" else dict):
            continue
        for where, part in _items(item, shape, path.child(key)):
            yield from unknown_fields(part, shape.model, where, (*above, model))


def _hint(key: str, model: type[KubeModel], document: Json, above: tuple[type[KubeModel], ...]) -> str:
    """Suggest the field that was meant: by habit from other APIs, a typing error, or another level."""
    if key in model.habits:
        return f"; {model.habits[key]}"
    names = tuple(fields(model))
    near = nearest(key, names)
    exact = near.lower() == key.replace("_", "").lower()
    absent = _absent(key, model, document)
    below = [] if exact or absent else _below(key, model)
    near = absent or near
    last = key.rpartition("/")[2]  # ``gpu`` of ``nvidia.com/gpu``
    guesses = below or [near or (last if last in names else "")]
    if guesses[0] and not (near and not (exact or below or absent) and _levels_up(key, above)):
        return Hint(f", did you mean {' or '.join(map(field.go_quote, guesses))}?", *guesses)
    level = _levels_up(key, above)
    return f"; it belongs {level} higher: indent it less" if level else ""


def _absent(key: str, model: type[KubeModel], document: Json) -> str:
    """Return the required field that is absent and begins with the key: ``modelRef`` for ``model``."""
    required = _members(model).required
    return next((name for name in required if name not in document and name.startswith(key) and len(key) > 3), "")


def _below(key: str, model: type[KubeModel]) -> list[str]:
    """Return the fields of that name one level down: ``modelClaim.modelName``; of a pod, its containers' come first."""
    objects = {name: shape for name, (_, shape) in fields(model).items() if not shape.container}
    matches = [f"{name}.{key}" for name, shape in objects.items() if shape.model and key in fields(shape.model)]
    pods = [name for name, shape in objects.items() if shape.embedded == "PodSpec"]
    inner = "containers[]." if key in embedded.members("Container").fields else ""
    matches += [f"{name}.{inner}{key}" for name in pods[:1] if inner or key in embedded.members("PodSpec").fields]
    return matches if len(matches) <= 2 else []


def _levels_up(key: str, above: tuple[type[KubeModel], ...]) -> str:
    for distance, model in enumerate(reversed(above), 1):
        if key in fields(model):
            return "one level" if distance == 1 else f"{distance} levels"
    return ""


def members_at(model: type[KubeModel], segments: tuple[str | int, ...]) -> Members:
    """Return the fields of the type at a place below a model; none if it has no fields."""
    place = FieldType(model=model)
    for segment in segments:
        if place.model is not None and segment in fields(place.model):
            place = fields(place.model)[str(segment)][1]
        elif place.embedded and isinstance(segment, str):
            return Members()
    if place.embedded:
        return embedded.members(place.embedded)
    return Members() if place.model is None else _members(place.model)


def _members(model: type[KubeModel]) -> Members:
    required = (info.alias or name for name, info in model.model_fields.items() if info.is_required())
    return Members(tuple(fields(model)), tuple(required))
