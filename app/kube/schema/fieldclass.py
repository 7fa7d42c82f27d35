"""The class of a field of a spec, which tells whether it has an effect: ``Annotated[str, HONOURED]``.

A class on an object counts for all fields below it that have none, so that ``scaling: Annotated[Scaling | None,
no_effect("…")]`` is enough. The tables in docs/fields and the warnings about fields without effect follow from it.
"""

from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import partial
from typing import Any, cast

import msgspec
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from app.kube.field import Advice, Path, advice


class Use(StrEnum):
    HONOURED = "honoured"
    DEFAULTED = "defaulted"
    """It has an effect, and a default when it is absent."""
    PASSED_THROUGH = "passed through"
    """It is passed on unchanged; Kubernetes or the model server validates it."""
    NO_EFFECT = "no effect"
    """It is accepted for existing manifests and has no effect; admission warns about it."""


class FieldClass(msgspec.Struct, frozen=True):
    """A field's class and its condition (``runtime vllm``); ``hint`` is the advice for a field without effect."""

    use: Use
    note: str = ""
    hint: str = ""
    asks: Callable[[Any], bool] = lambda _: True
    """Reports whether a value asks for something. The others of a field without effect are not warned about."""


HONOURED = FieldClass(Use.HONOURED)
DEFAULTED = FieldClass(Use.DEFAULTED)
PASSED_THROUGH = FieldClass(Use.PASSED_THROUGH)


honoured = partial(FieldClass, Use.HONOURED)
defaulted = partial(FieldClass, Use.DEFAULTED)
passed_through = partial(FieldClass, Use.PASSED_THROUGH)


def no_effect(hint: str = "", note: str = "", asks: Callable[[Any], bool] = lambda _: True) -> FieldClass:
    """Declare a field without effect; ``hint`` is the rest of the warning: what happens instead, and what to do."""
    return FieldClass(Use.NO_EFFECT, note, hint, asks)


def class_of(info: FieldInfo) -> FieldClass | None:
    return next((item for item in info.metadata if isinstance(item, FieldClass)), None)


def _default(info: FieldInfo) -> object:
    """Return the default as pydantic's ``get_default``, which takes a millisecond for a spec."""
    return info.default if info.default_factory is None else cast("Callable[[], object]", info.default_factory)()


def without_effect(spec: BaseModel, path: Path) -> Iterator[Advice]:
    """Warn about each field without effect that has another value than its default, which the API server may set."""
    for name, info in type(spec).model_fields.items():
        value = getattr(spec, name)
        if value is None or value == _default(info):
            continue
        where, class_ = path.child(info.alias or name), class_of(info)
        if class_ is not None and class_.use is Use.NO_EFFECT and class_.asks(value):
            yield advice(where, f"accepted, no effect{f'; {class_.hint}' if class_.hint else ''}", "no-effect")
        elif isinstance(value, BaseModel):
            yield from without_effect(value, where)
        elif isinstance(value, list):
            for item_path, item in where.each(value):
                if isinstance(item, BaseModel):
                    yield from without_effect(item, item_path)
