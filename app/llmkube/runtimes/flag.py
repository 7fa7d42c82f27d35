"""The option of an engine's command line that a field becomes, as an annotation beside the field's class.

``max_model_len: Annotated[int | None, HONOURED, Flag("--max-model-len")]``. The command line, the warning about a flag
that ``extraArgs`` repeats, the memory estimate and the tables of fields are derived from it. The releases that know the
option, and its values, are in the catalogues of :mod:`app.workload.engines.engine`.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from enum import StrEnum
from functools import cache
from typing import Literal, get_args, get_origin

import msgspec
from msgspec.structs import replace
from pydantic.fields import FieldInfo

from app.kube.base import KubeModel
from app.kube.modelfields import fields
from app.workload.engines.engine import Engine


class Memory(StrEnum):
    """Part of a server's memory that a field is about."""

    CONTEXT = "context"
    KEYS = "keys"
    VALUES = "values"
    SHARE = "share"
    WEIGHTS = "weights"
    GPUS = "GPUs"
    HOST = "host"
    """Keeps a part of the model in host memory."""
    MORE = "more"
    """Takes an unknown amount of memory."""


class Flag(msgspec.Struct, frozen=True):
    """An option of an engine. A boolean field becomes a switch, a list becomes several values."""

    name: str
    aliases: tuple[str, ...] = ()
    """Other spellings, which ``extraArgs`` may have."""
    runtimes: tuple[str, ...] = ()
    """Runtimes whose engine has it; empty for the runtime whose options the field belongs to."""
    needs_gpu: bool = False
    default: object = None
    """The engine's own default, for which nothing is written."""
    value: str = ""
    """Value of a switch that takes one."""
    separator: str = ""
    """Joins the items of a list to one value; empty for a value each."""
    memory: tuple[Memory, ...] = ()
    instead: tuple[tuple[str, str], ...] = ()
    """Values that engines call by another name, with that name."""
    hint: str = ""
    choices: tuple[str, ...] = ()
    """Values that the field's type lists."""
    is_list: bool = False
    """The field is a list, and ``extraArgs`` may have the option several times."""
    positive: bool = False
    """The server ends at once with a number below 1, which the schema accepts."""
    governs_block: bool = False
    """The fields beside it have no effect where ``extraArgs`` set it."""

    @property
    def spellings(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)

    def accepted(self, value: object, engine: Engine | None) -> object:
        """Return the engine's name of the value; ``None`` if it rejects the value. An unknown engine accepts all."""
        if engine is None or self.default == value:
            return value
        if not isinstance(value, str):
            return value if engine.has(self.name) else None
        names = (value, *(name for other, name in self.instead if other == value))
        return next((name for name in names if engine.accepts(self.name, name)), None)

    def arguments(self, value: object) -> list[str]:
        if value is None or value is False or value in ("", [], self.default):
            return []
        if value is True:
            return [self.name, self.value] if self.value else [self.name]
        if isinstance(value, list):
            return [self.name, self.separator.join(value)] if self.separator else [self.name, *map(str, value)]
        return [self.name, format(Decimal(repr(value)), "f") if isinstance(value, float) else str(value)]


@cache
def flags_of(model: type[KubeModel], runtime: str, config: str, *, own: bool = False) -> dict[str, Flag]:
    """Return the options of a runtime by path, such as ``vllmConfig.maxModelLen``; its own are below ``config``."""
    flags: dict[str, Flag] = {}
    options = field_flags(model, runtime, own=own)
    for alias, (name, shape) in fields(model).items():
        flag = options[name]
        if flag is not None:
            annotation = model.model_fields[name].annotation
            flags[alias] = replace(flag, choices=_choices(annotation), is_list=get_origin(annotation) is list)
        if shape.model is not None and not shape.in_list:
            below = flags_of(shape.model, runtime, config, own=own or alias == config)
            flags |= {f"{alias}.{path}": flag for path, flag in below.items()}
    return flags


@cache
def field_flags(model: type[KubeModel], runtime: str, *, own: bool) -> dict[str, Flag | None]:
    """Return the option of each field of a type in a runtime; ``own`` is true for the runtime's own options."""
    return {name: _flag_of(info, runtime, own=own) for name, info in model.model_fields.items()}


def _flag_of(info: FieldInfo, runtime: str, *, own: bool) -> Flag | None:
    flags = (item for item in info.metadata if isinstance(item, Flag))
    return next((flag for flag in flags if runtime in flag.runtimes or (own and not flag.runtimes)), None)


def _choices(annotation: object) -> tuple[str, ...]:
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return next((values for item in get_args(annotation) if (values := _choices(item))), ())


def is_set(value: object) -> bool:
    """Return True if a field has a value: a number counts, even 0."""
    return value is not None and value is not False and value not in ("", [])


def flag_values(spec: KubeModel, flags: Mapping[str, Flag]) -> Iterator[tuple[str, Flag, object]]:
    """Yield path, option and value of each field that is set and becomes an option."""
    for path, option in flags.items():
        value: object = spec
        for alias in path.split("."):
            value = getattr(value, fields(type(value))[alias][0]) if isinstance(value, KubeModel) else None
        if is_set(value):
            yield path, option, value
