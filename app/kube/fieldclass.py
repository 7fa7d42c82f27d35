"""What becomes of a field of a spec. The class stands on the field, beside its description.

``source: Annotated[str, HONOURED] = Field(...)``. A class on a field that holds further fields counts for all below it
that have none of their own, so that ``scaling: Annotated[Scaling | None, no_effect("…")]`` says everything. The field
tables in docs/fields and the warnings about fields without effect follow from it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from app.kube.base import KubeModel
from app.kube.field import Advice, Path, advice


class Use(StrEnum):
    """What becomes of a field."""

    HONOURED = "honoured"
    """It decides something."""
    DEFAULTED = "defaulted"
    """It decides something, and so does its absence: there is a default."""
    PASSED_THROUGH = "passed through"
    """It is handed on as it is written; Kubernetes or the server judges it."""
    NO_EFFECT = "no effect"
    """It is accepted for the sake of existing manifests, does nothing, and admission warns of it."""


@dataclass(frozen=True, slots=True)
class FieldClass:
    """A field's class and when it holds (``runtime vllm``); ``hint`` says what a field without effect leaves undone."""

    use: Use
    note: str = ""
    hint: str = ""


HONOURED = FieldClass(Use.HONOURED)
DEFAULTED = FieldClass(Use.DEFAULTED)
PASSED_THROUGH = FieldClass(Use.PASSED_THROUGH)
NO_EFFECT = FieldClass(Use.NO_EFFECT)


def honoured(note: str) -> FieldClass:
    """Decides something, under the circumstances of ``note``."""
    return FieldClass(Use.HONOURED, note)


def defaulted(note: str) -> FieldClass:
    """Has a default, under the circumstances of ``note``."""
    return FieldClass(Use.DEFAULTED, note)


def passed_through(note: str) -> FieldClass:
    """Is handed on, to what ``note`` names."""
    return FieldClass(Use.PASSED_THROUGH, note)


def no_effect(hint: str = "", note: str = "") -> FieldClass:
    """Does nothing; ``hint`` is the rest of the warning: what happens instead, and what to do."""
    return FieldClass(Use.NO_EFFECT, note, hint)


@functools.cache
def classes(model: type[KubeModel]) -> Mapping[str, FieldClass | None]:
    """Every field below a spec's type that holds a value, by its path: ``autoscaling.metrics[].name``.

    ``None`` for a field without a class, which a test refuses.
    """
    return dict(_classes(model, "", None))


def _classes(
    model: type[BaseModel], prefix: str, inherited: FieldClass | None
) -> Iterator[tuple[str, FieldClass | None]]:
    for name, info in model.model_fields.items():
        path = f"{prefix}{info.alias or name}"
        own = _of(info) or inherited
        inner, is_list = _inner(info.annotation)
        if inner is None:
            yield path, own
        else:
            yield from _classes(inner, f"{path}{'[]' if is_list else ''}.", own)


def _of(info: FieldInfo) -> FieldClass | None:
    return next((item for item in info.metadata if isinstance(item, FieldClass)), None)


def _inner(annotation: Any) -> tuple[type[BaseModel] | None, bool]:
    """The type of further fields that an annotation holds, alone, as an option or in a list; and whether in a list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, False
    for argument in get_args(annotation):
        inner, _ = _inner(argument)
        if inner is not None:
            return inner, getattr(annotation, "__origin__", None) is list or _inner(argument)[1]
    return None, False


def _default(info: FieldInfo) -> Any:
    """As ``get_default`` of pydantic, which reads a factory's signature at each call: a millisecond for a spec."""
    return info.default if info.default_factory is None else cast("Callable[[], Any]", info.default_factory)()


def without_effect(spec: BaseModel, path: Path) -> Iterator[Advice]:
    """A warning for each field without effect in which a user wrote something.

    A field that has its default says nothing: the API server may have written it.
    """
    for name, info in type(spec).model_fields.items():
        value = getattr(spec, name)
        if value is None or value == _default(info):
            continue
        where, found = path.child(info.alias or name), _of(info)
        if found is not None and found.use is Use.NO_EFFECT:
            yield advice(where, f"accepted, no effect{f'; {found.hint}' if found.hint else ''}", "no-effect")
        elif isinstance(value, BaseModel):
            yield from without_effect(value, where)
        elif isinstance(value, list):
            for position, item in enumerate(value):
                if isinstance(item, BaseModel):
                    yield from without_effect(item, where.index(position))
