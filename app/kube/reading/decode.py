"""Decode JSON to typed specs, and pydantic's errors to Kubernetes' field errors, with what to write instead."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from app.kube import correction, field
from app.kube.base import FORMS, KubeModel
from app.kube.field import Hint, Segments, did_you_mean, with_hint
from app.kube.modelfields import bounds_at, members_at
from app.kube.quantity import integer
from app.kube.reading.stored import without_nulls
from app.limits import MAX_ERRORS

ModelT = TypeVar("ModelT", bound=KubeModel)

_LARGEST = 2**31 - 1
"""The maximum of Go's int32, which messages do not name as a bound."""
_ROUNDS = 4
"""Removing one value can leave its object incomplete, and so on up to the depth of specs."""


def decode_document(
    document: object, type_: type[ModelT], path: field.Path = field.SPEC
) -> tuple[ModelT | None, list[field.Error]]:
    """Return the typed spec, or every schema error at once.

    ``null`` counts as absent and ``5.0`` as 5, as in the API server; both are rare, so they are handled only after
    strict validation failed.
    """
    try:
        return type_.model_validate(document, by_alias=True, by_name=False), []
    except ValidationError:
        document = without_nulls(document, math.inf)  # an integer of any length is of the right type, and too large
    try:
        return type_.model_validate(document, by_alias=True, by_name=False), []
    except ValidationError as error:
        details = error.errors(include_url=False)[:MAX_ERRORS]
    errors = [schema_error(detail, document, path, type_) for detail in details]
    return None, list({error.path: error for error in reversed(errors)}.values())[::-1]


def decode_rest(document: object, type_: type[ModelT], errors: Sequence[field.Error]) -> ModelT | None:
    """Return the typed spec of a document without the values that have schema errors, if that is valid.

    So the rules between fields are checked too, and a user reads every mistake at once. An object without a required
    value is removed; directly below ``spec`` a valid value takes the place of the missing one.
    """
    rest = without_nulls(document)
    for _ in range(_ROUNDS):
        for error in errors:
            rest = _without(rest, error, type_)
            if rest is None:
                return None
        spec, errors = decode_document(rest, type_)
        if spec is not None:
            return spec
    return None


def _without(document: object, error: field.Error, type_: type[KubeModel]) -> object:
    segments = error.path.segments[1:]
    if error.type is field.ErrorType.REQUIRED:
        if len(segments) == 1:
            return _with_stand_in(document, str(segments[0]), type_)
        segments = segments[:-1]
    while segments and isinstance(segments[-1], int):
        segments = segments[:-1]
    return _removed(document, segments) if segments else None


def _with_stand_in(document: Any, name: str, type_: type[KubeModel]) -> Any:
    """Set a required field of the spec itself to a valid value: any string, or the first of an enumeration."""
    info = next((info for key, info in type_.model_fields.items() if name in (info.alias, key)), None)
    annotation = None if info is None else info.annotation
    if get_origin(annotation) is Literal:
        return {**document, name: get_args(annotation)[0]}
    return {**document, name: "unset"} if annotation is str else None


def _removed(document: object, segments: Segments) -> object:
    head, *tail = segments
    if isinstance(document, dict) and head in document:
        if not tail:
            return {key: value for key, value in document.items() if key != head}
        return {**document, head: _removed(document[head], tuple(tail))}
    if isinstance(document, list) and isinstance(head, int) and head < len(document):
        return [*document[:head], _removed(document[head], tuple(tail)), *document[head + 1 :]]
    return document


def schema_error(detail: ErrorDetails, document: object, root: field.Path, type_: type[KubeModel]) -> field.Error:
    kind, value, context = detail["type"], detail["input"], detail.get("ctx", {})
    path = _path(detail["loc"], document, root, is_missing=kind == "missing")
    if kind == "missing":
        return field.required(path)
    if kind == "literal_error":
        supported, synonym = _alternatives(context["expected"]), type_.synonyms.get(str(value).lower())
        return field.not_supported(path, value, supported, suggestion=synonym if synonym in supported else None)
    if kind == "string_too_long":
        return field.too_long(path, context["max_length"])
    if kind == "too_long":
        return field.too_many(path, context.get("actual_length") or len(value), context["max_length"])
    place = path.segments[len(root.segments) :]
    if kind in _BOUNDS:
        lowest, highest = bounds_at(type_, place)
        is_range = lowest > -math.inf and highest < _LARGEST
        words = f"be between {lowest} and {highest}" if is_range else _BOUNDS[kind].format(**context)
        return field.invalid(path, value, with_hint(f"must {words}", _fraction(value, context)))
    if kind == "string_pattern_mismatch":
        return field.invalid(path, value, FORMS[context["pattern"]](value))
    json_type = "int-or-string" if detail["loc"][-1:] == ("int",) else _json_type(kind)
    synonym = type_.synonyms.get(str(value).lower(), "")
    number = integer(synonym) if json_type == "integer" else None
    if number is not None and number >= bounds_at(type_, place)[0]:
        return field.type_invalid(path, value, with_hint("must be a whole number", did_you_mean(synonym)))
    if json_type:
        is_in_map = len(place) > 1 and not members_at(type_, place[:-1]).fields
        outer = members_at(type_, place[:-2]).fields if is_in_map else ()
        return correction.wrong_type(path, value, json_type, members_at(type_, place), outer)
    return field.invalid(path, value, context.get("hint") or detail["msg"].removeprefix("Value error, "))


def _fraction(value: float, context: Mapping[str, float]) -> Hint:
    """Suggest the fraction that a percentage is, where at most 1 is accepted."""
    highest = context.get("le", math.inf)
    return did_you_mean(f"{value / 100:g}") if highest <= 1 < value <= 100 * highest else Hint()


_BOUNDS = {
    "greater_than_equal": "be at least {ge}",
    "greater_than": "be more than {gt}",
    "less_than_equal": "be at most {le}",
    "less_than": "be less than {lt}",
    "multiple_of": "be a multiple of {multiple_of}",
    "string_too_short": "not be empty; {min_length} characters at least",
    "too_short": "not be empty; {min_length} items at least",
}

_JSON_TYPES = {
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "string": "string",
    "memory": "memory",
    "list": "array",
    "dict": "object",
    "model": "object",
    "model_attributes": "object",
}


def _json_type(kind: str) -> str:
    """Return the JSON type that a ``*_type`` or ``*_parsing`` error requires; ``memory`` is a quantity."""
    for suffix in ("_type", "_parsing", "_from_float", "_parsing_size"):
        if kind.endswith(suffix):
            return _JSON_TYPES.get(kind.removesuffix(suffix), "")
    return ""


def _alternatives(expected: str) -> list[str]:
    """Split the values of a literal, which pydantic lists as ``'a', 'b' or 'c'``."""
    return [part.strip().strip("'") for part in expected.replace(" or ", ", ").split(", ")]


def _path(loc: Sequence[str | int], document: object, root: field.Path, *, is_missing: bool) -> field.Path:
    """Return ``loc`` without the segments that name a union's branch or a validator."""
    path, value = root, document
    for position, segment in enumerate(loc):
        is_absent = is_missing and position == len(loc) - 1
        if isinstance(segment, int):
            path = path.index(segment)
            value = value[segment] if isinstance(value, list) and segment < len(value) else None
        elif isinstance(value, dict) and (segment in value or is_absent):
            path, value = path.member(segment), value.get(segment)
    return path
