"""Which fields a type of ours has: for unknown-field warnings, and to find what users embed in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from app.kube import embedded, field
from app.kube.base import EmbeddedType, KubeModel


@dataclass(frozen=True, slots=True)
class Shape:
    """What stands below one field: a type of ours, an embedded type, in a list, in a map, or none of these."""

    model: type[KubeModel] | None = None
    embedded: str = ""
    container: str = ""
    """``list``, ``map`` or empty."""
    optional: tuple[str, ...] = ()
    """Fields of the embedded type that this place does not require."""

    @property
    def is_leaf(self) -> bool:
        return self.model is None and not self.embedded


@cache
def fields(model: type[KubeModel]) -> dict[str, tuple[str, Shape]]:
    """JSON name of each field with its attribute name and shape."""
    found = {}
    for name, info in model.model_fields.items():
        annotation = Annotated[info.annotation, *info.metadata] if info.metadata else info.annotation
        found[info.alias or name] = (name, _shape(annotation))
    return found


def _shape(annotation: Any) -> Shape:
    origin = get_origin(annotation)
    if origin is Annotated:
        base, *extras = get_args(annotation)
        marker = next((extra for extra in extras if isinstance(extra, EmbeddedType)), None)
        return Shape(embedded=marker.name, optional=marker.optional) if marker else _shape(base)
    if origin in (Union, UnionType):
        return next((s for arg in get_args(annotation) if not (s := _shape(arg)).is_leaf), Shape())
    if origin in (list, dict, tuple):
        inner = _shape(get_args(annotation)[1 if origin is dict else 0]) if get_args(annotation) else Shape()
        return inner if inner.is_leaf else replace(inner, container="map" if origin is dict else "list")
    if isinstance(annotation, type) and issubclass(annotation, KubeModel):
        return Shape(model=annotation)
    return Shape()


@cache
def _embeds(model: type[KubeModel]) -> tuple[tuple[str, str, Shape], ...]:
    """The fields of the type below which something embedded can stand: ``(JSON name, attribute, shape)``."""
    return tuple(
        (alias, name, shape)
        for alias, (name, shape) in fields(model).items()
        if shape.embedded or (shape.model is not None and _embeds(shape.model))
    )


def check_embedded(value: KubeModel, path: field.Path) -> tuple[list[field.Error], list[str]]:
    """Errors and warnings of everything embedded anywhere in ``value``, against Kubernetes' own types.

    Bounded: the search ends soon after :data:`field.MAX_ERRORS`, and only so many unknown fields are looked up.
    """
    findings = embedded.Findings()
    for where, item, shape in _embedded_values(value, path):
        findings.check(item, shape.embedded, where, shape.optional)
        if findings.full:
            break
    return findings.errors, findings.warnings


def _embedded_values(value: KubeModel, path: field.Path) -> Iterator[tuple[field.Path, Any, Shape]]:
    for alias, name, shape in _embeds(type(value)):
        item = getattr(value, name)
        if item is None:
            continue
        for where, one in _items(item, shape, path.child(alias)):
            if shape.embedded:
                yield where, one, shape
            elif isinstance(one, KubeModel):
                yield from _embedded_values(one, where)


def _items(item: Any, shape: Shape, path: field.Path) -> Iterator[tuple[field.Path, Any]]:
    if shape.container == "list":
        for position, one in enumerate(item):
            yield path.index(position), one
    elif shape.container == "map":
        for key, one in item.items():
            yield path.key(key), one
    else:
        yield path, item


def unknown_fields(document: Any, model: type[KubeModel], path: field.Path) -> Iterator[str]:
    """A warning per field that the type does not have, with the nearest name. Embedded types are checked elsewhere."""
    if not isinstance(document, dict):
        return
    known = fields(model)
    for key, item in document.items():
        if key not in known:
            yield unknown_field(path.child(key), key, known)
            continue
        shape = known[key][1]
        if shape.model is None or item is None or not _fits(item, shape):
            continue
        for where, one in _items(item, shape, path.child(key)):
            yield from unknown_fields(one, shape.model, where)


def _fits(item: Any, shape: Shape) -> bool:
    return isinstance(item, list) if shape.container == "list" else isinstance(item, dict)


def unknown_field(path: field.Path, key: str, known: dict[str, Any]) -> str:
    """The warning's text: ``unknown field "spec.replica", did you mean "replicas"?``."""
    near = embedded.nearest(key, tuple(known))
    hint = f', did you mean "{near}"?' if near else ""
    return f"unknown field {field.go_quote(str(path))}{hint}"
