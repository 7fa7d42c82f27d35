"""What becomes of a field of a spec. The class stands on the field, beside its description.

``source: Annotated[str, HONOURED] = Field(...)``. A class on a field that holds further fields counts for all below it
that have none of their own, so that ``scaling: Annotated[Scaling | None, no_effect("…")]`` says everything. The field
tables in docs/fields and the warnings about fields without effect follow from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from pydantic import BaseModel
from pydantic.fields import FieldInfo

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


def class_of(info: FieldInfo) -> FieldClass | None:
    """The class that stands on a field."""
    return next((item for item in info.metadata if isinstance(item, FieldClass)), None)


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
        where, found = path.child(info.alias or name), class_of(info)
        if found is not None and found.use is Use.NO_EFFECT:
            yield advice(where, f"accepted, no effect{f'; {found.hint}' if found.hint else ''}", "no-effect")
        elif isinstance(value, BaseModel):
            yield from without_effect(value, where)
        elif isinstance(value, list):
            for position, item in enumerate(value):
                if isinstance(item, BaseModel):
                    yield from without_effect(item, where.index(position))
