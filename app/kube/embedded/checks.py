"""Checks of what users embed against Kubernetes' own types: probes, env, tolerations, whole pod specs.

The CRD leaves such values open, so that fields newer than this service are kept. Here a wrong JSON type or a missing
required field is an error, and an unknown field is a warning with the nearest name.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache, partial
from itertools import chain, islice
from typing import Self

from app.kube import field, names, quantity, unknown
from app.kube.base import Json
from app.kube.correction import Members, wrong_type
from app.kube.embedded.types import NEVER, TYPES, EmbeddedField, is_before, is_since
from app.kube.merge import DIRECTIVES, PATCH
from app.kube.regex import regex
from app.limits import MAX_ERRORS, MAX_WARNINGS

_NO_MEMBERS = Members()
_Fields = Mapping[str, EmbeddedField]
_IMAGE = regex(r"([a-z0-9+.-]+://)?((?:[^/@.:]*+[.:][^/@]*+/|localhost/)?)([^:@]*)(.*)", re.DOTALL)
"""The scheme, the host, which has a dot or a port, the repository, and the tag and digest."""
_is_repository, is_tag, _is_digest = (
    re.compile(part).fullmatch for part in (names.IMAGE_REPOSITORY, names.IMAGE_TAG, names.IMAGE_DIGEST)
)
_JSON_TYPES = frozenset({"string", "boolean", "integer", "number"})


@cache
def members(type_name: str) -> Members:
    declared = TYPES[type_name]
    return Members(tuple(declared), tuple(key for key, part in declared.items() if part.required))


@cache
def places(type_name: str) -> tuple[str, ...]:
    """Return the fields of a type; of a pod, the fields of its containers first."""
    in_containers = TYPES["Container"] if type_name == "PodSpec" else {}
    others = (name for name in TYPES[type_name] if name not in in_containers)
    return (*(f"containers[].{name}" for name in in_containers), *others)


@cache
def inner_places(type_name: str) -> tuple[str, ...]:
    """Return the fields one level down; of a pod, those of its containers."""
    if type_name == "PodSpec":
        return tuple(place for place in places(type_name) if "." in place)
    lists = {"": "", "[]": "[]"}
    return tuple(
        f"{name}{lists[part.container]}.{place}"
        for name, part in TYPES[type_name].items()
        if part.type in TYPES and part.container in lists
        for place in places(part.type)
    )


class NewerField(field.Advice):
    """The warning of what older API servers drop or refuse; whether it concerns the cluster is known from its release.

    It is a field, or a value of one.
    """

    __slots__ = ("declared", "since")
    declared: EmbeddedField
    since: str

    @classmethod
    def of(cls, declared: EmbeddedField, path: field.Path) -> Self:
        text = f"the API server may drop it without an error: {declared.release}"
        return cls._with(text, path, "dropped-field", declared, declared.since)

    @classmethod
    def of_value(cls, value: object, declared: EmbeddedField, path: field.Path) -> Self:
        since = declared.newer_since
        reason = "Kubernetes takes it behind a feature gate" if since == NEVER else f"Kubernetes {since} takes it"
        text = f"the API server may refuse the value {field.go_quote(str(value))}: {reason}"
        return cls._with(text, path, "newer-value", declared, since)

    @classmethod
    def _with(cls, text: str, path: field.Path, id_: str, declared: EmbeddedField, since: str) -> Self:
        newer = cls(field.with_hint(f"{path}: ", text), path, id_)
        newer.declared, newer.since = declared, since
        return newer


def concerning(warnings: Iterable[field.Advice], release: str) -> list[field.Advice]:
    """Return the warnings without those of what an API server of a release keeps and takes."""
    return [w for w in warnings if not isinstance(w, NewerField) or is_before(release, w.since)]


class RequiredSince(field.Advice):
    """The warning of a missing field without which no pod starts, and which API servers require since a release."""

    __slots__ = ("first",)
    first: str

    @classmethod
    def of(cls, first: str, path: field.Path, message: str) -> Self:
        missing = cls(field.with_hint(f"{path}: ", message), path)
        missing.first = first
        return missing

    def is_error_in(self, release: str) -> bool:
        """Report whether an API server refuses the object; it may be any where the release is not known."""
        return bool(release) and is_since(release, self.first)


def with_release(
    errors: Iterable[field.Error], warnings: Collection[field.Advice], release: str
) -> tuple[list[field.Error], list[field.Advice]]:
    """Return errors and warnings; what an API server of a release refuses is among the errors."""
    refused = [w for w in warnings if isinstance(w, RequiredSince) and w.is_error_in(release)]
    return [*errors, *(field.required(w.path, w.message) for w in refused)], [w for w in warnings if w not in refused]


class TypeCheck:
    __slots__ = ("_above", "errors", "merges", "warnings")

    def __init__(self, above: Callable[[field.Path], Iterable[unknown.Level]] = lambda _: ()) -> None:
        """``above`` returns each object around a place, the nearest first."""
        self.errors: list[field.Error] = []
        self.warnings: list[field.Advice] = []
        self._above = above
        self.merges = False
        """The values are merged over others, so that their objects may say how."""

    @property
    def full(self) -> bool:
        return len(self.errors) >= MAX_ERRORS

    def check(self, value: object, type_name: str, path: field.Path, optional: Collection[str] = ()) -> None:
        """Add the errors and warnings of a value; ``optional`` are required fields that may be absent here."""
        type_ = TYPES[type_name]
        if not isinstance(value, dict):
            self._wrong_type(value, "object", path, members(type_name))
            return
        unknown_keys = []
        for key, item in value.items():
            declared = type_.get(key)
            if declared is None:
                unknown_keys.append(key)
            elif item is not None and not (type(item) is str and declared.type == "string" and not declared.container):
                self._field(item, declared, path.child(key), type_)
            if declared is not None and (declared.since or declared.newer) and item is not None:
                self._newer(item, declared, path.child(key))
        if unknown_keys:
            self._unknown(unknown_keys, value, type_name, path)
        if "image" in type_ and type_["image"].type == "string":
            self.warnings += image_warnings(value.get("image"), path.child("image"))
        for key in members(type_name).required:
            if value.get(key) is None and key not in optional and not self.full:
                self.errors.append(field.required(path.child(key)))

    def _field(self, item: object, declared: EmbeddedField, path: field.Path, owner: _Fields) -> None:
        type_name = declared.type
        if (
            type(item) is dict
            and type_name == "string"
            and not declared.container
            and (name := _meant_for(item, owner))
        ):
            detail = f"must be a string; write {', '.join(item)} below {name}"
            self.errors += [] if self.full else [field.type_invalid(path, item, detail)]
        elif not declared.container:
            self._value(item, type_name, path)
        elif declared.container == "[]" and isinstance(item, list):
            for part_path, part in path.each(item):
                self._value(part, type_name, part_path)
        elif declared.container == "[]":
            self._wrong_type(item, "array", path, _NO_MEMBERS if type_name in _PLAIN else members(type_name))
        elif isinstance(item, dict):  # a map, whose values are scalars in all of Kubernetes' own types
            for key, part in item.items():
                if part is not None:
                    self._value(part, type_name, path.key(key), owner)
        else:
            self._wrong_type(item, "object", path)

    def _value(self, value: object, type_name: str, path: field.Path, around: Collection[str] = ()) -> None:
        if type_name == "any":
            if type(value) is not dict:
                self._wrong_type(value, "object", path)
        elif type_name not in _SCALARS:
            self.check(value, type_name, path)
        elif (fault := _SCALARS[type_name](value)) in _JSON_TYPES:
            self._wrong_type(value, fault, path, around=around)
        elif fault and not self.full:
            self.errors.append(field.invalid(path, value, fault))

    def _wrong_type(
        self, value: object, wanted: str, path: field.Path, inner: Members = _NO_MEMBERS, around: Collection[str] = ()
    ) -> None:
        if not self.full:
            self.errors.append(wrong_type(path, value, wanted, inner, around))

    def _newer(self, value: object, declared: EmbeddedField, path: field.Path) -> None:
        newer = chain([NewerField.of(declared, path)] if declared.since else [], _newer_values(value, declared, path))
        self.warnings += islice(newer, max(MAX_WARNINGS - len(self.warnings), 0))

    def _unknown(self, keys: list[str], value: Json, type_name: str, path: field.Path) -> None:
        if self.merges and value.get(PATCH) in DIRECTIVES:
            keys = [key for key in keys if key != PATCH]
        type_fields = unknown.TypeFields(
            members(type_name), partial(inner_places, type_name), partial(self._above, path)
        )
        advices = unknown.warnings(keys, value, path, type_fields)
        self.warnings += islice(advices, max(MAX_WARNINGS - len(self.warnings), 0))


def _newer_values(value: object, declared: EmbeddedField, path: field.Path) -> Iterator[NewerField]:
    """Yield the warnings of a value, or of the items of a list, that older API servers refuse."""
    if declared.newer:
        for place, part in path.each(value) if isinstance(value, list) else [(path, value)]:
            if re.fullmatch(declared.newer, str(part)):
                yield NewerField.of_value(part, declared, place)


def _meant_for(item: Json, type_: _Fields) -> str:
    """Return the field of a type whose fields an object in place of another has: ``valueFrom`` for ``value``."""
    objects = {name: TYPES[part.type] for name, part in type_.items() if part.type in TYPES and not part.container}
    return next((name for name, part in objects.items() if item and item.keys() <= part.keys()), "")


def image_warnings(name: object, path: field.Path) -> list[field.Advice]:
    """Warn of an image that the API server accepts and no registry can have."""
    if not isinstance(name, str) or name != name.strip() or "{{" in name:
        return []
    why = field.UNRENDERED if field.is_template(name) else _image_problem(name) if name else ""
    return [field.advice(path, field.with_hint(f"{field.go_quote(name)} is not an image name: ", why))] if why else []


def _image_problem(name: str) -> str:
    if any(char.isspace() for char in name):
        return "it contains a space"
    parts = _IMAGE.fullmatch(name)
    if parts is None:
        return ""
    plain = f"{parts[2]}{parts[3].lower()}{parts[4]}"
    if plain != name:
        problem = "it begins with a scheme" if parts[1] else "its repository must be lower case"
        return field.with_hint(problem, field.did_you_mean(plain))
    tag, at, digest = parts[4].partition("@")
    if not _is_repository(parts[3]):
        return "its repository must be names of letters, digits, '.', '_' and '-', with '/' between them"
    if tag and not is_tag(tag[1:]):
        return f"{field.go_quote(tag[1:])} is not a tag" if tag[1:] else "its tag is empty"
    return "its digest must be sha256: and 64 hexadecimal digits" if at and not _is_digest(digest) else ""


def _integer(value: object, bits: int) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return "integer"
    limit = 1 << (bits - 1)
    if value >= limit:
        return f"must be at most {limit - 1}"
    return f"must be at least {-limit}" if value < -limit else ""


def _quantity(value: object) -> str:
    if not isinstance(value, str):
        return "" if type(value) in (int, float) else "string"
    return "" if quantity.is_quantity(value) else quantity.problem(value)


_SCALARS: dict[str, Callable[[object], str]] = {
    "string": lambda value: "" if type(value) is str else "string",
    "boolean": lambda value: "" if type(value) is bool else "boolean",
    "int32": lambda value: _integer(value, 32),
    "int64": lambda value: _integer(value, 64),
    "quantity": _quantity,
    "int-or-string": lambda value: "" if type(value) is str else _integer(value, 32),
}
"""Checks that return the required JSON type, another problem, or an empty string."""
_PLAIN = frozenset({*_SCALARS, "any"})
