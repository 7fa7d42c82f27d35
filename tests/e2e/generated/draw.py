"""Random values of types: our pydantic types, and the table of Kubernetes types that users embed.

New fields are generated automatically. The pools and rules of :mod:`tests.e2e.generated.kubernetes` and of the families
hold only what a type cannot express, such as the format of a name or mutually exclusive fields.
"""

from __future__ import annotations

import copy
import random
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic.fields import FieldInfo

from app.kube.base import EmbeddedType, Json, KubeModel
from app.kube.embedded.types import TYPES

Pool = Sequence[Any] | Callable[["Draw"], Any]
"""Values to choose from, or a function that creates one."""
Rule = Callable[["Draw", Json], None]
"""A function that changes an object of one type in place, so that its fields are consistent."""

ABSENT: Sequence[Any] = ()
"""The pool of a field that is never written."""

TEXTS = ("", "x", "a b", "$(A)", "$(nope)", "{}", "'; rm -rf /", "ü", "true", "1.50", "line\nbreak", "--flag=1")


class Draw(random.Random):
    """A seeded source of values. ``density`` is the probability that an optional field is written."""

    def __init__(self, seed: str, pools: Mapping[str, Pool], rules: Mapping[str, Rule]) -> None:
        super().__init__(seed)
        self.density = self.choice((0.1, 0.3, 0.6))
        self._pools, self._rules = pools, rules

    def chance(self, probability: float | None = None) -> bool:
        return self.random() < (self.density if probability is None else probability)

    def some(self, values: Sequence[Any], most: int = 3) -> list[Any]:
        """Return up to ``most`` different values, possibly none."""
        return self.sample(list(values), self.randint(0, min(most, len(values))))

    def of(self, pool: Pool) -> Any:
        return pool(self) if callable(pool) else copy.deepcopy(self.choice(pool))

    # Kubernetes types, from the table.

    def embedded(self, name: str, /, *, without: Sequence[str] = (), **fixed: Any) -> Json:
        """Return an object of a Kubernetes type. ``fixed`` are fields with given values."""
        value: Json = {}
        for key, part in TYPES[name].items():
            pool = ABSENT if part.is_dropped_by() else self._pools.get(f"{name}.{key}")
            if key in fixed:
                value[key] = fixed[key]
            elif key not in without and pool is not ABSENT and (part.required or self.chance()):
                value[key] = self.of(pool) if pool is not None else self._by_type(part.type, part.container)
        if name in self._rules:
            self._rules[name](self, value)
        return value

    def _by_type(self, type_: str, container: str = "") -> Any:
        if container == "[]":
            return [self._by_type(type_) for _ in range(self.randint(0, 2))]
        if container == "{}":
            return {key: self._by_type(type_) for key in self.some(("cpu", "memory"))}
        if type_ in TYPES:
            return self.embedded(type_)
        return self.of(_SCALARS[type_])

    # Our own types, from their fields.

    def model(self, model: type[KubeModel], /, *, without: Sequence[str] = (), **fixed: Any) -> Json:
        """Return a spec or a part of one; ``fixed`` and the result use the names on the wire."""
        value: Json = {}
        for name, info in model.model_fields.items():
            key = info.alias or name
            pool = self._pools.get(f"{owner(model, name)}.{key}")
            if key in fixed:
                value[key] = fixed[key]
            elif key not in without and pool is not ABSENT and (info.is_required() or self.chance()):
                value[key] = self.of(pool) if pool is not None else self.field(info)
        for base in reversed(model.__mro__):
            if base.__name__ in self._rules:
                self._rules[base.__name__](self, value)
        return value

    def field(self, info: FieldInfo) -> Any:
        """Return a value of one of our fields, based on its type alone."""
        return self._annotated(info.annotation, info.metadata)

    def _annotated(self, annotation: Any, metadata: Sequence[Any]) -> Any:
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        for mark in metadata:
            if isinstance(mark, EmbeddedType):
                return self.embedded(mark.name)
        if origin is typing.Annotated:
            return self._annotated(arguments[0], (*arguments[1:], *metadata))
        if origin in (typing.Union, types.UnionType):
            return self._annotated(self.choice([a for a in arguments if a is not type(None)]), metadata)
        if origin is typing.Literal:
            return self.choice(arguments)
        if origin is list:
            return [self._annotated(arguments[0], ()) for _ in range(self.randint(0, 2))]
        if origin is dict:
            return {key: self._annotated(arguments[1], ()) for key in self.some(("team", "example.com/tier"))}
        if isinstance(annotation, type) and issubclass(annotation, KubeModel):
            return self.model(annotation)
        if annotation is int:
            least, most = _limits(metadata)
            return self.choice((least, most, self.randint(least, min(most, least + 1000))))
        return self.of(_PYTHON[annotation])


def owner(model: type[KubeModel], field: str) -> str:
    """Return the name of the type that first declares the field; a subtype that narrows a field shares its pool."""
    return [base for base in model.__mro__ if field in getattr(base, "model_fields", {})][-1].__name__


def _limits(metadata: Sequence[Any]) -> tuple[int, int]:
    """Return the range that constraints allow, from 1 to the largest 32-bit integer where they allow a whole type."""
    constraints = [constraint for mark in metadata for constraint in getattr(mark, "metadata", None) or (mark,)]
    least = [c.ge for c in constraints if getattr(c, "ge", None) is not None and c.ge > -(2**31)]
    most = [c.le for c in constraints if getattr(c, "le", None) is not None]
    return max(least, default=1), min([*most, 2**31 - 1])


_SCALARS: dict[str, Pool] = {
    "string": TEXTS,
    "boolean": (True, False),
    "int32": (0, 1, 2, 60),
    "int64": (0, 1, 1000),
    "quantity": ("1", "500m", "1000m", "1.5Gi", "2048Mi", "1e3", 2, "0"),
    "int-or-string": (1, 80, "http"),
}
_PYTHON: dict[Any, Pool] = {str: TEXTS, bool: (True, False), float: (0.1, 0.5, 0.9)}
