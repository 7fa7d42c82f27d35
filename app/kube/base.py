"""The base of every type that users write, and the markers for what they embed."""

from collections.abc import Callable, Mapping
from copy import copy
from functools import reduce
from operator import or_
from types import GenericAlias, UnionType
from typing import Annotated, Any, ClassVar, TypeVar, get_args, get_origin

import msgspec
from msgspec import Meta
from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, WithJsonSchema, create_model
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, core_schema

from app.kube.embedded.schema import EMBEDDED, OPEN
from app.kube.field import Hint, with_hint
from app.kube.schema.docstrings import described_fields
from app.kube.schema.rules import Rule, Schema, as_schema

FORMS: dict[str, Callable[[str], Hint]] = {}
"""The message for a string that does not match, by regular expression."""


def pattern(expression: str, form: str, suggestion: Callable[[str], Hint] = lambda _: Hint()) -> str:
    """Return the expression of a field, and set the message for values that do not match.

    ``form`` is "must be …, for example …"; ``suggestion`` adds what to write instead of a value, if that is known.
    """
    FORMS[expression] = lambda text: with_hint(form, suggestion(text))
    return expression


DECIMAL_PATTERN = pattern(r"^[0-9]+(\.[0-9]+)?$", 'must be a number in quotes, for example "2.0"')


class KubeModel(BaseModel):
    """A part of a custom resource's spec: snake_case in Python, camelCase on the wire.

    Strict, because ``"5"`` is not a number for the API server either. Unknown fields are ignored here; admission
    reports them as warnings (:func:`app.kube.modelfields.unknown_fields`), the way ``kubectl`` does.
    """

    habits: ClassVar[Mapping[str, str]] = {}
    """Hints for fields that this type does not have and users write, out of habit from other APIs."""

    other_names: ClassVar[Mapping[str, str]] = {}
    """Fields of this type, or paths below it, by other names that users write for them."""

    synonyms: ClassVar[Mapping[str, str]] = {}
    """Values of enumerations and numbers of a spec, by other words for them in lower case."""

    constraints: ClassVar[tuple[Rule, ...]] = ()
    """Rules between the fields (:mod:`app.kube.schema.rules`)."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        strict=True,
        allow_inf_nan=False,
        extra="ignore",
        frozen=True,
        protected_namespaces=(),
        defer_build=True,  # some hundred types: a process that starts builds those that it is asked about
    )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> Schema:
        """Add the docstrings below the fields as their descriptions, and the rules between the fields."""
        written = handler(schema)
        resolved = handler.resolve_ref_schema(written)
        for base in cls.__mro__[: cls.__mro__.index(KubeModel)]:
            for name, text in described_fields(base).items():
                resolved["properties"][cls.model_fields[name].alias or name].setdefault("description", text)
        if cls.constraints:
            resolved.update(as_schema(cls.constraints))
        return written


ModelT = TypeVar("ModelT", bound=KubeModel)


def with_types(types: Mapping[str, object]) -> Callable[[type[ModelT]], type[ModelT]]:
    """Give fields of a variant other types, as a class decorator: ``int | None``, or a type with its ``Field``.

    For types that a subclass cannot declare, as they are wider than the base's. Without a ``Field``, the field keeps
    its description and markers from the base, but is optional. A name with dots, such as ``rules.matches.path``, is a
    field further down, and the types on the way to it are variants too.
    """
    return lambda variant: _variant(variant, types)


def _variant(base: type[ModelT], types: Mapping[str, object]) -> type[ModelT]:
    fields: Json = {}
    below: dict[str, dict[str, object]] = {}
    for path, type_ in types.items():
        name, _, rest = path.partition(".")
        if rest:
            below.setdefault(name, {})[rest] = type_
        elif isinstance(type_, tuple):
            fields[name] = type_
        else:
            optional = copy(base.model_fields[name])
            optional.default = None
            fields[name] = type_, optional
    for name, inner in below.items():
        info = base.model_fields[name]
        type_, info = fields.get(name, (info.annotation, copy(info)))
        fields[name] = (_with_variant(type_, inner), info)
    return create_model(base.__name__, __base__=base, __module__=base.__module__, __doc__=base.__doc__, **fields)


def _with_variant(annotation: Any, types: Mapping[str, object]) -> Any:
    """Return a type in which the model, or the model of a list's items, is a variant; every other part stays."""
    if isinstance(annotation, type) and issubclass(annotation, KubeModel):
        return _variant(annotation, types)
    if get_origin(annotation) is list:
        return GenericAlias(list, _with_variant(get_args(annotation)[0], types))
    if isinstance(annotation, UnionType):
        return reduce(or_, (_with_variant(part, types) for part in get_args(annotation)))
    return annotation


