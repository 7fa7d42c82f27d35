"""The fields that generated objects contain, and the fields that exist."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from app.kube.base import EmbeddedType, KubeModel
from app.kube.embedded.types import TYPES
from tests.e2e.generated.draw import ABSENT, Pool, owner

Form = type[KubeModel] | str
"""One of our types, or the name of a Kubernetes type."""


def written(form: Form, value: Any) -> Iterator[str]:
    """Yield ``Type.field`` for every field of an object."""
    if isinstance(value, list):
        for item in value:
            yield from written(form, item)
    elif isinstance(value, dict):
        for key, (name, inner) in _fields(form).items():
            if key in value:
                yield name
                if inner is not None:
                    yield from written(inner, value[key])


def reachable(form: Form, pools: Mapping[str, Pool], seen: set[str]) -> set[str]:
    """Return ``Type.field`` for every field below a type, except those that pools omit or fill with whole values."""
    for name, inner in _fields(form).values():
        pool = pools.get(name)
        if pool is ABSENT or name in seen:
            continue
        seen.add(name)
        written_out = not callable(pool) and pool is not None
        if inner is not None and not written_out:
            reachable(inner, pools, seen)
    return seen


def _fields(form: Form) -> dict[str, tuple[str, Form | None]]:
    """Return, by name on the wire, each field's full name and type."""
    if isinstance(form, str):
        parts = [(key, part) for key, part in TYPES[form].items() if not part.is_dropped_by()]
        return {key: (f"{form}.{key}", part.type if part.type in TYPES else None) for key, part in parts}
    return {
        info.alias or name: (f"{owner(form, name)}.{info.alias or name}", _below(info.annotation, info.metadata))
        for name, info in form.model_fields.items()
    }


def _below(annotation: Any, metadata: Any) -> Form | None:
    for mark in metadata:
        if isinstance(mark, EmbeddedType):
            return mark.name
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _below(arguments[0], arguments[1:])
    if origin in (typing.Union, types.UnionType, list):
        return next((model for argument in arguments if (model := _below(argument, ()))), None)
    return annotation if isinstance(annotation, type) and issubclass(annotation, KubeModel) else None
