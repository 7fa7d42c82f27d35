"""The one reader of specs: bytes in, document, typed spec, errors and warnings out.

Sync, customize, admission, related objects and the command line read with it, so they find the same mistakes. Whatever
the bytes are, reading them ends soon: size and depth are looked at before anything is made of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from itertools import islice
from typing import Any, Generic, TypeVar

import msgspec
import orjson
import yaml
from msgspec import Raw

from app.hooks.memo import remembered
from app.kube.base import KubeModel
from app.kube.decode import SPEC, decode_document
from app.kube.field import Advice, Error, invalid, required
from app.kube.modelfields import check_embedded, unknown_fields
from app.kube.rawchecks import TOO_DEEP, control_characters, depth_exceeds, excess, may_have_controls
from app.limits import MAX_DEPTH, MAX_ERRORS, MAX_UNKNOWN_FIELDS, MAX_YAML_BYTES

ModelT = TypeVar("ModelT", bound=KubeModel)
ValueT = TypeVar("ValueT")


class Fault(Enum):
    """Why no API server can have sent a spec; a related object and a review may be anybody's all the same."""

    DEPTH = f"is nested deeper than {MAX_DEPTH} levels"
    JSON = "is not valid JSON"


@dataclass(frozen=True, slots=True)
class Reading(Generic[ModelT]):
    """What a spec says, and what is wrong with it by its schema. Never changed: it may be remembered."""

    type: type[ModelT]
    document: Any = None
    """The JSON as it was sent; ``None`` where it could not be read."""
    spec: ModelT | None = None
    """``None`` where the document breaks the schema."""
    errors: list[Error] = field(default_factory=list)
    fits: bool = False
    """Whether what is embedded has the right types too, so that rules may rely on them."""
    fault: Fault | None = None
    doubts: list[Advice] = field(default_factory=list)
    """Unknown fields of what is embedded."""
    text: bytes = b""
    """What was read."""

    @property
    def warnings(self) -> list[Advice]:
        """A line for each field that the type does not have."""
        return [*islice(unknown_fields(self.document, self.type, SPEC), MAX_UNKNOWN_FIELDS), *self.doubts]


def read(raw: bytes | Raw, type_: type[ModelT], *, needed: bool = True) -> Reading[ModelT]:
    """Read a spec. ``null`` counts as absent: an error where the spec is ``needed``, else an empty one."""
    text = bytes(raw)
    if text == b"null":
        if needed:
            return Reading(type_, errors=[required(SPEC)])
        text = b"{}"
    try:
        if errors := excess(text, SPEC):
            return Reading(type_, errors=errors)
        if depth_exceeds(text):
            return Reading(type_, errors=[_too_deep(text)], fault=Fault.DEPTH)
        document = orjson.loads(text)
    except (orjson.JSONDecodeError, msgspec.DecodeError) as error:  # half a surrogate, 1e400: not skipped any more
        return Reading(type_, errors=[invalid(SPEC, "…", f"not valid JSON: {error}")], fault=Fault.JSON)
    spec, errors = decode_document(document, type_)
    wrong, doubts = ([], []) if spec is None else check_embedded(spec, SPEC)
    errors += wrong
    if may_have_controls(text):
        errors += islice(control_characters(document, SPEC), MAX_ERRORS)
    return Reading(type_, document, spec, errors, fits=spec is not None and not wrong, doubts=doubts, text=text)


def read_related(raw: bytes | Raw, type_: type[ModelT]) -> Reading[ModelT]:
    """As :func:`read`, for related objects: many workloads name the same few, so what is sound is remembered."""
    text = bytes(raw)
    return remembered((type_, text), partial(read, text, type_, needed=False), _is_sound)


def _is_sound(reading: Reading[Any]) -> bool:
    return reading.spec is not None and not reading.errors


class _Loader(yaml.SafeLoader):
    """YAML without merge keys (``<<``): ten lines with them can stand for more values than memory holds."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Leaves such a key for what it is, and nothing can be made of it."""


def read_yaml(text: str, of: Callable[[Any], ValueT | str]) -> ValueT | str:
    """What ``of`` makes of an operator's YAML, or what is wrong with it; remembered, since every sync reads it.

    Not the document itself: with anchors it may contain itself.
    """
    if len(text) > MAX_YAML_BYTES:
        return f"is longer than {MAX_YAML_BYTES} characters"
    return remembered((of, text), partial(_yaml, text, of), lambda _: True)


def _yaml(text: str, of: Callable[[Any], ValueT | str]) -> ValueT | str:
    try:
        return of(_Loader(text).get_single_data())
    except (yaml.YAMLError, ValueError, RecursionError):
        return "is not valid YAML, or has merge keys (<<)"


def _too_deep(raw: bytes) -> Error:
    """Names the first field that holds the nesting, where the text can be read at all."""
    try:
        document = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return invalid(SPEC, "…", TOO_DEEP)
    for key, value in document.items() if isinstance(document, dict) else ():
        try:
            if depth_exceeds(orjson.dumps(value), MAX_DEPTH - 1):
                return invalid(SPEC.child(key), "…", TOO_DEEP)
        except TypeError:
            return invalid(SPEC.child(key), "…", TOO_DEEP)
    return invalid(SPEC, "…", TOO_DEEP)
