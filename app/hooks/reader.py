"""The only reader of specs: from bytes to a document, a typed spec, errors and warnings.

Sync, customize, admission, related objects and the command line use it, so they find the same errors. Size and depth
are checked before anything is decoded.
"""

from collections.abc import Callable
from enum import Enum
from functools import partial
from itertools import islice
from typing import Generic, TypeVar

import msgspec
import orjson
import yaml
from msgspec import Raw

from app.hooks.memo import remembered
from app.kube import modelfields
from app.kube.base import KubeModel
from app.kube.field import SPEC, Advice, Error, invalid, required
from app.kube.reading import boundedyaml, decode, rawchecks
from app.limits import MAX_DEPTH, MAX_ERRORS, MAX_UNKNOWN_NAMES, MAX_WARNINGS, MAX_YAML_BYTES

ModelT = TypeVar("ModelT", bound=KubeModel)
ValueT = TypeVar("ValueT")


class ReadFault(Enum):
    """Reason why a spec is not decoded. Parents never have one; reviews and related objects may."""

    DEPTH = f"is nested deeper than {MAX_DEPTH} levels"
    JSON = "is not valid JSON"


class SpecReading(msgspec.Struct, Generic[ModelT], frozen=True):
    """A decoded spec and the errors of its schema. Never changed, because it may be cached."""

    type: type[ModelT]
    document: object = None
    """The decoded JSON; ``None`` if it could not be decoded."""
    spec: ModelT | None = None
    """``None`` if the schema refuses the document."""
    errors: list[Error] = []
    is_valid: bool = False
    """True if the embedded types are valid too, so that rules may rely on them."""
    fault: ReadFault | None = None
    doubts: list[Advice] = []
    """Unknown fields of embedded types."""
    text: bytes = b""

    @property
    def warnings(self) -> list[Advice]:
        quoted = rawchecks.typographic_quotes(self.text, self.document, SPEC)
        unknown = modelfields.unknown_fields(self.document, self.type, SPEC)
        return [*islice(unknown, MAX_UNKNOWN_NAMES), *self.doubts, *islice(quoted, MAX_WARNINGS)]


def read(raw: bytes | Raw, type_: type[ModelT], *, needed: bool = True, embedded: bool = True) -> SpecReading[ModelT]:
    """Read a spec. ``null`` counts as absent: an error if the spec is ``needed``, else an empty spec.

    ``embedded``: also check what has a type of Kubernetes' own, such as a probe.
    """
    text = bytes(raw)
    if text == b"null":
        if needed:
            return SpecReading(type_, errors=[required(SPEC)])
        text = b"{}"
    try:
        if errors := rawchecks.excess(text, SPEC):
            return SpecReading(type_, errors=errors)
        if rawchecks.depth_exceeds(text):
            return SpecReading(type_, errors=[_too_deep(text)], fault=ReadFault.DEPTH)
        document = orjson.loads(text)
    except (orjson.JSONDecodeError, msgspec.DecodeError) as error:  # half a surrogate, 1e400: not skipped any more
        return SpecReading(type_, errors=[invalid(SPEC, "…", f"not valid JSON: {error}")], fault=ReadFault.JSON)
    spec, errors = decode.decode_document(document, type_)
    wrong, doubts = ([], []) if spec is None or not embedded else modelfields.check_embedded(spec, SPEC)
    errors += wrong
    if rawchecks.may_have_controls(text):
        errors += islice(rawchecks.control_characters(document, SPEC), MAX_ERRORS)
    is_valid = spec is not None and embedded and not wrong
    return SpecReading(type_, document, spec, errors, is_valid=is_valid, doubts=doubts, text=text)


def typed(raw: bytes | Raw, type_: type[ModelT]) -> ModelT | None:
    """Decode a spec in which :func:`read` found no error, without checking it again; for ``null`` an empty one."""
    text = bytes(raw)
    return decode.decode_document({} if text == b"null" else orjson.loads(text), type_)[0]


def read_related(raw: bytes | Raw, type_: type[ModelT]) -> SpecReading[ModelT]:
    """As :func:`read`, for related objects. Valid ones are cached, because many workloads name the same few."""
    text = bytes(raw)
    make = partial(read, text, type_, needed=False)
    return remembered((type_, text), make, lambda reading: reading.spec is not None and not reading.errors)


class _Loader(boundedyaml.LOADER):  # type: ignore[misc]  # chosen when it is imported
    """YAML without merge keys (``<<``): ten lines with them can make more values than memory holds."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Keep such a key, so that constructing the document fails."""


def read_yaml(text: str, of: Callable[[object], ValueT | str]) -> ValueT | str:
    """Return ``of`` of an operator's YAML, or its error. Only the result is cached: a document may contain itself."""
    if len(text) > MAX_YAML_BYTES:
        return f"is longer than {MAX_YAML_BYTES} characters"
    return remembered((of, text), partial(_yaml, text, of), lambda _: True)


def _yaml(text: str, of: Callable[[object], ValueT | str]) -> ValueT | str:
    try:
        boundedyaml.check_bounds(text)
        return of(_Loader(text).get_single_data())
    except (yaml.YAMLError, ValueError, RecursionError):
        return "is not valid YAML, or has merge keys (<<)"


def _too_deep(raw: bytes) -> Error:
    """Return the error at the first field with the nesting; at the spec if it cannot be decoded."""
    try:
        document = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return invalid(SPEC, "…", rawchecks.TOO_DEEP)
    for key, value in document.items() if isinstance(document, dict) else ():
        try:
            if rawchecks.depth_exceeds(orjson.dumps(value), MAX_DEPTH - 1):
                return invalid(SPEC.child(key), "…", rawchecks.TOO_DEEP)
        except TypeError:
            return invalid(SPEC.child(key), "…", rawchecks.TOO_DEEP)
    return invalid(SPEC, "…", rawchecks.TOO_DEEP)