class EmbeddedType(msgspec.Struct, frozen=True):
    """Marks a field with one of Kubernetes' own types, passed on unchanged.

    ``name`` is the Go type without package, such as ``Probe``. The CRD has an open object there, and
    :mod:`app.kube.embedded.checks` knows the type's fields. ``optional`` names fields that the type requires and this
    place does not, such as ``containers`` of a pod spec that presets complete.
    """

    name: str
    optional: tuple[str, ...] = ()

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> Schema:
        return {**OPEN, EMBEDDED: self.name}


class IntFormat(msgspec.Struct, frozen=True):
    """Marks an integer with its size, which the API server enforces as a range; a field's own bounds win over it."""

    bits: int

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        limit = 1 << (self.bits - 1)
        return {"ge": -limit, "le": limit - 1, **handler(source)}

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> Schema:
        return {**handler(schema), "format": f"int{self.bits}"}


class MemoryType(msgspec.Struct, frozen=True):
    """Marks a string with an amount of memory; for a number instead, the error names the unit to write."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        message = "must be an amount of memory"
        return core_schema.custom_error_schema(handler(source), "memory_type", custom_error_message=message)


MemoryAmount = Annotated[str, MemoryType()]
Int32 = Annotated[int, IntFormat(32), Meta(ge=-(2**31), le=2**31 - 1, extra_json_schema={"format": "int32"})]
"""Go's int32, for specs and statuses alike; a plain ``int`` has no format, and one out of range cannot be sent back."""
Int64 = Annotated[int, IntFormat(64), Meta(ge=-(2**63), le=2**63 - 1, extra_json_schema={"format": "int64"})]
_INT_OR_STRING = {"x-kubernetes-int-or-string": True}
IntOrString = Annotated[int | str, WithJsonSchema(_INT_OR_STRING), Meta(extra_json_schema=_INT_OR_STRING)]
"""A number or a string, as for ``maxSurge``; the only union that a CRD can have."""
_DATE_TIME = {"type": "string", "format": "date-time"}
DateTime = Annotated[str, WithJsonSchema(_DATE_TIME), Meta(extra_json_schema=_DATE_TIME)]

Json = dict[str, Any]
"""A JSON object that is passed on as it is."""

EnvVar = Annotated[Json, EmbeddedType("EnvVar")]
Toleration = Annotated[Json, EmbeddedType("Toleration")]
Probe = Annotated[Json, EmbeddedType("Probe")]
PodSecurityContext = Annotated[Json, EmbeddedType("PodSecurityContext")]
SecurityContext = Annotated[Json, EmbeddedType("SecurityContext")]
LocalObjectReference = Annotated[Json, EmbeddedType("LocalObjectReference")]
Container = Annotated[Json, EmbeddedType("Container")]
PodSpec = Annotated[Json, EmbeddedType("PodSpec")]
PodTemplateSpec = Annotated[Json, EmbeddedType("PodTemplateSpec")]
ResourceRequirements = Annotated[Json, EmbeddedType("ResourceRequirements")]
Lifecycle = Annotated[Json, EmbeddedType("Lifecycle")]
Volume = Annotated[Json, EmbeddedType("Volume")]
VolumeMount = Annotated[Json, EmbeddedType("VolumeMount")]
Affinity = Annotated[Json, EmbeddedType("Affinity")]
TopologySpreadConstraint = Annotated[Json, EmbeddedType("TopologySpreadConstraint")]
